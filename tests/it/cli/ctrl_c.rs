//! Ctrl-C while a file is being written: the file goes, the exit code is 130.

use popliner::interrupt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

use crate::support::wait;

/// Tells the child, which is this same program, where to write.
const FOLDER: &str = "POPLINER_TEST_INTERRUPT";
const READY: &str = "both files are there";

/// Not a test of its own: what the child does.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    interrupt::install().unwrap();
    let done = interrupt::guard(&folder.join("done"));
    fs::write(folder.join("done"), "whole").unwrap();
    drop(done);
    let _partial = interrupt::guard(&folder.join("partial"));
    fs::write(folder.join("partial"), "hal").unwrap();
    println!("\n{READY}");
    loop {
        std::thread::park();
    }
}

#[test]
fn an_interrupt_removes_what_is_being_written_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cli::ctrl_c::child", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == READY));
    assert!(folder.path().join("partial").exists());
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(wait(&mut child).code(), Some(130));
    assert!(!folder.path().join("partial").exists());
    assert_eq!(
        fs::read_to_string(folder.path().join("done")).unwrap(),
        "whole"
    );
}
