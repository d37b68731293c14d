//! The contexts of a document, or of a stretch of it.

use std::io::Read;

use super::cbor::{Count, Fault, ItemHead, Items};
use super::context::{ContextRecord, Draft};
use super::damage::Anomalies;
use super::error::DebugInfoError;
use super::keys::Field;
use super::strings::{Interner, Texts};

/// What was read of an array of contexts, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    pub records: Vec<ContextRecord>,
    pub fields: Vec<(Field, u32)>,
    pub interner: Interner,
    pub oddities: Anomalies,
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
    ) -> Result<(), Stop> {
        match head {
            ItemHead::Map(_) | ItemHead::OpenMap => {
                draft.read(items, Count::of(head))?;
                self.push(draft)?;
            }
            other => {
                items.skip(other)?;
                self.oddities.no_maps += 1;
            }
        }
        Ok(())
    }

    fn push(&mut self, draft: &Draft) -> Result<(), DebugInfoError> {
        self.oddities.mistyped += draft.mistyped;
        if draft.record.id == 0 {
            self.oddities.without_id += 1;
            return Ok(());
        }
        if self.records.len() >= Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        let first = u32::try_from(self.fields.len()).map_err(|_| too_many("texts"))?;
        let mut field_count = 0;
        for (field, bytes) in draft.fields() {
            let number = self.interner.intern(&self.oddities.utf8(bytes));
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

    /// Adds the contexts that follow in the file, as if they had been read here.
    pub fn append(&mut self, parts: Vec<Contexts>) -> Result<(), DebugInfoError> {
        parts.into_iter().try_for_each(|part| self.append_one(part))
    }

    fn append_one(&mut self, part: Contexts) -> Result<(), DebugInfoError> {
        if self.records.len() + part.records.len() > Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        // The last field has to be in reach, too.
        u32::try_from(self.fields.len() + part.fields.len()).map_err(|_| too_many("texts"))?;
        let first = self.fields.len() as u32;
        let numbers = self.interner.append(&part.interner);
        let numbers = numbers.ok_or_else(|| too_many("texts"))?;
        let fields = part.fields.into_iter();
        self.fields
            .extend(fields.map(|(field, number)| (field, numbers[number as usize])));
        let records = part.records.into_iter();
        self.records.extend(records.map(|record| ContextRecord {
            first_field: record.first_field + first,
            ..record
        }));
        self.oddities.add(&part.oddities);
        Ok(())
    }

    /// How much memory it takes, in bytes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.records) + size_of_val(&*self.fields) + self.interner.size()
    }
}

pub(super) fn too_many(what: &'static str) -> DebugInfoError {
    DebugInfoError::TooMany {
        what,
        limit: u64::from(Texts::LIMIT),
    }
}
