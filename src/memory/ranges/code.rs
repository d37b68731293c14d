//! Code of neighbouring tiles, in the form in which it enters ranges.

use super::variables::Entries;
use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::code::{CodeItem, TileSum};
use crate::memory::lanes::{ByLane, add_up};
use crate::model::{EVERYWHERE, TooManyPlaces};
use std::ops::Range;

/// Maximum number of entries in lists by group of neighbours; with more, all tiles have one list.
const MAX_NOTED: usize = 1 << 20;

/// Which code is on which tiles: most is on few.
#[derive(Debug)]
pub(super) struct CodeByTiles {
    /// Number of neighbouring tiles in a group.
    at_once: u32,
    /// By group: the number of each item on it, and the range of the item's sums that lie there.
    of_neighbours: Vec<Vec<(u32, Range<u32>)>>,
}

impl CodeByTiles {
    /// Makes the lists for groups of `at_once` neighbours.
    pub(super) fn new(model: &MemoryModel<'_>, at_once: u32) -> Self {
        let tiles = model.model.target.num_tiles.max(1);
        let sums = model.code.iter().flat_map(|item| &item.bytes);
        let noted = sums.map(|sum| ((sum.to - sum.from) / at_once.max(1)) as usize + 1);
        match noted.sum::<usize>() {
            ..=MAX_NOTED => Self::noted(model, at_once.clamp(1, tiles)),
            _ => Self::noted(model, tiles),
        }
    }

    /// Lists the items on each group of `at_once` neighbours.
    fn noted(model: &MemoryModel<'_>, at_once: u32) -> Self {
        let count = model.model.target.num_tiles.div_ceil(at_once);
        let mut of_neighbours = vec![Vec::new(); count as usize];
        for (number, item) in (0u32..).zip(&*model.code) {
            for (sum, span) in (0u32..).zip(&item.bytes) {
                for neighbours in span.from / at_once..span.to.div_ceil(at_once) {
                    let items: &mut Vec<(u32, Range<u32>)> =
                        &mut of_neighbours[neighbours as usize];
                    match items.last_mut() {
                        Some((last, sums)) if *last == number => sums.end = sum + 1,
                        _ => items.push((number, sum..sum + 1)),
                    }
                }
            }
        }
        Self {
            at_once,
            of_neighbours,
        }
    }

    /// The code on the group of `tile`, each item with its sums there.
    fn around<'a>(
        &'a self,
        model: &'a MemoryModel<'_>,
        tile: u32,
    ) -> impl Iterator<Item = (&'a CodeItem, &'a [TileSum])> {
        let here = &self.of_neighbours[(tile / self.at_once) as usize];
        here.iter().map(|(number, sums)| {
            let item = &model.code[*number as usize];
            (item, &item.bytes[sums.start as usize..sums.end as usize])
        })
    }
}

/// At which layers the code of some tiles enters ranges; reused for the next tiles.
#[derive(Debug, Default)]
pub(super) struct EnteringCode<const N: usize> {
    /// By kind, then by lane: bytes of code of every stage.
    pub(super) everywhere: [ByLane<u64, N>; 4],
    /// Entries with the kind of code and the index in `bytes`.
    pub(super) entries: Entries<(usize, u32)>,
    bytes: Vec<[u64; N]>,
}

impl<const N: usize> EnteringCode<N> {
    /// Loads the code of `tiles`, which are at most `N`.
    ///
    /// # Errors
    /// When the tiles have more code than any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        by_tiles: &CodeByTiles,
        tiles: Range<u32>,
    ) -> Result<(), TooManyPlaces> {
        self.everywhere = Default::default();
        self.entries.restart(model.layers());
        self.bytes.clear();
        let mut left = limits::ENTRIES;
        for (item, sums) in by_tiles.around(model, tiles.start) {
            let Some(bytes) = on_tiles(sums, &tiles) else {
                continue;
            };
            let kind = item.kind as usize;
            if item.set == EVERYWHERE {
                add_up(&mut self.everywhere[kind], &bytes);
            }
            let layers = model.sets.places(item.set);
            left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
            self.entries.enter(layers, (kind, self.bytes.len() as u32));
            self.bytes.push(bytes);
        }
        Ok(())
    }

    /// The bytes of an entry, by lane.
    pub(super) fn bytes(&self, number: u32) -> &[u64; N] {
        &self.bytes[number as usize]
    }
}

/// By lane, bytes on `tiles` of an item with these sums; `None` if it has none there.
fn on_tiles<const N: usize>(sums: &[TileSum], tiles: &Range<u32>) -> Option<[u64; N]> {
    let before = sums.partition_point(|sum| sum.to <= tiles.start);
    let here = sums[before..].iter().take_while(|sum| sum.from < tiles.end);
    let mut found = None;
    for sum in here {
        let (from, to) = (sum.from.max(tiles.start), sum.to.min(tiles.end));
        let lanes = (from - tiles.start) as usize..(to - tiles.start) as usize;
        found.get_or_insert([0; N])[lanes].fill(sum.bytes);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_lane_has_what_its_tile_has(
            runs in prop::collection::vec((0u32..4, 1u32..5, 1u64..9), 0..6),
            first in 0u32..20,
            count in 1u32..=4,
        ) {
            let mut from = 0;
            let sums: Vec<TileSum> = runs.into_iter().map(|(gap, length, bytes)| {
                let to = from + gap + length;
                TileSum { from: std::mem::replace(&mut from, to) + gap, to, bytes }
            }).collect();
            let found = on_tiles::<4>(&sums, &(first..first + count));
            let on = |tile| sums.iter().find(|sum| (sum.from..sum.to).contains(&tile));
            let mut expected = [0; 4];
            for (lane, tile) in (first..first + count).enumerate() {
                expected[lane] = on(tile).map_or(0, |sum| sum.bytes);
            }
            prop_assert_eq!(found.unwrap_or_default(), expected);
            prop_assert_eq!(found.is_some(), expected != [0; 4]);
        }
    }
}
