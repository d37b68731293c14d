//! Reads `debug.cbor` into plain data: debug contexts, their chains of parents, and their names. A
//! debug context is a record that a layer of software wrote about an operation, tensor, program or
//! variable. Its parent is the context in which it was created.
//!
//! One thread reads the file once as a stream, while other threads read the profile. For each
//! context, only its id, its parent, its software layer, its name and the texts in [`ContextField`]
//! are kept. From a truncated file, everything before the cut is read, and [`DebugInfo::damage`]
//! reports the cut.

mod cbor;
mod context;
mod damage;
mod document;
mod reader;
#[cfg(test)]
mod tests;

pub use context::{ContextField, SoftwareLayer};
pub use damage::{Damage, Truncation};

use crate::{message::Warning, profile::Ids};
use context::ContextRecord;
use document::Texts;

/// Index of a debug context in the order of the file. It is valid only in the [`DebugInfo`] that
/// returned it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position(u32);

/// The debug contexts of one `debug.cbor`. The default value has no contexts, as if there were no
/// file.
#[derive(Debug, Default)]
pub struct DebugInfo {
    /// The debug contexts in the order of the file. Each id occurs once.
    records: Vec<ContextRecord>,
    /// The texts of debug contexts that popliner needs, sorted by context. Each entry has the kind
    /// of the text, and its index into `texts`.
    fields: Vec<(ContextField, u32)>,
    /// The distinct texts of all debug contexts.
    texts: Texts,
    /// The string table of the file, which has the names of contexts.
    names: Texts,
    index: Ids,
    damage: Vec<Damage>,
    warning: Option<Warning>,
}

impl DebugInfo {
    /// Returns the number of debug contexts.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no debug contexts.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the index of the debug context with the id `id`; `None` if the id is 0 or no context
    /// has it.
    pub fn position(&self, id: u64) -> Option<Position> {
        self.index.position(id).map(Position)
    }

    /// Returns the id of the debug context with the index `p` in the file; an id is never 0.
    pub fn id(&self, p: Position) -> u64 {
        self.record(p).id
    }

    /// Returns which software, such as PopART, wrote the debug context with the index `p`.
    pub fn layer(&self, p: Position) -> SoftwareLayer {
        self.record(p).layer
    }

    /// Returns whether the debug context at `p` is one that Poplar wrote for a program, or for the
    /// whole compilation.
    pub fn is_of_programs(&self, p: Position) -> bool {
        let record = self.record(p);
        record.layer == SoftwareLayer::Poplar && record.is_of_programs
    }

    /// Returns whether the chain of parents of the debug context at `p` is incomplete: the file
    /// lacks an ancestor of the context, or the context or an ancestor is on a cycle of parents.
    pub fn is_orphan(&self, p: Position) -> bool {
        self.chain(self.id(p)).any(|above| {
            let record = self.record(above);
            record.on_cycle || record.parent != 0 && self.position(record.parent).is_none()
        })
    }

    /// Returns whether the software layer `layer` wrote any debug context.
    pub fn has_layer(&self, layer: SoftwareLayer) -> bool {
        self.records.iter().any(|record| record.layer == layer)
    }

    /// Returns the text of the kind `field`, such as the name of an operation, of the debug context
    /// at the index `p`. Returns `None` if the context has no such text, and `Some("")` if the text
    /// is empty.
    pub fn text(&self, p: Position, field: ContextField) -> Option<&str> {
        let record = self.record(p);
        let first = record.first_field as usize;
        let (_, text) = self
            .fields
            .get(first..first + record.field_count as usize)?
            .iter()
            .find(|(kept, _)| *kept == field)?;
        self.texts.get(*text)
    }

    /// Returns the name of the debug context at `p` from the string table. Returns an empty text if
    /// the context has no name, or if the string table lacks the name.
    pub fn name(&self, p: Position) -> &str {
        let name = self.record(p).name;
        name.and_then(|name| self.names.get(name))
            .unwrap_or_default()
    }

    /// Iterates over the debug context with the id `id`, its parent, the parent of its parent, and
    /// so on to the root.
    ///
    /// If no context has the id, the chain is empty. The chain ends where the file lacks a parent.
    /// On a cycle of parents, the chain ends before a context would occur again (docs/model.md,
    /// "Contexts and names").
    pub fn chain(&self, id: u64) -> impl Iterator<Item = Position> {
        // The first context of the chain (a context, its parent, and so on) that is on a cycle of
        // parents. The chain ends before this context would occur a second time.
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

    /// If `p` is the context of a Call to outlined operations, returns pairs of ids of contexts.
    /// The first id of a pair belongs to an operation in the called function, the second to the
    /// operation that it stands for at this call site (docs/model.md, "Contexts and names").
    ///
    /// Returns no pairs if one of the two lists of ids is missing or malformed (well formed are
    /// `[12,13]` and `[]`), or if the lists have different lengths.
    pub fn outlined_pairs(&self, p: Position) -> Vec<(u64, u64)> {
        let list = |field| -> Vec<u64> {
            self.text(p, field)
                .and_then(|ids| serde_json::from_str(ids).ok())
                .unwrap_or_default()
        };
        let outlined = list(ContextField::OutlinedIds);
        let replaced = list(ContextField::ReplacedIds);
        if outlined.len() != replaced.len() {
            return Vec::new();
        }
        outlined.into_iter().zip(replaced).collect()
    }

    /// Returns the signs of damage in the file, the gravest first.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Returns the warning that the file goes on after the end of its CBOR document, with bytes
    /// that are ignored. Returns `None` if the file ends with the document.
    pub fn warning(&self) -> Option<&Warning> {
        self.warning.as_ref()
    }

    /// Returns the debug context at the index `p`. Returns an empty context if the index is out of
    /// range, as an index of another `DebugInfo` may be.
    fn record(&self, p: Position) -> ContextRecord {
        self.records.get(p.0 as usize).copied().unwrap_or_default()
    }
}
