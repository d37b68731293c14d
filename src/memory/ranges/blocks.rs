//! The live bytes of growing ranges of layers on neighbouring tiles, at each *place*: a liveness
//! step at which a peak is possible. Places are divided into blocks, so that sums are computed only
//! in blocks that may have a peak.

use super::variables::Stretch;
use crate::memory::lanes::{self, ByLane, Bytes};

/// The number of *places* (liveness steps at which a peak is possible) in a block, which is a run
/// of places whose live bytes are summed only if the block may have a peak. The number is small in
/// tests, so that small models have several blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// Marks a block of liveness steps whose sums of live bytes have not been computed for the current
/// range of layers.
const UNSEEN: usize = usize::MAX;

/// The live bytes of a range of layers that grows at its end, by lane (tile), at each *place*: a
/// liveness step at which a peak is possible. The sums of a block of places are computed only if
/// the block may have a peak. Variables that every range has are stored as variables of an
/// additional layer after the last.
#[derive(Default)]
pub(super) struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// The changes of live bytes from each place (liveness step at which a peak is possible) to the
    /// next. An entry has the changes in one block of places by the variables that a range of
    /// layers gains with one layer. Most layers change the bytes in few blocks, and have no entry
    /// for the other blocks.
    changes: Vec<[[B; N]; BLOCK]>,
    /// One entry per layer and block of places (steps at which a peak is possible), ordered by
    /// layer, then by block. It has sums of the live bytes that a range of layers gains in the
    /// block when it grows to the layer, from which an upper bound on the live bytes in the block
    /// follows.
    sums: Vec<BlockSums<B, N>>,
    /// One entry per layer: whether its upper bounds on live bytes must be computed again, since
    /// bytes have been added to the layer.
    is_stale: Vec<bool>,
    start: usize,
    end: usize,
    /// One entry per block of steps: an upper bound on the live bytes of the current range of
    /// layers in the block. A block whose bound is below the peak so far is skipped.
    bounds: Vec<[B; N]>,
    /// One entry per block of places (steps at which a peak is possible): the live bytes of the
    /// current range of layers just before the block. They only include the layers before the
    /// block's entry in `seen`. The other layers are added when the block may have a peak.
    live_before: Vec<[B; N]>,
    /// One entry per place (liveness step at which a peak is possible): the change of the live
    /// bytes of the current range of layers from the previous place. It only includes the layers
    /// before the entry in `seen` of the block that has the place. The other layers are added when
    /// this block may have a peak.
    live_changes: Vec<[B; N]>,
    /// One entry per block of places (steps at which a peak is possible): the first layer of the
    /// current range whose live bytes in the block have not been added to `live_before` and
    /// `live_changes` yet. [`UNSEEN`] if no layer has been added since the current range began.
    seen: Vec<usize>,
}

/// Sums, by lane (tile), of the live bytes that a range of layers gains in one block of places
/// (steps at which a peak is possible) when it grows to one layer. An upper bound on the live bytes
/// of the range in the block follows from them.
#[derive(Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// The index in [`Blocks::changes`] of the changes by this layer in this block, plus 1; 0 if
    /// the layer changes nothing in the block.
    number: u32,
    changes: ByLane<B, N>,
    /// The sum of all increases of live bytes in the block, without the decreases. Added to the
    /// live bytes before the block, it bounds the live bytes in the block.
    rises: ByLane<B, N>,
    before: ByLane<B, N>,
    bounds: ByLane<B, N>,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    pub fn restart(&mut self, places: usize, layers: usize) {
        // A live range of variables may end after the last step at which a peak is possible, so the
        // list of changes of live bytes needs one more entry for its end.
        let blocks = places / BLOCK + 1;
        (self.layers, self.blocks) = (layers, blocks);
        let none = [B::default(); N];
        self.changes.clear();
        renew(&mut self.sums, blocks * (layers + 1), BlockSums::default());
        renew(&mut self.is_stale, layers + 1, false);
        renew(&mut self.live_before, blocks, none);
        renew(&mut self.live_changes, blocks * BLOCK, none);
    }

    /// Adds the bytes of a variable, by lane (tile), during its live range `stretch` to all ranges
    /// of layers that contain the layer `layer`. Only ranges that begin with a later call of
    /// [`Blocks::begin`] get them. If `layer` is the number of layers, all such ranges get the
    /// bytes.
    pub fn enter(&mut self, layer: usize, stretch: Stretch, bytes: &[u32; N]) {
        let (from, to) = (stretch.from as usize, stretch.to as usize);
        let bytes = bytes.map(B::change);
        let of_layer = layer * self.blocks;
        lanes::add(self.change_at(of_layer, from), &bytes);
        lanes::subtract(self.change_at(of_layer, to), &bytes);
        let sums = &mut self.sums[of_layer + from / BLOCK];
        lanes::add(&mut sums.changes, &bytes);
        lanes::add(&mut sums.rises, &bytes);
        lanes::subtract(&mut self.sums[of_layer + to / BLOCK].changes, &bytes);
        self.is_stale[layer] = true;
    }

    /// Returns the change of live bytes from the previous place (step at which a peak is possible)
    /// to `place` by the variables that a range gains with one layer. `of_layer` is the index of
    /// the first entry for this layer in `sums`.
    fn change_at(&mut self, of_layer: usize, place: usize) -> &mut [B; N] {
        let number = &mut self.sums[of_layer + place / BLOCK].number;
        if *number == 0 {
            self.changes.push([[B::default(); N]; BLOCK]);
            *number = self.changes.len() as u32;
        }
        &mut self.changes[*number as usize - 1][place % BLOCK]
    }

    /// Returns how many changes of live bytes are kept for each lane (tile).
    pub fn cells(&self) -> usize {
        self.changes.len() * BLOCK
    }

    /// Brings the upper bounds on the live bytes of `layer` in each block of steps up to date,
    /// after bytes were added to the layer.
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

    pub fn begin(&mut self, start: usize) {
        if self.is_stale[self.layers] {
            self.sum_up(self.layers);
        }
        let everywhere = &self.sums[self.layers * self.blocks..];
        (self.start, self.end) = (start, start);
        self.bounds.clear();
        self.bounds
            .extend(everywhere.iter().map(|sums| *sums.bounds));
        renew(&mut self.seen, self.blocks, UNSEEN);
    }

    pub fn add(&mut self, layer: usize) {
        if self.is_stale[layer] {
            self.sum_up(layer);
        }
        let of_layer = &self.sums[layer * self.blocks..];
        self.end = layer + 1;
        for (bounds, layer) in self.bounds.iter_mut().zip(of_layer) {
            lanes::add(bounds, &layer.bounds);
        }
    }

    /// Returns for each lane (tile) the highest live bytes of the current range of layers at any
    /// place (step at which a peak is possible) of `window` (end exclusive, not empty), or the
    /// lane's number in `known` if that is higher. Blocks of places are skipped if their upper
    /// bound is not higher than the bytes found so far.
    pub fn highest(&mut self, window: (usize, usize), known: [u64; N]) -> [u64; N] {
        let blocks = window.0 / BLOCK..(window.1 - 1) / BLOCK + 1;
        let mut highest = known.map(B::at_most);
        for block in blocks {
            if lanes::is_above(&self.bounds[block], &highest) {
                lanes::raise(&mut highest, &self.sum_block(block, window));
            }
        }
        highest.map(B::sum)
    }

    /// Returns for each lane (tile) the highest live bytes of the current range of layers at the
    /// places (liveness steps at which a peak is possible) that are both in `block` and in `window`
    /// (end exclusive). Also lowers the upper bound on the live bytes in the block to the exact
    /// maximum over all its places, so that the block may be skipped next time.
    fn sum_block(&mut self, block: usize, window: (usize, usize)) -> [B; N] {
        self.catch_up(block);
        let from = block * BLOCK;
        let mut live = self.live_before[block];
        let (mut all, mut within) = ([B::default(); N], [B::default(); N]);
        for (place, changes) in (from..).zip(&self.live_changes[from..from + BLOCK]) {
            lanes::add(&mut live, changes);
            lanes::raise(&mut all, &live);
            if (window.0..window.1).contains(&place) {
                lanes::raise(&mut within, &live);
            }
        }
        // The upper bound on the live bytes at the steps of the block is now exact for the current
        // range of layers; only layers that the range gains later can raise the live bytes above
        // it.
        self.bounds[block] = all;
        within
    }

    /// Brings the live bytes at the places (steps at which a peak is possible) of `block` up to
    /// date: adds those of the layers that have joined the current range since the block was last
    /// summed.
    fn catch_up(&mut self, block: usize) {
        let changes = &mut self.live_changes[block * BLOCK..(block + 1) * BLOCK];
        let before = &mut self.live_before[block];
        let seen = &mut self.seen[block];
        let mut everywhere = None;
        if *seen == UNSEEN {
            *before = [B::default(); N];
            changes.fill(*before);
            everywhere = Some(self.layers);
            *seen = self.start;
        }
        for layer in everywhere.into_iter().chain(*seen..self.end) {
            let sums = &self.sums[layer * self.blocks + block];
            lanes::add(before, &sums.before);
            let added = self.changes.get((sums.number as usize).wrapping_sub(1));
            for (changes, added) in changes.iter_mut().zip(added.into_iter().flatten()) {
                lanes::add(changes, added);
            }
        }
        *seen = self.end;
    }
}

fn renew<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
