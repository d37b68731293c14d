//! The places of a model: what stands before the layers (*In*), each layer, what
//! stands after them (*Out*). A planted thing has a set of them: those that need
//! it when they run on an IPU of their own.

use std::ops::{BitOr, BitOrAssign, RangeInclusive};

/// A set of places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Places {
    /// In is the lowest bit, Out the highest, the first layers are between them.
    first: u64,
    /// The layers after these. Most models have none, and then one comparison
    /// tells so.
    further: [u64; FURTHER],
}

/// Words of layers beyond the first.
const FURTHER: usize = 15;

/// Layers in the first word.
const IN_FIRST: u32 = 62;

impl Places {
    /// No place: for global operations, such as an optimiser.
    pub const NONE: Self = Self::of(0);
    /// Embedding and masks.
    pub const IN: Self = Self::of(1);
    /// Pooler, head, loss, and their own backward pass.
    pub const OUT: Self = Self::of(1 << 63);
    /// Every place: for what the compiler makes for each IPU.
    pub const EVERY: Self = Self {
        first: u64::MAX,
        further: [u64::MAX; FURTHER],
    };
    /// Layers that a set can tell apart.
    pub const MAX_LAYERS: u32 = IN_FIRST + 64 * FURTHER as u32;

    const fn of(first: u64) -> Self {
        Self {
            first,
            further: [0; FURTHER],
        }
    }

    /// One layer; no place beyond [`Self::MAX_LAYERS`].
    pub fn layer(layer: u32) -> Self {
        let mut places = Self::NONE;
        match layer.checked_sub(IN_FIRST) {
            None => places.first = 2 << layer,
            Some(rest) => {
                if let Some(word) = places.further.get_mut(rest as usize / 64) {
                    *word = 1 << (rest % 64);
                }
            }
        }
        places
    }

    /// The places from one position to another in a model of so many layers: In
    /// is 0, the layers come from 1 on, Out is the last.
    pub fn positions(layers: u32, range: RangeInclusive<u32>) -> Self {
        range.fold(Self::NONE, |places, position| {
            places | Self::position(layers, position)
        })
    }

    /// The positions of these places in a model of so many layers, ascending.
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

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Whether both have a place in common.
    pub fn meets(self, other: Self) -> bool {
        if self.first & other.first != 0 {
            return true;
        }
        let mut words = self.further.iter().zip(&other.further);
        self.is_long() && other.is_long() && words.any(|(word, other)| word & other != 0)
    }

    /// Whether all of the other's are among these.
    pub fn holds(self, other: Self) -> bool {
        self | other == self
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        let further = self.further.iter().map(|word| word.count_ones());
        self.first.count_ones() + further.sum::<u32>()
    }

    /// Whether there are any beyond the first word.
    fn is_long(self) -> bool {
        self.further != [0; FURTHER]
    }
}

impl BitOr for Places {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        let mut both = self;
        both |= other;
        both
    }
}

impl BitOrAssign for Places {
    fn bitor_assign(&mut self, other: Self) {
        self.first |= other.first;
        if other.is_long() {
            let words = self.further.iter_mut().zip(other.further);
            words.for_each(|(word, other)| *word |= other);
        }
    }
}
