//! Reads a whole file: checks its kind, determines where its document ends, and records errors.

use super::context::{ContextRecord, NO_NAME};
use super::damage::Truncation;
use super::document::Collected;
use super::error::{DebugInfoError, looks_like};
use super::{DebugInfo, index};
use crate::limits;
use rayon::prelude::*;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// CBOR's tag for "this is CBOR".
const SELF_DESCRIBED: &[u8] = b"\xd9\xd9\xf7";
/// Bytes at the start of a file from which its kind is guessed.
const HEAD: u64 = 64;
/// Size of the read buffer, in bytes.
const BUFFER: usize = 1 << 16;
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

pub(super) fn read(mut reader: impl Read) -> Result<DebugInfo, DebugInfoError> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    check_head(&head)?;
    let source = Source::new(head.chain(reader));
    let mut reader = BufReader::with_capacity(BUFFER, source);
    let document =
        ciborium::de::from_reader_with_recursion_limit(&mut reader, limits::NESTED_ITEMS);
    // An error here lies before the map; an error within the map makes it incomplete.
    let mut collected: Collected = document.unwrap_or_default();
    if collected.is_complete {
        reader.fill_buf()?;
    }
    let rest = reader.buffer();
    let offset = reader.get_ref().received - rest.len() as u64;
    if collected.is_complete && !rest.is_empty() {
        match untagged(rest).first().is_some_and(|&byte| is_map(byte)) {
            true => collected.oddities.second_document = Some(offset),
            false => collected.oddities.trailing = Some(offset),
        }
    }
    let source = reader.into_inner();
    match source.failure {
        Some(error) => Err(error.into()),
        None => finish(collected, offset, !source.ended),
    }
}

/// The bytes after CBOR's own tags.
fn untagged(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(SELF_DESCRIBED) {
        bytes = rest;
    }
    bytes
}

/// Does a map begin with this byte?
fn is_map(byte: u8) -> bool {
    matches!(byte, 0xa0..=0xbf)
}

/// Checks that a file with this start may be a debug file: a map, with or without CBOR's own tag
/// before it.
fn check_head(head: &[u8]) -> Result<(), DebugInfoError> {
    let untagged = untagged(head);
    match untagged.first() {
        None if head.is_empty() => Err(DebugInfoError::Empty),
        _ if head.starts_with(SQLITE_MAGIC) => Err(DebugInfoError::Sqlite),
        Some(&byte) if is_map(byte) => Ok(()),
        // The file may be cut off within a tag.
        _ if SELF_DESCRIBED.starts_with(untagged) => Ok(()),
        _ => Err(DebugInfoError::NotCbor {
            found: looks_like(head),
        }),
    }
}

/// Builds the contexts. `offset` is the number of bytes read; `damaged` says whether an incomplete
/// document is malformed at that offset rather than cut off.
fn finish(
    mut collected: Collected,
    offset: u64,
    damaged: bool,
) -> Result<DebugInfo, DebugInfoError> {
    check(&mut collected, offset, damaged)?;
    let Collected {
        mut records,
        mut fields,
        mut names,
        mut oddities,
        ..
    } = collected;
    let (index, duplicates) = index::IdIndex::build(&mut records);
    let limit = limits::CONTEXTS_ABOVE;
    if let Some(id) = index::check_chains(&mut records, &index, limit) {
        return Err(DebugInfoError::TooDeep { id, limit });
    }
    oddities.duplicates = duplicates;
    if oddities.table_complete {
        oddities.names_outside = names_outside(&records, names.len());
    }
    let truncation = (!collected.is_complete).then(|| Truncation {
        contexts: records.len(),
        offset,
        damaged,
        contexts_lost: !oddities.contexts_complete,
        string_table_lost: !oddities.table_complete,
        names: names.len(),
    });
    records.shrink_to_fit();
    fields.shrink_to_fit();
    names.shrink();
    Ok(DebugInfo {
        layers: layers(&records),
        records,
        fields,
        texts: collected.texts.finish(),
        names,
        index,
        damage: oddities.damage(truncation),
        warnings: oddities.warnings(),
    })
}

/// Checks that the data can come from a debug file.
fn check(collected: &mut Collected, offset: u64, damaged: bool) -> Result<(), DebugInfoError> {
    let was_cut = !collected.is_complete && !damaged;
    match collected.refusal.take() {
        Some(refusal) => Err(refusal),
        None if !collected.is_complete && damaged && collected.records.is_empty() => {
            Err(DebugInfoError::Syntax { offset })
        }
        // Cut off before `contexts`: it may be a debug file.
        None if was_cut && !collected.saw_other_key => Ok(()),
        None if !collected.saw_contexts => Err(DebugInfoError::Shape {
            problem: "it has no `contexts`",
        }),
        None => Ok(()),
    }
}

/// Number of contexts whose name is outside a string table of `names` names.
fn names_outside(records: &[ContextRecord], names: usize) -> usize {
    let outside = |record: &&ContextRecord| record.name != NO_NAME && record.name as usize >= names;
    records.par_iter().filter(outside).count()
}

/// Bits of all software layers that occur.
fn layers(records: &[ContextRecord]) -> u16 {
    let bits = records.par_iter().map(|record| record.layer.bit());
    bits.reduce(|| 0, |all, bit| all | bit)
}

/// A reader that stores how many bytes it read and why it stopped, since the errors of the decoder
/// do not say.
#[derive(Debug)]
pub(super) struct Source<R> {
    reader: R,
    /// Bytes read so far; at the end of the stream, its length.
    pub received: u64,
    /// Was the end of the stream reached?
    pub ended: bool,
    /// Error of the reader, if it failed.
    pub failure: Option<io::Error>,
}

impl<R> Source<R> {
    /// Reads from `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            received: 0,
            ended: false,
            failure: None,
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(count) => {
                self.received += count as u64;
                self.ended = count == 0;
                Ok(count)
            }
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }
}
