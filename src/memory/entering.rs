//! Bytes that a range of layers gains when it grows by one layer at its end, prepared for all
//! ranges.

use super::MemoryModel;
use super::lanes::{self, ByLane};
use crate::limits;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// Items, such as the bytes of a variable, that belong to several layers each. A range of layers
/// has an item once if it contains any of the item's layers.
///
/// An item has an entry for each of its layers. The entry for a layer applies to ranges that start
/// after the item's previous layer: they gain the item when they grow to this layer.
#[derive(Default)]
pub(super) struct Entries<Item> {
    /// By the start of ranges: pairs of a layer and an item, each in the list of the first start to
    /// which it applies. Ranges that begin at this start or later, up to the layer, gain the item
    /// when they grow to the layer.
    from: Vec<Vec<(u32, Item)>>,
    /// The number of entries for all starts, including entries that were left out because there
    /// were too many.
    count: usize,
}

impl<Item: Copy> Entries<Item> {
    /// Removes all entries, and prepares for a model with `layers` layers (positions).
    pub fn restart(&mut self, layers: usize) {
        self.from.resize_with(layers, Vec::new);
        self.from.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }

    /// Adds an item that a range gains when it first contains any of `layers` (ascending). Nothing
    /// is added if there are too many entries; [`Entries::check`] then fails.
    pub fn enter(&mut self, layers: &[u32], item: Item) {
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
    pub fn enter_with(&mut self, layers: &[u32], with: u32, item: Item, undo: Item) {
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

    /// Checks that no entry was left out.
    ///
    /// # Errors
    /// If there were more than [`limits::ENTRIES`] entries: the tiles have more variables or code
    /// than any real tile.
    pub fn check(&self) -> Result<(), TooManyPlaces> {
        match self.count {
            ..=limits::ENTRIES => Ok(()),
            _ => Err(TooManyPlaces),
        }
    }

    /// Returns the entries that apply to ranges from `start` on, but not to ranges that start
    /// earlier: pairs of a layer, and the item that ranges gain when they grow to this layer.
    pub fn from(&self, start: usize) -> impl Iterator<Item = (usize, Item)> {
        self.from[start]
            .iter()
            .map(|&(layer, item)| (layer as usize, item))
    }
}

/// Sums of bytes by kind, then by lane (tile). The user of the sums defines the kinds.
type ByKind<const N: usize, const KINDS: usize> = ByLane<ByLane<u64, N>, KINDS>;

/// The bytes of a range of positions that grows by one position at a time, by kind and by lane
/// (tile). Bytes belong to a set of positions: a range has the bytes once if it contains any of
/// these positions. The user of the sums defines the kinds, as indices below `KINDS`.
#[derive(Default)]
pub(super) struct GrowingSums<const N: usize, const KINDS: usize> {
    /// Items that ranges gain: pairs of a kind and its bytes by lane (tile).
    pub entries: Entries<(usize, ByLane<u64, N>)>,
    /// The bytes that every range has, whatever its positions.
    everywhere: ByKind<N, KINDS>,
    /// For each position: the bytes that ranges from the current start gain when they reach the
    /// position.
    at: Vec<ByKind<N, KINDS>>,
    /// The bytes of the current range, by kind and lane.
    pub sums: ByKind<N, KINDS>,
}

impl<const N: usize, const KINDS: usize> GrowingSums<N, KINDS> {
    /// Removes all bytes, and prepares for a layer order of `positions` positions.
    pub fn restart(&mut self, positions: usize) {
        self.entries.restart(positions);
        self.everywhere = ByLane::default();
        self.at.resize(positions, ByLane::default());
    }

    /// Adds `bytes`, by lane, of the kind with the index `kind`. A range has the bytes once if it
    /// contains any position of `set`; with [`EVERYWHERE`], every range has them. `memory` has the
    /// positions of sets.
    pub fn enter(&mut self, memory: &MemoryModel<'_>, set: PlaceSet, kind: usize, bytes: [u64; N]) {
        if set == EVERYWHERE {
            lanes::add(&mut self.everywhere[kind], &bytes);
        }
        self.entries
            .enter(memory.sets.places(set), (kind, ByLane(bytes)));
    }

    /// Starts an empty range before the position `start`. The method must be called for the starts
    /// 0, 1, ... in this order.
    pub fn begin(&mut self, start: usize) {
        if start == 0 {
            self.at.fill(ByLane::default());
        }
        for (position, (kind, bytes)) in self.entries.from(start) {
            lanes::add(&mut self.at[position][kind], &bytes);
        }
        self.sums = self.everywhere;
    }

    /// Adds the position `last` to the end of the current range, which it must directly follow.
    pub fn add(&mut self, last: usize) {
        for (sums, added) in self.sums.iter_mut().zip(&*self.at[last]) {
            lanes::add(sums, added);
        }
    }
}
