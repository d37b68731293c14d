//! The live bytes of growing ranges on neighbouring tiles. Sums are computed only in blocks of
//! places that may have a peak; a place is a step at which a peak is possible.

use super::variables::Stretch;
use crate::memory::lanes::{self, ByLane, Bytes};

/// The number of *places* (steps at which a peak is possible) in a block. It is small in tests, so
/// that small models have several blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// The entry in [`Range::seen`] of a block whose sums were not computed for the current range.
const UNSEEN: usize = usize::MAX;

/// The live bytes of a range of layers that grows at its end, by lane (tile), at each *place*: a
/// step at which a peak is possible. Places are divided into blocks of [`BLOCK`], whose sums are
/// computed only if the block may have a peak. The variables that every range has are stored as the
/// variables of an additional layer after the last.
#[derive(Default)]
pub(super) struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// For each block of places, then each layer, then each place of the block: the change, from
    /// the previous place, of the live bytes that ranges gain at the layer.
    changes: Vec<[B; N]>,
    /// For each layer, then each block of places: sums of the live bytes that ranges gain at the
    /// layer.
    sums: Vec<BlockSums<B, N>>,
    /// For each layer: whether bytes were added to it since [`Blocks::sum_up`] last ran for it.
    is_stale: Vec<bool>,
    range: Range<B, N>,
}

/// Sums of the live bytes that ranges gain at one layer, in one block of places, by lane (tile).
#[derive(Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// The sum of all changes of live bytes from place to place in the block.
    changes: ByLane<B, N>,
    /// The sum of the increases of live bytes in the block, without the decreases: live bytes in
    /// the block exceed `before` by at most this sum.
    rises: ByLane<B, N>,
    /// The bytes that are live before the first place of the block.
    before: ByLane<B, N>,
    /// Upper bound on the live bytes in the block: the sum of `before` and `rises`.
    bounds: ByLane<B, N>,
}

/// The current range of layers, and its live bytes at all places (steps at which a peak is
/// possible), as far as they are computed.
#[derive(Default)]
struct Range<B, const N: usize> {
    start: usize,
    /// The end of the range of layers (exclusive).
    end: usize,
    /// For each block: an upper bound on the live bytes of the range at any place of the block.
    bounds: Vec<[B; N]>,
    /// For each block: the live bytes before its first place, of the range's layers below the
    /// block's entry in `seen`.
    before: Vec<[B; N]>,
    /// For each place: the change of live bytes from the previous place, of the range's layers
    /// below the block's entry in `seen`.
    changes: Vec<[B; N]>,
    /// For each block: the end (exclusive) of the layers of the range whose bytes are in `before`
    /// and `changes`; [`UNSEEN`] if there are none for this range.
    seen: Vec<usize>,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    /// Removes all bytes, and prepares for `places` places (steps at which a peak is possible) and
    /// `layers` layers.
    pub fn restart(&mut self, places: usize, layers: usize) {
        // The end of a live range may be after the last place, so there is room for one more place.
        let blocks = places / BLOCK + 1;
        (self.layers, self.blocks) = (layers, blocks);
        let none = [B::default(); N];
        renew(&mut self.changes, blocks * (layers + 1) * BLOCK, none);
        renew(&mut self.sums, blocks * (layers + 1), BlockSums::default());
        renew(&mut self.is_stale, layers + 1, false);
        renew(&mut self.range.before, blocks, none);
        renew(&mut self.range.changes, blocks * BLOCK, none);
    }

    /// Adds `bytes`, by lane (tile), that ranges from now on have at the places of `stretch` if
    /// they contain `layer`; all ranges have them if `layer` is the number of layers.
    pub fn enter(&mut self, layer: usize, stretch: Stretch, bytes: &[u32; N]) {
        let (from, to) = (stretch.from as usize, stretch.to as usize);
        let bytes = bytes.map(B::change);
        let of_layer = layer * self.blocks;
        let first = |block: usize| (block * (self.layers + 1) + layer) * BLOCK;
        let place = |place: usize| first(place / BLOCK) + place % BLOCK;
        let (begin, end) = (place(from), place(to));
        lanes::add(&mut self.changes[begin], &bytes);
        lanes::subtract(&mut self.changes[end], &bytes);
        let sums = &mut self.sums[of_layer + from / BLOCK];
        lanes::add(&mut sums.changes, &bytes);
        lanes::add(&mut sums.rises, &bytes);
        lanes::subtract(&mut self.sums[of_layer + to / BLOCK].changes, &bytes);
        self.is_stale[layer] = true;
    }

    /// Computes the live bytes of `layer` before each block, and its upper bound in each block,
    /// after bytes were added to it.
    fn sum_up(&mut self, layer: usize) {
        let mut live = [B::default(); N];
        for sums in &mut self.sums[layer * self.blocks..][..self.blocks] {
            *sums.before = live;
            *sums.bounds = live;
            lanes::add(&mut sums.bounds, &sums.rises);
            lanes::add(&mut live, &sums.changes);
        }
        self.is_stale[layer] = false;
    }

    /// Starts an empty range of layers before the layer `start`.
    pub fn begin(&mut self, start: usize) {
        if self.is_stale[self.layers] {
            self.sum_up(self.layers);
        }
        let everywhere = &self.sums[self.layers * self.blocks..];
        let range = &mut self.range;
        (range.start, range.end) = (start, start);
        range.bounds.clear();
        range
            .bounds
            .extend(everywhere.iter().map(|sums| *sums.bounds));
        renew(&mut range.seen, self.blocks, UNSEEN);
    }

    /// Adds `layer` to the end of the current range, which it must directly follow.
    pub fn add(&mut self, layer: usize) {
        if self.is_stale[layer] {
            self.sum_up(layer);
        }
        let of_layer = &self.sums[layer * self.blocks..];
        self.range.end = layer + 1;
        for (bounds, layer) in self.range.bounds.iter_mut().zip(of_layer) {
            lanes::add(bounds, &layer.bounds);
        }
    }

    /// Returns for each lane (tile) the highest live bytes of the current range at any place of
    /// `window` (end exclusive, not empty), or `known` if that is higher.
    pub fn highest(&mut self, window: (usize, usize), known: [B; N]) -> [B; N] {
        let blocks = window.0 / BLOCK..(window.1 - 1) / BLOCK + 1;
        let mut highest = known;
        for block in blocks {
            if lanes::is_above(&self.range.bounds[block], &highest) {
                lanes::raise(&mut highest, &self.sum_block(block, window));
            }
        }
        highest
    }

    /// Returns for each lane (tile) the highest live bytes of the current range at the places of
    /// `block` that lie in `window` (end exclusive). Lowers the upper bound of the block.
    fn sum_block(&mut self, block: usize, window: (usize, usize)) -> [B; N] {
        self.catch_up(block);
        let from = block * BLOCK;
        let range = &mut self.range;
        let mut live = range.before[block];
        let (mut all, mut within) = ([B::default(); N], [B::default(); N]);
        for (place, changes) in (from..).zip(&range.changes[from..from + BLOCK]) {
            lanes::add(&mut live, changes);
            lanes::raise(&mut all, &live);
            if (window.0..window.1).contains(&place) {
                lanes::raise(&mut within, &live);
            }
        }
        // The bound is now exact: only layers that the range gains later can add to it.
        range.bounds[block] = all;
        within
    }

    /// Adds to the sums of `block` those layers of the current range that the sums do not include
    /// yet.
    fn catch_up(&mut self, block: usize) {
        let range = &mut self.range;
        let changes = &mut range.changes[block * BLOCK..(block + 1) * BLOCK];
        let sums_of = |layer: usize| {
            let first = (block * (self.layers + 1) + layer) * BLOCK;
            let sums = &self.sums[layer * self.blocks + block];
            (&*sums.before, &self.changes[first..first + BLOCK])
        };
        let before = &mut range.before[block];
        let seen = &mut range.seen[block];
        if *seen == UNSEEN {
            let everywhere = sums_of(self.layers);
            *before = *everywhere.0;
            changes.copy_from_slice(everywhere.1);
            *seen = range.start;
        }
        for layer in *seen..range.end {
            let sums = sums_of(layer);
            lanes::add(before, sums.0);
            for (changes, added) in changes.iter_mut().zip(sums.1) {
                lanes::add(changes, added);
            }
        }
        *seen = range.end;
    }
}

/// Replaces the contents of `values` by `count` entries of `value`.
fn renew<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
