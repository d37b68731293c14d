//! The uses that variables have, over all tiles.
//!
//! There are millions of groups of variables, and some hundred thousand of these: what is
//! summed up over all tiles is summed up over them.

use super::variables::{VariableGroup, VariableGroups};
use crate::parallel::by_parts;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// A class and a user set that variables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableUse {
    /// The equivalence class, as a position in the profile's classes.
    pub class: u32,
    /// The operation groups that use them, as a set of
    /// [`UserSets`](super::UserSets).
    pub set: u32,
    /// Their bytes over all tiles.
    pub bytes: u64,
}

impl From<&VariableGroup> for VariableUse {
    /// What one tile has of a use.
    fn from(&VariableGroup { class, set, bytes }: &VariableGroup) -> Self {
        let bytes = bytes.into();
        Self { class, set, bytes }
    }
}

/// The uses of some groups, found when they are first asked for. They follow from the
/// groups, so that they are all the same wherever these are.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownUses(OnceLock<Vec<VariableUse>>);

impl PartialEq for KnownUses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KnownUses {}

impl KnownUses {
    /// Those of `groups`, by class, then by set.
    pub(super) fn of(&self, groups: &VariableGroups) -> &[VariableUse] {
        self.0.get_or_init(|| find(groups))
    }
}

fn find(groups: &VariableGroups) -> Vec<VariableUse> {
    let tiles = groups.tiles();
    let last = |tile| groups.on_tile(tile).last().map(|group| group.class);
    let classes = (0..tiles).filter_map(last).max();
    let classes = classes.map_or(0, |last| last as usize + 1);
    let parts = parts(groups, classes);
    let sum_up = |tiles: Range<usize>| UseSums::of(groups, tiles, classes);
    let sums = by_parts(tiles as usize, parts, sum_up, UseSums::join);
    sums.map_or(Vec::new(), UseSums::into_uses)
}

/// In how many parts the tiles are taken: one for each thread where there are many more
/// groups than classes, of which each part has a list.
fn parts(groups: &VariableGroups, classes: usize) -> usize {
    let most = groups.len() / (4 * classes.max(1));
    most.clamp(1, rayon::current_num_threads())
}

/// The uses of some tiles.
struct UseSums {
    /// By class: the set that was met with it first, and the bytes of both; [`NO_SET`]
    /// before that.
    first: Vec<(u32, u64)>,
    /// Bytes of other sets, by class and set: few classes have several.
    others: FxHashMap<(u32, u32), u64>,
}

const NO_SET: u32 = u32::MAX;

impl UseSums {
    fn of(groups: &VariableGroups, tiles: Range<usize>, classes: usize) -> Self {
        let mut sums = Self {
            first: vec![(NO_SET, 0); classes],
            others: FxHashMap::default(),
        };
        let groups = tiles.flat_map(|tile| groups.on_tile(tile as u32));
        for &VariableGroup { class, set, bytes } in groups {
            sums.add(class, set, bytes.into());
        }
        sums
    }

    #[inline]
    fn add(&mut self, class: u32, set: u32, bytes: u64) {
        let (first, sum) = &mut self.first[class as usize];
        if *first == NO_SET {
            *first = set;
        }
        if *first == set {
            *sum += bytes;
        } else {
            *self.others.entry((class, set)).or_default() += bytes;
        }
    }

    fn join(mut self, other: Self) -> Self {
        for VariableUse { class, set, bytes } in other.into_uses() {
            self.add(class, set, bytes);
        }
        self
    }

    /// All of them, in order.
    fn into_uses(self) -> Vec<VariableUse> {
        let first = (0u32..).zip(self.first);
        let first = first.filter(|&(_, (set, _))| set != NO_SET);
        let first = first.map(|(class, (set, bytes))| VariableUse { class, set, bytes });
        let mut uses: Vec<_> = first.collect();
        let others = self.others.into_iter();
        uses.extend(others.map(|((class, set), bytes)| VariableUse { class, set, bytes }));
        uses.sort();
        uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn uses_have_the_bytes_of_all_tiles(
            groups in prop::collection::vec((0u16..9, 0u32..4, 0u32..3, 1u32..), 0..90),
        ) {
            let of = |&(tile, class, set, bytes): &(u16, u32, u32, u32)| {
                (tile, VariableGroup { class, set, bytes })
            };
            let found = VariableGroups::new(9, groups.iter().map(of));
            let mut expected: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for &(_, class, set, bytes) in &groups {
                *expected.entry((class, set)).or_default() += u64::from(bytes);
            }
            let uses = found.uses().iter().map(|own| ((own.class, own.set), own.bytes));
            prop_assert!(uses.eq(expected));
        }
    }
}
