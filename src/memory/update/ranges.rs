//! The memory of updates on some tiles, for every range of layers.

use super::UpdatePhase;
use super::tile::{Amounts, Entry, TileUpdates};
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, ByLane};
use crate::memory::{MemoryModel, Overhead};
use crate::model::{EVERYWHERE, TooManyPlaces};
use std::ops::Range;

/// Sums of the growing range, by lane; reused for the next tiles.
#[derive(Debug, Default)]
pub(in crate::memory) struct RangeUpdates<const N: usize> {
    /// Shares of state, and parameters that some steps do without.
    lasting: GrowingSums<N, 2>,
    /// By position: the highest bytes of an update with all variables in one place set.
    apart: Vec<[u64; N]>,
    /// Updates with variables in several place sets, by position: the bytes that enter there in
    /// ranges from a first start on, with the index in `common`.
    joined: Vec<Vec<(u32, u32, Amounts<N>)>>,
    /// The number of each such update and the bytes of every stage; and the bytes of the range.
    common: Vec<(u32, Amounts<N>)>,
    sums: Vec<(u32, Amounts<N>)>,
    /// The highest bytes of an update in every stage.
    everywhere: ByLane<u64, N>,
    start: usize,
    taken: ByLane<u64, N>,
}

impl<const N: usize> RangeUpdates<N> {
    /// Loads the bytes of updates on some tiles.
    ///
    /// # Errors
    /// When the tiles have more variables than any real tile.
    pub(in crate::memory) fn load(
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
        self.apart.clear();
        self.apart.resize(positions, [0; N]);
        self.joined.resize_with(positions, Vec::new);
        self.joined.iter_mut().for_each(Vec::clear);
        self.common.clear();
        self.everywhere = Default::default();
        for same in tiles.entries.chunk_by(|a, b| a.update == b.update) {
            match same {
                [one] => {
                    let (taken, _) = phase.taken(one.update, &one.amounts);
                    if one.set == EVERYWHERE {
                        lanes::raise(&mut self.everywhere, &taken);
                    }
                    for &place in memory.sets.places(one.set) {
                        lanes::raise(&mut self.apart[place as usize], &taken);
                    }
                }
                _ => self.join(memory, phase, same),
            }
        }
        self.lasting.check()
    }

    /// Loads an update with variables in several place sets.
    fn join(&mut self, memory: &MemoryModel<'_>, phase: &UpdatePhase, same: &[Entry<N>]) {
        let number = self.common.len() as u32;
        let mut common = Amounts::default();
        for entry in same {
            if entry.set == EVERYWHERE {
                common.add(&entry.amounts);
            }
            let mut from = 0;
            for &place in memory.sets.places(entry.set) {
                self.joined[place as usize].push((from, number, entry.amounts));
                from = place + 1;
            }
        }
        let update = same[0].update;
        lanes::raise(&mut self.everywhere, &phase.taken(update, &common).0);
        self.common.push((update, common));
    }

    /// Begins with an empty range before the position `start`.
    pub(in crate::memory) fn begin(&mut self, start: usize) {
        self.start = start;
        self.lasting.begin(start);
        self.sums.clone_from(&self.common);
        self.taken = self.everywhere;
    }

    /// Extends the range by the position `last`, which follows its end, and raises the bytes of the
    /// update by what the position adds. `phase` knows which variables an update needs together.
    pub(in crate::memory) fn add(&mut self, phase: &UpdatePhase, last: usize) {
        self.lasting.add(last);
        lanes::raise(&mut self.taken, &self.apart[last]);
        for (from, number, amounts) in &self.joined[last] {
            if *from as usize <= self.start {
                let (update, sums) = &mut self.sums[*number as usize];
                sums.add(amounts);
                lanes::raise(&mut self.taken, &phase.taken(*update, sums).0);
            }
        }
    }

    /// By lane, bytes of the range on `tiles` in both the passes and the update: shares of state
    /// with their fragmentation.
    pub(in crate::memory) fn always(&self, overhead: &Overhead, tiles: Range<u32>) -> [u64; N] {
        let mut always = *self.lasting.sums[0];
        for (shares, tile) in always.iter_mut().zip(tiles) {
            *shares += overhead.fragmentation_of_shares(tile as usize, *shares);
        }
        always
    }

    /// By lane, bytes of parameters that some steps do without.
    pub(in crate::memory) fn holes(&self) -> &[u64; N] {
        &self.lasting.sums[1]
    }

    /// By lane, the bytes that the update takes besides always-live variables.
    pub(in crate::memory) fn taken(&self) -> &[u64; N] {
        &self.taken
    }
}
