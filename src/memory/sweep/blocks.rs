//! Live bytes of growing ranges on one tile, summed up only where it matters.

use super::Bytes;
use super::tile::{Stretch, Tile};

/// Places in a block. Small in tests, so that small models have several.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// The range has not been looked at in this block.
const UNSEEN: usize = usize::MAX;

/// What enters at each layer, and the live bytes of one range of layers. What
/// every range has comes after the last layer, as if it were one more.
#[derive(Debug, Default)]
pub(super) struct Blocks<B> {
    layers: usize,
    blocks: usize,
    /// By block, then layer, then place: how the bytes that enter there change
    /// from the place before.
    changes: Vec<B>,
    /// By layer, then block: all changes of the block together.
    sums: Vec<B>,
    /// By layer, then block: its rises alone, which bound what can be live
    /// within it beyond its first place.
    rises: Vec<u64>,
    /// By layer, then block: what is live before its first place.
    before: Vec<B>,
    /// By layer, then block: the maximum that can be live in it, `before` and
    /// `rises` together.
    bounds: Vec<u64>,
    /// By layer: did anything enter since these two were summed up?
    is_stale: Vec<bool>,
    range: Range<B>,
}

/// The range that grows.
#[derive(Debug, Default)]
struct Range<B> {
    start: usize,
    /// One more than its last layer.
    end: usize,
    /// By block: the maximum that can be live in it, of all its layers.
    bounds: Vec<u64>,
    /// Of the layers before `seen`, which is by block: what is live before the
    /// first place of the block, and by place the changes.
    before: Vec<B>,
    changes: Vec<B>,
    seen: Vec<usize>,
    /// The block that had the highest sum.
    highest: usize,
}

impl<B: Bytes> Blocks<B> {
    /// Forgets everything, for a tile with so many places.
    pub(super) fn restart(&mut self, tile: &Tile, places: usize, layers: usize) {
        // An end may lie after the last place.
        let blocks = places / BLOCK + 1;
        (self.layers, self.blocks) = (layers, blocks);
        zeros(&mut self.changes, blocks * (layers + 1) * BLOCK);
        zeros(&mut self.sums, blocks * (layers + 1));
        zeros(&mut self.rises, blocks * (layers + 1));
        zeros(&mut self.before, blocks * (layers + 1));
        zeros(&mut self.bounds, blocks * (layers + 1));
        zeros(&mut self.is_stale, layers + 1);
        zeros(&mut self.range.before, blocks);
        zeros(&mut self.range.changes, blocks * BLOCK);
        self.range.highest = 0;
        for &what in &tile.everywhere {
            self.enter(layers, what);
        }
    }

    /// From now on, `what` enters at `layer`.
    pub(super) fn enter(&mut self, layer: usize, what: Stretch) {
        let (from, to, bytes) = (what.from as usize, what.to as usize, B::from(what.bytes));
        let of_layer = layer * self.blocks;
        let first = |block: usize| (block * (self.layers + 1) + layer) * BLOCK;
        let place = |place: usize| first(place / BLOCK) + place % BLOCK;
        let (begin, end) = (place(from), place(to));
        rise(&mut self.changes[begin], bytes);
        fall(&mut self.changes[end], bytes);
        rise(&mut self.sums[of_layer + from / BLOCK], bytes);
        fall(&mut self.sums[of_layer + to / BLOCK], bytes);
        self.rises[of_layer + from / BLOCK] += bytes.into();
        self.is_stale[layer] = true;
    }

    /// Sums up what is live before each block of a layer.
    fn sum_up(&mut self, layer: usize) {
        let blocks = layer * self.blocks..(layer + 1) * self.blocks;
        let mut live = B::default();
        for block in blocks {
            self.before[block] = live;
            self.bounds[block] = live.into() + self.rises[block];
            live = live.plus(self.sums[block]);
        }
        self.is_stale[layer] = false;
    }

    /// Begins with an empty range before the layer `start`.
    pub(super) fn begin(&mut self, start: usize) {
        if self.is_stale[self.layers] {
            self.sum_up(self.layers);
        }
        let everywhere = self.layers * self.blocks..(self.layers + 1) * self.blocks;
        let range = &mut self.range;
        (range.start, range.end) = (start, start);
        range.bounds.clear();
        range.bounds.extend_from_slice(&self.bounds[everywhere]);
        range.seen.clear();
        range.seen.resize(self.blocks, UNSEEN);
    }

    /// Adds the next layer to the range.
    pub(super) fn add(&mut self, layer: usize) {
        if self.is_stale[layer] {
            self.sum_up(layer);
        }
        let of_layer = layer * self.blocks..(layer + 1) * self.blocks;
        self.range.end = layer + 1;
        for (bound, own) in self.range.bounds.iter_mut().zip(&self.bounds[of_layer]) {
            *bound += own;
        }
    }

    /// The highest sum of the range within `window` (places, end exclusive) if
    /// it is above `known`, else `known`.
    pub(super) fn highest(&mut self, window: (usize, usize), known: u64) -> u64 {
        let blocks = window.0 / BLOCK..(window.1 - 1) / BLOCK + 1;
        let mut highest = known;
        // Where a shorter range had most, this one has much.
        let first = Some(self.range.highest).filter(|first| blocks.contains(first));
        for block in first.into_iter().chain(blocks) {
            if self.range.bounds[block] > highest {
                let found = self.look(block, window);
                if found > highest {
                    highest = found;
                    self.range.highest = block;
                }
            }
        }
        highest
    }

    /// The highest sum in the part of a block that lies within `window`.
    fn look(&mut self, block: usize, window: (usize, usize)) -> u64 {
        self.catch_up(block);
        let from = block * BLOCK;
        let range = &mut self.range;
        let mut live = range.before[block];
        let mut sums = [B::default(); BLOCK];
        for (sum, &change) in sums.iter_mut().zip(&range.changes[from..from + BLOCK]) {
            live = live.plus(change);
            *sum = live;
        }
        // From here on, only layers that are still to come can add to this.
        range.bounds[block] = sums.into_iter().max().unwrap_or_default().into();
        let within = window.0.max(from) - from..window.1.min(from + BLOCK) - from;
        let highest = sums[within].iter().copied().max();
        highest.unwrap_or_default().into()
    }

    /// Takes the layers that were added to the range since the last look at a
    /// block.
    fn catch_up(&mut self, block: usize) {
        let range = &mut self.range;
        let changes = &mut range.changes[block * BLOCK..(block + 1) * BLOCK];
        let own = |layer: usize| {
            let first = (block * (self.layers + 1) + layer) * BLOCK;
            let before = self.before[layer * self.blocks + block];
            (before, &self.changes[first..first + BLOCK])
        };
        let before = &mut range.before[block];
        let seen = &mut range.seen[block];
        if *seen == UNSEEN {
            let everywhere = own(self.layers);
            *before = everywhere.0;
            changes.copy_from_slice(everywhere.1);
            *seen = range.start;
        }
        for layer in *seen..range.end {
            let own = own(layer);
            *before = before.plus(own.0);
            for (change, &own) in changes.iter_mut().zip(own.1) {
                *change = change.plus(own);
            }
        }
        *seen = range.end;
    }
}

fn zeros<T: Copy + Default>(values: &mut Vec<T>, count: usize) {
    values.clear();
    values.resize(count, T::default());
}

fn rise<B: Bytes>(sum: &mut B, bytes: B) {
    *sum = sum.plus(bytes);
}

fn fall<B: Bytes>(sum: &mut B, bytes: B) {
    *sum = sum.minus(bytes);
}
