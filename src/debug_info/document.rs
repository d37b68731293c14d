//! Reads the top-level map of a debug file. Everything before an error is kept, with all texts in
//! one allocation.

use super::context::{ContextRecord, Draft};
use super::damage::{Anomalies, shape, too_many};
use super::keys::ContextField;
use super::take::{Skipped, Take, To, next_key};
use super::texts::{Interner, Texts};
use crate::message::{FileError, Result};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};

/// The parts of a debug file that were read so far.
#[derive(Default)]
pub(super) struct Collected {
    /// The contexts in the order of the file; ids may repeat.
    pub records: Vec<ContextRecord>,
    /// The kept texts of all contexts, one context after the other: each the field that it fills
    /// and the number of the text in `texts`.
    pub fields: Vec<(ContextField, u32)>,
    /// The distinct texts to which `fields` refers by number.
    pub texts: Interner,
    /// The entries of the string table.
    pub names: Texts,
    /// The context that is being read; it is moved to `records` and `fields` once it is complete.
    draft: Draft,
    /// Whether the top-level key `contexts` was read.
    pub saw_contexts: bool,
    /// Whether the top-level key `stringTable` was read.
    pub saw_table: bool,
    /// Whether a top-level key was read that Poplar does not write.
    pub saw_other_key: bool,
    /// Counts of anomalies so far.
    pub anomalies: Anomalies,
    /// The reason why the file is refused, which ends the reading; `None` if it is not refused.
    pub refusal: Option<FileError>,
    /// Whether the map was read to its end.
    pub is_complete: bool,
}

impl<'de> Deserialize<'de> for Collected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut collected = Self::default();
        To(&mut collected).deserialize(deserializer)?;
        Ok(collected)
    }
}

/// Receives the top-level map of a debug file. An error within the map ends the reading, but
/// everything before it is kept, and `is_complete` stays false.
impl Take for &mut Collected {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.is_complete = self.read(entries).is_ok();
        Ok(())
    }
}

/// A key of the top-level map of a debug file whose value is read; the values of other keys are
/// skipped.
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
    /// Reads the entries of the top-level map of a debug file, and skips the values of unknown
    /// keys. Returns an error if the map is malformed, or once the file is refused.
    fn read<'de, A: MapAccess<'de>>(&mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = next_key(&mut entries, key, &mut 0)? {
            match key {
                Some(DocumentKey::Contexts) => {
                    self.anomalies.repeated += usize::from(self.saw_contexts);
                    self.saw_contexts = true;
                    entries.next_value_seed(To(ContextArray(self)))?;
                }
                Some(DocumentKey::StringTable) => {
                    self.anomalies.repeated += usize::from(self.saw_table);
                    self.saw_table = true;
                    entries.next_value_seed(To(StringTable(self)))?;
                }
                None => {
                    self.saw_other_key = true;
                    entries.next_value_seed(To(Skipped))?;
                }
            }
            self.go_on()?;
        }
        Ok(())
    }

    /// Returns an error, which ends the reading, if [`refusal`](Self::refusal) is set.
    fn go_on<E: Error>(&self) -> Result<(), E> {
        match self.refusal {
            Some(_) => Err(E::custom("refused")),
            None => Ok(()),
        }
    }

    /// Appends the context in `draft` to `records`, with its texts. A context without an id is only
    /// counted.
    ///
    /// # Errors
    /// If there are more contexts or texts than can be numbered.
    fn push_context(&mut self) -> Result<()> {
        self.anomalies.mistyped += self.draft.mistyped;
        if self.draft.record.id == 0 {
            self.anomalies.without_id += 1;
            return Ok(());
        }
        if self.records.len() >= Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        let first = u32::try_from(self.fields.len()).map_err(|_| too_many("texts"))?;
        let mut field_count = 0;
        for (field, text) in self.draft.fields() {
            self.fields.push((
                field,
                self.texts.intern(text).ok_or_else(|| too_many("texts"))?,
            ));
            field_count += 1;
        }
        self.records.push(ContextRecord {
            first_field: first,
            field_count,
            ..self.draft.record
        });
        Ok(())
    }

    /// Appends an entry of the string table to `names`. Sets `refusal` if there are more entries
    /// than can be numbered.
    fn push_name(&mut self, name: &str) {
        if self.names.push(name).is_none() {
            self.refusal = Some(too_many("names"));
        }
    }
}

/// Receives the array of contexts and stores them. The contexts of a second array are added to
/// those of the first: they are identified by ids, not by their indices.
struct ContextArray<'a>(&'a mut Collected);

impl Take for ContextArray<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.anomalies.contexts_complete = false;
        while items.next_element_seed(To(ContextEntry(self.0)))?.is_some() {
            self.0.go_on()?;
        }
        self.0.anomalies.contexts_complete = true;
        Ok(())
    }

    fn other(self) {
        self.0.refusal = Some(shape("its `contexts` is not an array"));
    }
}

/// Receives one entry of the array of contexts and stores the context. A context that cannot be
/// read to its end is not stored; an entry that is no map is counted.
struct ContextEntry<'a>(&'a mut Collected);

impl Take for ContextEntry<'_> {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.0.draft.read(entries)?;
        self.0.refusal = self.0.push_context().err();
        Ok(())
    }

    fn other(self) {
        self.0.anomalies.no_maps += 1;
    }
}

/// Receives the string table, an array of texts, and stores its entries. A second table replaces
/// the first one.
struct StringTable<'a>(&'a mut Collected);

impl Take for StringTable<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.names = Texts::default();
        self.0.anomalies.table_complete = false;
        while items
            .next_element_seed(To(StringTableEntry(self.0)))?
            .is_some()
        {
            self.0.go_on()?;
        }
        self.0.anomalies.table_complete = true;
        Ok(())
    }
}

/// Receives one entry of the string table and stores it as the next name.
struct StringTableEntry<'a>(&'a mut Collected);

impl Take for StringTableEntry<'_> {
    fn text(self, text: &str) {
        self.0.push_name(text);
    }

    /// Stores an empty name for an entry that is no text, so that later entries keep their numbers,
    /// and counts the entry as mistyped.
    fn other(self) {
        self.0.anomalies.mistyped += 1;
        self.0.push_name("");
    }
}
