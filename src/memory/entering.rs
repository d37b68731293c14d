//! Bytes that a range of layers gains when it grows by one layer at its end, prepared for all
//! ranges.

use super::MemoryModel;
use super::lanes::{self, ByLane};
use crate::limits;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// Items, such as the bytes of a variable, that a range of layers has once if it contains any of
/// the item's layers. There is an entry for each of these layers. It applies to ranges that start
/// after the item's layer before: they gain the item when they grow to this layer.
#[derive(Debug, Default)]
pub(super) struct Entries<Item> {
    /// For each start: pairs of a layer and an item. Ranges that start here or later gain the item
    /// when they grow to the layer.
    from: Vec<Vec<(u32, Item)>>,
    /// The number of entries for all starts.
    count: usize,
}

impl<Item: Copy> Entries<Item> {
    /// Removes all entries, and prepares for a model with `layers` layers.
    pub(super) fn restart(&mut self, layers: usize) {
        self.from.resize_with(layers, Vec::new);
        self.from.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }

    /// Adds an item that a range gains at the first of `layers` (ascending) that it reaches.
    pub(super) fn enter(&mut self, layers: &[u32], item: Item) {
        self.count += layers.len();
        if self.check().is_err() {
            return;
        }
        let mut start = 0;
        for &layer in layers {
            self.from[start].push((layer, item));
            start = layer as usize + 1;
        }
    }

    /// Adds an item that a range gains as soon as it contains both the layer `with` and any of
    /// `layers` (ascending). For starts from which a range cannot contain both, `undo`, the inverse
    /// of the item, cancels it.
    pub(super) fn enter_with(&mut self, layers: &[u32], with: u32, item: Item, undo: Item) {
        let (before, after) = layers.split_at(layers.partition_point(|&layer| layer <= with));
        let mut enter = |start: u32, layer: u32, item| {
            self.from[start as usize].push((layer, item));
        };
        let mut start = 0;
        if let Some(&last) = before.last() {
            enter(0, with, item);
            start = last + 1;
            if last < with {
                enter(start, with, undo);
            }
        }
        if let Some(&layer) = after.first().filter(|_| start <= with) {
            enter(start, layer, item);
            enter(with + 1, layer, undo);
        }
    }

    /// Returns an error if entries were left out because there are more than [`limits::ENTRIES`].
    ///
    /// # Errors
    /// If the tiles have more variables or code than any real tile.
    pub(super) fn check(&self) -> Result<(), TooManyPlaces> {
        match self.count {
            ..=limits::ENTRIES => Ok(()),
            _ => Err(TooManyPlaces),
        }
    }

    /// Returns the entries for ranges from `start` on that do not apply to ranges that start
    /// before: pairs of a layer, and an item that ranges gain when they grow to the layer.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = (usize, Item)> {
        let entries = self.from[start].iter();
        entries.map(|&(layer, item)| (layer as usize, item))
    }
}

/// Sums of bytes by kind (such as the kind of code), then by lane (tile).
type ByKind<const N: usize, const KINDS: usize> = ByLane<ByLane<u64, N>, KINDS>;

/// The bytes of a range that grows layer by layer, by kind and by lane (tile). A range has the
/// bytes of a set of positions once if it contains any of them. The buffers are reused for the next
/// tiles.
#[derive(Debug, Default)]
pub(super) struct GrowingSums<const N: usize, const KINDS: usize> {
    /// The kind of the bytes, and their index in `bytes`.
    entries: Entries<(usize, u32)>,
    bytes: Vec<[u64; N]>,
    /// The bytes that every range has, whatever its positions.
    everywhere: ByKind<N, KINDS>,
    /// For each position: the bytes that ranges from the current start gain when they reach it.
    at: Vec<ByKind<N, KINDS>>,
    /// The bytes of the current range, by kind and lane.
    pub(super) sums: ByKind<N, KINDS>,
}

impl<const N: usize, const KINDS: usize> GrowingSums<N, KINDS> {
    /// Removes all bytes, and prepares for a model with `positions` positions.
    pub(super) fn restart(&mut self, positions: usize) {
        self.entries.restart(positions);
        self.bytes.clear();
        self.everywhere = ByLane::default();
        self.at.resize(positions, ByLane::default());
    }

    /// Adds bytes of a kind that a range has once if it contains any position of `set`.
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
        let item = (kind, self.bytes.len() as u32);
        self.entries.enter(memory.sets.places(set), item);
        self.bytes.push(bytes);
    }

    /// Returns an error if some bytes were left out because there were too many entries.
    ///
    /// # Errors
    /// The error of [`Entries::check`].
    pub(super) fn check(&self) -> Result<(), TooManyPlaces> {
        self.entries.check()
    }

    /// Starts an empty range before the position `start`. Starts must come one after the other,
    /// from 0.
    pub(super) fn begin(&mut self, start: usize) {
        if start == 0 {
            self.at.fill(ByLane::default());
        }
        for (position, (kind, number)) in self.entries.from(start) {
            lanes::add(&mut self.at[position][kind], &self.bytes[number as usize]);
        }
        self.sums = self.everywhere;
    }

    /// Adds the next position of the layer order to the current range.
    pub(super) fn add(&mut self, last: usize) {
        for (sums, added) in self.sums.iter_mut().zip(&*self.at[last]) {
            lanes::add(sums, added);
        }
    }
}
