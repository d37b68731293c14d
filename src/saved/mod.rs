//! Saves an analysed model in one file ([`save`]) and loads it again ([`load`]).
//!
//! The file contains a [`Model`] whose layers are not determined yet, and the regexes that the user
//! gave to find layers. A loaded model can be used with any regex and any layer order; where the
//! user gives no regex, the saved one is used. A loaded model equals the saved model in every
//! respect.
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
//! | all bytes except the first 20 and the last 4 | the model |
//! | 4 | CRC-32 of all previous bytes |
//!
//! Nothing is compressed. Most numbers take one byte, and a large model takes a fortieth of the
//! size of its profile. The size of the file bounds the memory that is needed to read the file.
//!
//! The [`Model`] is written by [serde] and [postcard]: first its variables (`variables.rs`) as blobs
//! of varints, then all other fields in the order of their declaration. After the first release, any
//! change of a field changes the version of the format.
//!
//! Files are not trusted: a list takes no more memory than its bytes in the file allow, and every
//! index is checked (`check.rs`), so a loaded model has no invalid indices.

mod check;
#[cfg(test)]
mod tests;
mod variables;

use crate::{
    atomic::{self, file_metadata, first_bytes},
    message::{FileError, Result, SAVE_AGAIN, unusable},
    model::Model,
};
use flate2::Crc;
use std::{cmp::Ordering, fs, path::Path};
use variables::EncodedGroups;

/// The first bytes of a saved model. They contain a byte with the high bit set and line ends of two
/// kinds: a program that converts the file as text changes these bytes, so the damage is detected.
const MAGIC: [u8; 8] = *b"\x89PopL\r\n\n";

/// Version of the format of saved models. After the first release, every change of a saved field
/// changes this version.
const VERSION: u32 = 1;

/// Size in bytes of the header of a saved model: magic, version, and size of the file.
const HEADER: usize = 8 + 4 + 8;

/// Size in bytes of the checksum at the end of a saved model, a CRC-32 of all bytes before the
/// checksum.
const CHECKSUM: usize = 4;

/// Saves `model` in a file at `path`, and replaces an existing file. The bytes are first written to
/// a temporary file in the same folder. This file is renamed to `path` once it is complete on disk,
/// and removed if writing fails.
///
/// # Errors
/// If the folder cannot be written to, `path` is not a regular file, or the model exceeds a limit
/// of the format.
pub fn save(model: &Model, path: &Path) -> Result<()> {
    atomic::write(path, &to_bytes(model)?).map_err(|error| FileError::new(error.to_string()))
}

/// Loads the model that [`save`] wrote to `path`.
///
/// # Errors
/// If the file cannot be read, is no saved model, has another version, is cut off, or was altered.
pub fn load(path: &Path) -> Result<Model> {
    let size = file_metadata(path)?.len();
    check_header(&first_bytes(path, HEADER as u64)?, size)?;
    let bytes = fs::read(path)?;
    let model = from_bytes(&bytes);
    // Freeing the bytes of a large file takes as long as checking the model, so another thread
    // frees them.
    rayon::spawn(|| drop(bytes));
    model
}

/// Returns whether the file begins like a saved model. If so, [`load`] gives a better error than a
/// reader of profiles, even if the file is damaged. Returns `false` if the file cannot be read or
/// is not a regular file, such as a pipe, which is not opened.
pub fn is_saved(path: &Path) -> bool {
    let start = file_metadata(path).and_then(|_| first_bytes(path, MAGIC.len() as u64));
    start.is_ok_and(|start| !start.is_empty() && MAGIC.starts_with(&start))
}

/// Returns the bytes of the file that [`save`] writes for `model`. Equal models give equal bytes.
///
/// # Errors
/// If the model exceeds a limit of the format.
pub fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    let too_large = |limit| {
        FileError::new(format!(
            "the model cannot be saved: {limit}; leave --save-to-file out"
        ))
    };
    check::steps(model).map_err(too_large)?;
    let model = encode(model).map_err(|error| too_large(error.to_string()))?;
    Ok(file_of(&model))
}

/// Encodes `model`: its variables, and then all its other fields.
fn encode(model: &Model) -> postcard::Result<Vec<u8>> {
    let variables = [&model.variables, &model.code_variables].map(EncodedGroups::new);
    postcard::to_stdvec(&(variables, model))
}

/// Decodes a model that [`encode`] wrote, and checks it. While one thread decodes the variables,
/// another decodes all other fields. The error says what is wrong with the bytes.
fn decode(bytes: &[u8]) -> Result<Model, String> {
    let text = |error: postcard::Error| error.to_string();
    let (groups, rest) =
        postcard::take_from_bytes::<[EncodedGroups<&[u8]>; 2]>(bytes).map_err(text)?;
    let (decoded, variables) = rayon::join(
        || postcard::take_from_bytes(rest),
        || groups.map(|groups| groups.decode()),
    );
    let (model, rest) = decoded.map_err(text)?;
    if !rest.is_empty() {
        return Err(format!("{} bytes too many", rest.len()));
    }
    let [Some(variables), Some(code_variables)] = variables else {
        return Err("the groups of variables are not in order".to_owned());
    };
    let model = Model {
        variables,
        code_variables,
        ..model
    };
    check::all(&model).map(|()| model)
}

/// Returns the bytes of a file that contains the encoded model `model`: header, model, checksum.
fn file_of(model: &[u8]) -> Vec<u8> {
    let size = (HEADER + model.len() + CHECKSUM) as u64;
    let (version, size) = (VERSION.to_le_bytes(), size.to_le_bytes());
    let mut file = [&MAGIC[..], &version, &size, model].concat();
    file.extend(checksum(&file));
    file
}

/// Decodes a model from the bytes of a whole file that [`save`] wrote, and checks it.
///
/// # Errors
/// If the content of the file is invalid, with the same errors as [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
    check_header(bytes, bytes.len() as u64)?;
    let (content, stated) = bytes.split_last_chunk().ok_or_else(altered)?;
    let model = content.get(HEADER..).ok_or_else(altered)?;
    let (decoded, checksum) = rayon::join(|| decode(model), || checksum(content));
    if checksum != *stated {
        return Err(altered());
    }
    decoded.map_err(|problem| {
        FileError::new(format!(
            "the file is damaged or was not written by popliner: {problem}; {SAVE_AGAIN}"
        ))
    })
}

/// Returns the error for a saved model that was altered: its checksum does not match the bytes
/// before the checksum, or the file is longer than its header says.
fn altered() -> FileError {
    FileError::new(format!(
        "the file was altered after it was written; {SAVE_AGAIN}"
    ))
}

/// Returns an error if the magic or the version in `header`, the first bytes of a file, is wrong,
/// or if `size`, the actual size of the file in bytes, differs from the size that the header gives.
fn check_header(header: &[u8], size: u64) -> Result<()> {
    if !MAGIC.starts_with(&header[..header.len().min(MAGIC.len())]) {
        return unusable(
            "this is not a model that --save-to-file wrote; give one, or leave --load-from-file \
             out to read a profile.pop",
        );
    }
    let cut_off = |least: u64| {
        FileError::new(format!(
            "the file is cut off: it has {size} bytes and should have {least}; {SAVE_AGAIN}"
        ))
    };
    let cut = || cut_off(HEADER as u64);
    let rest = header.get(MAGIC.len()..).ok_or_else(cut)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return unusable(format!(
            "the file has format version {version} and this popliner reads version {VERSION}; save \
             it again from profile.pop and debug.cbor with --save-to-file"
        ));
    }
    let stated = u64::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?);
    match size.cmp(&stated) {
        Ordering::Less => Err(cut_off(stated)),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(altered()),
    }
}

fn checksum(content: &[u8]) -> [u8; CHECKSUM] {
    let mut crc = Crc::new();
    crc.update(content);
    crc.sum().to_le_bytes()
}
