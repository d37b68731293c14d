//! The memory of weight updates on neighbouring tiles, for every range of layers.

use super::UpdatePhase;
use super::tile::{Amounts, TileUpdates};
use crate::memory::MemoryModel;
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, ByLane};
use crate::memory::overhead::TileOverhead;
use crate::model::{EVERYWHERE, TooManyPlaces};

/// The bytes that weight updates take in a range of positions that grows by one position at a time,
/// with one lane for each tile. The buffers are reused for further tiles.
#[derive(Default)]
pub(crate) struct RangeUpdates<const N: usize> {
    /// The bytes of two kinds of variables in the current range. Kind 0: a replica's shares of
    /// optimizer state that is sharded on the chip. Kind 1: parameters that are not live at some
    /// steps.
    lasting: GrowingSums<N, 2>,
    /// One entry per position: the bytes of weight updates that a range gains when it grows to the
    /// position. Each item has the first start to which it applies (ranges with earlier starts have
    /// the bytes already), the index into `common` of the update, and the bytes.
    gained: Vec<Vec<(u32, u32, Amounts<N>)>>,
    /// The index of each update in [`UpdatePhase`], with the bytes of those of its variables that
    /// every stage has.
    common: Vec<(u32, Amounts<N>)>,
    /// One entry per entry of `common`: the index of the update in [`UpdatePhase`], and the bytes
    /// of those of its variables that the current range has.
    sums: Vec<(u32, Amounts<N>)>,
    /// The highest bytes that any update takes if only the variables that every stage has are
    /// counted.
    everywhere: ByLane<u64, N>,
    start: usize,
    /// The highest bytes that any update takes in the current range (see [`UpdatePhase::taken`]).
    taken: ByLane<u64, N>,
}

impl<const N: usize> RangeUpdates<N> {
    /// Replaces the contents with the bytes of the updates on `tiles`.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    pub fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        tiles: &TileUpdates<N>,
    ) -> Result<(), TooManyPlaces> {
        let positions = memory.layers();
        self.lasting.restart(positions);
        for (kind, all) in [&tiles.shares, &tiles.holes].into_iter().enumerate() {
            for &(set, bytes) in all {
                self.lasting.enter(memory, set, kind, bytes);
            }
        }
        self.gained.resize_with(positions, Vec::new);
        self.gained.iter_mut().for_each(Vec::clear);
        self.common.clear();
        self.everywhere = Default::default();
        for (&update, placed) in &tiles.entries {
            let number = self.common.len() as u32;
            let mut common = Amounts::default();
            for &(set, ref amounts) in placed {
                if set == EVERYWHERE {
                    common.add(amounts);
                }
                let mut from = 0;
                for &place in memory.sets.places(set) {
                    self.gained[place as usize].push((from, number, *amounts));
                    from = place + 1;
                }
            }
            let taken = phase.taken(update, &common);
            lanes::raise(&mut self.everywhere, &taken.map(|(most, _)| most));
            self.common.push((update, common));
        }
        self.lasting.entries.check()
    }

    /// Starts an empty range whose first position will be `start`. The method must be called for
    /// the starts 0, 1, ... in this order.
    pub fn begin(&mut self, start: usize) {
        self.start = start;
        self.lasting.begin(start);
        self.sums.clone_from(&self.common);
        self.taken = self.everywhere;
    }

    /// Adds the position `last` to the end of the current range. The position must directly follow
    /// the range. `phase` is the update phase from which the bytes were loaded.
    pub fn add(&mut self, phase: &UpdatePhase, last: usize) {
        self.lasting.add(last);
        for (from, number, amounts) in &self.gained[last] {
            if *from as usize <= self.start {
                let (update, sums) = &mut self.sums[*number as usize];
                sums.add(amounts);
                let taken = phase.taken(*update, sums);
                lanes::raise(&mut self.taken, &taken.map(|(most, _)| most));
            }
        }
    }

    /// Returns one entry per lane (tile): the bytes that the current range takes both in the passes
    /// and in the weight update. These bytes are a replica's shares of optimizer state that is
    /// sharded on the chip, with their fragmentation. `tiles` has the overhead of each tile.
    pub fn always(&self, tiles: &[TileOverhead]) -> [u64; N] {
        let mut always = *self.lasting.sums[0];
        for (shares, tile) in always.iter_mut().zip(tiles) {
            *shares += tile.fragmentation_of_shares(*shares);
        }
        always
    }

    /// Returns one entry per lane (tile): the bytes that the weight update takes in the current
    /// range in addition to always-live parameters. These are the highest bytes that the update of
    /// any weight takes, plus the bytes of parameters that are not live at some steps of the
    /// passes.
    pub fn taken(&self) -> [u64; N] {
        lanes::plus(&self.taken, &self.lasting.sums[1])
    }
}
