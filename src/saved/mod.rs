//! The analysed model as one file: [`save`] writes it, [`load`] reads it back.
//!
//! What is saved is a [`Model`] before layers are named, so a loaded one serves
//! any regexes and order, and equals the saved one in everything.
//!
//! # The format, version 4
//!
//! Numbers of fixed size are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `89 50 6f 70 4c 0d 0a 0a` |
//! | 4 | version of the format |
//! | 4 | number of frames |
//! | 8 | size of the whole file |
//! | 12 for each frame | its kind, its stored bytes, its bytes when decompressed, 32 bits each |
//! | the rest but 8 | the frames, back to back: Zstandard, each on its own |
//! | 8 | XXH3 (64 bits, seed 0) of all bytes before |
//!
//! A frame that compresses to less than 1/32 is filled up to that with a
//! skippable frame, and a reader refuses one that claims to hold more: so the
//! size of the file bounds the memory that reading it takes.
//!
//! Frames stand in the order of their kinds. Inside, numbers are varints
//! (LEB128), a text is its length in bytes and UTF-8, and values by tile are
//! the number of runs and for each run the tiles left out before it, how many
//! tiles it covers, and its value. A *list* is cut into frames of about 1 MiB,
//! each of which begins with the number of its entries; everything else is one
//! frame.
//!
//! | kind | holds |
//! |---|---|
//! | 1 shape | target: tiles per IPU, tiles, bytes per tile, IPUs, replicas, architecture; numbers of steps, operations, bodies, classes, sets, vertex types, programs, recorded tiles, categories, warnings, labels, calls; 0, or 1 and the bottleneck: tile, step, bytes, number of variables |
//! | 2 operations (list) | body; bits: it only makes a tensor, is anonymous, backward, an update, in a function; call + 1, or 0; name; inputs |
//! | 3 bodies (list) | uid; 0, or first step + 1 and last - first; number of vertex types, each with its tiles; vertex state, exact memory of vertices, exchange code and control code by tile; number of pieces, each with its sets (differences) and the same of code |
//! | 4 classes | for each 1 if it is always live, else 2 x its number of ranges; for each range the steps before it and the steps in it |
//! | 5 sets | for each but the empty one how far before it the smaller set stands, and the difference of its last body to that of the set before (zigzag); label; companion, or 0 |
//! | 6 vertex code (list) | code by tile |
//! | 7 recorded code | for vertex code, vertex state, exchange code and control code: bytes of the variables by tile |
//! | 8 code variables | by tile the number of items, and of each class, set and bytes |
//! | 9 programs (list) | id; 0 `OnTileExecute`, 1 `DoExchange`; name; bytes; 0 or body + 1 |
//! | 10 recorded tiles (list) | total; 0, or 1 and the total with gaps; always live; not always live |
//! | 11 categories (list) | name; bytes by tile |
//! | 12 bottleneck variables (list) | name; category; bytes; set |
//! | 13 warnings (list) | text |
//! | 14 origin | report format, three numbers; version of Poplar, time, device and clock, each 0, or 1 and what it is; options of the compilation and of the target: how many, and of each name and value |
//! | 15 cycles | 0, or 1 for estimates, or 2 and the number of executed runs; then cycles of no operation, of everything else, and of each operation |
//! | 16 labels (list) | name; tensor; kind |
//! | 17 calls (list) | call around it + 1, or 0; operation + 1, or 0; function; sets around it (differences) |
//! | 18 uses | number of uses; the distinct (class, set) of all items, ascending: difference of the class; the set, within a class less the one before and 1 |
//! | 19 tiles | number of items by tile; number of frames of items; number of tiles in each |
//! | 20 items (list) | how many bytes the next part takes; by tile and item the use, as the difference to the one before on that tile; by item the bytes |
//!
//! Every position is checked against what it points to, so nothing that works
//! on a loaded model meets one that is not there.

mod columns;
mod error;
mod format;
mod items;
mod origin;
mod read;
mod records;
mod shape;
mod tables;
#[cfg(test)]
mod tests;
mod write;

pub use error::SavedError;

use crate::atomic::{self, only_files};
use crate::model::Model;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Saves `model` at `path`. The bytes go to a temporary file in the same
/// folder, which takes the final name once all of it is on disk; what stood
/// there is replaced. On failure the temporary file is removed.
///
/// # Errors
/// [`SavedError::Io`] when the folder cannot be written to or `path` is
/// something other than a file; [`SavedError::TooLarge`].
pub fn save(model: &Model, path: &Path) -> Result<(), SavedError> {
    // Before the work of encoding.
    if path.exists() {
        only_files(path)?;
    }
    atomic::write(path, &to_bytes(model)?)?;
    Ok(())
}

/// Loads the model that was saved at `path`.
///
/// # Errors
/// [`SavedError`] says whether the file is of another kind or version, cut off
/// or altered.
pub fn load(path: &Path) -> Result<Model, SavedError> {
    only_files(path)?;
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(format::HEADER as u64)
        .read_to_end(&mut bytes)?;
    let size = format::stated_size(&bytes)?;
    let found = file.metadata()?.len();
    format::check_size(found, size)?;
    bytes.reserve_exact((size as usize).saturating_sub(bytes.len()));
    file.take(size).read_to_end(&mut bytes)?;
    from_bytes(&bytes)
}

/// The bytes that [`save`] writes: always the same for the same model.
///
/// # Errors
/// [`SavedError::TooLarge`].
pub fn to_bytes(model: &Model) -> Result<Vec<u8>, SavedError> {
    write::encode(model)
}

/// The model in the bytes of a file.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Model, SavedError> {
    read::decode(bytes)
}
