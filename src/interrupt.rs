//! Removes half-written files when a signal ends the process.
//!
//! An interrupted process runs no destructors, so a temporary file that removes itself when dropped
//! would remain. Code that writes a temporary file creates it with [`guarded`].

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// Absolute paths of the temporary files that are being written.
static WRITING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes Ctrl-C, SIGTERM and the limit of processor time remove all files of [`guarded`] and end
/// the process. The exit code is 128 plus the number of the signal, as in shells: 130 for Ctrl-C.
/// After the call, writing beyond the limit of file sizes is an error of the write and does not end
/// the process.
///
/// # Errors
/// If the system refuses to install a handler or to start its thread.
pub fn install() -> io::Result<()> {
    listen(|signal| {
        // The list stays locked until the process ends, so that no file is added to it from now on.
        let mut writing = lock();
        for path in writing.drain(..) {
            // The file may have its final name already, so that there is nothing to remove.
            let _ = fs::remove_file(path);
        }
        std::process::exit(128 + signal);
    })
}

/// Starts a thread that calls `end` with the number of each signal that should end the process, and
/// returns once the thread listens.
#[cfg(unix)]
fn listen(end: fn(i32)) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
    use signal_hook::iterator::Signals;
    // Nobody reads the flag, but with a handler the signal does not end the process.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
    // The thread starts first, since the system may refuse it: registered signals would then be
    // lost.
    let work = move || match Signals::new([SIGINT, SIGTERM, SIGXCPU]) {
        Ok(mut signals) => {
            let _ = ready.send(Ok(()));
            signals.forever().for_each(end);
        }
        Err(error) => drop(ready.send(Err(error))),
    };
    std::thread::Builder::new().spawn(work)?;
    is_ready.recv().unwrap_or(Ok(()))
}

#[cfg(not(unix))]
fn listen(end: fn(i32)) -> io::Result<()> {
    const INTERRUPT: i32 = 2;
    ctrlc::set_handler(move || end(INTERRUPT)).map_err(io::Error::other)
}

/// Calls `make`, which creates a temporary file, and registers the file to be removed if a signal
/// ends the process before the returned guard is dropped. Drop the guard once the file has its
/// final name or is gone.
///
/// # Errors
/// The error of `make`.
pub fn guarded(
    make: impl FnOnce() -> io::Result<NamedTempFile>,
) -> io::Result<(Guard, NamedTempFile)> {
    // The lock keeps the process from ending between creation and registration.
    let mut writing = lock();
    let file = make()?;
    // The path must not depend on the working folder.
    let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
    writing.push(path.clone());
    Ok((Guard { path }, file))
}

/// Keeps a temporary file registered for removal by [`guarded`], until it is dropped.
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

/// Locks the list of files. A poisoned lock is taken too, since a panic cannot leave the list half
/// changed.
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

    /// Environment variable with the folder for the child, which is this same program.
    const FOLDER: &str = "POPLINER_TEST_INTERRUPT";
    const READY: &str = "both files are there";

    /// Not a test: the work of the child process.
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
