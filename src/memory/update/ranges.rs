//! The memory of updates on some tiles, for every range of layers.

use super::UpdatePhase;
use super::tile::{Amounts, Entry, Placing, TileUpdates};
use crate::memory::lanes::{self, ByLane, add_up};
use crate::memory::{MemoryModel, Overhead};
use crate::model::EVERYWHERE;
use std::ops::Range;

/// The sums of the range that grows, by lane; its memory is used again for the next.
#[derive(Debug, Default)]
pub(in crate::memory) struct RangeUpdates<const N: usize> {
    shares: ByPosition<N>,
    holes: ByPosition<N>,
    /// By position: the update that takes most of those that have all in the same places.
    apart: Vec<[u64; N]>,
    /// Those that have some in one place and some in another: by position what enters
    /// there, with the place before it that has the same.
    joined: Vec<Vec<(Option<u32>, u32, Amounts<N>)>>,
    /// By number of these: the update, with what every stage has, and with what the range has.
    common: Vec<(u32, Amounts<N>)>,
    sums: Vec<(u32, Amounts<N>)>,
    /// The update of every stage that takes most.
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

/// Each place with the one before it.
fn with_before(places: &[u32]) -> impl Iterator<Item = (Option<u32>, usize)> + '_ {
    let before = [None].into_iter().chain(places.iter().copied().map(Some));
    before.zip(places.iter().map(|&place| place as usize))
}

/// Does a range from `start` not have it yet, whose place before is this?
fn is_new(before: Option<u32>, start: usize) -> bool {
    before.is_none_or(|before| (before as usize) < start)
}

impl<const N: usize> RangeUpdates<N> {
    /// Takes what updates take on some tiles.
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

    /// Takes an update that has some in one place and some in another.
    fn join(&mut self, memory: &MemoryModel<'_>, phase: &UpdatePhase, same: &[Entry<N>]) {
        let number = self.common.len() as u32;
        let mut common = Amounts::NONE;
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

    /// Adds the next position to the range.
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

    /// The bytes of the range on `tiles` in the passes and in the update alike: shares of state,
    /// which fragment as state does.
    pub(in crate::memory) fn always(&self, overhead: &Overhead, tiles: Range<u32>) -> [u64; N] {
        let mut always = *self.shares.sum;
        for (shares, tile) in always.iter_mut().zip(tiles) {
            *shares += overhead.fragmentation_of_shares(tile as usize, *shares);
        }
        always
    }

    /// Parameters that some steps do without.
    pub(in crate::memory) fn holes(&self) -> &[u64; N] {
        &self.holes.sum
    }

    /// The bytes of the update beside that.
    pub(in crate::memory) fn taken(&self) -> &[u64; N] {
        &self.taken
    }
}
