//! Errors that prevent reading a debug file.

use crate::message::{DEBUG_AGAIN, GIVE_DEBUG, Unreadable};
use std::io;

use thiserror::Error;

/// Reason why a `debug.cbor` could not be read. Messages do not name the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DebugInfoError {
    /// The file could not be opened or read.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file has no bytes.
    #[error("the file is empty: the process that wrote it was probably stopped; {DEBUG_AGAIN}")]
    Empty,
    /// The file is an SQLite database, most likely the profile.
    #[error(
        "this is an SQLite database, not a debug.cbor; give profile.pop first and debug.cbor second"
    )]
    Sqlite,
    /// The file does not start like a CBOR map.
    #[error("this is {found}, not a debug.cbor (a CBOR map with `contexts`); {GIVE_DEBUG}")]
    NotCbor {
        /// Kind of file that it looks like, with its article.
        found: String,
    },
    /// The CBOR is malformed before the first context is complete.
    #[error(
        "no context could be read, since the CBOR is malformed before byte {offset}; {DEBUG_AGAIN}"
    )]
    Syntax {
        /// Number of bytes read, up to the end of the malformed item.
        offset: u64,
    },
    /// The file is a CBOR map, but not one that Poplar writes.
    #[error("this is a CBOR document, but not a debug.cbor: {problem}; {GIVE_DEBUG}")]
    Shape {
        /// Description of the part that is missing or has a wrong type.
        problem: &'static str,
    },
    /// A context has more ancestors than any software writes.
    #[error(
        "the context with the id {id} has more than {limit} contexts above it, more than any \
         software writes; {DEBUG_AGAIN}"
    )]
    TooDeep {
        /// Id of the context.
        id: u64,
        /// Maximum number of ancestors.
        limit: usize,
    },
    /// The file has more contexts, texts or names than can be numbered.
    #[error("the file holds more than {limit} {what}, more than any model has; {DEBUG_AGAIN}")]
    TooMany {
        /// `contexts`, `texts` or `names`.
        what: &'static str,
        /// Maximum number.
        limit: u64,
    },
}

impl From<io::Error> for DebugInfoError {
    fn from(error: io::Error) -> Self {
        DebugInfoError::Io(error.into())
    }
}

/// Guesses the kind of a file that is not a debug file from its first bytes.
pub(super) fn looks_like(head: &[u8]) -> String {
    let is_text = match std::str::from_utf8(head) {
        Ok(text) => !text.contains('\0'),
        // The bytes may end within a character.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    match head {
        [0x1f, 0x8b, ..] => "a gzip file".to_owned(),
        [b'P', b'K', 3, 4, ..] => "a zip archive".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => "an ELF executable".to_owned(),
        _ if is_text => "a text file".to_owned(),
        [first, ..] => format!("a file that begins with the byte {first:#04x}"),
        [] => "an empty file".to_owned(),
    }
}
