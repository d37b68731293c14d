//! Saves an analysed model in one file ([`save`]) and loads it again ([`load`]).
//!
//! The file contains a [`Model`] before layers are determined, and the regexes that the user gave
//! for them. A loaded model can be used with any regex and any layer order, and with the saved
//! regexes where the user gives none. It equals the saved model in every respect.
//!
//! # The format
//!
//! Numbers of fixed size are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `89 50 6f 70 4c 0d 0a 0a` |
//! | 4 | version of the format |
//! | 8 | size of the whole file |
//! | the rest but 4 | the model |
//! | 4 | CRC-32 of all bytes before |
//!
//! Nothing is compressed: most numbers take one byte, a large model takes a fortieth of the size of
//! its profile, and the size of the file bounds the memory that reading it takes.
//!
//! The [`Model`] is written by [serde] and [postcard]: fields in the order of their declaration,
//! variables (`variables.rs`) as blobs of varints. After the first release, any change of a field
//! changes the version of the format.
//!
//! Files are not trusted: a list takes no more memory than its bytes allow, and every position is
//! checked (`check.rs`), so a loaded model has no invalid positions.

mod check;
#[cfg(test)]
mod tests;
mod variables;

use crate::atomic::{self, WriteError, file_metadata, first_bytes};
use crate::message::{SAVE_AGAIN, Unreadable};
use crate::model::Model;
use flate2::Crc;
use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::Path;
use thiserror::Error;

/// The first bytes of the file. The first one has its high bit set, and line ends of several kinds
/// follow, so that a program that converts text changes them and the damage is detected.
const MAGIC: [u8; 8] = *b"\x89PopL\r\n\n";

/// The version of the format. After the first release, it changes with every saved field.
const VERSION: u32 = 1;

/// The size of the header in bytes: magic, version, and size of the file.
const HEADER: usize = 8 + 4 + 8;

/// The size of the checksum in bytes: a CRC-32 of all bytes before it.
const CHECKSUM: usize = 4;

/// The reason why a model could not be saved or loaded. The caller adds the name of the file.
#[derive(Debug, Error)]
pub enum SavedError {
    /// The file could not be opened or read.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file does not begin with the magic of a saved model.
    #[error(
        "this is not a model that --save-to-file wrote; give one, or leave --load-from-file out to \
         read a profile.pop"
    )]
    NotSaved,
    /// The file is a saved model in another version of the format, which this is.
    #[error(
        "the file has format version {0} and this popliner reads version {VERSION}; save it again \
         from profile.pop and debug.cbor with --save-to-file"
    )]
    OtherVersion(u32),
    /// The file is shorter than its header says, or than a header. With the size of the file in
    /// bytes, and the size that it should at least have.
    #[error("the file is cut off: it has {0} bytes and should have {1}; {SAVE_AGAIN}")]
    Truncated(u64, u64),
    /// The checksum does not match the bytes before it, or other bytes follow it.
    #[error("the file was altered after it was written; {SAVE_AGAIN}")]
    Altered,
    /// The checksum matches, but the bytes are not a valid model. With a description of the defect.
    #[error("the file is damaged or was not written by popliner: {0}; {SAVE_AGAIN}")]
    Invalid(String),
    /// The model exceeds a limit of the format. With a description of the limit.
    #[error("the model cannot be saved: {0}; leave --save-to-file out")]
    TooLarge(String),
}

impl From<io::Error> for SavedError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.into())
    }
}

/// Saves `model` in a file at `path` and replaces an existing file. The bytes are written to a
/// temporary file in the same folder first, which is renamed to `path` once it is complete on disk,
/// and removed if writing fails.
///
/// # Errors
/// [`SavedError::Write`] if the folder cannot be written to or `path` is not a regular file;
/// [`SavedError::TooLarge`] if the model exceeds a limit of the format.
pub fn save(model: &Model, path: &Path) -> Result<(), SavedError> {
    // This check comes before the expensive encoding.
    if path.exists() {
        file_metadata(path).map_err(WriteError::from)?;
    }
    atomic::write(path, &to_bytes(model)?)?;
    Ok(())
}

/// Loads the model that [`save`] wrote to `path`.
///
/// # Errors
/// If the file cannot be read, is no saved model, has another version, is cut off, or was altered;
/// the variant of [`SavedError`] says which.
pub fn load(path: &Path) -> Result<Model, SavedError> {
    let size = file_metadata(path)?.len();
    check_header(&first_bytes(path, HEADER as u64)?, size)?;
    from_bytes(&fs::read(path)?)
}

/// Does the file begin like one that [`save`] wrote? If so, [`load`] gives a better error than a
/// reader of profiles, even if the file is damaged. Returns `false` if the file cannot be read, and
/// does not open pipes and devices.
pub fn is_saved(path: &Path) -> bool {
    let start = file_metadata(path).and_then(|_| first_bytes(path, MAGIC.len() as u64));
    start.is_ok_and(|start| !start.is_empty() && MAGIC.starts_with(&start))
}

/// Returns the bytes of the file that [`save`] writes for `model`. They only depend on the model.
///
/// # Errors
/// [`SavedError::TooLarge`] if the model exceeds a limit of the format.
pub fn to_bytes(model: &Model) -> Result<Vec<u8>, SavedError> {
    check::steps(model).map_err(SavedError::TooLarge)?;
    let model =
        postcard::to_stdvec(model).map_err(|error| SavedError::TooLarge(error.to_string()))?;
    Ok(file_of(&model))
}

/// Returns the bytes of a saved file with `model`, the encoded model: header, model, checksum.
fn file_of(model: &[u8]) -> Vec<u8> {
    let size = (HEADER + model.len() + CHECKSUM) as u64;
    let (version, size) = (VERSION.to_le_bytes(), size.to_le_bytes());
    let mut file = [&MAGIC[..], &version, &size, model].concat();
    file.extend(checksum(&file));
    file
}

/// Decodes the bytes of a whole file that [`save`] wrote.
///
/// # Errors
/// The errors of [`load`] about the content of a file.
pub fn from_bytes(bytes: &[u8]) -> Result<Model, SavedError> {
    check_header(bytes, bytes.len() as u64)?;
    let (content, stated) = bytes.split_last_chunk().ok_or(SavedError::Altered)?;
    if content.len() < HEADER || checksum(content) != *stated {
        return Err(SavedError::Altered);
    }
    match postcard::take_from_bytes::<Model>(&content[HEADER..]) {
        Ok((model, [])) => match check::problem(&model) {
            None => Ok(model),
            Some(problem) => Err(SavedError::Invalid(problem)),
        },
        Ok((_, rest)) => Err(SavedError::Invalid(format!(
            "{} bytes too many",
            rest.len()
        ))),
        Err(error) => Err(SavedError::Invalid(error.to_string())),
    }
}

/// Returns an error if the magic or the version in `header`, the first bytes of a file, is wrong,
/// or if `size`, the size of the file in bytes, differs from the size in the header.
fn check_header(header: &[u8], size: u64) -> Result<(), SavedError> {
    if !MAGIC.starts_with(&header[..header.len().min(MAGIC.len())]) {
        return Err(SavedError::NotSaved);
    }
    let cut = || SavedError::Truncated(size, HEADER as u64);
    let rest = header.get(MAGIC.len()..).ok_or_else(cut)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(SavedError::OtherVersion(version));
    }
    let stated = u64::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?);
    match size.cmp(&stated) {
        Ordering::Less => Err(SavedError::Truncated(size, stated)),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(SavedError::Altered),
    }
}

/// Returns the CRC-32 of `content`, little-endian.
fn checksum(content: &[u8]) -> [u8; CHECKSUM] {
    let mut crc = Crc::new();
    crc.update(content);
    crc.sum().to_le_bytes()
}
