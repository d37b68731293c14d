//! Lists of places as they enter ranges that grow at their end, and sums of bytes that enter so.

use super::MemoryModel;
use super::lanes::{self, ByLane};
use crate::limits;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// Entries into ranges by the first start from which they count: the position after the previous
/// layer with the same entry, so that a range counts it once.
#[derive(Debug, Default)]
pub(super) struct Entries<What> {
    /// By start, the layers at which something enters.
    from: Vec<Vec<(u32, What)>>,
    count: usize,
}

impl<What: Copy> Entries<What> {
    /// Clears everything, for `layers` layers.
    pub(super) fn restart(&mut self, layers: usize) {
        self.from.resize_with(layers, Vec::new);
        self.from.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }

    /// Adds what all of `layers` have: at each layer, it enters ranges that start after the layer
    /// before.
    pub(super) fn enter(&mut self, layers: &[u32], what: What) {
        self.count += layers.len();
        if self.check().is_err() {
            return;
        }
        let mut start = 0;
        for &layer in layers {
            self.from[start].push((layer, what));
            start = layer as usize + 1;
        }
    }

    /// Adds what ranges have that contain one of `layers`, and `with` too: it enters at the later
    /// of both. For ranges that start after `with`, `undo` takes it back.
    pub(super) fn enter_with(&mut self, layers: &[u32], with: u32, what: What, undo: What) {
        let (before, after) = layers.split_at(layers.partition_point(|&layer| layer <= with));
        let mut enter = |start: u32, layer: u32, what| {
            self.from[start as usize].push((layer, what));
        };
        let mut start = 0;
        if let Some(&last) = before.last() {
            enter(0, with, what);
            start = last + 1;
            if last < with {
                enter(start, with, undo);
            }
        }
        if let Some(&layer) = after.first().filter(|_| start <= with) {
            enter(start, layer, what);
            enter(with + 1, layer, undo);
        }
    }

    /// Are all entries there? Beyond [`limits::ENTRIES`], further ones are left out.
    ///
    /// # Errors
    /// When the tiles have more variables or code than any real tile.
    pub(super) fn check(&self) -> Result<(), TooManyPlaces> {
        match self.count {
            ..=limits::ENTRIES => Ok(()),
            _ => Err(TooManyPlaces),
        }
    }

    /// Entries that begin to count at `start`: layer, and what enters there.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = (usize, What)> {
        let entries = self.from[start].iter();
        entries.map(|&(layer, what)| (layer as usize, what))
    }
}

/// Bytes by kind, then by lane.
type ByKind<const N: usize, const KINDS: usize> = ByLane<ByLane<u64, N>, KINDS>;

/// Sums of bytes in a growing range, of several kinds: a range has the bytes of a place set once,
/// however many of its places it has. Reused for the next tiles.
#[derive(Debug, Default)]
pub(super) struct GrowingSums<const N: usize, const KINDS: usize> {
    /// Kind and index in `bytes`.
    entries: Entries<(usize, u32)>,
    bytes: Vec<[u64; N]>,
    /// Bytes of every range.
    everywhere: ByKind<N, KINDS>,
    /// By position: bytes that enter there.
    at: Vec<ByKind<N, KINDS>>,
    /// The bytes of the range.
    pub(super) sums: ByKind<N, KINDS>,
}

impl<const N: usize, const KINDS: usize> GrowingSums<N, KINDS> {
    /// Clears everything, for `positions` positions.
    pub(super) fn restart(&mut self, positions: usize) {
        self.entries.restart(positions);
        self.bytes.clear();
        self.everywhere = ByLane::default();
        self.at.resize(positions, ByLane::default());
    }

    /// Adds bytes of a kind that ranges with a place of `set` have.
    pub(super) fn enter(
        &mut self,
        memory: &MemoryModel<'_>,
        set: PlaceSet,
        kind: usize,
        bytes: [u64; N],
    ) {
        if set == EVERYWHERE {
            lanes::add(&mut self.everywhere[kind], &bytes);
        }
        let what = (kind, self.bytes.len() as u32);
        self.entries.enter(memory.sets.places(set), what);
        self.bytes.push(bytes);
    }

    /// Are all bytes there?
    ///
    /// # Errors
    /// As [`Entries::check`].
    pub(super) fn check(&self) -> Result<(), TooManyPlaces> {
        self.entries.check()
    }

    /// Begins with an empty range before the position `start`: 0, then each next one in turn.
    pub(super) fn begin(&mut self, start: usize) {
        if start == 0 {
            self.at.fill(ByLane::default());
        }
        for (position, (kind, number)) in self.entries.from(start) {
            lanes::add(&mut self.at[position][kind], &self.bytes[number as usize]);
        }
        self.sums = self.everywhere;
    }

    /// Adds the next position to the range.
    pub(super) fn add(&mut self, last: usize) {
        for (sums, added) in self.sums.iter_mut().zip(&*self.at[last]) {
            lanes::add(sums, added);
        }
    }
}
