//! Why a debug file could not be read at all.

use std::io;

use thiserror::Error;

/// Why a `debug.cbor` gave nothing. The messages do not name the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DebugInfoError {
    /// Opening or reading failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file has no bytes.
    #[error("the file is empty; a debug.cbor has at least a map with `contexts`")]
    Empty,
    /// An SQLite database, most likely the profile.
    #[error("this is an SQLite database, not a debug.cbor: are the two arguments swapped?")]
    Sqlite,
    /// The file does not start as a CBOR map does.
    #[error("this is {found}, not a debug.cbor (a CBOR map with `contexts`)")]
    NotCbor {
        /// What it looks like instead, with its article.
        found: String,
    },
    /// The CBOR is malformed before the first context is complete.
    #[error("malformed CBOR at byte {offset}, before any context could be read")]
    Syntax {
        /// Offset into the file, in bytes from 0.
        offset: u64,
    },
    /// A CBOR map, but not one that Poplar writes.
    #[error("this is a CBOR document, but not a debug.cbor: {problem}")]
    Shape {
        /// What is missing or of the wrong type.
        problem: &'static str,
    },
    /// More contexts or texts than this version can number.
    #[error("the file holds more than {limit} {what}")]
    TooMany {
        /// Contexts, texts or fields.
        what: &'static str,
        /// How many are the most.
        limit: u64,
    },
}
