//! A whole file: what it is, and where its document ends or breaks off.

use std::io::{BufRead, BufReader, Read};

use rayon::prelude::*;

use super::context::{ContextRecord, NO_NAME};
use super::damage::Truncation;
use super::document::Collected;
use super::error::{DebugInfoError, looks_like};
use super::source::Source;
use super::{DebugInfo, index};
use crate::limits;

/// The tag that says "this is CBOR".
const SELF_DESCRIBED: &[u8] = b"\xd9\xd9\xf7";
/// How much of a file is looked at to tell what it is instead.
const HEAD: u64 = 64;
/// Bytes read at a time.
const BUFFER: usize = 1 << 16;
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Reads a document.
pub(super) fn read(mut reader: impl Read) -> Result<DebugInfo, DebugInfoError> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head)?;
    check_head(&head)?;
    let source = Source::new(head.chain(reader));
    let mut reader = BufReader::with_capacity(BUFFER, source);
    let document =
        ciborium::de::from_reader_with_recursion_limit(&mut reader, limits::NESTED_ITEMS);
    // The error is one before the map: those within it end it.
    let mut collected: Collected = document.unwrap_or_default();
    let is_more = collected.is_complete && !reader.fill_buf()?.is_empty();
    let offset = reader.get_ref().received - reader.buffer().len() as u64;
    collected.oddities.trailing = is_more.then_some(offset);
    let source = reader.into_inner();
    match source.failure {
        Some(error) => Err(error.into()),
        None => finish(collected, offset, !source.ended),
    }
}

/// Whether a file that begins like this may be a debug file: a map, with CBOR's own tag
/// in front or without it.
fn check_head(head: &[u8]) -> Result<(), DebugInfoError> {
    let mut untagged = head;
    while let Some(rest) = untagged.strip_prefix(SELF_DESCRIBED) {
        untagged = rest;
    }
    match untagged.first() {
        None if head.is_empty() => Err(DebugInfoError::Empty),
        _ if head.starts_with(SQLITE_MAGIC) => Err(DebugInfoError::Sqlite),
        Some(0xa0..=0xbf) => Ok(()),
        // It may be cut off within a tag.
        _ if SELF_DESCRIBED.starts_with(untagged) => Ok(()),
        _ => Err(DebugInfoError::NotCbor {
            found: looks_like(head),
        }),
    }
}

/// Makes contexts of what was read. `offset` is how many bytes that were, and `damaged`
/// whether a document that is not complete is malformed there.
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

/// Whether what was read can pass as a debug file.
fn check(collected: &mut Collected, offset: u64, damaged: bool) -> Result<(), DebugInfoError> {
    let was_cut = !collected.is_complete && !damaged;
    match collected.refusal.take() {
        Some(refusal) => Err(refusal),
        None if !collected.is_complete && damaged && collected.records.is_empty() => {
            Err(DebugInfoError::Syntax { offset })
        }
        // Cut before `contexts` could come: nothing speaks against it.
        None if was_cut && !collected.saw_other_key => Ok(()),
        None if !collected.saw_contexts => Err(DebugInfoError::Shape {
            problem: "it has no `contexts`",
        }),
        None => Ok(()),
    }
}

/// How many contexts have a name that a table of this many names lacks.
fn names_outside(records: &[ContextRecord], names: usize) -> usize {
    let outside = |record: &&ContextRecord| record.name != NO_NAME && record.name as usize >= names;
    records.par_iter().filter(outside).count()
}

/// The bits of all layers that there are.
fn layers(records: &[ContextRecord]) -> u16 {
    let bits = records.par_iter().map(|record| record.layer.bit());
    bits.reduce(|| 0, |all, bit| all | bit)
}
