//! Signals that end the process: no half-written file remains.
//!
//! A process that is interrupted runs no destructors, so a temporary file that
//! removes itself when dropped would stay. Code that writes one makes it here
//! ([`guarded`]).

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// Files that are being written.
static WRITING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From here on, Ctrl-C, SIGTERM and the end of a limit of processor time remove the files
/// that are guarded and end the process; its code is 128 and the number of the signal, as
/// shells have it: 130 for Ctrl-C. A limit of the size of files is an error where one is
/// written.
///
/// # Errors
/// When the system refuses.
pub fn install() -> io::Result<()> {
    listen(|signal| {
        // Still locked when the process ends: no file is named too late.
        let mut writing = lock();
        for path in writing.drain(..) {
            // It may have its final name already.
            let _ = fs::remove_file(path);
        }
        std::process::exit(128 + signal);
    })
}

#[cfg(unix)]
fn listen(end: fn(i32)) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
    use signal_hook::iterator::Signals;
    // The flag is for nobody: with it, the signal does not end the process.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    // First the thread, which the system may refuse: signals that nobody takes would be lost.
    let work = move || match Signals::new([SIGINT, SIGTERM, SIGXCPU]) {
        Ok(mut signals) => {
            let _ = tell.send(Ok(()));
            signals.forever().for_each(end);
        }
        Err(error) => drop(tell.send(Err(error))),
    };
    std::thread::Builder::new().spawn(work)?;
    told.recv().unwrap_or(Ok(()))
}

#[cfg(not(unix))]
fn listen(end: fn(i32)) -> io::Result<()> {
    const INTERRUPT: i32 = 2;
    ctrlc::set_handler(move || end(INTERRUPT)).map_err(io::Error::other)
}

/// Makes a file that is removed when the process is ended, until the guard is dropped: do
/// that when it has its final name or is gone.
///
/// # Errors
/// Those of `make`.
pub fn guarded(
    make: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<(Guard, NamedTempFile)> {
    // Nothing ends the process between the making and the guard.
    let mut writing = lock();
    let file = make()?;
    // The removed file must not depend on the working folder.
    let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
    writing.push(path.clone());
    Ok((Guard { path }, file))
}

/// A file that is being written, see [`guarded`].
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

/// A list stays whole whatever happened to the thread that held the lock.
fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use tempfile::TempDir;

    fn file(folder: &Path) -> (Guard, NamedTempFile) {
        guarded(|| NamedTempFile::new_in(folder)).unwrap()
    }

    #[test]
    fn a_file_is_named_as_long_as_its_guard_lives() {
        let folder = TempDir::new().unwrap();
        let named = || {
            let of_folder = |path: &&PathBuf| path.starts_with(folder.path());
            lock().iter().filter(of_folder).count()
        };
        let (first, _) = file(folder.path());
        let (second, _) = file(folder.path());
        assert_eq!(named(), 2);
        drop(first);
        assert_eq!(named(), 1);
        drop(second);
        assert_eq!(named(), 0);
        assert!(guarded(|| NamedTempFile::new_in(folder.path().join("missing"))).is_err());
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
        let (guard, done) = file(folder);
        done.persist(folder.join("done")).unwrap();
        drop(guard);
        let (_guard, mut partial) = file(folder);
        partial.write_all(b"hal").unwrap();
        println!("\n{READY}");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_signal_removes_what_is_being_written_and_nothing_else() {
        for (signal, code) in [("INT", 130), ("TERM", 143), ("XCPU", 152)] {
            let folder = TempDir::new().unwrap();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "interrupt::tests::child", "--nocapture"])
                .env(FOLDER, folder.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap() == READY));
            let files = || fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(files(), 2);
            let kill = Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status();
            assert!(kill.unwrap().success());
            assert_eq!(child.wait().unwrap().code(), Some(code));
            assert_eq!(files(), 1);
            assert!(folder.path().join("done").exists());
        }
    }
}
