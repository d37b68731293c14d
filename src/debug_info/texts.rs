//! Texts in one allocation, with or without repetitions.

use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, RandomState};

/// A list of texts in one allocation, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: String,
    /// End of each text in `bytes` (exclusive). A text starts at the end of the text before it.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text and returns its number. Returns `None` after [`LIMIT`](Self::LIMIT) texts,
    /// since the numbers above stand for missing names.
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

    /// Returns the text with this number; `None` if there is none.
    pub fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

/// A list of texts in which equal texts are stored once.
#[derive(Default)]
pub(super) struct Interner {
    /// The distinct texts.
    pub texts: Texts,
    /// Hashes texts with a random seed, so that no file can be crafted whose texts all collide.
    hasher: RandomState,
    /// Maps the hash of a text to its number, or to the number of the first text with that hash if
    /// several have it.
    by_hash: FxHashMap<u64, u32>,
}

impl Interner {
    /// Returns the number of `text`, appending it if it is new. Returns `None` if no number is
    /// left.
    ///
    /// If two different texts have the same hash, the later text is appended each time. That costs
    /// only memory, and does not happen in practice.
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
