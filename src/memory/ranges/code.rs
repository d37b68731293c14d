//! Code of neighbouring tiles, in the form in which it enters ranges.

use crate::memory::MemoryModel;
use crate::memory::code::{CodeItem, TileSum};
use crate::memory::entering::GrowingSums;
use crate::model::TooManyPlaces;
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

/// Code of some tiles, by kind.
pub(super) type EnteringCode<const N: usize> = GrowingSums<N, 4>;

impl CodeByTiles {
    /// Loads the code of `tiles`, which are at most `N`, into `code`.
    ///
    /// # Errors
    /// When the tiles have more code than any real tile.
    pub(super) fn load<const N: usize>(
        &self,
        model: &MemoryModel<'_>,
        tiles: Range<u32>,
        code: &mut EnteringCode<N>,
    ) -> Result<(), TooManyPlaces> {
        code.restart(model.layers());
        for (item, sums) in self.around(model, tiles.start) {
            if let Some(bytes) = on_tiles(sums, &tiles) {
                code.enter(model, item.set, item.kind as usize, bytes);
            }
        }
        code.check()
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
