//! Stores the lowered variables of all tiles in groups. A group has the variables on one tile with
//! the same equivalence class (which determines the steps at which they are live) and the same use
//! set (the operation groups that use them).
//!
//! There are millions of variables, but only some hundred thousand pairs of class and use set. So a
//! value that depends only on the class and the use set is computed once for each pair.

use crate::parallel::{equal_parts, filled, split_by, starts};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::{iter::zip, ops::Range};

/// All lowered variables of one tile that have the same equivalence class and the same use set (the
/// set of operation groups that use a variable).
#[derive(Debug, Clone, Copy)]
pub struct VariableGroup {
    /// Equivalence class of the variables (which determines the steps at which they are live), as
    /// an index into the profile's classes.
    pub class: u32,
    /// The use set of the variables (the set of operation groups that use them), as an index into
    /// [`UseSets`](super::UseSets); [`NO_USERS`](super::NO_USERS) if no operation group uses them.
    pub set: u32,
    /// Bytes of all variables of this group together, which are all on one tile.
    pub bytes: u32,
}

/// An equivalence class and a use set (the set of operation groups that use a variable), such that
/// at least one variable has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableUse {
    /// The equivalence class (which determines the steps at which the variables are live), as an
    /// index into the profile's classes.
    pub class: u32,
    /// The use set of the variables (the set of operation groups that use them), as an index into
    /// [`UseSets`](super::UseSets).
    pub set: u32,
    /// Bytes, over all tiles, of the variables with this equivalence class and use set (the
    /// operation groups that use a variable).
    pub bytes: u64,
}

/// The bytes on one tile of the variables with the same equivalence class and the same use set (the
/// set of operation groups that use a variable).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileUse {
    /// The equivalence class and the use set of the variables (the operation groups that use them),
    /// as an index into [`VariableGroups::uses`](super::VariableGroups::uses).
    pub number: u32,
    /// Bytes on the tile of the variables with this equivalence class and use set (the operation
    /// groups that use a variable).
    pub bytes: u32,
}

/// The lowered variables of all tiles, in groups of variables with the same tile, equivalence class
/// and use set (the operation groups that use a variable).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableGroups {
    /// The pairs of equivalence class and use set (the operation groups that use a variable) of all
    /// variables, each pair once; ascending by class, then by use set.
    uses: Vec<VariableUse>,
    /// One entry per tile: the index, in the field `groups`, of the tile's first group of
    /// variables. One more entry at the end has the length of `groups`.
    starts: Vec<usize>,
    /// The groups of variables of all tiles, tile after tile. On each tile, they are ascending by
    /// class and use set.
    groups: Vec<TileUse>,
}

impl VariableGroups {
    /// Sorts groups of variables by tile, equivalence class and use set (the operation groups that
    /// use a variable). Each item of `groups` is a tile (below `tiles`) and a group on this tile.
    /// Groups with the same tile, class and use set become one group, unless its bytes would exceed
    /// 4 GiB.
    pub fn new(tiles: u32, groups: impl Iterator<Item = (u16, VariableGroup)>) -> Self {
        let groups: Vec<_> = groups.collect();
        let classes = groups
            .iter()
            .map(|(_, group)| group.class as usize + 1)
            .max()
            .unwrap_or(0);
        let tile = |position: usize| groups[position].0;
        let group = |position: usize| Some(groups[position].1);
        Self::sorted(tiles, classes, groups.len(), tile, group)
    }

    /// Sorts groups of variables by tile, equivalence class (variables that are live at the same
    /// steps) and use set (variables with the same users), and joins those in which all three are
    /// equal, as [`new`](Self::new) does. To save memory, the groups are not in a list: `tile` and
    /// `group` return the tile (below `tiles`) and the group for each index below `count`. If
    /// `group` returns `None`, the index is skipped. All classes must be below `classes`.
    pub(super) fn sorted(
        tiles: u32,
        classes: usize,
        count: usize,
        tile: impl Fn(usize) -> u16 + Sync,
        group: impl Fn(usize) -> Option<VariableGroup> + Sync,
    ) -> Self {
        let at = |position| Some((tile(position), group(position)?));
        // The initial sums, which are all 0: the number of groups of variables per tile, and the
        // bytes per pair of equivalence class and use set (the operations that use a variable).
        let none = || (vec![0u32; tiles as usize], ByUse::new(classes));
        let add = |positions: Range<usize>| {
            let (mut counts, mut bytes) = none();
            for (tile, group) in positions.filter_map(at) {
                counts[usize::from(tile)] += 1;
                *bytes.of_mut(group.class, group.set) += u64::from(group.bytes);
            }
            (counts, bytes)
        };
        type Sums = (Vec<u32>, ByUse<u64>);
        let join = |(mut counts, mut bytes): Sums, (more, part): Sums| {
            zip(&mut counts, more).for_each(|(count, more)| *count += more);
            for ((class, set), more) in part.into_all() {
                *bytes.of_mut(class, set) += more;
            }
            (counts, bytes)
        };
        // Several threads add up bytes by equivalence class (variables that are live at the same
        // steps) and use set, each for one part of the list of groups. Each part needs a table with
        // one entry per class, which should be smaller than the part. So there are fewer parts if
        // there are many classes.
        let parts = (count / (4 * classes.max(1))).clamp(1, rayon::current_num_threads());
        let (counts, bytes) = equal_parts(count, parts)
            .into_par_iter()
            .map(add)
            .reduce_with(join)
            .unwrap_or_else(none);
        let mut uses: Vec<VariableUse> = bytes
            .into_all()
            .map(|((class, set), bytes)| VariableUse { class, set, bytes })
            .collect();
        uses.sort_unstable();
        let mut numbers = ByUse::new(classes);
        for (number, used) in (0u32..).zip(&uses) {
            *numbers.of_mut(used.class, used.set) = number;
        }
        let mut starts = starts(&counts);
        let numbered = |position| {
            let VariableGroup { class, set, bytes } = group(position)?;
            let number = numbers.of(class, set);
            Some(TileUse { number, bytes })
        };
        let mut sorted = by_tile(&starts, count, tile, numbered);
        join_equal(&mut starts, &mut sorted);
        Self {
            uses,
            starts,
            groups: sorted,
        }
    }

    /// Builds the groups of variables from the lists of a saved model:
    /// - `uses`: the distinct pairs of equivalence class (variables that are live at the same
    ///   steps) and use set (variables with the same users), ascending.
    /// - `groups`: the groups of variables of one tile after another. Each group refers to a pair
    ///   by its index in `uses`; on each tile, these indices ascend.
    /// - `counts`: the number of groups on each tile.
    ///
    /// Returns `None` if the pairs or the groups of a tile are not ascending, if a group refers to
    /// no pair, or if `counts` do not add up to the number of groups.
    pub(crate) fn from_numbered(
        uses: &[(u32, u32)],
        counts: &[u32],
        groups: Vec<TileUse>,
    ) -> Option<Self> {
        let starts = starts(counts);
        let is_whole = starts.last() == Some(&groups.len()) && u32::try_from(groups.len()).is_ok();
        if !is_whole || !uses.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let none = |&(class, set): &(u32, u32)| VariableUse {
            class,
            set,
            bytes: 0,
        };
        let mut uses: Vec<_> = uses.iter().map(none).collect();
        for tile in starts.windows(2) {
            let on_tile = &groups[tile[0]..tile[1]];
            if !on_tile.is_sorted_by_key(|group| group.number) {
                return None;
            }
            for group in on_tile {
                uses.get_mut(group.number as usize)?.bytes += u64::from(group.bytes);
            }
        }
        Some(Self {
            uses,
            starts,
            groups,
        })
    }

    /// Returns all pairs of equivalence class and use set (the operation groups that use a
    /// variable) with the bytes of their variables over all tiles, ascending by class, then by use
    /// set.
    pub fn uses(&self) -> &[VariableUse] {
        &self.uses
    }

    /// Returns the index in [`uses`](Self::uses) of the variables with the equivalence class
    /// `class` (which determines when they are live) and the use set `set` (which operation groups
    /// use them); `None` if there are no such variables.
    pub fn number(&self, class: u32, set: u32) -> Option<u32> {
        let key = |numbered: &VariableUse| (numbered.class, numbered.set);
        self.uses
            .binary_search_by_key(&(class, set), key)
            .ok()
            .map(|number| number as u32)
    }

    /// Returns the number of tiles on which variables are stored.
    pub fn tiles(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// Iterates over the groups of variables on a tile, ascending by equivalence class, then by use
    /// set (the operation groups that use a variable).
    pub fn on_tile(&self, tile: u32) -> impl Iterator<Item = VariableGroup> {
        let group = |&TileUse { number, bytes }: &TileUse| {
            let VariableUse { class, set, .. } = self.uses[number as usize];
            VariableGroup { class, set, bytes }
        };
        self.uses_on_tile(tile).iter().map(group)
    }

    /// Returns the groups of variables on a tile with their bytes, ascending by the index of their
    /// class and use set (the operation groups that use a variable) in [`uses`](Self::uses).
    pub fn uses_on_tile(&self, tile: u32) -> &[TileUse] {
        let tile = tile as usize;
        &self.groups[self.starts[tile]..self.starts[tile + 1]]
    }
}

/// Sorts groups of variables by tile; groups on one tile keep their order. Each index below `count`
/// stands for a group: `tile` returns its tile, and `group` the group itself, or `None` to leave it
/// out. `starts` has, for each tile, the index in the result of its first group.
fn by_tile(
    starts: &[usize],
    count: usize,
    tile: impl Fn(usize) -> u16 + Sync,
    group: impl Fn(usize) -> Option<TileUse> + Sync,
) -> Vec<TileUse> {
    let mut sorted = filled(TileUse::default(), starts[starts.len() - 1]);
    let tiles = equal_parts(starts.len() - 1, rayon::current_num_threads());
    let parts = split_by(
        &mut sorted,
        tiles
            .iter()
            .map(|tiles| starts[tiles.end] - starts[tiles.start]),
    );
    tiles.into_par_iter().zip(parts).for_each(|(tiles, part)| {
        let first = starts[tiles.start];
        let mut next = starts[tiles.clone()].to_vec();
        for position in 0..count {
            let tile = usize::from(tile(position));
            if tiles.contains(&tile)
                && let Some(group) = group(position)
            {
                let place = &mut next[tile - tiles.start];
                part[*place - first] = group;
                *place += 1;
            }
        }
    });
    sorted
}

/// Sorts the groups of variables on each tile by equivalence class and use set (the operation
/// groups that use a variable). Groups on a tile with the same class and use set become one group,
/// unless its bytes would exceed 4 GiB. `starts`, the index of each tile's first group, is updated.
fn join_equal(starts: &mut [usize], groups: &mut Vec<TileUse>) {
    let lengths = starts.windows(2).map(|ends| ends[1] - ends[0]);
    let joined = |tile: &mut [TileUse]| {
        tile.sort_unstable_by_key(|group| group.number);
        let mut kept = 0;
        for position in 0..tile.len() {
            let group = tile[position];
            if let Some(last) = tile[..kept].last_mut()
                && last.number == group.number
                && let Some(sum) = last.bytes.checked_add(group.bytes)
            {
                last.bytes = sum;
            } else {
                tile[kept] = group;
                kept += 1;
            }
        }
        kept
    };
    let kept: Vec<usize> = split_by(groups, lengths)
        .into_par_iter()
        .map(joined)
        .collect();
    let (mut from, mut to) = (0, 0);
    for (end, kept) in starts[1..].iter_mut().zip(kept) {
        groups.copy_within(from..from + kept, to);
        to += kept;
        from = std::mem::replace(end, to);
    }
    groups.truncate(to);
    groups.shrink_to_fit();
}

/// A map from a pair of equivalence class and use set (the operation groups that use a variable) to
/// a value. Most classes have only one use set, whose value is found in a list without hashing.
struct ByUse<T> {
    /// One entry per equivalence class (variables that are live at the same steps): the first use
    /// set (operation groups that use some of these variables) for which a value was stored, and
    /// this value. The use set is [`NO_SET`] if there is none. Values of further use sets are in
    /// `others`.
    first: Vec<(u32, T)>,
    others: FxHashMap<(u32, u32), T>,
}

const NO_SET: u32 = u32::MAX;

impl<T: Copy + Default> ByUse<T> {
    fn new(classes: usize) -> Self {
        Self {
            first: vec![(NO_SET, T::default()); classes],
            others: FxHashMap::default(),
        }
    }

    #[inline]
    fn of_mut(&mut self, class: u32, set: u32) -> &mut T {
        let (first, value) = &mut self.first[class as usize];
        if *first == NO_SET {
            *first = set;
        }
        if *first == set {
            value
        } else {
            self.others.entry((class, set)).or_default()
        }
    }

    #[inline]
    fn of(&self, class: u32, set: u32) -> T {
        let (first, value) = self.first[class as usize];
        if first == set {
            value
        } else {
            self.others.get(&(class, set)).copied().unwrap_or_default()
        }
    }

    fn into_all(self) -> impl Iterator<Item = ((u32, u32), T)> {
        (0u32..)
            .zip(self.first)
            .filter(|&(_, (set, _))| set != NO_SET)
            .map(|(class, (set, value))| ((class, set), value))
            .chain(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn groups_and_uses_have_the_bytes_of_all_variables(
            groups in prop::collection::vec((0u16..9, 0u32..4, 0u32..3, 1u32..1 << 20), 0..90),
        ) {
            let of = |&(tile, class, set, bytes): &(u16, u32, u32, u32)| {
                (tile, VariableGroup { class, set, bytes })
            };
            let found = VariableGroups::new(9, groups.iter().map(of));
            let mut all: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            let mut by_tile: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
            for &(tile, class, set, bytes) in &groups {
                *all.entry((class, set)).or_default() += u64::from(bytes);
                *by_tile.entry((tile.into(), class, set)).or_default() += bytes;
            }
            let uses = found.uses().iter().map(|group| ((group.class, group.set), group.bytes));
            prop_assert!(uses.eq(all));
            let on_tiles = (0..9).flat_map(|tile| {
                let group = found.on_tile(tile);
                group.map(move |group| ((tile, group.class, group.set), group.bytes))
            });
            prop_assert!(on_tiles.eq(by_tile));
            for (number, group) in (0u32..).zip(found.uses()) {
                prop_assert_eq!(found.number(group.class, group.set), Some(number));
            }
            prop_assert_eq!(found.number(9, 0), None);
            let counts: Vec<u32> = (0..9).map(|tile| found.on_tile(tile).count() as u32).collect();
            let uses: Vec<_> = found.uses().iter().map(|used| (used.class, used.set)).collect();
            let groups = found.groups.clone();
            prop_assert_eq!(VariableGroups::from_numbered(&uses, &counts, groups), Some(found));
        }
    }

    #[test]
    fn what_would_pass_4_gib_stays_apart() {
        let group = |bytes| VariableGroup {
            class: 1,
            set: 2,
            bytes,
        };
        let groups = [u32::MAX, 1, 2].map(|bytes| (0, group(bytes)));
        let found = VariableGroups::new(1, groups.into_iter());
        let bytes: u64 = found.on_tile(0).map(|group| u64::from(group.bytes)).sum();
        assert_eq!(
            (found.on_tile(0).count(), bytes),
            (2, u64::from(u32::MAX) + 3)
        );
        assert_eq!(found.uses().len(), 1);
        assert_eq!(found.uses()[0].bytes, bytes);
    }
}
