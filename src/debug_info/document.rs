//! Reads the map of the document, keeping everything before an error.

use super::context::{ContextRecord, Draft};
use super::damage::{Anomalies, shape, too_many};
use super::keys::Field;
use super::take::{Skipped, Take, To, next_key};
use super::texts::{Interner, Texts};
use crate::message::FileError;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};

/// Parts of a document that were read so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub records: Vec<ContextRecord>,
    pub fields: Vec<(Field, u32)>,
    pub texts: Interner,
    pub names: Texts,
    draft: Draft,
    pub saw_contexts: bool,
    pub saw_table: bool,
    pub saw_other_key: bool,
    pub oddities: Anomalies,
    /// Reason why the document is refused; `None` if it is not.
    pub refusal: Option<FileError>,
    /// Was the end of the map reached?
    pub is_complete: bool,
}

impl<'de> Deserialize<'de> for Collected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut collected = Self::default();
        To(&mut collected).deserialize(deserializer)?;
        Ok(collected)
    }
}

/// Receives the map of the document. An error within the map ends the reading, but keeps everything
/// before it.
impl Take for &mut Collected {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.is_complete = self.read(entries).is_ok();
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum DocumentKey {
    Contexts,
    StringTable,
}

fn key(text: &str) -> Option<DocumentKey> {
    match text {
        "contexts" => Some(DocumentKey::Contexts),
        "stringTable" => Some(DocumentKey::StringTable),
        _ => None,
    }
}

impl Collected {
    fn read<'de, A: MapAccess<'de>>(&mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = next_key(&mut entries, key, &mut 0)? {
            let is_again = match key {
                Some(DocumentKey::Contexts) => std::mem::replace(&mut self.saw_contexts, true),
                Some(DocumentKey::StringTable) => std::mem::replace(&mut self.saw_table, true),
                None => false,
            };
            self.oddities.repeated += usize::from(is_again);
            self.saw_other_key |= key.is_none();
            match key {
                Some(DocumentKey::Contexts) => entries.next_value_seed(To(Contexts(self)))?,
                Some(DocumentKey::StringTable) => entries.next_value_seed(To(Table(self)))?,
                None => entries.next_value_seed(To(Skipped))?,
            }
            self.go_on()?;
        }
        Ok(())
    }

    /// Returns an error if the document is refused.
    fn go_on<E: Error>(&self) -> Result<(), E> {
        match self.refusal {
            Some(_) => Err(E::custom("refused")),
            None => Ok(()),
        }
    }

    fn push_context(&mut self) -> Result<(), FileError> {
        self.oddities.mistyped += self.draft.mistyped;
        if self.draft.record.id == 0 {
            self.oddities.without_id += 1;
            return Ok(());
        }
        if self.records.len() >= Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        let first = u32::try_from(self.fields.len()).map_err(|_| too_many("texts"))?;
        let mut field_count = 0;
        for (field, text) in self.draft.fields() {
            let number = self.texts.intern(text).ok_or_else(|| too_many("texts"))?;
            self.fields.push((field, number));
            field_count += 1;
        }
        self.records.push(ContextRecord {
            first_field: first,
            field_count,
            ..self.draft.record
        });
        Ok(())
    }

    fn push_name(&mut self, name: &str) {
        if self.names.push(name).is_none() {
            self.refusal = Some(too_many("names"));
        }
    }
}

/// Reads the array of contexts. A second array adds to the first: contexts are identified by ids,
/// not by their positions.
struct Contexts<'a>(&'a mut Collected);

impl Take for Contexts<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.oddities.contexts_complete = false;
        while items.next_element_seed(To(Entry(self.0)))?.is_some() {
            self.0.go_on()?;
        }
        self.0.oddities.contexts_complete = true;
        Ok(())
    }

    fn other(self) {
        self.0.refusal = Some(shape("its `contexts` is not an array"));
    }
}

/// Reads an entry of that array. A context that cannot be read to its end is not added.
struct Entry<'a>(&'a mut Collected);

impl Take for Entry<'_> {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.0.draft.read(entries)?;
        self.0.refusal = self.0.push_context().err();
        Ok(())
    }

    fn other(self) {
        self.0.oddities.no_maps += 1;
    }
}

/// Reads the string table; a second table replaces the first.
struct Table<'a>(&'a mut Collected);

impl Take for Table<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.names = Texts::default();
        self.0.oddities.table_complete = false;
        while items.next_element_seed(To(Name(self.0)))?.is_some() {
            self.0.go_on()?;
        }
        self.0.oddities.table_complete = true;
        Ok(())
    }
}

/// Reads an entry of the string table.
struct Name<'a>(&'a mut Collected);

impl Take for Name<'_> {
    fn text(self, text: &str) {
        self.0.push_name(text);
    }

    /// Stored as an empty name, so that later names keep their numbers.
    fn other(self) {
        self.0.oddities.mistyped += 1;
        self.0.push_name("");
    }
}
