//! What can be wrong with a saved model, or with saving one.

use thiserror::Error;

/// Why a model could not be saved or loaded. The caller adds the file's name.
#[derive(Debug, Error)]
pub enum SavedError {
    /// The file could not be opened, read or written at all.
    #[error("it cannot be read or written")]
    Io(#[from] std::io::Error),
    /// The first bytes are not those of a saved model.
    #[error("this is no model that --save-to-file wrote{hint}")]
    NotSaved {
        /// What it looks like instead; empty or starting with a separator.
        hint: &'static str,
    },
    /// A saved model, but in another format.
    #[error(
        "the file has format version {found} and this popliner reads version {known}; save it \
         again from profile.pop and debug.cbor with --save-to-file"
    )]
    OtherVersion {
        /// The version that the file states.
        found: u32,
        /// The only version that is read here.
        known: u32,
    },
    /// The file ends before its end.
    #[error(
        "the file is cut off: it has {found} bytes and should have {expected}; copy it or save it \
         again"
    )]
    Truncated {
        /// The size of the file in bytes.
        found: u64,
        /// The size that its header states; where the header itself is not
        /// whole, the size of a header.
        expected: u64,
    },
    /// The checksum is another one than that of the bytes in front of it, or
    /// something stands behind it.
    #[error("the file was altered after it was written; copy it or save it again")]
    Altered,
    /// The checksum is right, but what the file says cannot be.
    #[error("the file is damaged or was not written by popliner: {0}; save it again")]
    Invalid(String),
    /// The model is beyond what the format can hold.
    #[error("the model cannot be saved: {0}")]
    TooLarge(String),
}

impl SavedError {
    /// Something that cannot be.
    pub(super) fn invalid(problem: impl Into<String>) -> Self {
        SavedError::Invalid(problem.into())
    }
}
