//! The document's map, and what was read of it before it broke off.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::context::{ContextRecord, Draft};
use super::damage::Anomalies;
use super::error::DebugInfoError;
use super::keys::Field;
use super::strings::{Interner, Texts};
use super::take::{Skipped, Take, To, next_key};

/// The parts of a document that were read so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub records: Vec<ContextRecord>,
    pub fields: Vec<(Field, u32)>,
    pub texts: Interner,
    pub names: Texts,
    draft: Draft,
    pub saw_contexts: bool,
    pub saw_other_key: bool,
    pub oddities: Anomalies,
    /// Why nothing can be made of the document.
    pub refusal: Option<DebugInfoError>,
    /// Whether the end of the map was reached.
    pub is_complete: bool,
}

impl<'de> Deserialize<'de> for Collected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Document)
    }
}

/// Makes a [`Collected`] of a map; an error within it is the end of the reading, and
/// does not lose what came before.
struct Document;

impl<'de> Visitor<'de> for Document {
    type Value = Collected;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a map with `contexts`")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Collected, A::Error> {
        let mut collected = Collected::default();
        collected.is_complete = collected.read(entries).is_ok();
        Ok(collected)
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
            self.saw_contexts |= matches!(key, Some(DocumentKey::Contexts));
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

    /// An error once the document is refused.
    fn go_on<E: Error>(&self) -> Result<(), E> {
        match self.refusal {
            Some(_) => Err(E::custom("refused")),
            None => Ok(()),
        }
    }

    fn push_context(&mut self) -> Result<(), DebugInfoError> {
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

/// The array of contexts. A second one adds to the first: the file names each context
/// by its id, not by its place.
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
        let problem = "its `contexts` is no array";
        self.0.refusal = Some(DebugInfoError::Shape { problem });
    }
}

/// An entry of that array. Nothing is added unless it can be read to its end.
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

/// The string table; a second one takes the place of the first.
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

/// An entry of the string table.
struct Name<'a>(&'a mut Collected);

impl Take for Name<'_> {
    fn text(self, text: &str) {
        self.0.push_name(text);
    }

    /// Kept as an empty name, so that later names keep their numbers.
    fn other(self) {
        self.0.oddities.mistyped += 1;
        self.0.push_name("");
    }
}

fn too_many(what: &'static str) -> DebugInfoError {
    DebugInfoError::TooMany {
        what,
        limit: u64::from(Texts::LIMIT),
    }
}
