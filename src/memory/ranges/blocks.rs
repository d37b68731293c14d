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
pub struct Blocks<B, const N: usize> {
    layers: usize,
    blocks: usize,
    /// The changes of live bytes from each place (liveness step at which a peak is possible) to the
    /// next. An entry has the changes that the variables of one layer make in one block of places,
    /// when a range gains the layer. Most layers make changes in few blocks, and have no entry for
    /// the other blocks.
    changes: Vec<[[B; N]; BLOCK]>,
    /// One entry per layer and block of places (steps at which a peak is possible), ordered by
    /// layer, then by block: sums of the live bytes that a range gains with the layer in the block.
    /// They give an upper bound on the live bytes of the range in the block.
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
    /// current range of layers just before the block. Layers from the block's entry in `seen` on
    /// are not included; they are added when the block may have a peak.
    live_before: Vec<[B; N]>,
    /// One entry per place (liveness step at which a peak is possible): the change of the live
    /// bytes of the current range of layers from the previous place. As in `live_before`, layers
    /// from the entry in `seen` on are not included.
    live_changes: Vec<[B; N]>,
    /// One entry per block of places (steps at which a peak is possible): the first layer of the
    /// current range that is not included in `live_before` and `live_changes` yet. [`UNSEEN`] if no
    /// layer has been included since the current range began.
    seen: Vec<usize>,
}

/// Sums, by lane (tile), of the live bytes that a range of layers gains in one block of places
/// (steps at which a peak is possible) when it grows to one layer. An upper bound on the live bytes
/// of the range in the block follows from them.
#[derive(Clone, Copy, Default)]
struct BlockSums<B, const N: usize> {
    /// The index in [`Blocks::changes`] of the changes of live bytes that the layer makes in the
    /// block of places, plus 1; 0 if it makes none.
    number: u32,
    changes: ByLane<B, N>,
    /// The sum of all increases of live bytes that the layer makes in the block of places, without
    /// the decreases. Added to the live bytes before the block, this sum gives an upper bound on
    /// the live bytes in the block.
    rises: ByLane<B, N>,
    before: ByLane<B, N>,
    bounds: ByLane<B, N>,
}

impl<B: Bytes, const N: usize> Blocks<B, N> {
    /// Returns the number of sums that [`Blocks::restart`] makes for each lane (tile).
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
    /// of layers that contain the layer `layer`. Only ranges that begin with a later call of
    /// [`Blocks::begin`] get them. If `layer` is the number of layers, all such ranges get the
    /// bytes.
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

    /// Returns the entry of `changes` for the variables of one layer at `place` (a step at which a
    /// peak is possible): the change of live bytes from the previous place. `of_layer` is the index
    /// in `sums` of the layer's first entry.
    fn change_at(&mut self, of_layer: usize, place: usize) -> &mut [B; N] {
        let number = &mut self.sums[of_layer + place / BLOCK].number;
        if *number == 0 {
            self.changes.push([[B::default(); N]; BLOCK]);
            *number = self.changes.len() as u32;
        }
        &mut self.changes[*number as usize - 1][place % BLOCK]
    }

    /// Returns how many changes of live bytes are stored for each lane (tile), as a measure of the
    /// memory that they take.
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

    /// Returns for each lane (tile) the highest live bytes of the current range of layers at the
    /// places (steps at which a peak is possible) in `window` (end exclusive, not empty), but at
    /// least the lane's number in `known`. Blocks of places that cannot raise these numbers are
    /// skipped.
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
    /// places (liveness steps at which a peak is possible) that are both in the block with the
    /// index `block` and in `window` (end exclusive). Also replaces the upper bound on the live
    /// bytes in the block with their exact maximum at all its places, so that later calls may skip
    /// the block.
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
        // This upper bound on the live bytes in the block is now exact for the current range of
        // layers. When the range gains a layer, the bound for this layer is added
        // ([`Blocks::add`]).
        self.bounds[block] = all;
        within
    }

    /// Adds to the stored live bytes at the places (steps at which a peak is possible) of the block
    /// with the index `block` the bytes of all layers that the current range has gained since the
    /// last call for this block.
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

/// Returns the number of blocks of `places` places (steps at which a peak is possible). A live
/// range of variables may end after the last place, so there is room for one more place.
fn blocks(places: usize) -> usize {
    places / BLOCK + 1
}

fn renew<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
