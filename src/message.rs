//! Common parts of messages. A message says what happened and where, then `; `, then the way out.
//!
//! docs/messages.md lists all messages, and `tests/it/documents/messages.rs` compares that page
//! with the code. It collects the texts that are created in these ways, and no text reaches
//! standard error in another way: texts of `thiserror`, macros of `anyhow`, `usage`,
//! [`FileError::new`], [`Warning::new`] and [`BadValue::new`].

use crate::escape::printable;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use thiserror::Error;

/// The way out for a damaged profile.
pub(crate) const PROFILE_AGAIN: &str = "copy the profile again, or record it again";
/// The way out for damaged contexts.
pub(crate) const DEBUG_AGAIN: &str =
    "copy debug.cbor again, or record it again together with the profile";
/// The way out for contexts of another compilation.
pub(crate) const OWN_DEBUG: &str = "give the debug.cbor of the process that wrote the profile";
/// The way out for a path of something other than a profile.
pub(crate) const GIVE_PROFILE: &str = "give the profile.pop that Poplar wrote";
/// The way out for a path of something other than contexts.
pub(crate) const GIVE_DEBUG: &str = "give the debug.cbor that Poplar wrote";
/// The way out for exceeding a bound of [`crate::limits`], which mostly happens with a damaged
/// profile.
pub(crate) const OVER_BOUND: &str =
    "copy the profile again, or record it again, or report it if it is sound";
/// The way out for an error in this program.
pub(crate) const REPORT_THIS: &str =
    "report this with the profile: it is an error in popliner, and no answer is given";
/// The way out for a damaged saved model.
pub(crate) const SAVE_AGAIN: &str = "copy the file again, or save it again with --save-to-file";
/// The way out for a file that is no report.
pub(crate) const GIVE_REPORT: &str = "give a file that --export-json wrote";

/// Reason why a file or a folder cannot be read. The caller adds its name.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The user lacks permission to read the file or a folder above it.
    #[error(
        "you have no permission to read it: {0}; change the permissions of the file and of the \
         folders above it, or run as a user who may read it"
    )]
    Denied(io::Error),
    /// Any other error of the system.
    #[error("it cannot be read: {0}; give the path of a readable file")]
    Other(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied(error),
            _ => Self::Other(error),
        }
    }
}

/// The reason why a file cannot be read or used. The caller adds the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FileError(String);

impl FileError {
    /// An error with this text, which ends with the way out and is listed in docs/messages.md.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self(Unreadable::from(error).to_string())
    }
}

/// A warning: something is unusual, but results are possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Warning(String);

impl Warning {
    /// A warning with this text, which ends with the way out and is listed in docs/messages.md.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Warnings about files, each with the path of its file.
pub(crate) type FileWarnings = Vec<(String, Warning)>;

/// A path in a message.
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

/// The error about an option value that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// An error with this text, which ends with the way out and is listed in docs/messages.md.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A request that contradicts itself, the model or its files.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// An error of wrong usage. docs/messages.md has its text, which ends with the way out.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// An error of wrong usage from the error of a module.
pub(crate) fn refused(error: &impl std::error::Error) -> anyhow::Error {
    UsageError(printable(&error.to_string())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_closed_names_permissions_first() {
        let message = |kind| Unreadable::from(io::Error::from(kind)).to_string();
        let closed = message(io::ErrorKind::PermissionDenied);
        assert!(closed.starts_with("you have no permission to read it: "));
        assert!(message(io::ErrorKind::NotFound).starts_with("it cannot be read: "));
    }
}
