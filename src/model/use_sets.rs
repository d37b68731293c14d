//! Which operations use which lowered variables.

use super::ModelError;
use super::operations::UnnamedGroup;
use super::use_set_index::{lists_of, members_of};
use crate::limits;
use crate::parallel::{equal_parts, filled, split_by};
use crate::profile::Profile;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Sets of operation groups that use variables, each stored once for each label and partner of its
/// variables. Set 0 is empty; any other is a smaller set plus one group, which comes later in the
/// order than all groups of the smaller set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseSets {
    /// By set: the set without its last group, and this group.
    nodes: Vec<(u32, u32)>,
    /// By set: the label of its variables; see [`UseSets::label`].
    labels: Vec<u32>,
    /// By set: the set that its variables are paired with, [`NO_USERS`] for none.
    partners: Vec<u32>,
}

/// The use set of variables that no operation uses.
pub const NO_USERS: u32 = 0;

impl Default for UseSets {
    /// Only the empty set.
    fn default() -> Self {
        Self {
            nodes: vec![(NO_USERS, u32::MAX)],
            labels: vec![0],
            partners: vec![NO_USERS],
        }
    }
}

impl UseSets {
    /// Adds the set of `smaller`, which must exist, and `group`, which must come after all groups
    /// of `smaller`.
    pub fn push(&mut self, smaller: u32, group: u32) -> u32 {
        self.nodes.push((smaller, group));
        self.labels.push(0);
        self.partners.push(NO_USERS);
        self.nodes.len() as u32 - 1
    }

    /// Adds a copy of a set for variables with a label and a partner.
    pub(super) fn push_alike(&mut self, set: u32, label: u32, partner: u32) -> u32 {
        let (smaller, group) = self.nodes[set as usize];
        let added = self.push(smaller, group);
        self.mark(added, label, partner);
        added
    }

    /// Sets the label and partner of all variables of a set.
    pub(crate) fn mark(&mut self, set: u32, label: u32, partner: u32) {
        self.labels[set as usize] = label;
        self.partners[set as usize] = partner;
    }

    /// The label of the variables with this set, as a position in
    /// [`Model::labels`](super::Model::labels).
    pub fn label(&self, set: u32) -> u32 {
        self.labels[set as usize]
    }

    /// The set of the variables that they are paired with: variables on the same tile with equally
    /// many elements in a compute set over the whole model. `None` if there are none.
    pub fn partner(&self, set: u32) -> Option<u32> {
        Some(self.partners[set as usize]).filter(|&partner| partner != NO_USERS)
    }

    /// Is the first set the empty one, does each other set consist of an earlier smaller one and a
    /// later group below `groups`, and does each have a label below `labels` and an existing
    /// partner?
    pub(crate) fn is_sound(&self, groups: usize, labels: usize) -> bool {
        let sets = self.nodes.len();
        let follows = |(set, &(smaller, group)): (usize, &(u32, u32))| {
            let smaller = smaller as usize;
            let behind =
                smaller == 0 || self.nodes[..set].get(smaller).is_some_and(|n| n.1 < group);
            smaller < set && behind && (group as usize) < groups
        };
        let all_below = |positions: &[u32], end| {
            positions.len() == sets && positions.iter().all(|&position| (position as usize) < end)
        };
        self.nodes.first() == Some(&(NO_USERS, u32::MAX))
            && self.nodes.iter().enumerate().skip(1).all(follows)
            && all_below(&self.labels, labels)
            && all_below(&self.partners, sets)
            && (self.labels[0], self.partners[0]) == (0, NO_USERS)
    }

    /// Number of sets, the empty one included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Always false for a sound list: the empty set is there.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every set but the empty one, smaller sets first: (set, the set without its last group, this
    /// group).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u32, u32)> + '_ {
        let nodes = (0..self.nodes.len() as u32).zip(&self.nodes).skip(1);
        nodes.map(|(set, &(smaller, group))| (set, smaller, group))
    }

    /// The groups of a set, the last first.
    pub fn groups(&self, set: u32) -> impl Iterator<Item = u32> + '_ {
        let mut set = set;
        std::iter::from_fn(move || {
            let (smaller, group) = self.nodes[set as usize];
            (set != NO_USERS).then(|| {
                set = smaller;
                group
            })
        })
    }
}

/// By variable its use set, and the use sets.
pub(super) type Users = (Vec<u32>, UseSets);

/// The use set of each variable, by its position.
pub(super) fn find(profile: &Profile, groups: &[UnnamedGroup]) -> Result<Users, ModelError> {
    let count = profile.variables.len();
    let (max_sets, max_uses) = (limits::SETS.of(count), limits::USES.of(count));
    let mut uses = 0;
    let mut lists = Vec::with_capacity(groups.len());
    for found in groups {
        let used_lists = lists_of(profile, &found.programs);
        let members = members_of(profile, &used_lists);
        uses += members.iter().map(|list| list.len()).sum::<usize>();
        if uses > max_uses {
            return Err(ModelError::TooManyUses {
                variables: count,
                max: max_uses,
            });
        }
        lists.push(used_lists);
    }
    let used = Used {
        groups: groups.len() as u32,
        lists: |group| members_of(profile, &lists[group as usize]),
    };
    let threads = rayon::current_num_threads();
    of_variables(count, &used, threads, max_sets).ok_or(ModelError::TooManySets {
        variables: count,
        max: max_sets,
    })
}

/// The variables that each group uses, in lists.
struct Used<Lists> {
    groups: u32,
    lists: Lists,
}

/// The use sets of `count` variables by the variables that each group uses, computed in `parts`
/// parts in parallel; `None` if there are more than `max`. The numbers of the sets do not depend on
/// `parts`.
fn of_variables<'a>(
    count: usize,
    used: &Used<impl Fn(u32) -> Vec<&'a [u32]> + Sync>,
    parts: usize,
    max: usize,
) -> Option<Users> {
    let mut set_of = filled(NO_USERS, count);
    let parts = equal_parts(count, parts);
    let of_parts = split_by(&mut set_of, parts.iter().map(Range::len));
    let found = parts.into_par_iter().zip(of_parts).map(|(part, lists)| {
        let found = SetsOfPart::find(part, lists, used, max)?;
        Some((found, lists))
    });
    let (found, of_parts): (Vec<_>, Vec<_>) =
        found.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let (sets, numbers) = joined(&found);
    let of_parts = of_parts.into_par_iter().zip(&numbers);
    of_parts.for_each(|(lists, numbers)| {
        for set in lists {
            *set = numbers[*set as usize];
        }
    });
    (sets.len() <= max).then_some((set_of, sets))
}

/// The sets of some of the variables, numbered within this part.
struct SetsOfPart {
    /// By set, without the empty one, in the order in which they were found.
    found: Vec<FoundSet>,
    /// By set: the last group that was added to it, and the set that resulted.
    grown: Vec<(u32, u32)>,
}

/// A set: a smaller one, and one more group.
struct FoundSet {
    smaller: u32,
    group: u32,
    /// Number of uses by all groups before the first variable that has the set.
    uses_before: usize,
}

impl SetsOfPart {
    /// Finds the set of each variable of `part`; `None` if there are more than `max`.
    fn find<'a>(
        part: Range<usize>,
        set_of: &mut [u32],
        used: &Used<impl Fn(u32) -> Vec<&'a [u32]>>,
        max: usize,
    ) -> Option<Self> {
        let mut sets = Self {
            found: Vec::new(),
            grown: vec![(u32::MAX, NO_USERS)],
        };
        let mut uses_before = 0;
        for group in 0..used.groups {
            if sets.grown.len() > max {
                return None;
            }
            for list in (used.lists)(group) {
                for (number, &variable) in list.iter().enumerate() {
                    let place = (variable as usize).wrapping_sub(part.start);
                    if let Some(set) = set_of.get_mut(place) {
                        *set = sets.with(*set, group, uses_before + number);
                    }
                }
                uses_before += list.len();
            }
        }
        Some(sets)
    }

    /// The set with `group` added, which is not before any group of `set`.
    #[inline]
    fn with(&mut self, set: u32, group: u32, uses_before: usize) -> u32 {
        let of_set = (set as usize)
            .checked_sub(1)
            .map(|of_set| self.found[of_set].group);
        if of_set == Some(group) {
            return set;
        }
        let (noted, larger) = self.grown[set as usize];
        if noted == group {
            return larger;
        }
        self.found.push(FoundSet {
            smaller: set,
            group,
            uses_before,
        });
        let larger = self.grown.len() as u32;
        self.grown[set as usize] = (group, larger);
        self.grown.push((u32::MAX, NO_USERS));
        larger
    }
}

/// The sets of all parts, each once, and by part the numbers of its sets in this list.
fn joined(parts: &[SetsOfPart]) -> (UseSets, Vec<Vec<u32>>) {
    let all = parts.iter().enumerate();
    let all = all.flat_map(|(part, sets)| sets.found.iter().map(move |set| (part, set)));
    let mut all: Vec<(usize, &FoundSet)> = all.collect();
    all.sort_unstable_by_key(|(_, set)| set.uses_before);
    let mut sets = UseSets::default();
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut numbers = vec![vec![NO_USERS]; parts.len()];
    for (part, set) in all {
        let numbers = &mut numbers[part];
        let smaller = numbers[set.smaller as usize];
        let number = known.entry((smaller, set.group));
        numbers.push(*number.or_insert_with(|| sets.push(smaller, set.group)));
    }
    (sets, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_are_the_same_in_any_number_of_parts(
            used in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u32..30, 0..12), 0..3),
                0..9,
            ),
            parts in 1usize..7,
        ) {
            let lists = Used {
                groups: used.len() as u32,
                lists: |group| used[group as usize].iter().map(Vec::as_slice).collect(),
            };
            let found = of_variables(30, &lists, parts, 1 << 20);
            prop_assert_eq!(&found, &of_variables(30, &lists, 1, 1 << 20));
            let (set_of, sets) = found.unwrap();
            for (variable, &set) in set_of.iter().enumerate() {
                let mut groups: Vec<u32> = sets.groups(set).collect();
                groups.reverse();
                let uses = |group: &u32| used[*group as usize].iter().flatten().any(|&used_variable| used_variable as usize == variable);
                let expected: Vec<u32> = (0..used.len() as u32).filter(uses).collect();
                prop_assert_eq!(groups, expected);
            }
            // Numbers are in the order of the first use, and no set is there twice.
            let nodes: Vec<_> = sets.iter().map(|(_, smaller, group)| (smaller, group)).collect();
            prop_assert!(nodes.iter().is_sorted_by_key(|node| node.1));
            let mut distinct = nodes.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), nodes.len());
            prop_assert!(sets.is_sound(used.len(), 1));
            let least = of_variables(30, &lists, parts, sets.len());
            prop_assert!(least.is_some());
            prop_assert!(of_variables(30, &lists, parts, sets.len() - 1).is_none());
        }
    }
}
