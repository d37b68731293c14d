//! Reads the top-level map of a debug file, up to the first error. Also defines a list that keeps
//! all texts in one allocation.

use super::DebugInfo;
use super::context::{ContextRecord, Draft};
use super::damage::{shape, too_many};
use super::take::{Skipped, Take, To, next_key};
use crate::message::{FileError, Result};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};
use std::collections::HashSet;
use std::mem::replace;
use std::sync::Arc;

/// The parts of a debug file that were read so far.
#[derive(Default)]
pub struct Collected {
    /// The debug contexts and the string table that were read so far. Contexts with the same id are
    /// not yet removed.
    pub info: DebugInfo,
    /// The distinct texts of all debug contexts. Many contexts have the same text, which is stored
    /// once.
    texts: HashSet<Arc<str>>,
    pub saw_contexts: bool,
    saw_table: bool,
    /// Whether a top-level key was read that Poplar does not write.
    pub saw_other_key: bool,
    /// Whether the array `contexts` of the debug file was read to its end.
    pub contexts_complete: bool,
    /// Whether the string table of the debug file was read to its end.
    pub table_complete: bool,
    pub without_id: usize,
    pub no_maps: usize,
    pub mistyped: usize,
    pub repeated: usize,
    /// The error with which the debug file is refused; `None` if it is not refused. After a
    /// refusal, no more of the file is read.
    pub refusal: Option<FileError>,
    /// Whether the top-level map of the debug file was read to its end.
    pub is_complete: bool,
}

impl<'de> Deserialize<'de> for Collected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut collected = Self::default();
        To(&mut collected).deserialize(deserializer)?;
        Ok(collected)
    }
}

/// Receives the top-level map of a debug file. An error within the map ends the reading; everything
/// before the error is kept, and `is_complete` stays false.
impl Take for &mut Collected {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.is_complete = self.read(entries).is_ok();
        Ok(())
    }
}

impl Collected {
    /// Reads the entries of the top-level map of a debug file, and skips the values of unknown
    /// keys. Returns an error if the map is malformed, or as soon as a value that cannot be used
    /// (such as too many contexts) has set `refusal`.
    fn read<'de, A: MapAccess<'de>>(&mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = next_key(&mut entries, |key| key.map(str::to_owned))? {
            match key.as_deref() {
                Some("contexts") => {
                    self.repeated += usize::from(replace(&mut self.saw_contexts, true));
                    entries.next_value_seed(To(ContextArray(self)))?;
                }
                Some("stringTable") => {
                    self.repeated += usize::from(replace(&mut self.saw_table, true));
                    entries.next_value_seed(To(StringTable(self)))?;
                }
                _ => {
                    self.saw_other_key = true;
                    entries.next_value_seed(To(Skipped))?;
                }
            }
            if self.refusal.is_some() {
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }

    /// Appends the debug context `draft`, with its texts, to the contexts read so far. A context
    /// without an id is counted but not stored.
    ///
    /// # Errors
    /// If there are more contexts or texts than 32-bit indices can count.
    fn push_context(&mut self, draft: &Draft) -> Result<()> {
        self.mistyped += draft.mistyped;
        if draft.record.id == 0 {
            self.without_id += 1;
            return Ok(());
        }
        let DebugInfo {
            records, fields, ..
        } = &mut self.info;
        if records.len() >= MAX_ITEMS {
            return Err(too_many("contexts"));
        }
        let first = u32::try_from(fields.len()).map_err(|_| too_many("texts"))?;
        for (field, text) in draft.fields() {
            let known = self.texts.get(text).cloned();
            let text = known.unwrap_or_else(|| {
                let new: Arc<str> = text.into();
                self.texts.insert(new.clone());
                new
            });
            fields.push((field, text));
        }
        records.push(ContextRecord {
            first_field: first,
            field_count: (fields.len() - first as usize) as u8,
            ..draft.record
        });
        Ok(())
    }

    /// Appends an entry of the string table. Refuses the file if there are more entries than 32-bit
    /// indices can count.
    fn push_name(&mut self, name: &str) {
        if self.info.names.len() < MAX_ITEMS {
            self.info.names.push(name);
        } else {
            self.refusal = Some(too_many("names"));
        }
    }
}

/// Receives the array of contexts and stores the contexts. If the file has a second array, its
/// contexts are added to the contexts of the first array, since contexts are identified by ids, not
/// by indices.
struct ContextArray<'a>(&'a mut Collected);

impl Take for ContextArray<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.contexts_complete = false;
        while self.0.refusal.is_none()
            && items.next_element_seed(To(ContextEntry(self.0)))?.is_some()
        {}
        self.0.contexts_complete = true;
        Ok(())
    }

    fn other(self) {
        self.0.refusal = Some(shape("its `contexts` is not an array"));
    }
}

/// Receives one entry of the array of contexts and stores the context. A context that cannot be
/// read to its end is not stored. Entries that are not maps are counted.
struct ContextEntry<'a>(&'a mut Collected);

impl Take for ContextEntry<'_> {
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        let draft = Draft::read(entries)?;
        self.0.refusal = self.0.push_context(&draft).err();
        Ok(())
    }

    fn other(self) {
        self.0.no_maps += 1;
    }
}

/// Receives the string table, an array of texts, and stores it. If the file has a second string
/// table, the second table replaces the first.
struct StringTable<'a>(&'a mut Collected);

impl Take for StringTable<'_> {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.info.names = Texts::default();
        self.0.table_complete = false;
        while self.0.refusal.is_none() && items.next_element_seed(To(Name(self.0)))?.is_some() {}
        self.0.table_complete = true;
        Ok(())
    }
}

struct Name<'a>(&'a mut Collected);

impl Take for Name<'_> {
    fn text(self, text: &str) {
        self.0.push_name(text);
    }

    /// Stores an empty name for an entry of the string table that is not a text, so that later
    /// entries keep their indices. The entry counts as a sign of damage.
    fn other(self) {
        self.0.mistyped += 1;
        self.0.push_name("");
    }
}

/// The most contexts and the most names that a debug file may have. Higher indices stand for missing
/// names.
pub const MAX_ITEMS: usize = u32::MAX as usize - 1;

/// A list of texts, such as the string table, in one allocation. Each text has an index, from 0.
#[derive(Debug, Default)]
pub struct Texts {
    bytes: String,
    /// One entry per text: its end in `bytes` (exclusive). A text starts where the text before it
    /// ends.
    ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }

    /// Returns the text at the index `number` of this list; `None` if the list is shorter.
    pub fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let before = number.checked_sub(1);
        self.bytes
            .get(before.map_or(0, |before| self.ends[before])..end)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }
}
