//! Texts in one arena, and the interning of repeated ones.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxHashMap;

/// Texts back to back in one allocation, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: String,
    /// Where each text ends; it starts where the one before ends.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text and gives its number, `None` once 2^32 - 2 are held: the
    /// last two numbers have meanings of their own elsewhere.
    pub fn push(&mut self, text: &str) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok()?;
        if number >= Self::LIMIT {
            return None;
        }
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        Some(number)
    }

    /// How many texts can be held.
    pub const LIMIT: u32 = u32::MAX - 1;

    /// The text with this number.
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

    /// Gives back what growing has reserved too much.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Texts; equal ones are kept once.
#[derive(Debug, Default)]
pub(super) struct Interner {
    texts: Texts,
    /// Keyed hashes, so that no file can be made whose texts all collide.
    hasher: RandomState,
    by_hash: FxHashMap<u64, u32>,
}

impl Interner {
    /// The number of `text`, which is appended if it is new.
    ///
    /// Of two texts with the same hash the later is appended each time:
    /// interning only saves room, and this never happens in practice.
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

    /// The texts, once no more are to come.
    pub fn finish(mut self) -> Texts {
        self.texts.shrink();
        self.texts
    }
}
