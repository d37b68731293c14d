//! The document: its shape, and where it may break off.

use crate::limits;
use std::io::Read;

use rayon::prelude::*;

use super::cbor::{Count, Fault, Items};
use super::context::{ContextRecord, Draft, NO_NAME};
use super::contexts::{Contexts, Stop, too_many};
use super::damage::{Anomalies, Truncation};
use super::error::{DebugInfoError, looks_like};
use super::head::ItemHead;
use super::strings::Texts;
use super::{DebugInfo, index};

/// The tag that says "this is CBOR".
const SELF_DESCRIBED: u64 = 55_799;
/// How much of a file is looked at to tell what it is instead.
const HEAD: usize = 64;
/// The longest key of the document that is looked at, in bytes.
const LONGEST_KEY: u64 = "stringTable".len() as u64;
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Where a document broke off, as an offset into the file.
#[derive(Clone, Copy)]
enum StoppedAt {
    /// The bytes end here.
    End(u64),
    /// The bytes from here on are no CBOR.
    Damage(u64),
}

impl StoppedAt {
    fn offset(self) -> u64 {
        match self {
            StoppedAt::End(offset) | StoppedAt::Damage(offset) => offset,
        }
    }
}

/// Reads a document.
pub(super) fn read(reader: impl Read) -> Result<DebugInfo, DebugInfoError> {
    let mut items = Items::new(reader);
    let head = match items.ahead(HEAD) {
        Ok(head) => head[..head.len().min(HEAD)].to_vec(),
        Err(Fault::Io(error)) => return Err(error.into()),
        Err(_) => Vec::new(),
    };
    if head.is_empty() {
        return Err(DebugInfoError::Empty);
    }
    if head.starts_with(SQLITE_MAGIC) {
        return Err(DebugInfoError::Sqlite);
    }
    let mut collected = Collected::default();
    let stop = match collected.document(&mut items, &head) {
        Ok(()) => None,
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::Fault(Fault::Io(error))) => return Err(error.into()),
        Err(Stop::Fault(Fault::Cut)) => Some(StoppedAt::End(items.received())),
        Err(Stop::Fault(Fault::Syntax(offset))) => Some(StoppedAt::Damage(offset)),
    };
    collected.check(stop)?;
    collected.finish(stop)
}

/// The parts of the document that were read so far.
#[derive(Default)]
struct Collected {
    contexts: Contexts,
    names: Texts,
    saw_contexts: bool,
    saw_other_key: bool,
    oddities: Anomalies,
}

impl Collected {
    fn document<R: Read>(&mut self, items: &mut Items<R>, head: &[u8]) -> Result<(), Stop> {
        let mut count = top(items, head)?;
        let mut key = Vec::new();
        while let Some(head) = items.next(&mut count)? {
            key.clear();
            match head {
                ItemHead::Text(0..=LONGEST_KEY) | ItemHead::TextSegments => {
                    items.text(head, &mut key)?
                }
                other => items.skip(other)?,
            }
            let value = items.value()?;
            match (key.as_slice(), value) {
                (b"contexts", _) => self.contexts(items, value)?,
                (b"stringTable", ItemHead::Array(_) | ItemHead::OpenArray) => {
                    self.string_table(items, value)?;
                }
                (key, _) => {
                    self.saw_other_key |= key != b"stringTable";
                    items.skip(value)?;
                }
            }
        }
        let end = items.offset();
        let more = !items.ahead(1)?.is_empty();
        self.oddities.trailing = more.then_some(end);
        Ok(())
    }

    /// Reads an array of contexts. A second one adds to the first: the file
    /// names each context by its id, not by its place.
    fn contexts<R: Read>(&mut self, items: &mut Items<R>, array: ItemHead) -> Result<(), Stop> {
        self.saw_contexts = true;
        let (ItemHead::Array(_) | ItemHead::OpenArray) = array else {
            let problem = "its `contexts` is no array";
            return Err(DebugInfoError::Shape { problem }.into());
        };
        self.oddities.contexts_complete = false;
        let mut count = Count::of(array);
        let mut draft = Draft::new();
        while let Some(head) = items.next(&mut count)? {
            self.contexts
                .entry(items, head, &mut draft, &mut self.oddities)?;
        }
        self.oddities.contexts_complete = true;
        Ok(())
    }

    /// Reads a string table; a second one takes the place of the first.
    fn string_table<R: Read>(&mut self, items: &mut Items<R>, array: ItemHead) -> Result<(), Stop> {
        self.names = Texts::default();
        self.oddities.table_complete = false;
        let mut count = Count::of(array);
        let mut bytes = Vec::new();
        while let Some(head) = items.next(&mut count)? {
            bytes.clear();
            match head {
                ItemHead::Text(_) | ItemHead::TextSegments => items.text(head, &mut bytes)?,
                // Kept as an empty name, so that later names keep their numbers.
                other => {
                    self.oddities.mistyped += 1;
                    items.skip(other)?;
                }
            }
            let number = self.names.push(&self.oddities.utf8(&bytes));
            number.ok_or_else(|| too_many("names"))?;
        }
        self.oddities.table_complete = true;
        Ok(())
    }

    /// Whether what was read can pass as a debug file.
    fn check(&self, stop: Option<StoppedAt>) -> Result<(), DebugInfoError> {
        match stop {
            Some(StoppedAt::Damage(offset)) if self.contexts.records.is_empty() => {
                Err(DebugInfoError::Syntax { offset })
            }
            // Cut before `contexts` could come: nothing speaks against it.
            Some(StoppedAt::End(_)) if !self.saw_other_key => Ok(()),
            _ if !self.saw_contexts => Err(DebugInfoError::Shape {
                problem: "it has no `contexts`",
            }),
            _ => Ok(()),
        }
    }

    fn finish(mut self, stop: Option<StoppedAt>) -> Result<DebugInfo, DebugInfoError> {
        let Contexts {
            mut records,
            mut fields,
            interner,
        } = self.contexts;
        let (index, duplicates) = index::IdIndex::build(&mut records);
        let limit = limits::CONTEXTS_ABOVE;
        if let Some(id) = index::check_chains(&mut records, &index, limit) {
            return Err(DebugInfoError::TooDeep { id, limit });
        }
        self.oddities.duplicates = duplicates;
        if self.oddities.table_complete {
            self.oddities.names_outside = names_outside(&records, self.names.len());
        }
        let truncation = stop.map(|stop| Truncation {
            contexts: records.len(),
            offset: stop.offset(),
            damaged: matches!(stop, StoppedAt::Damage(_)),
            contexts_lost: !self.oddities.contexts_complete,
            string_table_lost: !self.oddities.table_complete,
            names: self.names.len(),
        });
        records.shrink_to_fit();
        fields.shrink_to_fit();
        self.names.shrink();
        Ok(DebugInfo {
            layers: layers(&records),
            records,
            fields,
            texts: interner.finish(),
            names: self.names,
            index,
            damage: self.oddities.damage(truncation),
            warnings: self.oddities.warnings(),
        })
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

/// The items to come of the document's map. Only CBOR's own tag may come before
/// it.
fn top<R: Read>(items: &mut Items<R>, head: &[u8]) -> Result<Count, Stop> {
    loop {
        match items.item() {
            Ok(ItemHead::Tag(SELF_DESCRIBED)) => {}
            Ok(head @ (ItemHead::Map(_) | ItemHead::OpenMap)) => return Ok(Count::of(head)),
            Err(Fault::Cut) if starts_like_a_map(head) => return Err(Fault::Cut.into()),
            Err(Fault::Io(error)) => return Err(Fault::Io(error).into()),
            _ => {
                let found = looks_like(head);
                return Err(DebugInfoError::NotCbor { found }.into());
            }
        }
    }
}

/// Whether the first byte begins a map, or a tag as long as CBOR's own.
fn starts_like_a_map(head: &[u8]) -> bool {
    matches!(head.first(), Some(0xa0..=0xbf | 0xd9))
}
