//! The analysed model in one file: [`save`] writes it, [`load`] reads it.
//!
//! The file holds a [`Model`] before layers are named, so a loaded model serves any regexes and
//! layer order. It equals the saved model in every respect.
//!
//! # The format
//!
//! Numbers of fixed size are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `89 50 6f 70 4c 0d 0a 0a` |
//! | 4 | version of the format |
//! | 4 | number of parts |
//! | 8 | size of the whole file |
//! | 4 for each part | its bytes |
//! | the rest but 4 | the parts, back to back |
//! | 4 | CRC-32 of all bytes before |
//!
//! Nothing is compressed: most numbers take one byte, a large model takes a fortieth of the size of
//! its profile, and the size of the file bounds the memory that reading it takes.
//!
//! The first part is the [`Model`] without its variables, as [serde] and [postcard] write it:
//! fields in the order of their declaration, and bytes by tile as blobs of varints
//! (`profile/tile_bytes.rs`). Any change of a field changes the version of the format. The second
//! part holds the classes and use sets of variables; the other parts hold the variables of some
//! tiles each, and make up most of a file. Both are described in `variables.rs`.
//!
//! Files are not trusted: a list takes no more memory than its bytes allow, and every position is
//! checked (`check.rs`), so a loaded model has no invalid positions.

mod check;
mod container;
#[cfg(test)]
mod tests;
mod variables;

use crate::atomic::WriteError;
use crate::atomic::{self, only_files};
use crate::message::{SAVE_AGAIN, Unreadable};
use crate::model::Model;
use container::{
    Content, HEADER, MAGIC, Part, VERSION, assemble, check_size, read_whole, stated_size,
    take_apart,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use thiserror::Error;

/// Reason why a model could not be saved or loaded. The caller adds the name of the file.
#[derive(Debug, Error)]
pub enum SavedError {
    /// The file could not be opened or read.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The first bytes are not the magic of a saved model.
    #[error(
        "this is not a model that --save-to-file wrote; give one, or leave --load-from-file out to \
         read a profile.pop"
    )]
    NotSaved,
    /// The file is a saved model of this other format version.
    #[error(
        "the file has format version {0} and this popliner reads version {VERSION}; save it again \
         from profile.pop and debug.cbor with --save-to-file"
    )]
    OtherVersion(u32),
    /// The file has fewer bytes than its header states, or, if that is incomplete, than a header.
    #[error("the file is cut off: it has {0} bytes and should have {1}; {SAVE_AGAIN}")]
    Truncated(u64, u64),
    /// The checksum does not match, or bytes follow it.
    #[error("the file was altered after it was written; {SAVE_AGAIN}")]
    Altered,
    /// The checksum matches, but the content is invalid.
    #[error("the file is damaged or was not written by popliner: {0}; {SAVE_AGAIN}")]
    Invalid(String),
    /// The model exceeds the limits of the format.
    #[error("the model cannot be saved: {0}; leave --save-to-file out")]
    TooLarge(String),
}

impl From<io::Error> for SavedError {
    fn from(error: io::Error) -> Self {
        SavedError::Io(error.into())
    }
}

impl SavedError {
    /// Error about invalid content.
    fn invalid(problem: impl Into<String>) -> Self {
        SavedError::Invalid(problem.into())
    }
}

/// Saves `model` at `path`. The bytes are written to a temporary file in the same folder, which is
/// renamed to `path` once it is complete on disk; an existing file is replaced. On failure the
/// temporary file is removed.
///
/// # Errors
/// [`SavedError::Write`] if the folder cannot be written to or `path` is not a file;
/// [`SavedError::TooLarge`].
pub fn save(model: &Model, path: &Path) -> Result<(), SavedError> {
    // Checked before the expensive encoding.
    if path.exists() {
        only_files(path).map_err(WriteError::from)?;
    }
    atomic::write(path, &to_bytes(model)?)?;
    Ok(())
}

/// Loads the model saved at `path`.
///
/// # Errors
/// [`SavedError`] says whether the file has another kind or version, is cut off or was altered.
pub fn load(path: &Path) -> Result<Model, SavedError> {
    only_files(path)?;
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(HEADER as u64)
        .read_to_end(&mut bytes)?;
    let size = stated_size(&bytes)?;
    check_size(file.metadata()?.len(), size)?;
    from_bytes(&read_whole(&file, size as usize)?)
}

/// Does the file start like one that [`save`] wrote? Then [`load`] reports what is wrong with it.
/// `false` if it cannot be read; a pipe or device is not opened.
pub fn is_saved(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = only_files(path).and_then(|_| {
        let file = File::open(path)?;
        file.take(MAGIC.len() as u64).read_to_end(&mut start)
    });
    read.is_ok() && !start.is_empty() && MAGIC.starts_with(&start)
}

/// Bytes that [`save`] writes; they depend only on the model.
///
/// # Errors
/// [`SavedError::TooLarge`].
pub fn to_bytes(model: &Model) -> Result<Vec<u8>, SavedError> {
    check::steps(model).map_err(SavedError::TooLarge)?;
    let (model_part, variables) = rayon::join(
        || part_of(Content::Model, model),
        || variables::write(&model.variables),
    );
    let mut parts = vec![model_part?];
    parts.extend(variables?);
    assemble(&parts)
}

/// Decodes the bytes of a file.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Model, SavedError> {
    let parts = take_apart(bytes)?;
    let [model, uses, groups @ ..] = &parts[..] else {
        return Err(SavedError::invalid("parts of it are missing"));
    };
    let (variables, model) = rayon::join(|| variables::read(uses, groups), || read(model));
    let model = Model {
        variables: variables?,
        ..model?
    };
    check::all(&model).map_err(SavedError::Invalid)?;
    Ok(model)
}

/// Serializes one part.
fn part_of(content: Content, value: &impl Serialize) -> Result<Part<'static>, SavedError> {
    let bytes = postcard::to_stdvec(value);
    let bytes = bytes.map_err(|error| SavedError::TooLarge(format!("the {content}: {error}")))?;
    let bytes = bytes.into();
    Ok(Part { content, bytes })
}

/// Deserializes one part, which must have no further bytes.
fn read<T: DeserializeOwned>(Part { content, bytes }: &Part<'_>) -> Result<T, SavedError> {
    let mut deserializer = postcard::Deserializer::from_bytes(bytes);
    let value = T::deserialize(&mut deserializer);
    let rest = deserializer.finalize().map_or(0, <[u8]>::len);
    let place = bytes.len() - rest;
    match value {
        Ok(value) if rest == 0 => Ok(value),
        Ok(_) => Err(content.problem(format!("{rest} bytes too many"))),
        Err(error) => Err(content.problem(format!("before byte {place}: {error}"))),
    }
}
