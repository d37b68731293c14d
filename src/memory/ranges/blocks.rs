//! Live bytes of growing ranges on neighbouring tiles, summed up only in blocks that may hold a
//! peak.

use super::variables::Stretch;
use crate::memory::lanes::{self, ByLane, Bytes};

/// Places in a block. Small in tests, so that small models have several.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// Marks a block that was not examined for the range.
const UNSEEN: usize = usize::MAX;

/// Bytes that enter at each layer, and the live bytes of one range of layers, by lane. Bytes of
/// every range are stored as one more layer after the last.
#[derive(Debug, Default)]
pub(super) struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// By block, then layer, then place: change, from the place before, of the bytes that enter at
    /// the layer.
    changes: Vec<[B; N]>,
    /// By layer, then block.
    sums: Vec<BlockSums<B, N>>,
    /// By layer: did bytes enter since its sums were computed?
    is_stale: Vec<bool>,
    range: Range<B, N>,
}

/// Bytes that enter at one layer, in one block.
#[derive(Debug, Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// Sum of all changes in the block.
    changes: ByLane<B, N>,
    /// Sum of its rises only, which bounds what can be live within it beyond `before`.
    rises: ByLane<B, N>,
    /// Bytes that are live before its first place.
    before: ByLane<B, N>,
    /// Upper bound on the bytes live in the block: `before` and `rises` together.
    bounds: ByLane<B, N>,
}

/// The range that grows.
#[derive(Debug, Default)]
struct Range<B, const N: usize> {
    start: usize,
    /// End of the range of layers (exclusive).
    end: usize,
    /// By block, upper bound on the bytes live in the block, of all layers of the range.
    bounds: Vec<[B; N]>,
    /// Sums of the layers before `seen`: by block, bytes live before its first place; by place, the
    /// changes; and `seen` itself by block.
    before: Vec<[B; N]>,
    changes: Vec<[B; N]>,
    seen: Vec<usize>,
    /// The block that had the highest sum of a shorter range.
    highest: usize,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    /// Clears everything, for tiles with `places` places.
    pub(super) fn restart(&mut self, places: usize, layers: usize) {
        // An end may lie after the last place.
        let blocks = places / BLOCK + 1;
        (self.layers, self.blocks) = (layers, blocks);
        let none = [B::default(); N];
        renew(&mut self.changes, blocks * (layers + 1) * BLOCK, none);
        renew(&mut self.sums, blocks * (layers + 1), BlockSums::default());
        renew(&mut self.is_stale, layers + 1, false);
        renew(&mut self.range.before, blocks, none);
        renew(&mut self.range.changes, blocks * BLOCK, none);
        self.range.highest = 0;
    }

    /// Lets bytes enter every range from now on.
    pub(super) fn enter_all(&mut self, what: Stretch, bytes: &[u32; N]) {
        self.enter(self.layers, what, bytes);
    }

    /// Lets bytes enter ranges at `layer` from now on.
    pub(super) fn enter(&mut self, layer: usize, what: Stretch, bytes: &[u32; N]) {
        let (from, to) = (what.from as usize, what.to as usize);
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

    /// Sums up the bytes that are live before each block of a layer.
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

    /// Begins with an empty range before the layer `start`.
    pub(super) fn begin(&mut self, start: usize) {
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

    /// Adds the next layer to the range.
    pub(super) fn add(&mut self, layer: usize) {
        if self.is_stale[layer] {
            self.sum_up(layer);
        }
        let of_layer = &self.sums[layer * self.blocks..];
        self.range.end = layer + 1;
        for (bounds, layer) in self.range.bounds.iter_mut().zip(of_layer) {
            lanes::add(bounds, &layer.bounds);
        }
    }

    /// By lane, the highest sum of the range within `window` (places, end exclusive), or `known` if
    /// that is higher.
    pub(super) fn highest(&mut self, window: (usize, usize), known: [B; N]) -> [B; N] {
        let blocks = window.0 / BLOCK..(window.1 - 1) / BLOCK + 1;
        let mut highest = known;
        // The block that was highest for a shorter range probably has a high sum again.
        let first = Some(self.range.highest).filter(|first| blocks.contains(first));
        for block in first.into_iter().chain(blocks) {
            if lanes::is_above(&self.range.bounds[block], &highest) {
                let found = self.look(block, window);
                if lanes::is_above(&found, &highest) {
                    lanes::raise(&mut highest, &found);
                    self.range.highest = block;
                }
            }
        }
        highest
    }

    /// The highest sums in the part of a block that lies within `window`.
    fn look(&mut self, block: usize, window: (usize, usize)) -> [B; N] {
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
        // From here on, only layers that are still to come can add to this bound.
        range.bounds[block] = all;
        within
    }

    /// Adds the layers that joined the range since the last look at a block.
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

fn renew<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
