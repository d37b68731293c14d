//! Reads the map of the document, keeping everything before an error, with texts in one allocation.

use super::context::{ContextRecord, Draft};
use super::damage::{Anomalies, shape, too_many};
use super::items::{Item, Items, Stop};
use super::keys::Field;
use crate::message::FileError;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;

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
    /// Reads the map of the document, and keeps everything before an error.
    pub fn read<R: io::Read>(&mut self, items: &mut Items<R>) -> Result<(), Stop> {
        let Item::Map(mut left) = items.next()? else {
            return Err(Stop::Malformed);
        };
        while let Some(key) = items.next_key(&mut left, key, &mut 0)? {
            let is_again = match key {
                Some(DocumentKey::Contexts) => std::mem::replace(&mut self.saw_contexts, true),
                Some(DocumentKey::StringTable) => std::mem::replace(&mut self.saw_table, true),
                None => false,
            };
            self.oddities.repeated += usize::from(is_again);
            self.saw_other_key |= key.is_none();
            match key {
                Some(DocumentKey::Contexts) => self.read_contexts(items)?,
                Some(DocumentKey::StringTable) => self.read_table(items)?,
                None => items.skip_next()?,
            }
        }
        Ok(())
    }

    /// Reads the array of contexts. A second array adds to the first: contexts are identified by
    /// ids, not by their positions. A context that cannot be read to its end is not added.
    fn read_contexts<R: io::Read>(&mut self, items: &mut Items<R>) -> Result<(), Stop> {
        let Item::List(mut left) = items.next()? else {
            return Err(shape("its `contexts` is not an array").into());
        };
        self.oddities.contexts_complete = false;
        while items.has_next(&mut left)? {
            match items.next()? {
                Item::Map(left) => {
                    self.draft.read(items, left)?;
                    self.push_context()?;
                }
                other => {
                    self.oddities.no_maps += 1;
                    items.skip(other)?;
                }
            }
        }
        self.oddities.contexts_complete = true;
        Ok(())
    }

    /// Reads the string table; a second table replaces the first.
    fn read_table<R: io::Read>(&mut self, items: &mut Items<R>) -> Result<(), Stop> {
        let mut left = match items.next()? {
            Item::List(left) => left,
            other => return items.skip(other),
        };
        self.names = Texts::default();
        self.oddities.table_complete = false;
        while items.has_next(&mut left)? {
            let item = items.next()?;
            // Any other item is stored as an empty name, so that later names keep their numbers.
            let name = match item {
                Item::Text => items.text(),
                _ => "",
            };
            let number = self.names.push(name);
            number.ok_or_else(|| too_many("names"))?;
            self.oddities.mistyped += usize::from(item != Item::Text);
            items.skip(item)?;
        }
        self.oddities.table_complete = true;
        Ok(())
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
}

/// Texts in one allocation, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: String,
    /// End of each text in `bytes`; it starts at the end of the text before.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text and returns its number; `None` after 2^32 - 2 texts, since the last two
    /// numbers stand for missing names.
    pub fn push(&mut self, text: &str) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok()?;
        if number >= Self::LIMIT {
            return None;
        }
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        Some(number)
    }

    /// Maximum number of texts.
    pub const LIMIT: u32 = u32::MAX - 1;

    /// Text with this number.
    pub fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Frees unused capacity.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Texts, with equal ones stored once.
#[derive(Debug, Default)]
pub(super) struct Interner {
    pub texts: Texts,
    /// Hashes with a random key, so that no file can be crafted whose texts all collide.
    hasher: RandomState,
    by_hash: FxHashMap<u64, u32>,
}

impl Interner {
    /// Returns the number of `text`, appending it if it is new.
    ///
    /// If two different texts have the same hash, the later is appended each time: that costs only
    /// memory, and does not happen in practice.
    pub fn intern(&mut self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        if let Some(&known) = self.by_hash.get(&hash)
            && self.texts.get(known) == Some(text)
        {
            return Some(known);
        }
        let number = self.texts.push(text)?;
        self.by_hash.entry(hash).or_insert(number);
        Some(number)
    }
}
