//! The live bytes of growing ranges of layers on neighbouring tiles, at each *place*: a liveness
//! step at which a peak is possible. Places are divided into blocks, so that sums are computed only
//! in blocks that may have a peak.

use super::variables::Stretch;
use crate::memory::lanes::{self, ByLane, Bytes};

/// The number of *places* (liveness steps at which a peak is possible) in a block. Live bytes are
/// summed block by block, and only in blocks that may have a peak. The number is small in tests, so
/// that small models have several blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 32 };

/// Marks a block of liveness steps in which the live bytes of the current range of layers have not
/// been summed yet.
const UNSEEN: usize = usize::MAX;

/// The live bytes, by lane (tile), of a range of layers that grows at its end. They are given at
/// each *place*, a liveness step at which a peak is possible. Places are divided into blocks, and
/// live bytes are summed only in blocks that may have a peak. Variables that every range has are
/// stored for an additional layer after the last.
#[derive(Default)]
pub struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// The changes of live bytes from each place (liveness step at which a peak is possible) to the
    /// next. An entry has the changes in one block of places by the variables that a range gains
    /// with one layer. If a layer changes nothing in a block, there is no entry.
    changes: Vec<[[B; N]; BLOCK]>,
    /// One entry per layer and block of places (steps at which a peak is possible), ordered by
    /// layer, then by block: the live bytes that a range gains in the block when it grows to the
    /// layer.
    sums: Vec<BlockSums<B, N>>,
    /// One entry per layer: whether bytes have been added to the layer since its upper bounds on
    /// live bytes were computed.
    is_stale: Vec<bool>,
    start: usize,
    end: usize,
    /// One entry per block of steps: an upper bound on the live bytes of the current range of
    /// layers in the block. A block whose bound is below the peak so far is skipped.
    bounds: Vec<[B; N]>,
    /// One entry per block of places (steps at which a peak is possible): the live bytes of the
    /// current range of layers just before the block. Layers that the range gained after the block
    /// was last summed are not included (see `seen`).
    live_before: Vec<[B; N]>,
    /// One entry per place (liveness step at which a peak is possible): the change of the live
    /// bytes of the current range of layers from the previous place. Layers that the range gained
    /// after the place's block was last summed are not included (see `seen`).
    live_changes: Vec<[B; N]>,
    /// One entry per block of places (steps at which a peak is possible): the first layer of the
    /// current range that `live_before` and `live_changes` do not include yet. [`UNSEEN`] if the
    /// block has not been summed since the range began.
    seen: Vec<usize>,
}

/// The live bytes that a range of layers gains in one block of places (steps at which a peak is
/// possible) when it grows to one layer, by lane (tile). An upper bound on the live bytes of the
/// range in the block follows from these numbers.
#[derive(Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// The index of the layer's changes in the block, in the list [`Blocks::changes`], plus 1; 0 if
    /// the layer changes nothing there.
    number: u32,
    changes: ByLane<B, N>,
    /// The sum of all increases of live bytes that the layer makes in the block of places, without
    /// the decreases. Live bytes in the block are at most this sum plus the live bytes before the
    /// block.
    rises: ByLane<B, N>,
    before: ByLane<B, N>,
    bounds: ByLane<B, N>,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    /// Returns how many sums of live bytes each lane (tile) needs, one per layer and block of
    /// places (steps at which a peak is possible). `places` and `layers` are the numbers of places
    /// and layers.
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

    /// Adds the bytes of a variable, by lane (tile), during its live range `stretch` to all ranges
    /// of layers that contain `layer`, or to all ranges if `layer` is the number of layers. Only
    /// ranges that begin with a later call of [`Blocks::begin`] get the bytes.
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

    /// Returns the change of live bytes from the previous place to `place` (steps at which a peak
    /// is possible) that one layer makes. `of_layer` is the index in `sums` of the layer's first
    /// entry.
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

    /// Computes the upper bounds on the live bytes of `layer` in each block of steps again, after
    /// bytes were added to the layer.
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

    /// Returns for each lane (tile) the highest live bytes of the current range of layers in
    /// `window`, but at least the lane's number in `known`. `window` is a range of places (steps at
    /// which a peak is possible; end exclusive), which is not empty. Blocks of places that cannot
    /// raise the result are skipped.
    pub fn highest(&mut self, window: (usize, usize), known: [u64; N]) -> [u64; N] {
        let mut highest = known.map(B::at_most);
        for block in window.0 / BLOCK..window.1.div_ceil(BLOCK) {
            if lanes::is_above(&self.bounds[block], &highest) {
                lanes::raise(&mut highest, &self.sum_block(block, window));
            }
        }
        highest.map(B::sum)
    }

    /// Returns for each lane (tile) the highest live bytes of the current range of layers at the
    /// places (steps at which a peak is possible) that are both in the block with the index `block`
    /// and in `window` (end exclusive). Also replaces the upper bound on the live bytes in the
    /// block by their maximum over the whole block, so that later calls may skip the block.
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
        // The upper bound on the live bytes in the block is now exact. When the range gains another
        // layer, [`Blocks::add`] adds the bound for this layer.
        self.bounds[block] = all;
        within
    }

    /// Brings the stored live bytes in the block with the index `block` up to date: adds the bytes
    /// of all layers that the current range has gained since the last call for this block.
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
