//! Ctrl-C: no half-written file remains.
//!
//! A process that is interrupted runs no destructors, so a temporary file that
//! removes itself when dropped would stay. Code that writes one registers it
//! here meanwhile ([`guard`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit code of a process that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;

/// Files that are being written.
static WRITING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From here on, Ctrl-C removes the files that are guarded and ends the
/// process with the code 130.
///
/// # Errors
/// When the system refuses, or when this was called before.
pub fn install() -> io::Result<()> {
    let handler = || {
        // Still locked when the process ends: no file is named too late.
        let mut writing = lock();
        remove_all(&mut writing);
        std::process::exit(INTERRUPTED);
    };
    ctrlc::set_handler(handler).map_err(io::Error::other)
}

/// Ctrl-C removes the file at `path` until what this gives is dropped. Ask for
/// it before the file is made (or right after, where its name is not known
/// before), and drop it when the file has its final name or is gone.
#[must_use = "the file is guarded until this is dropped"]
pub fn guard(path: &Path) -> Guard {
    // What is removed must not depend on the working folder.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    lock().push(path.clone());
    Guard { path }
}

/// A file that is being written, see [`guard`].
#[derive(Debug)]
pub struct Guard {
    path: PathBuf,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut writing = lock();
        if let Some(place) = writing.iter().position(|path| *path == self.path) {
            writing.swap_remove(place);
        }
    }
}

fn remove_all(writing: &mut Vec<PathBuf>) {
    for path in writing.drain(..) {
        // It may not be there yet, or have its final name already.
        let _ = fs::remove_file(path);
    }
}

/// A list stays whole whatever happened to the thread that held the lock.
fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use tempfile::TempDir;

    #[test]
    fn a_file_is_named_as_long_as_its_guard_lives() {
        let named = |path: &Path| lock().iter().filter(|named| *named == path).count();
        let path = std::path::absolute("being-written").unwrap();
        let first = guard(Path::new("being-written"));
        let second = guard(&path);
        assert_eq!(named(&path), 2);
        drop(first);
        assert_eq!(named(&path), 1);
        drop(second);
        assert_eq!(named(&path), 0);
    }

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
        install().unwrap();
        let done = guard(&folder.join("done"));
        fs::write(folder.join("done"), "whole").unwrap();
        drop(done);
        let _partial = guard(&folder.join("partial"));
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
            .args(["--exact", "interrupt::tests::child", "--nocapture"])
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
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(!folder.path().join("partial").exists());
        assert_eq!(
            fs::read_to_string(folder.path().join("done")).unwrap(),
            "whole"
        );
    }
}
