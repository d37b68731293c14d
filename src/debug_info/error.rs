//! Why a debug file could not be read at all.

use crate::message::{DEBUG_AGAIN, GIVE_DEBUG, Unreadable};
use std::io;

use thiserror::Error;

/// Why a `debug.cbor` gave nothing. The messages do not name the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DebugInfoError {
    /// Opening or reading failed.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file has no bytes.
    #[error("the file is empty, as one is whose process was stopped; {DEBUG_AGAIN}")]
    Empty,
    /// An SQLite database, most likely the profile.
    #[error(
        "this is an SQLite database, not a debug.cbor; give profile.pop first and debug.cbor second"
    )]
    Sqlite,
    /// The file does not start as a CBOR map does.
    #[error("this is {found}, not a debug.cbor (a CBOR map with `contexts`); {GIVE_DEBUG}")]
    NotCbor {
        /// The kind of file that it looks like, with its article.
        found: String,
    },
    /// The CBOR is malformed before the first context is complete.
    #[error(
        "no context could be read, since the CBOR is malformed before byte {offset}; {DEBUG_AGAIN}"
    )]
    Syntax {
        /// How many bytes were read, up to the end of what is malformed.
        offset: u64,
    },
    /// A CBOR map, but not one that Poplar writes.
    #[error("this is a CBOR document, but not a debug.cbor: {problem}; {GIVE_DEBUG}")]
    Shape {
        /// The part that is missing or of the wrong type.
        problem: &'static str,
    },
    /// More contexts above one than any software writes.
    #[error(
        "the context with the id {id} has more than {limit} contexts above it, more than any \
         software writes; {DEBUG_AGAIN}"
    )]
    TooDeep {
        /// The context.
        id: u64,
        /// How many may be above it.
        limit: usize,
    },
    /// More contexts or texts than this version can number.
    #[error("the file holds more than {limit} {what}, more than any model has; {DEBUG_AGAIN}")]
    TooMany {
        /// Contexts, texts or fields.
        what: &'static str,
        /// The maximum number.
        limit: u64,
    },
}

impl From<io::Error> for DebugInfoError {
    fn from(error: io::Error) -> Self {
        DebugInfoError::Io(error.into())
    }
}

/// Says what a file that is not a debug file may be, from its first bytes.
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
