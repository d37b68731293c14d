//! `debug.cbor` as plain data: contexts, their chains and their names.
//!
//! The file is read once, as a stream, by one thread beside those that read the profile. Of
//! each context only what the
//! analysis uses is kept: its id, its parent, the layer of software that wrote it, its
//! name and the few texts listed in [`Field`]. A file that was cut off gives
//! what arrived before the cut, and says so in [`DebugInfo::damage`].

mod context;
mod damage;
mod document;
mod error;
mod index;
mod keys;
mod reader;
mod source;
mod strings;
mod take;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::message::Warning;
use crate::progress::{Counted, Progress, Unit};
use context::{ContextRecord, NO_NAME};
use index::IdIndex;
use strings::Texts;

pub use damage::{Damage, Truncation};
pub use error::DebugInfoError;
pub use keys::{Field, SoftwareLayer};

/// The position of a context in a [`DebugInfo`], from 0 in the order of the
/// file.
///
/// Only meaningful for the `DebugInfo` that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position(u32);

/// The contexts of one `debug.cbor`.
#[derive(Debug, Default)]
pub struct DebugInfo {
    records: Vec<ContextRecord>,
    fields: Vec<(Field, u32)>,
    texts: Texts,
    names: Texts,
    index: IdIndex,
    layers: u16,
    damage: Vec<Damage>,
    warnings: Vec<Warning>,
}

impl DebugInfo {
    /// Reads the file at `path`, which may also be a named pipe.
    ///
    /// # Errors
    /// [`DebugInfoError`], without the file's name: the caller knows it. A file
    /// that is cut off is not an error, see [`DebugInfo::damage`].
    pub fn read(path: &Path) -> Result<DebugInfo, DebugInfoError> {
        Self::read_with(path, &Progress::new())
    }

    /// Reads the file, counting bytes.
    ///
    /// # Errors
    /// As [`DebugInfo::read`].
    pub(crate) fn read_with(path: &Path, progress: &Progress) -> Result<DebugInfo, DebugInfoError> {
        let file = File::open(path)?;
        // A pipe has no length.
        let length = file.metadata()?.len();
        let task = progress.begin("reading debug.cbor", Unit::Bytes, length);
        Self::from_reader(Counted::new(file, &task))
    }

    /// Reads a whole document from `reader`, which needs no buffer of its own.
    ///
    /// # Errors
    /// As [`DebugInfo::read`].
    pub fn from_reader(reader: impl Read) -> Result<DebugInfo, DebugInfoError> {
        reader::read(reader)
    }

    /// No contexts at all, as for a run without a `debug.cbor`.
    pub fn empty() -> DebugInfo {
        DebugInfo::default()
    }

    /// Number of contexts.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no context.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The context with this id; `None` for 0 and for ids the file lacks.
    pub fn position(&self, id: u64) -> Option<Position> {
        self.index.find(id).map(Position)
    }

    /// The id of a context. It is never 0.
    pub fn id(&self, p: Position) -> u64 {
        self.record(p).id
    }

    /// Which software wrote the context.
    pub fn layer(&self, p: Position) -> SoftwareLayer {
        self.record(p).layer
    }

    /// Whether Poplar wrote the context for a program, or for the whole compilation.
    pub fn is_of_programs(&self, p: Position) -> bool {
        let record = self.record(p);
        record.layer == SoftwareLayer::Poplar && record.is_of_programs
    }

    /// Whether the file lacks a parent of the context, or one further up, or whether these lead
    /// back to each other.
    pub fn is_orphan(&self, p: Position) -> bool {
        let lacks = |parent: u64| parent != 0 && self.position(parent).is_none();
        let mut above = self.chain(self.id(p)).map(|above| self.record(above));
        above.any(|record| record.on_cycle || lacks(record.parent))
    }

    /// Whether any context is of this layer.
    pub fn has_layer(&self, layer: SoftwareLayer) -> bool {
        self.layers & layer.bit() != 0
    }

    /// A text of the context: `None` when it is absent or of another type than
    /// text, `Some("")` when it is there and empty.
    pub fn text(&self, p: Position, field: Field) -> Option<&str> {
        let record = self.record(p);
        let first = record.first_field as usize;
        let fields = self
            .fields
            .get(first..first + record.field_count as usize)?;
        let (_, text) = fields.iter().find(|(kept, _)| *kept == field)?;
        self.texts.get(*text)
    }

    /// The context's name from the string table; empty when it has none, or
    /// when the string table was lost.
    pub fn name(&self, p: Position) -> &str {
        match self.record(p).name {
            NO_NAME => "",
            name => self.names.get(name).unwrap_or(""),
        }
    }

    /// The context with this id, its parent, and so on to the root.
    ///
    /// An unknown id has an empty chain; an unknown parent ends it; a cycle
    /// ends it where it closes, so no context comes twice (docs/model.md,
    /// "Contexts and names").
    pub fn chain(&self, id: u64) -> Chain<'_> {
        Chain {
            info: self,
            next: self.position(id),
            entry: None,
        }
    }

    /// The pairs (outlined id, replaced id) of a Call to outlined operations:
    /// the operation in the called function, and the one that it replaces at
    /// this call site (docs/model.md, "Contexts and names").
    ///
    /// Empty unless both lists are there, well formed and of equal length.
    pub fn outlined_pairs(&self, p: Position) -> Vec<(u64, u64)> {
        let list = |field| self.text(p, field).and_then(parse_ids);
        match (list(Field::OutlinedIds), list(Field::ReplacedIds)) {
            (Some(outlined), Some(replaced)) if outlined.len() == replaced.len() => {
                outlined.into_iter().zip(replaced).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Where reading stopped, if the document did not end as it should.
    pub fn truncation(&self) -> Option<&Truncation> {
        match self.damage.first() {
            Some(Damage::Truncated(truncation)) => Some(truncation),
            _ => None,
        }
    }

    /// Signs that the file is not as Poplar wrote it, the gravest first.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Warnings about oddities of the file that do no harm.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn record(&self, p: Position) -> &ContextRecord {
        static NONE: ContextRecord = ContextRecord::NONE;
        self.records.get(p.0 as usize).unwrap_or(&NONE)
    }
}

/// A context, its parent, and so on; made by [`DebugInfo::chain`].
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    info: &'a DebugInfo,
    next: Option<Position>,
    /// Where the chain entered a cycle: that is where it closes.
    entry: Option<Position>,
}

impl Iterator for Chain<'_> {
    type Item = Position;

    fn next(&mut self) -> Option<Position> {
        let here = self.next?;
        let record = self.info.record(here);
        if record.on_cycle && self.entry.is_none() {
            self.entry = Some(here);
        }
        self.next = self.info.position(record.parent);
        if self.next == self.entry {
            self.next = None;
        }
        Some(here)
    }
}

impl std::iter::FusedIterator for Chain<'_> {}

/// Parses `[12,13]`, with spaces allowed anywhere between its parts; `None` if
/// it is anything else. `[]` is the empty list.
fn parse_ids(text: &str) -> Option<Vec<u64>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(parse_id).collect()
}

fn parse_id(text: &str) -> Option<u64> {
    let digits = text.trim();
    // `parse` alone would let a plus sign pass.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
