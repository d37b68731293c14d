//! Writes files completely or not at all.

use crate::interrupt;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;

/// The reason why a file could not be written. The caller adds the name of the file.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The folder that should hold the file does not exist.
    #[error("it cannot be written: the folder does not exist; give a path in a folder that exists")]
    NoFolder,
    /// The user lacks permission to write the file, or the file system is read-only.
    #[error("it cannot be written: {0}; give a path that you may write to")]
    Closed(io::Error),
    /// The disk is full, or another error occurred.
    #[error("it cannot be written: {0}; free space, or give another path")]
    Other(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::NoFolder,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Closed(error),
            _ => Self::Other(error),
        }
    }
}

/// Writes `bytes` to the file at `path`, after following links (see [`target`]). The bytes go to a
/// temporary file in the same folder, which is renamed once it is complete on disk. An existing
/// file is replaced, and its permissions are kept. On failure, and on signals that end the process,
/// the temporary file is removed.
///
/// # Errors
/// If the folder cannot be written to, or `path` exists and is not a regular file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let path = target(path);
    let old = replaced(&path)?;
    // On an error, `file` is dropped, and so removed, before the guard.
    let folder = folder_of(&path);
    let (_guard, mut file) = interrupt::guarded(|| temporary(folder, old.as_ref()))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Checks that a file can be written at `path`, after following links (see [`target`]), by creating
/// and removing a temporary file in its folder.
///
/// # Errors
/// As [`write()`], except that a full disk may go unnoticed.
pub fn check_folder(path: &Path) -> Result<(), WriteError> {
    let path = target(path);
    replaced(&path)?;
    let made = interrupt::guarded(|| temporary(folder_of(&path), None))?;
    drop(made);
    Ok(())
}

/// Returns the metadata of the regular file at `path`, which a new file would replace; `None` if
/// there is no file. An error if `path` is no regular file.
fn replaced(path: &Path) -> io::Result<Option<Metadata>> {
    match file_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        old => old.map(Some),
    }
}

/// Returns the folder of `path`: its parent, or `.` if the path has only a name.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Returns the metadata of a regular file. Refuses folders, pipes and devices, since they would be
/// replaced, or read endlessly.
///
/// # Errors
/// If `path` is not a regular file, or does not exist.
pub fn file_metadata(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        let error = "it is not a regular file";
        Err(io::Error::new(ErrorKind::InvalidInput, error))
    }
}

/// Maximum length of a chain of symbolic links, as in Linux.
const LINKS: usize = 40;

/// Returns the path to which `path` leads through all links, even if there is no file yet. All
/// spellings of one path give the same result. Writing to this path keeps a link, and replaces the
/// file that the link leads to.
pub fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(canonical) = path.canonicalize() {
            return canonical;
        }
        let Ok(link) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    let whole = std::path::absolute(&path).unwrap_or(path);
    let folder = whole.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, whole.file_name()) {
        (Some(folder), Some(name)) if !is_folder(&whole) => folder.join(name),
        _ => whole,
    }
}

/// Returns whether the path ends in a separator, so that it can only name a folder.
fn is_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes
        .last()
        .is_some_and(|&last| std::path::is_separator(last.into()))
}

/// Creates a temporary file in `folder`, which is removed when it is dropped unless it is renamed
/// first. The file gets the permissions of `old`, the file that it is to replace, or of any new
/// file if `old` is `None`.
fn temporary(folder: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".popliner-");
    #[cfg(unix)]
    if old.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The text of the error names the temporary file, which means nothing to the user.
    let made = builder.tempfile_in(folder);
    let file = made.map_err(|error| io::Error::from(error.kind()))?;
    #[cfg(unix)]
    if let Some(old) = old {
        keep_permissions(file.as_file(), old)?;
    }
    Ok(file)
}

/// Gives `file` the owner, group and permissions of `old` as far as the system allows. If the group
/// cannot be set, the group of `file` gets no permissions.
#[cfg(unix)]
fn keep_permissions(file: &fs::File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let (user, group) = (Some(old.uid()), Some(old.gid()));
    let _ = fchown(file, user, group).or_else(|_| fchown(file, None, group));
    let has_group = file.metadata()?.gid() == old.gid();
    let mode = old.mode() & if has_group { 0o777 } else { 0o707 };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(is_folder(&target(&at("o/a/"))));
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
}
