//! The bytes that a range of consecutive layers gains when one more layer is added at its end:
//! bytes of variables and code that no earlier layer of the range uses. With these gains, the bytes
//! of all ranges are computed without adding up each range anew.

use super::{
    MemoryModel,
    lanes::{self, ByLane},
};
use crate::{
    limits,
    model::{EVERYWHERE, PlaceSet, TooManyPlaces},
};

/// *Items*, such as the bytes of a variable, that several layers use. A range of consecutive layers
/// has an item once, so it gains the item when it grows to the first layer that uses the item.
///
/// An item has an entry for each layer that uses it. The entry for a layer applies to ranges that
/// start after the previous layer with the item, since ranges with earlier starts have the item
/// already.
#[derive(Default)]
pub struct Entries<Item> {
    /// One list per position at which a range of layers can begin, with pairs of a layer and an
    /// item (such as the bytes of a variable). A range that begins at the position of the list, or
    /// later, gains the item when it grows to the layer.
    from: Vec<Vec<(u32, Item)>>,
    /// How many pairs of a layer and an item (such as the bytes of a variable that the layer uses)
    /// [`Entries::enter`] was asked to store. Pairs that it left out because there were too many
    /// are included.
    count: usize,
}

impl<Item: Copy> Entries<Item> {
    pub fn restart(&mut self, layers: usize) {
        self.from.resize_with(layers, Vec::new);
        self.from.iter_mut().for_each(Vec::clear);
        self.count = 0;
    }

    /// Adds an item, such as the bytes of a variable, to all ranges of layers that contain at least
    /// one of `layers` (ascending). If there are too many items, this item is left out, and
    /// [`Entries::check`] fails from then on.
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

    /// Adds an item, such as the bytes of a variable, to the ranges of layers that contain `layer`
    /// and begin at `start` or later. If `start` is after the last layer, nothing is added, since
    /// no range begins there.
    pub fn push(&mut self, start: usize, layer: u32, item: Item) {
        if let Some(entries) = self.from.get_mut(start) {
            entries.push((layer, item));
        }
    }

    /// Adds an item, such as the bytes of a variable, to all ranges of layers that contain both the
    /// layer `with` and at least one of `layers` (ascending). An item that is stored for one start
    /// also applies to all later starts. So `undo`, the negative of the item, is stored for the
    /// first start to which the item no longer applies, and cancels it.
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

    pub fn check(&self) -> Result<(), TooManyPlaces> {
        if self.count > limits::ENTRIES {
            return Err(TooManyPlaces);
        }
        Ok(())
    }

    /// Returns what was stored for the start `start`: pairs of a layer and an item, such as the
    /// bytes of a variable. A range of layers that begins at `start` or later gains the item when
    /// it grows to the layer. Callers go through the starts in ascending order and add up the
    /// pairs, since pairs of earlier starts apply as well.
    pub fn from(&self, start: usize) -> impl Iterator<Item = (usize, Item)> {
        self.from[start]
            .iter()
            .map(|&(layer, item)| (layer as usize, item))
    }
}

type ByKind<const N: usize, const KINDS: usize> = ByLane<ByLane<u64, N>, KINDS>;

/// The bytes of a range of consecutive positions (In, layers, Out) that grows by one position at a
/// time, by kind of bytes and by lane (tile). Bytes that several positions need count once. Each
/// user of this type defines its own kinds, such as kinds of code.
#[derive(Default)]
pub struct GrowingSums<const N: usize, const KINDS: usize> {
    /// Bytes that a range of positions gains when it grows, as pairs of a kind of bytes and the
    /// bytes by lane (tile).
    pub entries: Entries<(usize, ByLane<u64, N>)>,
    everywhere: ByKind<N, KINDS>,
    /// One entry per position (In, a layer or Out): the bytes that the current range gains when it
    /// grows to this position. They depend on where the range begins ([`GrowingSums::begin`]).
    at: Vec<ByKind<N, KINDS>>,
    pub sums: ByKind<N, KINDS>,
}

impl<const N: usize, const KINDS: usize> GrowingSums<N, KINDS> {
    pub fn restart(&mut self, positions: usize) {
        self.entries.restart(positions);
        self.everywhere = ByLane::default();
        self.at.resize(positions, ByLane::default());
    }

    /// Adds the bytes of a variable or a piece of code, one number per lane (tile). A range has
    /// them once if it contains any position of `set`; if `set` is [`EVERYWHERE`], every range has
    /// them.
    pub fn enter(&mut self, memory: &MemoryModel<'_>, set: PlaceSet, kind: usize, bytes: [u64; N]) {
        if set == EVERYWHERE {
            lanes::add(&mut self.everywhere[kind], &bytes);
        }
        self.entries
            .enter(memory.sets.places(set), (kind, ByLane(bytes)));
    }

    /// Starts a new range of positions (In, layers, Out), still empty, at `start`. Must be called
    /// with 0, 1, 2, ... in this order: each call adds bytes that ranges gain only if they begin at
    /// `start` or later. Bytes added for earlier starts stay valid.
    pub fn begin(&mut self, start: usize) {
        if start == 0 {
            self.at.fill(ByLane::default());
        }
        for (position, (kind, bytes)) in self.entries.from(start) {
            lanes::add(&mut self.at[position][kind], &bytes);
        }
        self.sums = self.everywhere;
    }

    pub fn add(&mut self, last: usize) {
        lanes::add_each(&mut self.sums, &self.at[last]);
    }
}
