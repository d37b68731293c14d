//! The variables of neighbouring tiles, side by side.
//!
//! Most programs treat thousands of tiles alike, so that neighbours have variables of
//! nearly the same classes and user sets. What depends on these alone is looked up once
//! for some tiles together, and their bytes are added up in lanes.

use super::MemoryModel;
use super::lanes::{self, LANES};
use crate::model::VariableGroup;
use std::ops::Range;

/// How many neighbours of so many tiles a thread takes together: each thread must be left
/// enough to take.
pub(super) fn at_once(tiles: u32) -> u32 {
    let threads = rayon::current_num_threads() as u32;
    let enough = if cfg!(test) {
        tiles
    } else {
        tiles / (4 * threads)
    };
    enough.clamp(1, LANES as u32)
}

/// What a thread uses again for the next tiles: of neighbours together, of single tiles,
/// and of those that have more than any real one.
#[derive(Default)]
pub(super) struct Widths<Together, Single, Wide> {
    pub(super) together: Together,
    pub(super) single: Single,
    pub(super) wide: Wide,
}

/// The class and the user set of variables, in one number: the order of the groups of a
/// tile.
type Key = u64;

fn key(group: &VariableGroup) -> Key {
    u64::from(group.class) << 32 | u64::from(group.set)
}

/// The uses that the variables of up to `N` tiles have, each with its bytes.
#[derive(Debug)]
pub(super) struct NeighbourUses<const N: usize> {
    /// Of data, and then by the classic rules of code; each in order. One comes again
    /// where a tile has it several times.
    keys: Vec<Key>,
    /// By number of the use, then by lane.
    bytes: Vec<[u32; N]>,
    /// What the first of the tiles lacks: by use, then by lane, with the bytes.
    missing: Vec<(Key, usize, u32)>,
}

impl<const N: usize> Default for NeighbourUses<N> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            bytes: Vec::new(),
            missing: Vec::new(),
        }
    }
}

impl<const N: usize> NeighbourUses<N> {
    /// Gathers those of `tiles`, of which there are at most `N`.
    pub(super) fn gather(&mut self, memory: &MemoryModel<'_>, tiles: Range<u32>) {
        self.keys.clear();
        self.bytes.clear();
        let tiles = || tiles.clone().map(|tile| memory.variable_lists(tile));
        self.append(tiles().map(|[data, _]| data));
        self.append(tiles().map(|[_, code]| code));
    }

    /// Appends what the tiles of all lanes have.
    fn append<'a>(&mut self, tiles: impl Iterator<Item = &'a [VariableGroup]>) {
        let first = self.keys.len();
        for (lane, groups) in tiles.enumerate() {
            if lane == 0 {
                self.keys.extend(groups.iter().map(key));
                let in_first = |group: &VariableGroup| in_lane(0, group.bytes);
                self.bytes.extend(groups.iter().map(in_first));
            } else {
                self.take(first, lane, groups);
            }
        }
        self.insert_missing(first);
    }

    /// Takes the bytes of a tile for the uses from number `first` on.
    fn take(&mut self, first: usize, lane: usize, groups: &[VariableGroup]) {
        let (keys, bytes) = (&self.keys[first..], &mut self.bytes[first..]);
        let mut at = 0;
        for group in groups {
            let own = key(group);
            while keys.get(at).is_some_and(|&key| key < own) {
                at += 1;
            }
            if keys.get(at) == Some(&own) {
                bytes[at][lane] = group.bytes;
                at += 1;
            } else {
                self.missing.push((own, lane, group.bytes));
            }
        }
    }

    /// Inserts what the first tile lacks among the uses from number `first` on.
    fn insert_missing(&mut self, first: usize) {
        let rows = rows(&mut self.missing);
        let (mut from, mut to) = (self.keys.len(), self.keys.len() + rows.len());
        self.keys.resize(to, 0);
        self.bytes.resize(to, [0; N]);
        for (key, bytes) in rows.into_iter().rev() {
            while from > first && self.keys[from - 1] > key {
                (from, to) = (from - 1, to - 1);
                self.keys[to] = self.keys[from];
                self.bytes[to] = self.bytes[from];
            }
            to -= 1;
            self.keys[to] = key;
            self.bytes[to] = bytes;
        }
    }

    /// Class and user set of each, by number.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let keys = self.keys.iter();
        keys.map(|&key| ((key >> 32) as u32, key as u32))
    }

    /// The same, with the bytes by lane.
    pub(super) fn with_bytes(&self) -> impl Iterator<Item = ((u32, u32), &[u32; N])> + '_ {
        self.all().zip(&self.bytes)
    }

    /// The bytes of a use by lane.
    #[inline]
    pub(super) fn bytes(&self, number: usize) -> &[u32; N] {
        &self.bytes[number]
    }

    /// The highest bytes of all uses of one tile.
    pub(super) fn most(&self) -> u64 {
        let all = self.bytes.iter().map(|own| own.map(u64::from));
        lanes::sum(all).into_iter().max().unwrap_or(0)
    }
}

fn in_lane<const N: usize>(lane: usize, bytes: u32) -> [u32; N] {
    let mut all = [0; N];
    all[lane] = bytes;
    all
}

/// What tiles have that the first of them lacks, in the order of the uses: of each so
/// many rows as a tile has it times. Leaves nothing.
fn rows<const N: usize>(missing: &mut Vec<(Key, usize, u32)>) -> Vec<(Key, [u32; N])> {
    missing.sort_unstable();
    let mut rows: Vec<(Key, [u32; N])> = Vec::new();
    let (mut first, mut times) = (0, 0);
    let mut before = None;
    for (own, lane, bytes) in missing.drain(..) {
        match before {
            Some((key, _)) if key != own => (first, times) = (rows.len(), 0),
            Some((_, last)) if last != lane => times = 0,
            Some(_) => times += 1,
            None => {}
        }
        if first + times == rows.len() {
            rows.push((own, [0; N]));
        }
        rows[first + times].1[lane] = bytes;
        before = Some((own, lane));
    }
    rows
}

/// When the variables of each use are live.
#[derive(Debug, Default)]
pub(super) struct LiveRanges {
    /// Half-open: steps, or what [`LiveRanges::map`] made of them.
    ranges: Vec<(u32, u32)>,
    /// By number of the use: where its ranges begin, and how many there are; `None` if
    /// it is live on every step.
    of_uses: Vec<(u32, Option<u32>)>,
}

impl LiveRanges {
    /// Forgets all uses.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.of_uses.clear();
    }

    /// Takes the next use; `None` if it is live on every step.
    pub(super) fn push(&mut self, ranges: Option<&[(u32, u32)]>) {
        let first = self.ranges.len() as u32;
        self.of_uses
            .push((first, ranges.map(|own| own.len() as u32)));
        match ranges.unwrap_or_default() {
            // Most have one, for which to copy a list takes longer.
            &[range] => self.ranges.push(range),
            all => self.ranges.extend_from_slice(all),
        }
    }

    /// How many uses there are.
    pub(super) fn len(&self) -> usize {
        self.of_uses.len()
    }

    /// The ranges of all uses.
    pub(super) fn all(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Puts another range in place of each.
    pub(super) fn map(&mut self, other: impl Fn((u32, u32)) -> (u32, u32)) {
        let ranges = self.ranges.iter_mut();
        ranges.for_each(|range| *range = other(*range));
    }

    /// Those of a use; `None` if it is live on every step.
    #[inline]
    pub(super) fn of(&self, number: usize) -> Option<&[(u32, u32)]> {
        let (first, count) = self.of_uses[number];
        Some(&self.ranges[first as usize..][..count? as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The groups of some tiles, in order: of few classes, some of them several times.
    fn tiles() -> impl Strategy<Value = Vec<Vec<VariableGroup>>> {
        let group = (0u32..5, 0u32..3, 0u32..9);
        let tile = prop::collection::vec(group, 0..12).prop_map(|mut groups| {
            groups.sort_unstable();
            let of = |(class, set, bytes)| VariableGroup { class, set, bytes };
            groups.into_iter().map(of).collect()
        });
        prop::collection::vec(tile, 1..=4)
    }

    proptest! {
        #[test]
        fn each_lane_has_what_its_tile_has(tiles in tiles()) {
            let mut uses = NeighbourUses::<4>::default();
            uses.append(tiles.iter().map(Vec::as_slice));
            let keys: Vec<_> = uses.all().collect();
            prop_assert!(keys.is_sorted());
            for (lane, groups) in tiles.iter().enumerate() {
                let own = uses.with_bytes().map(|((class, set), bytes)| VariableGroup {
                    class,
                    set,
                    bytes: bytes[lane],
                });
                let of = |all: Vec<VariableGroup>| {
                    let mut all: Vec<_> = all.into_iter().filter(|own| own.bytes > 0).collect();
                    all.sort_unstable();
                    all
                };
                prop_assert_eq!(of(own.collect()), of(groups.clone()));
            }
            // As many rows of a use as the tile has that has it the maximum number of times.
            for key in &keys {
                let rows = keys.iter().filter(|own| *own == key).count();
                let times = tiles.iter().map(|groups| {
                    let own = groups.iter().filter(|own| (own.class, own.set) == *key);
                    own.count()
                });
                prop_assert_eq!(Some(rows), times.max());
            }
        }
    }
}
