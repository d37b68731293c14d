//! The bytes that a range of layers gains when it grows by one layer at its end, stored so that
//! they can be looked up for every range.

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
    /// One list per start of ranges, with pairs of a layer and an item. A pair in the list of a
    /// start applies to ranges that begin at this start or later, up to the layer: they gain the
    /// item when they grow to the layer. Each pair is stored once, in the list of the first start
    /// to which it applies.
    from: Vec<Vec<(u32, Item)>>,
    /// The number of entries in all lists. Entries that were left out because there were too many
    /// are counted too.
    count: usize,
}

impl<Item: Copy> Entries<Item> {
    /// Removes all entries, and prepares for a model with `layers` layers (positions).
    pub fn restart(&mut self, layers: usize) {
        self.from.resize_with(layers, Vec::new);
        self.from.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }

    /// Adds an item that a range gains as soon as it contains any of `layers` (ascending). If there
    /// are too many entries, the item is not added and [`Entries::check`] fails from then on.
    pub fn enter(&mut self, layers: &[u32], item: Item) {
        self.count += layers.len();
        if self.check().is_err() {
            return;
        }
        let mut start = 0;
        for &layer in layers {
            self.push(start, layer, item);
            start = layer as usize + 1;
        }
    }

    /// Adds an entry to the list of `start`: ranges that begin at this start or later gain `item`
    /// when they grow to `layer`. An entry for a start after the last layer is ignored.
    pub fn push(&mut self, start: usize, layer: u32, item: Item) {
        if let Some(entries) = self.from.get_mut(start) {
            entries.push((layer, item));
        }
    }

    /// Adds an item that a range gains as soon as it contains both the layer `with` and any of
    /// `layers` (ascending). `undo` must be the inverse of `item`: it cancels the item for ranges
    /// that would otherwise gain it without containing both.
    pub fn enter_with(&mut self, layers: &[u32], with: u32, item: Item, undo: Item) {
        let (before, after) = layers.split_at(layers.partition_point(|&layer| layer <= with));
        let mut start = 0;
        if let Some(&last) = before.last() {
            self.push(0, with, item);
            start = last + 1;
            if last < with {
                self.push(start as usize, with, undo);
            }
        }
        if let Some(&layer) = after.first().filter(|_| start <= with) {
            self.push(start as usize, layer, item);
            self.push(with as usize + 1, layer, undo);
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

    /// Returns the entries in the list of `start`, which apply to ranges that begin at `start` but
    /// not to ranges that begin earlier. An entry is a pair of a layer, and the item that ranges
    /// gain when they grow to this layer.
    pub fn from(&self, start: usize) -> impl Iterator<Item = (usize, Item)> {
        self.from[start]
            .iter()
            .map(|&(layer, item)| (layer as usize, item))
    }
}

/// Sums of bytes, one entry per kind, with one number per lane (tile). Each user of this type
/// defines its own kinds.
type ByKind<const N: usize, const KINDS: usize> = ByLane<ByLane<u64, N>, KINDS>;

/// The bytes of a range of positions that grows by one position at a time, by kind and by lane
/// (tile). Bytes belong to a set of positions: a range has the bytes once if it contains any of
/// these positions. A kind is an index below `KINDS`; each user of this type defines its own kinds.
#[derive(Default)]
pub(super) struct GrowingSums<const N: usize, const KINDS: usize> {
    /// The bytes that ranges gain: each item is a pair of an index of a kind, and the bytes of this
    /// kind by lane (tile).
    pub entries: Entries<(usize, ByLane<u64, N>)>,
    /// The bytes that every range has, whatever its positions.
    everywhere: ByKind<N, KINDS>,
    /// One entry per position: the bytes that a range from the current start gains when it grows to
    /// this position.
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

    /// Adds `bytes`, one number per lane (tile), of the kind with the index `kind`. A range has
    /// these bytes once if it contains any position of `set`; if `set` is [`EVERYWHERE`], every
    /// range has them. `memory` is needed to look up the positions of `set`.
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

    /// Adds the position `last` to the end of the current range; it must be the next position after
    /// the range.
    pub fn add(&mut self, last: usize) {
        lanes::add_each(&mut self.sums, &self.at[last]);
    }
}
