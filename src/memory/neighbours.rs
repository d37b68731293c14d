//! What neighbouring tiles have in common.
//!
//! Most programs treat thousands of tiles alike, so that neighbours have variables of
//! nearly the same classes and user sets. What depends on these alone is looked up once
//! for some tiles together; on each of them only bytes are left to look at.

use super::MemoryModel;
use crate::model::VariableGroup;
use std::ops::Range;

/// How many neighbours a thread takes together at most.
const MOST: u32 = 8;

/// How many neighbours of so many tiles a thread takes together: each thread must be left
/// enough to take.
pub(super) fn at_once(tiles: u32) -> u32 {
    let threads = rayon::current_num_threads() as u32;
    (tiles / (32 * threads)).clamp(1, MOST)
}

/// The class and the user set of variables, in one number: the order of the groups of a
/// tile.
type Key = u64;

fn key(group: &VariableGroup) -> Key {
    u64::from(group.class) << 32 | u64::from(group.set)
}

/// The uses that the variables of some tiles have.
#[derive(Debug, Default)]
pub(super) struct NeighbourUses {
    /// Of data, and by the classic rules of code; each in order.
    lists: [Vec<Key>; 2],
    merged: Vec<Key>,
}

impl NeighbourUses {
    /// Gathers those of `tiles`.
    pub(super) fn gather(&mut self, memory: &MemoryModel<'_>, tiles: Range<u32>) {
        self.lists.iter_mut().for_each(Vec::clear);
        for tile in tiles {
            for (list, groups) in self.lists.iter_mut().zip(memory.variable_lists(tile)) {
                merge(list, groups, &mut self.merged);
                std::mem::swap(list, &mut self.merged);
            }
        }
    }

    /// Class and user set of each, by number.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let keys = self.lists.iter().flatten();
        keys.map(|&key| ((key >> 32) as u32, key as u32))
    }

    /// The variables on `tile`, one of those that were gathered: the number of the use
    /// of each, and its bytes.
    #[inline]
    pub(super) fn on_tile<'a>(
        &'a self,
        memory: &MemoryModel<'a>,
        tile: u32,
    ) -> impl Iterator<Item = (usize, u32)> + 'a {
        let [data, code] = memory.variable_lists(tile);
        let [of_data, of_code] = &self.lists;
        numbered(of_data, data, 0).chain(numbered(of_code, code, of_data.len()))
    }
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
        self.ranges.extend(ranges.into_iter().flatten());
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

/// The groups of a tile, each with the place of its key in `list` and `before`.
#[inline]
fn numbered<'a>(
    list: &'a [Key],
    groups: &'a [VariableGroup],
    before: usize,
) -> impl Iterator<Item = (usize, u32)> + 'a {
    let mut at = 0;
    groups.iter().map(move |group| {
        let own = key(group);
        while list[at] < own {
            at += 1;
        }
        (before + at, group.bytes)
    })
}

/// Puts the keys of both, which are in order, into `merged`, each once.
fn merge(list: &[Key], groups: &[VariableGroup], merged: &mut Vec<Key>) {
    merged.clear();
    let mut rest = list;
    for group in groups {
        let own = key(group);
        while let Some((&first, others)) = rest.split_first()
            && first < own
        {
            merged.push(first);
            rest = others;
        }
        if rest.first() != Some(&own) && merged.last() != Some(&own) {
            merged.push(own);
        }
    }
    merged.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(keys: &[u32]) -> Vec<VariableGroup> {
        let group = |&class: &u32| VariableGroup {
            class,
            set: 3,
            bytes: class + 1,
        };
        keys.iter().map(group).collect()
    }

    #[test]
    fn keys_of_all_tiles_come_once_and_in_order() {
        let (mut list, mut merged) = (Vec::new(), Vec::new());
        let tiles = [&[2, 5, 5, 9][..], &[], &[1, 2, 6, 9, 12], &[5]];
        for tile in tiles {
            merge(&list, &groups(tile), &mut merged);
            std::mem::swap(&mut list, &mut merged);
        }
        let classes: Vec<u64> = list.iter().map(|key| key >> 32).collect();
        assert_eq!(classes, [1, 2, 5, 6, 9, 12]);
        for tile in tiles {
            let groups = groups(tile);
            let found: Vec<_> = numbered(&list, &groups, 10).collect();
            let expected = tile.iter().map(|&class| {
                let place = classes.iter().position(|&own| own == u64::from(class));
                (10 + place.unwrap(), class + 1)
            });
            assert!(expected.eq(found));
        }
    }
}
