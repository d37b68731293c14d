//! Texts in one allocation, with or without repetitions.

use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, RandomState};

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
    texts: Texts,
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

    /// Returns the texts.
    pub fn finish(mut self) -> Texts {
        self.texts.shrink();
        self.texts
    }
}
