//! The live bytes of growing ranges of layers on neighbouring tiles, at each *place*: a liveness
//! step at which a peak is possible. Places are divided into blocks, so that sums are computed only
//! in blocks that may have a peak.

use super::variables::Stretch;
use crate::memory::lanes::{self, ByLane, Bytes};

/// The number of *places* (liveness steps at which a peak is possible) in a block. Live bytes are
/// summed block by block, and only in blocks that may have a peak. The number is small in tests, so
/// that small models have several blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

const UNSEEN: usize = usize::MAX;

/// The live bytes, by lane (tile), of a range of layers that grows at its end. The steps at which a
/// peak is possible (*places*) are divided into blocks. Only blocks that may have a peak are summed
/// step by step. Variables that every range has are stored as if one more layer, with the index
/// `layers`, used them.
#[derive(Default)]
pub struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// The changes of live bytes that single layers make. An entry is for one layer and one block
    /// of steps: it has the change from the previous step to each step of the block, by lane
    /// (tile). There is no entry if the layer changes nothing in the block.
    changes: Vec<[[B; N]; BLOCK]>,
    /// The bytes that each layer adds to the live bytes of a range of layers, in each block of
    /// consecutive steps. The entries of a layer follow each other, in the order of the blocks.
    sums: Vec<BlockSums<B, N>>,
    /// One entry per layer: whether variables have been added to the layer since its entries in
    /// `sums` were last computed ([`Blocks::sum_up`]).
    is_stale: Vec<bool>,
    start: usize,
    end: usize,
    /// One entry per block of steps: an upper bound on the live bytes of the current range of
    /// layers in the block. A block whose bound does not exceed the peak so far is skipped.
    bounds: Vec<[B; N]>,
    /// One entry per block of consecutive steps: the live bytes of the current range of layers just
    /// before the block, as of the last time that the block was summed. Layers that the range has
    /// gained since then are missing.
    live_before: Vec<[B; N]>,
    /// One entry per step at which a peak is possible: the change of the live bytes of the current
    /// range of layers from the previous such step. Layers that the range has gained since the
    /// step's block was last summed are missing.
    live_changes: Vec<[B; N]>,
    /// One entry per block of consecutive steps: the end (exclusive) of the current range of layers
    /// when the block was last summed. [`UNSEEN`] if it has not been summed since the range began.
    seen: Vec<usize>,
}

/// The bytes that one layer adds to the live bytes of a range of layers, by lane (tile), in one
/// block (consecutive steps at which a peak is possible). The field `bounds` is an upper bound on
/// these bytes at every step of the block.
#[derive(Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// The index in [`Blocks::changes`] of the changes that the layer makes in the block of steps,
    /// plus 1; 0 if the layer changes nothing in the block.
    number: u32,
    changes: ByLane<B, N>,
    /// The sum of all increases of the layer's live bytes at steps of the block, without the
    /// decreases. Live bytes in the block never exceed `before`, the live bytes just before the
    /// block, plus this sum.
    rises: ByLane<B, N>,
    before: ByLane<B, N>,
    bounds: ByLane<B, N>,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    /// Returns how many sums of live bytes are stored. The `places` steps at which a peak is
    /// possible are divided into blocks of [`BLOCK`] steps. In each block there is a sum for each
    /// of `layers` layers, and one for the variables that every range of layers has.
    pub fn sums(places: usize, layers: usize) -> usize {
        blocks(places).saturating_mul(layers + 1)
    }

    pub fn restart(&mut self, places: usize, layers: usize) {
        let blocks = blocks(places);
        (self.layers, self.blocks) = (layers, blocks);
        let none = [B::default(); N];
        self.changes.clear();
        renew(
            &mut self.sums,
            Self::sums(places, layers),
            BlockSums::default(),
        );
        renew(&mut self.is_stale, layers + 1, false);
        renew(&mut self.live_before, blocks, none);
        renew(&mut self.live_changes, blocks * BLOCK, none);
    }

    /// Adds the bytes of a variable during its live range `stretch`, one number per lane (tile), to
    /// the ranges of layers that contain `layer`; to all ranges if `layer` is the number of layers,
    /// an index after the last layer. Must be called before these ranges begin ([`Blocks::begin`]).
    pub fn enter(&mut self, layer: usize, stretch: Stretch, bytes: &[u32; N]) {
        let (from, to) = (stretch.from as usize, stretch.to as usize);
        let bytes = bytes.map(|bytes| B::at_most(bytes.into()));
        let of_layer = layer * self.blocks;
        lanes::add(self.change_at(of_layer, from), &bytes);
        lanes::subtract(self.change_at(of_layer, to), &bytes);
        let sums = &mut self.sums[of_layer + from / BLOCK];
        lanes::add(&mut sums.changes, &bytes);
        lanes::add(&mut sums.rises, &bytes);
        lanes::subtract(&mut self.sums[of_layer + to / BLOCK].changes, &bytes);
        self.is_stale[layer] = true;
    }

    /// Returns the change of live bytes that one layer makes at one step, by lane (tile), so that
    /// the caller can add to it. `place` is the index of the step among the steps at which a peak
    /// is possible. In `sums`, `of_layer` is the index of the layer's first block of steps.
    fn change_at(&mut self, of_layer: usize, place: usize) -> &mut [B; N] {
        let number = &mut self.sums[of_layer + place / BLOCK].number;
        if *number == 0 {
            self.changes.push([[B::default(); N]; BLOCK]);
            *number = self.changes.len() as u32;
        }
        &mut self.changes[*number as usize - 1][place % BLOCK]
    }

    /// Returns the number of changes of live bytes that are stored for each lane (tile). The memory
    /// for these changes is proportional to this number.
    pub fn cells(&self) -> usize {
        self.changes.len() * BLOCK
    }

    /// Computes the live bytes of `layer` just before each block of consecutive steps, and an upper
    /// bound on them within the block. Called again after variables were added to the layer.
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
        (self.start, self.end) = (start, start);
        let everywhere = &self.sums[self.layers * self.blocks..];
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
    /// step in `window`, or the lane's bytes in `known` if those are higher. Steps are summed block
    /// by block, without blocks that cannot raise the result by their upper bound. `window` is a
    /// non-empty range of indices (end exclusive) in the list of steps at which a peak is possible.
    pub fn highest(&mut self, window: (usize, usize), known: [u64; N]) -> [u64; N] {
        let mut highest = known.map(B::at_most);
        for block in window.0 / BLOCK..window.1.div_ceil(BLOCK) {
            if lanes::is_above(&self.bounds[block], &highest) {
                lanes::raise(&mut highest, &self.sum_block(block, window));
            }
        }
        highest.map(B::sum)
    }

    /// Sums the live bytes of the current range of layers at each step of the block with the index
    /// `block`. Returns for each lane (tile) the highest sum at those steps that are also in
    /// `window` (end exclusive). Keeps the highest sum of the whole block as the block's upper
    /// bound, so that later calls may skip the block.
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
        self.bounds[block] = all;
        within
    }

    /// Brings the stored live bytes in one block of steps up to date: adds the bytes of all layers
    /// that the current range of layers has gained since the last call for this block.
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
            if let Some(number) = sums.number.checked_sub(1) {
                for (changes, added) in changes.iter_mut().zip(&self.changes[number as usize]) {
                    lanes::add(changes, added);
                }
            }
        }
        *seen = self.end;
    }
}

/// Returns the number of blocks into which `places` places (steps at which a peak is possible) are
/// divided. There is room for one more place, since a live range may end after the last place.
fn blocks(places: usize) -> usize {
    places / BLOCK + 1
}

fn renew<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
