//! The variables of neighbouring tiles, side by side.
//!
//! Most programs treat thousands of tiles alike, so that neighbours have variables of nearly the
//! same classes and use sets. What depends only on class and use set is looked up once for several
//! tiles, whose bytes are added up in lanes.

use super::MemoryModel;
use super::lanes::{self, LANES};
use crate::model::TileUse;
use std::ops::Range;

/// Number of neighbouring tiles that a thread takes at once, of `tiles` in all: each thread must be
/// left enough to take.
pub(super) fn at_once(tiles: u32) -> u32 {
    let threads = rayon::current_num_threads() as u32;
    let enough = if cfg!(test) {
        tiles
    } else {
        tiles / (4 * threads)
    };
    enough.clamp(1, LANES as u32)
}

/// Buffers of a thread, used again for the next tiles: of neighbours together, of single tiles,
/// and of those that have more than any real one.
#[derive(Default)]
pub(super) struct Widths<Together, Single, Wide> {
    pub(super) together: Together,
    pub(super) single: Single,
    pub(super) wide: Wide,
}

/// The uses on up to `N` tiles, each with its bytes on every tile.
#[derive(Debug, Default)]
pub(super) struct NeighbourUses<const N: usize> {
    /// By row, the number of its use, ascending. A use has several rows where a tile has it several
    /// times.
    numbers: Vec<u32>,
    /// By row, then by lane: bytes.
    bytes: Vec<[u32; N]>,
    /// Uses that the first tile lacks: (number of the use, lane, bytes).
    missing: Vec<(u32, usize, u32)>,
}

impl<const N: usize> NeighbourUses<N> {
    /// Gathers the uses on `tiles`, which are at most `N`.
    pub(super) fn gather(&mut self, memory: &MemoryModel<'_>, tiles: Range<u32>) {
        self.numbers.clear();
        self.bytes.clear();
        let tiles = || tiles.clone().map(|tile| memory.uses.lists(tile));
        self.append(tiles().map(|[data, _]| data));
        self.append(tiles().map(|[_, code]| code));
    }

    /// Appends one list of uses per lane. All lists have the same first number, from which their
    /// uses are numbered.
    fn append<'a>(&mut self, tiles: impl Iterator<Item = (u32, &'a [TileUse])>) {
        let start = self.numbers.len();
        for (lane, (first, uses)) in tiles.enumerate() {
            if lane == 0 {
                self.numbers
                    .extend(uses.iter().map(|tile_use| first + tile_use.number));
                let in_first = |tile_use: &TileUse| in_lane(0, tile_use.bytes);
                self.bytes.extend(uses.iter().map(in_first));
            } else {
                self.take(start, lane, first, uses);
            }
        }
        self.insert_missing(start);
    }

    /// Writes the bytes of a further tile, whose uses are numbered from `first`, into the rows from
    /// `start` on.
    fn take(&mut self, start: usize, lane: usize, first: u32, uses: &[TileUse]) {
        let (numbers, bytes) = (&self.numbers[start..], &mut self.bytes[start..]);
        let mut at = 0;
        for tile_use in uses {
            let number = first + tile_use.number;
            while numbers.get(at).is_some_and(|&known| known < number) {
                at += 1;
            }
            if numbers.get(at) == Some(&number) {
                bytes[at][lane] = tile_use.bytes;
                at += 1;
            } else {
                self.missing.push((number, lane, tile_use.bytes));
            }
        }
    }

    /// Inserts rows for uses that the first tile lacks, among the rows from `start` on.
    fn insert_missing(&mut self, start: usize) {
        let rows = rows(&mut self.missing);
        let (mut from, mut to) = (self.numbers.len(), self.numbers.len() + rows.len());
        self.numbers.resize(to, 0);
        self.bytes.resize(to, [0; N]);
        for (number, bytes) in rows.into_iter().rev() {
            while from > start && self.numbers[from - 1] > number {
                (from, to) = (from - 1, to - 1);
                self.numbers[to] = self.numbers[from];
                self.bytes[to] = self.bytes[from];
            }
            to -= 1;
            self.numbers[to] = number;
            self.bytes[to] = bytes;
        }
    }

    /// By row, the number of its use, ascending.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// By row, the number of its use and the bytes by lane.
    pub(super) fn with_bytes(&self) -> impl Iterator<Item = (u32, &[u32; N])> + '_ {
        self.numbers.iter().copied().zip(&self.bytes)
    }

    /// The bytes of a row by lane.
    #[inline]
    pub(super) fn bytes(&self, row: usize) -> &[u32; N] {
        &self.bytes[row]
    }

    /// Bytes of all uses on the tile that has the most.
    pub(super) fn most(&self) -> u64 {
        let all = self.bytes.iter().map(|lanes| lanes.map(u64::from));
        lanes::sum(all).into_iter().max().unwrap_or(0)
    }
}

fn in_lane<const N: usize>(lane: usize, bytes: u32) -> [u32; N] {
    let mut all = [0; N];
    all[lane] = bytes;
    all
}

/// Turns `missing` into rows, ascending by use, and empties it. A use gets one row for each time
/// that the tile with most of it has it.
fn rows<const N: usize>(missing: &mut Vec<(u32, usize, u32)>) -> Vec<(u32, [u32; N])> {
    missing.sort_unstable();
    let mut rows: Vec<(u32, [u32; N])> = Vec::new();
    let (mut first, mut times) = (0, 0);
    let mut before = None;
    for (missed, lane, bytes) in missing.drain(..) {
        match before {
            Some((number, _)) if number != missed => (first, times) = (rows.len(), 0),
            Some((_, last)) if last != lane => times = 0,
            Some(_) => times += 1,
            None => {}
        }
        if first + times == rows.len() {
            rows.push((missed, [0; N]));
        }
        rows[first + times].1[lane] = bytes;
        before = Some((missed, lane));
    }
    rows
}

/// When the variables of each row of [`NeighbourUses`] are live.
#[derive(Debug, Default)]
pub(super) struct LiveRanges {
    /// Half-open ranges of steps, or of what [`LiveRanges::map`] made of steps.
    ranges: Vec<(u32, u32)>,
    /// By row: index of its first range, and number of its ranges (`None` if it is live on every
    /// step).
    of_rows: Vec<(u32, Option<u32>)>,
}

impl LiveRanges {
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.of_rows.clear();
    }

    /// Appends a row; `None` if it is live on every step.
    pub(super) fn push(&mut self, ranges: Option<&[(u32, u32)]>) {
        let first = self.ranges.len() as u32;
        self.of_rows
            .push((first, ranges.map(|range| range.len() as u32)));
        match ranges.unwrap_or_default() {
            // Most rows have one range or two, for which copying a slice takes longer.
            &[range] => self.ranges.push(range),
            &[first, second] => self.ranges.extend([first, second]),
            all => self.ranges.extend_from_slice(all),
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.of_rows.len()
    }

    /// The ranges of all rows.
    pub(super) fn all(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Replaces each range.
    pub(super) fn map(&mut self, other: impl Fn((u32, u32)) -> (u32, u32)) {
        let ranges = self.ranges.iter_mut();
        ranges.for_each(|range| *range = other(*range));
    }

    /// The ranges of a row; `None` if it is live on every step.
    #[inline]
    pub(super) fn of(&self, row: usize) -> Option<&[(u32, u32)]> {
        let (first, count) = self.of_rows[row];
        Some(&self.ranges[first as usize..][..count? as usize])
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
            uses.append(tiles.iter().map(|numbered| (7, &numbered[..])));
            let numbers = uses.numbers();
            prop_assert!(numbers.is_sorted());
            for (lane, of_tile) in tiles.iter().enumerate() {
                let found = uses.with_bytes().map(|(number, bytes)| (number, bytes[lane]));
                let expected = of_tile.iter().map(|of_tile| (7 + of_tile.number, of_tile.bytes));
                let of = |all: Vec<(u32, u32)>| {
                    let mut all: Vec<_> = all.into_iter().filter(|of_tile| of_tile.1 > 0).collect();
                    all.sort_unstable();
                    all
                };
                prop_assert_eq!(of(found.collect()), of(expected.collect()));
            }
            // The rows of a use are its occurrences on the tile that has most of them.
            for number in numbers {
                let rows = numbers.iter().filter(|of_tile| *of_tile == number).count();
                let times = tiles.iter().map(|of_tile| {
                    let of_tile = of_tile.iter().filter(|of_tile| 7 + of_tile.number == *number);
                    of_tile.count()
                });
                prop_assert_eq!(Some(rows), times.max());
            }
        }
    }
}
