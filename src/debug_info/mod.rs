//! Reads `debug.cbor` into plain data: contexts, their chains of parents, and their names.
//!
//! The file is streamed once, by one thread, while others read the profile. Of each context only
//! its id, its parent, its software layer, its name and the texts in [`Field`] are kept. A
//! truncated file yields everything before the cut, and [`DebugInfo::damage`] says so.

mod context;
mod damage;
mod document;
mod keys;
mod reader;
mod take;
#[cfg(test)]
mod tests;
mod texts;

pub use damage::{Damage, Truncation};
pub use keys::{Field, SoftwareLayer};

use crate::message::Warning;
use crate::profile::Ids;
use context::{ContextRecord, NO_NAME};
use texts::Texts;

/// Position of a context in a [`DebugInfo`], from 0 in the order of the file.
///
/// It is only valid for the `DebugInfo` that returned it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position(u32);

/// The contexts of one `debug.cbor`. The default has none, as in a run without such a file.
#[derive(Debug, Default)]
pub struct DebugInfo {
    records: Vec<ContextRecord>,
    fields: Vec<(Field, u32)>,
    texts: Texts,
    names: Texts,
    index: Ids,
    layers: u16,
    damage: Vec<Damage>,
    warnings: Vec<Warning>,
}

impl DebugInfo {
    /// Number of contexts.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Are there no contexts?
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Position of the context with this id; `None` for 0 and for ids that the file lacks.
    pub fn position(&self, id: u64) -> Option<Position> {
        self.index.position(id).map(Position)
    }

    /// Id of a context; never 0.
    pub fn id(&self, p: Position) -> u64 {
        self.record(p).id
    }

    /// Software layer that wrote the context.
    pub fn layer(&self, p: Position) -> SoftwareLayer {
        self.record(p).layer
    }

    /// Did Poplar write the context for a program, or for the whole compilation?
    pub fn is_of_programs(&self, p: Position) -> bool {
        let record = self.record(p);
        record.layer == SoftwareLayer::Poplar && record.is_of_programs
    }

    /// Does the file lack an ancestor of the context, or is an ancestor on a cycle of parents?
    pub fn is_orphan(&self, p: Position) -> bool {
        let lacks = |parent: u64| parent != 0 && self.position(parent).is_none();
        let mut above = self.chain(self.id(p)).map(|above| self.record(above));
        above.any(|record| record.on_cycle || lacks(record.parent))
    }

    /// Does any context have this software layer?
    pub fn has_layer(&self, layer: SoftwareLayer) -> bool {
        self.layers & layer.bit() != 0
    }

    /// Text of the context under `field`; `None` if it is absent or no text, `Some("")` if it is an
    /// empty text.
    pub fn text(&self, p: Position, field: Field) -> Option<&str> {
        let record = self.record(p);
        let first = record.first_field as usize;
        let fields = self
            .fields
            .get(first..first + record.field_count as usize)?;
        let (_, text) = fields.iter().find(|(kept, _)| *kept == field)?;
        self.texts.get(*text)
    }

    /// Name of the context from the string table; empty if the context has none, or if the table
    /// lacks it.
    pub fn name(&self, p: Position) -> &str {
        match self.record(p).name {
            NO_NAME => "",
            name => self.names.get(name).unwrap_or(""),
        }
    }

    /// Iterates over the context with this id, its parent, and so on to the root.
    ///
    /// The chain of an unknown id is empty. An unknown parent ends a chain; a cycle ends it where
    /// it closes, so no context occurs twice (docs/model.md, "Contexts and names").
    pub fn chain(&self, id: u64) -> impl Iterator<Item = Position> + '_ {
        // The context at which the chain enters a cycle, and before which it ends.
        let mut entry = None;
        std::iter::successors(self.position(id), move |&here| {
            let record = self.record(here);
            if record.on_cycle {
                entry.get_or_insert(here);
            }
            let parent = self.position(record.parent);
            parent.filter(|&parent| entry != Some(parent))
        })
    }

    /// Pairs (outlined id, replaced id) of a Call to outlined operations: the operation in the
    /// called function, and the operation that it replaces at this call site (docs/model.md,
    /// "Contexts and names").
    ///
    /// Empty unless both lists exist, are well formed and have equal lengths.
    pub fn outlined_pairs(&self, p: Position) -> Vec<(u64, u64)> {
        let list = |field| self.text(p, field).and_then(parse_ids);
        match (list(Field::OutlinedIds), list(Field::ReplacedIds)) {
            (Some(outlined), Some(replaced)) if outlined.len() == replaced.len() => {
                outlined.into_iter().zip(replaced).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Signs of damage in the file, the gravest first.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Warnings about harmless anomalies of the file.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn record(&self, p: Position) -> &ContextRecord {
        static NONE: ContextRecord = ContextRecord::NONE;
        self.records.get(p.0 as usize).unwrap_or(&NONE)
    }
}

/// Parses a list such as `[12,13]` or `[]`, with spaces allowed between its parts; `None` for
/// another form.
fn parse_ids(text: &str) -> Option<Vec<u64>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(parse_id).collect()
}

fn parse_id(text: &str) -> Option<u64> {
    let digits = text.trim();
    // `parse` accepts a plus sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
