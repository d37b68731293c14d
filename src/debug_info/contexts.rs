//! The contexts of a document.

use std::io::Read;

use super::cbor::{Count, Fault, Items};
use super::context::{ContextRecord, Draft};
use super::damage::Anomalies;
use super::error::DebugInfoError;
use super::head::ItemHead;
use super::keys::Field;
use super::strings::{Interner, Texts};

/// An array of contexts as it was read, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    pub records: Vec<ContextRecord>,
    pub fields: Vec<(Field, u32)>,
    pub interner: Interner,
}

/// Why reading ends before the document does.
pub(super) enum Stop {
    Fault(Fault),
    Error(DebugInfoError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<DebugInfoError> for Stop {
    fn from(error: DebugInfoError) -> Self {
        Stop::Error(error)
    }
}

impl Contexts {
    /// Reads the entry of the array whose head was just read. Nothing is added
    /// unless it can be read to its end.
    pub fn entry<R: Read>(
        &mut self,
        items: &mut Items<R>,
        head: ItemHead,
        draft: &mut Draft,
        oddities: &mut Anomalies,
    ) -> Result<(), Stop> {
        match head {
            ItemHead::Map(_) | ItemHead::OpenMap => {
                draft.read(items, Count::of(head))?;
                self.push(draft, oddities)?;
            }
            other => {
                items.skip(other)?;
                oddities.no_maps += 1;
            }
        }
        Ok(())
    }

    fn push(&mut self, draft: &Draft, oddities: &mut Anomalies) -> Result<(), DebugInfoError> {
        oddities.mistyped += draft.mistyped;
        if draft.record.id == 0 {
            oddities.without_id += 1;
            return Ok(());
        }
        if self.records.len() >= Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        let first = u32::try_from(self.fields.len()).map_err(|_| too_many("texts"))?;
        let mut field_count = 0;
        for (field, bytes) in draft.fields() {
            let number = self.interner.intern(&oddities.utf8(bytes));
            let number = number.ok_or_else(|| too_many("texts"))?;
            self.fields.push((field, number));
            field_count += 1;
        }
        self.records.push(ContextRecord {
            first_field: first,
            field_count,
            ..draft.record
        });
        Ok(())
    }
}

pub(super) fn too_many(what: &'static str) -> DebugInfoError {
    DebugInfoError::TooMany {
        what,
        limit: u64::from(Texts::LIMIT),
    }
}
