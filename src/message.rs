//! Defines the types of errors and warnings that all modules share. A message says what happened
//! and where, then `; `, then the way out: what the user can do.
//!
//! docs/messages.md lists all messages, and tests compare all that the command prints with that
//! page. The type of a message determines the exit code of the command:
//!
//! | type | meaning | exit code |
//! |---|---|---|
//! | [`FileError`] | a file cannot be read or used | 3 |
//! | an error enum of one module | a file cannot be read or used, where code distinguishes the reasons | 3, or 4 for `Internal` |
//! | `usage` | the command line asks for something impossible | 2 |
//! | [`BadValue`] | the value of an option cannot be understood | 2 |
//! | [`Warning`] | something is unusual, but results are possible | unchanged |

use crate::escape::printable;
use serde::{Deserialize, Serialize};
use std::{fmt, io, ops::Deref, path::Path};
use thiserror::Error;

// Ends of error messages that tell the user what to do, such as to copy a damaged file again.
pub(crate) const PROFILE_AGAIN: &str = "copy the profile again, or record it again";
pub(crate) const DEBUG_AGAIN: &str =
    "copy debug.cbor again, or record it again together with the profile";
pub(crate) const OWN_DEBUG: &str = "give the debug.cbor of the process that wrote the profile";
pub(crate) const GIVE_PROFILE: &str = "give the profile.pop that Poplar wrote";
pub(crate) const GIVE_DEBUG: &str = "give the debug.cbor that Poplar wrote";
/// End of the error message about a profile with larger numbers than [`crate::limits`] allows,
/// which is usually damaged. It says what the user can do.
pub(crate) const OVER_BOUND: &str =
    "copy the profile again, or record it again, or report it if it is sound";
pub(crate) const REPORT_THIS: &str =
    "report this with the profile: it is an error in popliner, and no answer is given";
pub(crate) const SAVE_AGAIN: &str = "copy the file again, or save it again with --save-to-file";
pub(crate) const GIVE_REPORT: &str = "give a file that --export-json wrote";

/// The reason why the contents of a file cannot be read or used. The caller adds the name of the
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FileError(String);

/// The result of reading a file. The error is a [`FileError`] unless the type parameter `E` names
/// another type.
pub(crate) type Result<T, E = FileError> = std::result::Result<T, E>;

impl FileError {
    /// Makes an error with the message `text`, which must end with what the user can do and be
    /// listed in docs/messages.md.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Returns `Err` with a [`FileError`], for a file that cannot be used. The message `text` must end
/// with what the user can do and be listed in docs/messages.md.
pub(crate) fn unusable<T>(text: impl Into<String>) -> Result<T> {
    Err(FileError::new(text))
}

/// Turns an error of the operating system while a file or folder was read into a message about the
/// file.
impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "you have no permission to read it: {error}; change the permissions of the file and \
                 of the folders above it, or run as a user who may read it"
            ),
            _ => format!("it cannot be read: {error}; give the path of a readable file"),
        })
    }
}

/// A warning: something is unusual, but results are possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Warning(String);

impl Warning {
    /// Makes a warning with the message `text`, which must end with what the user can do and be
    /// listed in docs/messages.md.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Warnings about files, each with the path of its file as messages show it.
pub(crate) type FileWarnings = Vec<(String, Warning)>;

/// Pairs each of `warnings` with `path`, the file that the warnings are about.
pub(crate) fn about<'w>(
    path: &Path,
    warnings: impl IntoIterator<Item = &'w Warning>,
) -> FileWarnings {
    warnings
        .into_iter()
        .map(|warning| (displayed(path), warning.clone()))
        .collect()
}

/// Returns `path` as messages show it: characters that a terminal would act on are escaped.
pub(crate) fn displayed(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Deref for Warning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// An error about an option value that cannot be understood. The field is the message, which must
/// end with what the user can do and be listed in docs/messages.md.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadValue(pub(crate) String);

/// An error of wrong usage: the options contradict each other, the model or the files. The command
/// exits with code 2.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// Makes an error of wrong usage (exit code 2) with the message `text`, which must end with what
/// the user can do and be listed in docs/messages.md.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Turns the error of any module into an error of wrong usage, for which the command exits with
/// code 2.
pub(crate) fn refused(error: &impl std::error::Error) -> anyhow::Error {
    UsageError(printable(&error.to_string())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_closed_names_permissions_first() {
        let message = |kind| FileError::from(io::Error::from(kind)).to_string();
        let closed = message(io::ErrorKind::PermissionDenied);
        assert!(closed.starts_with("you have no permission to read it: "));
        assert!(message(io::ErrorKind::NotFound).starts_with("it cannot be read: "));
    }
}
