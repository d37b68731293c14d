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

    /// All texts, in the order of their numbers.
    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.filter_map(|(start, &end)| self.bytes.get(start..end))
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

    /// Interns all texts of `part`; gives the number of each here, in their order.
    pub fn append(&mut self, part: &Interner) -> Option<Vec<u32>> {
        part.texts.iter().map(|text| self.intern(text)).collect()
    }

    /// How much memory the texts take, in bytes.
    pub fn size(&self) -> usize {
        self.texts.bytes.len() + size_of_val(&*self.texts.ends)
    }

    /// The texts, once no more are to come.
    pub fn finish(mut self) -> Texts {
        self.texts.shrink();
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_part_have_the_numbers_of_the_whole() {
        let intern = |texts: &[&str]| {
            let mut interner = Interner::default();
            let numbers: Vec<_> = texts.iter().map(|text| interner.intern(text)).collect();
            (interner, numbers)
        };
        let (mut whole, numbers) = intern(&["a", "", "a", "bc"]);
        assert_eq!(numbers, [0, 1, 0, 2].map(Some));
        let (part, _) = intern(&["x", "bc", ""]);
        assert_eq!(whole.append(&part), Some(vec![3, 2, 1]));
        let texts = whole.finish();
        let all: Vec<_> = texts.iter().collect();
        assert_eq!(all, ["a", "", "bc", "x"]);
    }
}
