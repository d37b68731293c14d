//! Reads the top-level map of a debug file, up to the first error. Also defines a list that keeps
//! all texts in one allocation.

use super::{
    DebugInfo,
    cbor::{Items, Unreadable},
    context::{ContextRecord, Draft},
    damage::{next_index, shape},
};
use crate::message::{FileError, Result};
use ciborium_ll::Header;
use rustc_hash::FxHashMap;
use std::{
    hash::{BuildHasher, RandomState},
    io::Read,
    mem::replace,
};

/// The parts of a debug file that were read so far.
#[derive(Default)]
pub struct Collected {
    /// The debug contexts and the string table that were read so far. Contexts with the same id are
    /// not yet removed.
    pub info: DebugInfo,
    /// The distinct texts of all debug contexts. Contexts refer to texts by index.
    pub texts: Interner,
    /// The debug context that is being read, which is added to `info` once it is complete.
    draft: Draft,
    pub saw_contexts: bool,
    saw_table: bool,
    /// Whether the top-level map of the file has a key that Poplar does not write in debug files.
    pub saw_other_key: bool,
    /// Whether the array `contexts` of the debug file was read to its end.
    pub contexts_complete: bool,
    /// Whether the string table of the debug file was read to its end.
    pub table_complete: bool,
    pub without_id: usize,
    pub no_maps: usize,
    pub mistyped: usize,
    pub repeated: usize,
    /// Whether the top-level map of the debug file was read to its end.
    pub is_complete: bool,
}

/// The error of a function that reads a part of a debug file. `Some` has the message with which the
/// whole file is refused, for example since it has too many contexts. `None` means that the file is
/// cut off or malformed here; everything before is kept.
type Refusal = Option<FileError>;

impl From<Unreadable> for Refusal {
    fn from(_: Unreadable) -> Self {
        None
    }
}

impl Collected {
    /// Reads the top-level map of a debug file. A map that is cut off or malformed is no error: the
    /// content before that place is kept, and `is_complete` stays false.
    ///
    /// # Errors
    /// If `contexts` is not an array, or if the file has too many contexts, texts or names for
    /// 32-bit indices.
    pub fn read(reader: impl Read) -> Result<Self> {
        let mut collected = Self::default();
        match collected.read_map(&mut Items::new(reader)) {
            Err(Some(refusal)) => return Err(refusal),
            read => collected.is_complete = read.is_ok(),
        }
        Ok(collected)
    }

    /// Reads the top-level map of a debug file, and skips the values of unknown keys.
    fn read_map(&mut self, items: &mut Items<impl Read>) -> Result<(), Refusal> {
        let Header::Map(mut left) = items.item()? else {
            return Err(None);
        };
        while let Some(key) = items.next_key(&mut left, |key| key.map(str::to_owned))? {
            let header = items.item()?;
            match key.as_deref() {
                Some("contexts") => {
                    self.repeated += usize::from(replace(&mut self.saw_contexts, true));
                    self.read_contexts(items, header)?;
                }
                Some("stringTable") => {
                    self.repeated += usize::from(replace(&mut self.saw_table, true));
                    self.read_names(items, header)?;
                }
                _ => {
                    self.saw_other_key = true;
                    items.skip(header)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the array of contexts, and counts entries that are not maps. If the file has a second
    /// array, its contexts are added to the contexts of the first array, since contexts are
    /// identified by ids, not by indices. A context that cannot be read to its end is not stored.
    fn read_contexts(
        &mut self,
        items: &mut Items<impl Read>,
        header: Header,
    ) -> Result<(), Refusal> {
        let Header::Array(mut left) = header else {
            return Err(shape("its `contexts` is not an array").into());
        };
        self.contexts_complete = false;
        while let Some(header) = items.next(&mut left)? {
            if let Header::Map(left) = header {
                self.draft.read(items, left)?;
                self.push_context()?;
            } else {
                self.no_maps += 1;
                items.skip(header)?;
            }
        }
        self.contexts_complete = true;
        Ok(())
    }

    /// Reads the string table, an array of texts. If the file has a second string table, the second
    /// table replaces the first.
    fn read_names(&mut self, items: &mut Items<impl Read>, header: Header) -> Result<(), Refusal> {
        let Header::Array(mut left) = header else {
            return Ok(items.skip(header)?);
        };
        self.info.names = Texts::default();
        self.table_complete = false;
        while let Some(header) = items.next(&mut left)? {
            if let Header::Text(length) = header {
                self.info.names.push(items.text(length)?, "names")?;
            } else {
                // An entry of the string table that is no text is replaced by an empty name, so
                // that later names keep their indices in the table.
                self.mistyped += 1;
                self.info.names.push("", "names")?;
                items.skip(header)?;
            }
        }
        self.table_complete = true;
        Ok(())
    }

    /// Appends the debug context in `draft`, with its texts, to the contexts read so far. A context
    /// without an id is counted but not stored.
    ///
    /// # Errors
    /// If there are more contexts or texts than 32-bit indices can count.
    fn push_context(&mut self) -> Result<()> {
        self.mistyped += self.draft.mistyped;
        if self.draft.record.id == 0 {
            self.without_id += 1;
            return Ok(());
        }
        let DebugInfo {
            records, fields, ..
        } = &mut self.info;
        next_index(records.len(), "contexts")?;
        let first = next_index(fields.len(), "texts")?;
        for (field, text) in self.draft.fields() {
            fields.push((field, self.texts.intern(text)?));
        }
        records.push(ContextRecord {
            first_field: first,
            field_count: (fields.len() - first as usize) as u8,
            ..self.draft.record
        });
        Ok(())
    }
}

/// A list of texts, such as the string table, in one allocation. Each text has an index, from 0.
#[derive(Debug, Default)]
pub struct Texts {
    bytes: String,
    /// One entry per text: its end in `bytes` (exclusive). A text starts where the text before it
    /// ends.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text to the list and returns its index. Returns an error if this index would not
    /// fit in 32 bits; the error message calls the entries of the list `what` (texts or names).
    pub fn push(&mut self, text: &str, what: &str) -> Result<u32> {
        let number = next_index(self.ends.len(), what)?;
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        Ok(number)
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

/// A list of texts in which equal texts are stored once, since many debug contexts have the same
/// text.
#[derive(Default)]
pub struct Interner {
    pub texts: Texts,
    /// Hashes texts with a random seed, so that nobody can craft a file in which all texts have the
    /// same hash.
    hasher: RandomState,
    /// Maps a hash to the index of the text that has this hash. If several texts have the same
    /// hash, this is the index of the first of them.
    by_hash: FxHashMap<u64, u32>,
}

impl Interner {
    /// Returns the index of `text`, which is appended to the list if it is new. Returns an error if
    /// the index of a new text would not fit in 32 bits.
    ///
    /// If two different texts have the same hash, the later text is appended each time it occurs.
    /// That only takes memory, and does not happen in practice.
    pub fn intern(&mut self, text: &str) -> Result<u32> {
        let hash = self.hasher.hash_one(text);
        if let Some(&known) = self.by_hash.get(&hash)
            && self.texts.get(known) == Some(text)
        {
            return Ok(known);
        }
        let number = self.texts.push(text, "texts")?;
        self.by_hash.entry(hash).or_insert(number);
        Ok(number)
    }
}
