//! The memory of updates on some tiles, for every range of layers.

use super::UpdatePhase;
use super::tile::{Amounts, Entry, Placing, TileUpdates};
use crate::memory::lanes::{self, ByLane, add_up};
use crate::memory::{MemoryModel, Overhead};
use crate::model::EVERYWHERE;
use std::ops::Range;

/// Sums of the growing range, by lane; reused for the next tiles.
#[derive(Debug, Default)]
pub(in crate::memory) struct RangeUpdates<const N: usize> {
    shares: ByPosition<N>,
    holes: ByPosition<N>,
    /// By position: the highest bytes of an update with all variables in one place set.
    apart: Vec<[u64; N]>,
    /// Updates with variables in several place sets, by position: the bytes that enter there, with
    /// the index in `common` and the previous position that has them.
    joined: Vec<Vec<(Option<u32>, u32, Amounts<N>)>>,
    /// The number of each such update and the bytes of every stage; and the bytes of the range.
    common: Vec<(u32, Amounts<N>)>,
    sums: Vec<(u32, Amounts<N>)>,
    /// The highest bytes of an update in every stage.
    everywhere: ByLane<u64, N>,
    start: usize,
    taken: ByLane<u64, N>,
}

/// Bytes that enter ranges once, however many of its positions have them.
#[derive(Debug, Default)]
struct ByPosition<const N: usize> {
    entries: Vec<Vec<(Option<u32>, [u64; N])>>,
    everywhere: ByLane<u64, N>,
    sum: ByLane<u64, N>,
}

impl<const N: usize> ByPosition<N> {
    fn load(&mut self, memory: &MemoryModel<'_>, all: &[Placing<N>]) {
        self.entries.resize_with(memory.layers(), Vec::new);
        self.entries.iter_mut().for_each(Vec::clear);
        self.everywhere = ByLane::default();
        for &(set, bytes) in all {
            if set == EVERYWHERE {
                add_up(&mut self.everywhere, &bytes);
            }
            for (before, place) in with_before(memory.sets.places(set)) {
                self.entries[place].push((before, bytes));
            }
        }
    }

    fn begin(&mut self) {
        self.sum = self.everywhere;
    }

    fn add(&mut self, start: usize, last: usize) {
        for (before, bytes) in &self.entries[last] {
            if is_new(*before, start) {
                add_up(&mut self.sum, bytes);
            }
        }
    }
}

/// For each of `places`: the element before it in `places` (`None` for the first), and the place.
fn with_before(places: &[u32]) -> impl Iterator<Item = (Option<u32>, usize)> + '_ {
    let before = [None].into_iter().chain(places.iter().copied().map(Some));
    before.zip(places.iter().map(|&place| place as usize))
}

/// Does a range from `start` lack an entry whose previous position is `before`?
fn is_new(before: Option<u32>, start: usize) -> bool {
    before.is_none_or(|before| (before as usize) < start)
}

impl<const N: usize> RangeUpdates<N> {
    /// Loads the bytes of updates on some tiles.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        tiles: &TileUpdates<N>,
    ) {
        let positions = memory.layers();
        self.shares.load(memory, &tiles.shares);
        self.holes.load(memory, &tiles.holes);
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
    }

    /// Loads an update with variables in several place sets.
    fn join(&mut self, memory: &MemoryModel<'_>, phase: &UpdatePhase, same: &[Entry<N>]) {
        let number = self.common.len() as u32;
        let mut common = Amounts::default();
        for entry in same {
            if entry.set == EVERYWHERE {
                common.add(&entry.amounts);
            }
            for (before, place) in with_before(memory.sets.places(entry.set)) {
                self.joined[place].push((before, number, entry.amounts));
            }
        }
        let update = same[0].update;
        lanes::raise(&mut self.everywhere, &phase.taken(update, &common).0);
        self.common.push((update, common));
    }

    /// Begins with an empty range before the position `start`.
    pub(in crate::memory) fn begin(&mut self, start: usize) {
        self.start = start;
        self.shares.begin();
        self.holes.begin();
        self.sums.clone_from(&self.common);
        self.taken = self.everywhere;
    }

    /// Extends the range by the position `last`, which follows its end, and raises the bytes of the
    /// update by what the position adds. `phase` knows which variables an update needs together.
    pub(in crate::memory) fn add(&mut self, phase: &UpdatePhase, last: usize) {
        self.shares.add(self.start, last);
        self.holes.add(self.start, last);
        lanes::raise(&mut self.taken, &self.apart[last]);
        for (before, number, amounts) in &self.joined[last] {
            if is_new(*before, self.start) {
                let (update, sums) = &mut self.sums[*number as usize];
                sums.add(amounts);
                lanes::raise(&mut self.taken, &phase.taken(*update, sums).0);
            }
        }
    }

    /// By lane, bytes of the range on `tiles` in both the passes and the update: shares of state
    /// with their fragmentation.
    pub(in crate::memory) fn always(&self, overhead: &Overhead, tiles: Range<u32>) -> [u64; N] {
        let mut always = *self.shares.sum;
        for (shares, tile) in always.iter_mut().zip(tiles) {
            *shares += overhead.fragmentation_of_shares(tile as usize, *shares);
        }
        always
    }

    /// By lane, bytes of parameters that some steps do without.
    pub(in crate::memory) fn holes(&self) -> &[u64; N] {
        &self.holes.sum
    }

    /// By lane, the bytes that the update takes besides always-live variables.
    pub(in crate::memory) fn taken(&self) -> &[u64; N] {
        &self.taken
    }
}
