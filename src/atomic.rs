//! Writes files completely or not at all.

use crate::interrupt;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;

/// Reason why a file could not be written. The caller adds its name.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The folder does not exist.
    #[error("it cannot be written: the folder does not exist; give a path in a folder that exists")]
    NoFolder,
    /// The user lacks permission to write there.
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

/// Writes `bytes` to [`target`] of `path`. They go to a temporary file in the same folder, which is
/// renamed once it is complete on disk; an existing file is replaced and its permissions are kept.
/// On failure, and on signals that end the process, the temporary file is removed.
///
/// # Errors
/// If the folder cannot be written to, or `path` is not a file.
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

/// Checks that a file can be written to [`target`] of `path`, by creating and removing a temporary
/// file in its folder.
///
/// # Errors
/// As [`write`], except that a full disk may go unnoticed.
pub fn check_folder(path: &Path) -> Result<(), WriteError> {
    let path = target(path);
    replaced(&path)?;
    let made = interrupt::guarded(|| temporary(folder_of(&path), None))?;
    drop(made);
    Ok(())
}

/// Metadata of the file that a file at `path` would replace; `None` if there is none.
fn replaced(path: &Path) -> io::Result<Option<Metadata>> {
    match only_files(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        old => old.map(Some),
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Metadata of a regular file. Folders, pipes and devices are refused: they would be replaced, or
/// read endlessly.
///
/// # Errors
/// If `path` is not a regular file, or does not exist.
pub fn only_files(path: &Path) -> io::Result<Metadata> {
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

/// The path to which `path` leads through all links, even if there is no file yet. It does not
/// depend on the spelling, and a link that is written to remains a link.
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

/// Does the path end in a separator, so that it can only name a folder?
fn is_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes
        .last()
        .is_some_and(|&last| std::path::is_separator(last.into()))
}

/// Temporary file that is removed unless it is renamed. It has the permissions of any new file, or
/// those of the `old` file that it is to replace.
fn temporary(folder: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".popliner-");
    #[cfg(unix)]
    if old.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The error's own text names the temporary file, which means nothing to the user.
    let made = builder.tempfile_in(folder);
    let file = made.map_err(|error| io::Error::from(error.kind()))?;
    #[cfg(unix)]
    if let Some(old) = old {
        keep_permissions(file.as_file(), old)?;
    }
    Ok(file)
}

/// Gives a file the owner, group and permissions of another as far as the system allows, but a
/// different group gets no permissions.
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
