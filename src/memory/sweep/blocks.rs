//! Live bytes of growing ranges on one tile, summed up only where it matters.

use super::Bytes;
use super::tile::{Stretch, Tile};

/// Places in a block. Small in tests, so that small models have several.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// The range has not been looked at in this block.
const UNSEEN: usize = usize::MAX;

/// What enters at each layer, and the live bytes of one range of layers. What
/// every range has stands behind the last layer, as if it were one more.
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
    range: Range<B>,
}

/// The range that grows.
#[derive(Debug, Default)]
struct Range<B> {
    start: usize,
    /// One more than its last layer.
    end: usize,
    /// By block: changes and rises of all its layers.
    sums: Vec<B>,
    rises: Vec<u64>,
    /// By block: what is live before its first place.
    before: Vec<B>,
    /// By place: changes of the layers before `seen`, which is by block.
    changes: Vec<B>,
    seen: Vec<usize>,
    /// The block that had the highest sum.
    highest: usize,
}

impl<B: Bytes> Blocks<B> {
    /// Forgets everything, for a tile with these places.
    pub(super) fn restart(&mut self, tile: &Tile, layers: usize) {
        // An end may lie behind the last place.
        let blocks = tile.places / BLOCK + 1;
        (self.layers, self.blocks) = (layers, blocks);
        zeros(&mut self.changes, blocks * (layers + 1) * BLOCK);
        zeros(&mut self.sums, blocks * (layers + 1));
        zeros(&mut self.rises, blocks * (layers + 1));
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
    }

    /// Begins with an empty range before the layer `start`.
    pub(super) fn begin(&mut self, start: usize) {
        let everywhere = self.layers * self.blocks..(self.layers + 1) * self.blocks;
        let range = &mut self.range;
        (range.start, range.end) = (start, start);
        range.sums.clear();
        range.sums.extend_from_slice(&self.sums[everywhere.clone()]);
        range.rises.clear();
        range.rises.extend_from_slice(&self.rises[everywhere]);
        range.seen.clear();
        range.seen.resize(self.blocks, UNSEEN);
    }

    /// Adds the next layer to the range.
    pub(super) fn add(&mut self, layer: usize) {
        let of_layer = layer * self.blocks..(layer + 1) * self.blocks;
        self.range.end = layer + 1;
        for (sum, &own) in self.range.sums.iter_mut().zip(&self.sums[of_layer.clone()]) {
            *sum = sum.plus(own);
        }
        for (rises, own) in self.range.rises.iter_mut().zip(&self.rises[of_layer]) {
            *rises += own;
        }
    }

    /// The highest sum of the range within `window` (places, end exclusive) if
    /// it is above `known`, else `known`.
    pub(super) fn highest(&mut self, window: (usize, usize), known: u64) -> u64 {
        let mut live = B::default();
        for (before, &sum) in self.range.before.iter_mut().zip(&self.range.sums) {
            *before = live;
            live = live.plus(sum);
        }
        let blocks = window.0 / BLOCK..(window.1 - 1) / BLOCK + 1;
        let mut highest = known;
        // Where a shorter range had most, this one has much.
        let first = Some(self.range.highest).filter(|first| blocks.contains(first));
        for block in first.into_iter().chain(blocks) {
            if self.range.before[block].into() + self.range.rises[block] > highest {
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
        let from = block * BLOCK;
        let of_layers = block * (self.layers + 1);
        let range = &mut self.range;
        let changes = &mut range.changes[from..from + BLOCK];
        let seen = &mut range.seen[block];
        if *seen == UNSEEN {
            let everywhere = (of_layers + self.layers) * BLOCK;
            changes.copy_from_slice(&self.changes[everywhere..everywhere + BLOCK]);
            *seen = range.start;
        }
        let new = (of_layers + *seen) * BLOCK..(of_layers + range.end) * BLOCK;
        for own in self.changes[new].chunks_exact(BLOCK) {
            for (change, &own) in changes.iter_mut().zip(own) {
                *change = change.plus(own);
            }
        }
        *seen = range.end;
        let mut live = range.before[block];
        let mut highest = B::default();
        for (place, &change) in (from..).zip(changes.iter()) {
            live = live.plus(change);
            if (window.0..window.1).contains(&place) {
                highest = highest.max(live);
            }
        }
        highest.into()
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
