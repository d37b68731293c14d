//! The variables of neighbouring tiles, side by side.
//!
//! Most programs treat thousands of tiles alike, so neighbouring tiles have variables of nearly the
//! same classes and use sets. Facts that depend only on class and use set are looked up once for
//! several tiles, whose bytes are added up in lanes (one for each tile).

use super::MemoryModel;
use super::lanes::LANES;
use crate::model::TileUse;
use std::ops::Range;

/// Returns the tiles below `tiles` in groups of neighbours that a thread examines side by side, from
/// 1 to [`LANES`] (the last may have fewer). Groups are small enough that every thread has several
/// to examine.
pub(super) fn groups(tiles: u32) -> impl ExactSizeIterator<Item = Range<u32>> {
    let parts = if cfg!(test) {
        1
    } else {
        4 * rayon::current_num_threads() as u32
    };
    let at_once = (tiles / parts).clamp(1, LANES as u32);
    (0..tiles)
        .step_by(at_once as usize)
        .map(move |first| first..tiles.min(first + at_once))
}

/// The uses (variables with one class and use set) on up to `N` neighbouring tiles, in *rows*: a
/// row is one use with its bytes on each of the tiles.
#[derive(Default)]
pub(super) struct NeighbourUses<const N: usize> {
    /// For each row, in ascending order of uses: the number of its use in
    /// [`CountedUses`](crate::memory::live_steps::CountedUses), and the bytes by lane (tile). A use
    /// has several rows if a tile has several entries for it.
    pub rows: Vec<(u32, [u32; N])>,
}

impl<const N: usize> NeighbourUses<N> {
    /// Replaces the rows by those of the uses on `tiles`, at most `N` tiles; the first tile is lane
    /// 0.
    pub fn gather(&mut self, memory: &MemoryModel<'_>, tiles: Range<u32>) {
        self.rows.clear();
        let mut data = [(0, &[][..]); N];
        let mut code = data;
        for (lane, tile) in tiles.enumerate() {
            [data[lane], code[lane]] = memory.uses.lists(tile);
        }
        self.append(data);
        self.append(code);
    }

    /// Appends the rows of one list of uses for each lane; each list is in ascending order. A list
    /// comes with the number that is added to the numbers in it, which is the same for all. Lanes
    /// without a tile have an empty list.
    fn append(&mut self, lists: [(u32, &[TileUse]); N]) {
        let first = lists[0].0;
        let mut left = lists.map(|(_, uses)| uses);
        let next = |uses: &[TileUse]| uses.first().map_or(u32::MAX, |next| next.number);
        let mut numbers = left.map(next);
        loop {
            let number = numbers.into_iter().fold(u32::MAX, u32::min);
            if number == u32::MAX {
                return;
            }
            let mut bytes = [0; N];
            for lane in 0..N {
                if numbers[lane] == number {
                    bytes[lane] = left[lane][0].bytes;
                    left[lane] = &left[lane][1..];
                    numbers[lane] = next(left[lane]);
                }
            }
            self.rows.push((first + number, bytes));
        }
    }

    /// Returns the bytes of the row with the index `row`, by lane (tile).
    #[inline]
    pub fn bytes(&self, row: u32) -> &[u32; N] {
        &self.rows[row as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The uses of some tiles, in order: few, some of them several times.
    fn tiles() -> impl Strategy<Value = Vec<Vec<TileUse>>> {
        let numbered = (0u32..15, 0u32..9);
        let tile = prop::collection::vec(numbered, 0..12).prop_map(|mut uses| {
            uses.sort_unstable();
            let of = |(number, bytes)| TileUse { number, bytes };
            uses.into_iter().map(of).collect()
        });
        prop::collection::vec(tile, 1..=4)
    }

    proptest! {
        #[test]
        fn each_lane_has_what_its_tile_has(tiles in tiles()) {
            let mut uses = NeighbourUses::<4>::default();
            uses.append(std::array::from_fn(|lane| (7, tiles.get(lane).map_or(&[][..], |uses| uses))));
            let numbers: Vec<_> = uses.rows.iter().map(|(number, _)| number).collect();
            prop_assert!(numbers.is_sorted());
            for (lane, of_tile) in tiles.iter().enumerate() {
                let found = uses.rows.iter().map(|&(number, bytes)| (number, bytes[lane]));
                let expected = of_tile.iter().map(|of_tile| (7 + of_tile.number, of_tile.bytes));
                let of = |all: Vec<(u32, u32)>| {
                    let mut all: Vec<_> = all.into_iter().filter(|of_tile| of_tile.1 > 0).collect();
                    all.sort_unstable();
                    all
                };
                prop_assert_eq!(of(found.collect()), of(expected.collect()));
            }
            // The rows of a use are its occurrences on the tile that has most of them.
            for &number in &numbers {
                let rows = numbers.iter().filter(|of_tile| **of_tile == number).count();
                let times = tiles.iter().map(|of_tile| {
                    let of_tile = of_tile.iter().filter(|of_tile| 7 + of_tile.number == *number);
                    of_tile.count()
                });
                prop_assert_eq!(Some(rows), times.max());
            }
        }
    }
}
