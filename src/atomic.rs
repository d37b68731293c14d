//! Files that are there as a whole or not at all.

use crate::interrupt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use thiserror::Error;

/// Why a file could not be written. The caller adds its name.
#[derive(Debug, Error)]
#[error("it cannot be written: {0}; free space, or give a path that can be written to")]
pub struct WriteError(pub io::Error);

/// Writes `bytes` to `path`. They go to a temporary file in the same folder,
/// which takes the final name once all of it is on disk; what stood there is
/// replaced. On failure, and on Ctrl-C, the temporary file is removed.
///
/// # Errors
/// When the folder cannot be written to or `path` is something other than a
/// file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    try_write(path, bytes).map_err(WriteError)
}

fn try_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through a link, so that the link stays one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.exists() {
        only_files(path)?;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut file = temporary(folder.unwrap_or(Path::new(".")))?;
    let _guard = interrupt::guard(file.path());
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A folder, pipe or device would be replaced, or read without end.
///
/// # Errors
/// When `path` is something other than a file, or not there.
pub fn only_files(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ))
    }
}

/// A file that is removed unless it gets its final name, with the permissions
/// of any other new file.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".popliner-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // Its own text names the temporary file, which the user did not ask for.
    let made = builder.tempfile_in(folder);
    made.map_err(|error| error.kind().into())
}
