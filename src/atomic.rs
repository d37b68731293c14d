//! Writes files completely or not at all, even if a signal ends the process.

use crate::parallel::lock;
use std::{
    fs::{self, Metadata},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};
use tempfile::NamedTempFile;
use thiserror::Error;

/// This lock is held while a temporary file exists. The signal handler takes the lock before it
/// ends the process, so that no signal leaves a temporary file behind. If a thread panics, its
/// temporary file is removed too, since Rust then drops the variable that owns the file.
static WRITING: Mutex<()> = Mutex::new(());

/// Exit code of a process that a signal ended: the code that shells report after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Makes Ctrl-C, SIGTERM and SIGHUP end the process with exit code 130. If a file is being written,
/// the process first completes the file. If one of these signals is ignored when the process
/// starts, as under `nohup`, no handler is installed for any of them.
///
/// # Errors
/// If one of the signals is ignored, or if the system refuses to install a handler or to start the
/// thread of the handler.
pub fn end_on_signals() -> Result<(), ctrlc::Error> {
    ctrlc::try_set_handler(|| {
        let _no_file_is_incomplete = lock(&WRITING);
        std::process::exit(INTERRUPTED);
    })
}

/// The reason why a file could not be written, and what the user can do. The caller adds the name
/// of the file.
#[derive(Debug, Error)]
#[error("it cannot be written: {0}")]
pub struct WriteError(String);

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                "the folder does not exist; give a path in a folder that exists".to_owned()
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                format!("{error}; give a path that you may write to")
            }
            _ => format!("{error}; free space, or give another path"),
        })
    }
}

/// Writes `bytes` to the file at `path`, after following links (see [`target`]). The bytes go to a
/// temporary file in the same folder, and this file is renamed once all bytes are on disk. An
/// existing file is replaced, and the new file keeps its permissions. On failure, the temporary
/// file is removed.
///
/// # Errors
/// If the folder cannot be written to, or `path` exists and is not a regular file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let path = target(path);
    let old = replaced(&path)?;
    // Rust drops variables in reverse order. So on an error, the temporary file is removed before
    // the lock is released.
    let _guard = lock(&WRITING);
    let mut file = temporary(folder_of(&path), old.as_ref())?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Checks that a file can be written at `path`, after following links (see [`target`]). Creates and
/// removes a temporary file in the folder of the file.
///
/// # Errors
/// The errors of [`write()`]. A full disk may go unnoticed, since no bytes are written.
pub fn check_folder(path: &Path) -> Result<(), WriteError> {
    let path = target(path);
    replaced(&path)?;
    let _guard = lock(&WRITING);
    temporary(folder_of(&path), None)?;
    Ok(())
}

/// Returns the metadata of the regular file at `path`, which a new file would replace. Returns
/// `None` if there is no file at `path`, and an error if `path` is not a regular file.
fn replaced(path: &Path) -> io::Result<Option<Metadata>> {
    match file_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        old => old.map(Some),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."))
}

/// Returns the metadata of the regular file at `path`. Refuses folders, pipes and devices, since
/// writing would replace them, or reading them might never end.
///
/// # Errors
/// If `path` is not a regular file, or does not exist.
pub fn file_metadata(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}

/// Returns the first `count` bytes of the file at `path`, or all bytes if the file has fewer.
pub fn first_bytes(path: &Path, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Maximum number of symbolic links that are followed from one path; Linux has the same limit.
const LINKS: usize = 40;

/// Returns the path to which `path` leads after all links are followed, even if no file exists
/// there yet. All spellings of one path give the same result. Writing to the returned path replaces
/// the file that a link leads to, and keeps the link.
pub fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(link) = fs::read_link(&path) else {
            break;
        };
        path = folder_of(&path).join(link);
    }
    path.file_name()
        .filter(|_| !path.to_string_lossy().ends_with(std::path::is_separator))
        .and_then(|name| Some(folder_of(&path).canonicalize().ok()?.join(name)))
        .or_else(|| path.canonicalize().ok())
        .unwrap_or_else(|| std::path::absolute(&path).unwrap_or(path))
}

/// Creates a temporary file in `folder`. Unless the file is renamed, it is removed when the
/// returned value is dropped. The file gets the permissions of `old`, the file that it is to
/// replace; if `old` is `None`, it gets the permissions of any new file.
fn temporary(folder: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".popliner-");
    #[cfg(unix)]
    if old.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The user did not ask for a temporary file, so the error loses its text, which names that
    // file, and keeps only its kind, such as "permission denied".
    let file = builder
        .tempfile_in(folder)
        .map_err(|error| io::Error::from(error.kind()))?;
    // The temporary file gets the owner, group and permissions of `old` (the file that it
    // replaces), as far as the system allows. If it cannot get the group, its own group gets no
    // permissions.
    #[cfg(unix)]
    if let Some(old) = old {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let group = Some(old.gid());
        let _ = fchown(&file, Some(old.uid()), group).or_else(|_| fchown(&file, None, group));
        let has_group = file.as_file().metadata()?.gid() == old.gid();
        let mode = old.mode() & if has_group { 0o777 } else { 0o707 };
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_path_leads_to_one_place_by_all_its_spellings() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("o")).unwrap();
        fs::create_dir(at("o/sub")).unwrap();
        let new = target(&at("o/a"));
        assert_eq!(new, folder.path().canonicalize().unwrap().join("o/a"));
        assert_eq!(target(&at("o/sub/../a")), new);
        assert_eq!(target(&at("o/./a")), new);
        assert!(target(&at("o/a/")).to_string_lossy().ends_with('/'));
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink("o", at("linked")).unwrap();
            symlink("linked/a", at("dangling")).unwrap();
            symlink("circle", at("circle")).unwrap();
            assert_eq!(target(&at("linked/a")), new);
            assert_eq!(target(&at("dangling")), new);
            assert!(target(&at("circle")).ends_with("circle"));
        }
        fs::write(&new, "").unwrap();
        assert_eq!(target(&at("o/sub/../a")), new);
    }

    /// Name of the environment variable that tells the child process, a second run of this test
    /// program, into which folder to write.
    const FOLDER: &str = "POPLINER_TEST_SIGNALS";
    const READY: &str = "the file is half written";

    /// The test of signals runs this function in a child process, and sends a signal while the
    /// function holds a half-written file. In an ordinary test run, without the environment
    /// variable [`FOLDER`], the function does nothing.
    #[test]
    fn child() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        let folder = Path::new(&folder);
        end_on_signals().unwrap();
        let guard = lock(&WRITING);
        let file = temporary(folder, None).unwrap();
        println!("\n{READY}");
        // The parent process sends a signal that ends the process, such as SIGINT. It should arrive
        // during this sleep, while the file is half written. If it arrives later, the test still
        // passes, but does not show that the signal waits until the file is complete.
        std::thread::sleep(std::time::Duration::from_millis(200));
        file.persist(folder.join("whole")).unwrap();
        drop(guard);
        loop {
            std::thread::park();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_signal_ends_the_process_after_the_file_is_complete() {
        for signal in ["INT", "TERM", "HUP"] {
            let folder = tempfile::tempdir().unwrap();
            let mut child = Command::new("env")
                .arg("--default-signal=INT,TERM,HUP")
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "atomic::tests::child", "--nocapture"])
                .env(FOLDER, folder.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap() == READY));
            let kill = Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status();
            assert!(kill.unwrap().success());
            assert_eq!(child.wait().unwrap().code(), Some(INTERRUPTED));
            let files = fs::read_dir(folder.path()).unwrap();
            let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
            assert_eq!(names, ["whole"]);
        }
    }
}
