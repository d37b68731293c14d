//! Defines the places of a model: what runs before the layers (*In*), each layer, and what runs
//! after them (*Out*). Each planted item has the set of places that need it if they run on an IPU
//! of their own.

use std::ops::{BitOr, RangeInclusive};

/// A set of places, with one bit for each. In is the lowest bit, then Out, then the layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Places([u64; WORDS]);

const WORDS: usize = 16;

impl Places {
    /// No place: for global operations, such as an optimiser.
    pub const NONE: Self = Self([0; WORDS]);
    /// Embedding and masks.
    pub const IN: Self = Self::bit(0);
    /// Pooler, head, loss, and their own backward pass.
    pub const OUT: Self = Self::bit(1);
    /// Every place: for variables and code that the compiler makes for each IPU.
    pub const EVERY: Self = Self([u64::MAX; WORDS]);
    /// Number of layers that have a bit of their own.
    pub const MAX_LAYERS: u32 = 64 * WORDS as u32 - 2;

    const fn bit(bit: u32) -> Self {
        let mut words = [0; WORDS];
        words[bit as usize / 64] = 1 << (bit % 64);
        Self(words)
    }

    /// Returns the place of one layer; no place for a layer from [`Self::MAX_LAYERS`] on.
    pub fn layer(layer: u32) -> Self {
        match layer {
            Self::MAX_LAYERS.. => Self::NONE,
            _ => Self::bit(layer + 2),
        }
    }

    /// Returns the places at a range of positions in a model of this number of layers: In is at 0,
    /// the layers are at 1 and up, Out is last.
    pub fn positions(layers: u32, range: RangeInclusive<u32>) -> Self {
        range.map(|at| Self::position(layers, at)).collect()
    }

    /// Returns the positions of these places in a model of this number of layers, ascending.
    pub fn in_order(self, layers: u32) -> Vec<u32> {
        let all = 0..=layers + 1;
        all.filter(|&place| self.meets(Self::position(layers, place)))
            .collect()
    }

    fn position(layers: u32, position: u32) -> Self {
        match position.checked_sub(1) {
            None => Self::IN,
            Some(layer) if layer < layers => Self::layer(layer),
            Some(_) => Self::OUT,
        }
    }

    /// Returns whether there is no place.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Returns whether both sets have a place in common.
    pub fn meets(self, other: Self) -> bool {
        let mut words = self.0.iter().zip(&other.0);
        words.any(|(word, other)| word & other != 0)
    }

    /// Returns whether all places of `other` are among these.
    pub fn holds(self, other: Self) -> bool {
        self | other == self
    }

    /// Returns the number of places.
    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

impl FromIterator<Self> for Places {
    fn from_iter<T: IntoIterator<Item = Self>>(places: T) -> Self {
        places.into_iter().fold(Self::NONE, Self::bitor)
    }
}

impl BitOr for Places {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        let words = self.0.iter_mut().zip(other.0);
        words.for_each(|(word, other)| *word |= other);
        self
    }
}
