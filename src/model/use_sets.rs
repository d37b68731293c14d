//! Finds the use set of each lowered variable, that is, the set of operation groups that use the
//! variable. Also finds the use sets of the variables of each compute set and memory region.

use super::{ascending, operations::UnnamedGroup};
use crate::{
    limits,
    message::{FileError, OVER_BOUND, unusable},
    parallel::filled,
    profile::{Profile, Program, VariableLists},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::{iter::successors, mem::replace};

/// All use sets. A use set is the set of operation groups that use a variable, together with the
/// variable's label (name of the tensor) and its partner, such as the weight of an optimizer's
/// moment ([`partner`](Self::partner)).
///
/// Set 0 has no operation groups. Any other set is stored as a smaller set plus one operation
/// group, whose index is above those of all groups of the smaller set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseSets {
    nodes: Vec<Node>,
}

/// A use set (the operation groups that use certain variables), stored as the index of a smaller
/// use set and one more operation group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Node {
    smaller: u32,
    group: u32,
    /// The label (name, tensor and kind) of the variables of the use set, as an index into
    /// [`Model::labels`](super::Model::labels).
    label: u32,
    /// The use set of the weight to which the variables belong, if they are an optimizer's moment
    /// or other state; otherwise [`NO_USERS`].
    partner: u32,
}

/// Index of the use set of variables that no operation uses. A use set is the set of operation
/// groups that use a variable.
pub const NO_USERS: u32 = 0;

const EMPTY: Node = Node {
    smaller: NO_USERS,
    group: u32::MAX,
    label: 0,
    partner: NO_USERS,
};

impl Default for UseSets {
    fn default() -> Self {
        Self { nodes: vec![EMPTY] }
    }
}

impl UseSets {
    /// Adds the use set that consists of the groups of the set `smaller` and of the operation group
    /// `group`, and returns its index. The new set has no label (the name of a tensor) and no
    /// partner (the weight of an optimizer's moment). The index of `group` must be above those of
    /// all groups of `smaller`.
    pub fn push(&mut self, smaller: u32, group: u32) -> u32 {
        self.nodes.push(Node {
            smaller,
            group,
            ..EMPTY
        });
        self.nodes.len() as u32 - 1
    }

    /// Adds a use set (the operation groups that use a variable) and returns its index. It has the
    /// same operation groups as `set`, but another label (the name of a tensor) and partner (such
    /// as the weight of an optimizer's moment).
    pub(super) fn push_alike(&mut self, set: u32, label: u32, partner: u32) -> u32 {
        let Node { smaller, group, .. } = self.nodes[set as usize];
        let added = self.push(smaller, group);
        self.mark(added, label, partner);
        added
    }

    pub(crate) fn mark(&mut self, set: u32, label: u32, partner: u32) {
        let node = &mut self.nodes[set as usize];
        (node.label, node.partner) = (label, partner);
    }

    /// Returns the label (name, tensor and kind) of variables, as an index into
    /// [`Model::labels`](super::Model::labels). `set` is the use set of the variables (the
    /// operation groups that use them).
    pub fn label(&self, set: u32) -> u32 {
        self.nodes[set as usize].label
    }

    /// Returns the use set of the partners of some variables; `None` if they have none. `set` is
    /// the use set of the variables (the operation groups that use them). The partner of an
    /// optimizer's moment, for example, is its weight. Both are used by the same compute set, in an
    /// operation that works on the whole model.
    pub fn partner(&self, set: u32) -> Option<u32> {
        Some(self.nodes[set as usize].partner).filter(|&partner| partner != NO_USERS)
    }

    /// Returns whether use sets that were read from a file are consistent. Set 0 must be empty.
    /// Each other set must extend an earlier set by an operation group with a higher index. Indices
    /// must be below `groups`, the number of operation groups, and `labels`, the number of labels.
    pub(crate) fn is_sound(&self, groups: usize, labels: usize) -> bool {
        let is_sound = |(set, node): (usize, &Node)| {
            let smaller = node.smaller as usize;
            smaller < set
                && (smaller == 0 || self.nodes[smaller].group < node.group)
                && (node.group as usize) < groups
                && (node.label as usize) < labels
                && (node.partner as usize) < self.nodes.len()
        };
        self.nodes.first() == Some(&EMPTY)
            && labels > 0
            && self.nodes.iter().enumerate().skip(1).all(is_sound)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Iterates over all use sets (sets of operation groups) except the empty one, smaller sets
    /// before the sets that extend them. Each item is a set, the smaller set that it extends, and
    /// the operation group that it adds.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, usize, usize)> {
        self.nodes
            .iter()
            .enumerate()
            .skip(1)
            .map(|(set, node)| (set, node.smaller as usize, node.group as usize))
    }

    /// Computes a value for each use set. The empty set has the value `start`. For any other set,
    /// `grow` computes the value from that of the smaller set that it extends and from the
    /// operation group that it adds.
    pub(crate) fn fold<T: Copy>(&self, start: T, mut grow: impl FnMut(T, usize) -> T) -> Vec<T> {
        let mut of_set = vec![start; self.len()];
        for (set, smaller, group) in self.iter() {
            of_set[set] = grow(of_set[smaller], group);
        }
        of_set
    }

    /// Iterates over the operation groups (operations with one debug context) that use the
    /// variables of the use set `set`, in descending order of their indices.
    pub fn groups(&self, set: u32) -> impl Iterator<Item = usize> {
        let node = |set: u32| (set != NO_USERS).then(|| self.nodes[set as usize]);
        successors(node(set), move |larger| node(larger.smaller)).map(|node| node.group as usize)
    }
}

/// The use set (the operation groups that use a variable) of each variable of the profile, and all
/// use sets.
pub type Users = (Vec<u32>, UseSets);

/// Finds the use set (the operation groups that use a variable) of each variable of the profile.
/// Operation groups are added one after the other to the sets of their variables, and use sets are
/// numbered in the order in which they arise. [`refine`](super::refine::refine) later divides the
/// use sets by the names of tensors and, for optimizer state, by the weights that it belongs to.
pub fn find(profile: &Profile, groups: &[UnnamedGroup]) -> Result<Users, FileError> {
    let count = profile.variables.len();
    let max = (limits::SETS.of(count), limits::USES.of(count));
    let lists = |group: u32| profile.variables_of(&groups[group as usize].programs);
    of_variables(count, groups.len() as u32, lists, max)
}

/// Finds the use sets (the operation groups that use each variable) of `count` variables. `lists`
/// returns the lists of variables that an operation group uses.
///
/// # Errors
/// If there are more than `max_sets` use sets, or all lists together have more than `max_uses`
/// entries.
fn of_variables<'a>(
    count: usize,
    groups: u32,
    lists: impl Fn(u32) -> Vec<&'a [u32]>,
    (max_sets, max_uses): (usize, usize),
) -> Result<Users, FileError> {
    let mut set_of = filled(NO_USERS, count);
    let mut sets = UseSets::default();
    // One entry per use set (the operation groups that use a variable): the latest operation group
    // that uses some of its variables, and the use set to which these variables move. That is the
    // set with this group added, or the same set if it has the group. Groups are added one after
    // the other, so no earlier group is needed.
    let mut grown = vec![(u32::MAX, NO_USERS)];
    let mut uses = 0;
    for group in 0..groups {
        for list in lists(group) {
            uses += list.len();
            if uses > max_uses {
                return unusable(format!(
                    "table `compute_sets` or `exchange_regions`: operations use the {count} \
                     variables more than {max_uses} times, more often than in any real model; \
                     {OVER_BOUND}"
                ));
            }
            for &variable in list {
                let set = &mut set_of[variable as usize];
                let (added, mut larger) = grown[*set as usize];
                if added != group {
                    larger = sets.push(*set, group);
                    grown[*set as usize] = (group, larger);
                    grown.push((group, larger));
                }
                *set = larger;
            }
        }
        if sets.len() > max_sets {
            return unusable(format!(
                "table `compute_sets` or `exchange_regions`: the {count} variables are used by \
                 more than {max_sets} different groups of operations, more than in any real \
                 model; {OVER_BOUND}"
            ));
        }
    }
    Ok((set_of, sets))
}

/// The use sets of the variables of each compute set, and of each memory region (variables that an
/// exchange or copy reads or writes). A use set is the set of operation groups that use a variable.
/// These lists are some thousand times shorter than the lists of the variables themselves.
pub struct UseSetIndex {
    /// One entry per compute set in [`Profile::compute_set_variables`]: the use sets (the operation
    /// groups that use each variable) of its variables, ascending.
    of_compute_sets: Vec<Box<[u32]>>,
    /// One entry per memory region in [`Profile::region_variables`]: the use sets (the operation
    /// groups that use each variable) of its variables, ascending.
    of_regions: Vec<Box<[u32]>>,
}

impl UseSetIndex {
    pub fn new(profile: &Profile, set_of: &[u32], sets: usize) -> Self {
        let mut index = Self {
            of_compute_sets: vec![Box::default(); profile.compute_set_variables.len()],
            of_regions: vec![Box::default(); profile.region_variables.len()],
        };
        index.update(profile, set_of, sets, |_| true);
        index
    }

    /// Makes new lists of use sets (the operation groups that use a variable) for compute sets and
    /// memory regions, after variables got other use sets. A list is replaced if `is_stale` returns
    /// true for the old list. `set_of` has the present use set of each variable, and `sets` is the
    /// number of use sets.
    pub fn update(
        &mut self,
        profile: &Profile,
        set_of: &[u32],
        sets: usize,
        is_stale: impl Fn(&[u32]) -> bool + Sync,
    ) {
        let update = |lists: &VariableLists, used: &mut [Box<[u32]>]| {
            // Many variables of a compute set or memory region have the same use set (the operation
            // groups that use a variable), mostly that of the variable before. A use set is listed
            // only once: `seen` marks those in the list, and is cleared for the next list.
            let update_list = |seen: &mut Vec<bool>, (list, used): (usize, &mut Box<[u32]>)| {
                let members = lists.members(list as u32).iter();
                let all = members.map(|&variable| set_of[variable as usize]);
                let mut last = u32::MAX;
                let is_new = |&set: &u32| {
                    replace(&mut last, set) != set && !replace(&mut seen[set as usize], true)
                };
                *used = ascending(all.filter(is_new));
                used.iter().for_each(|&set| seen[set as usize] = false);
            };
            used.par_iter_mut()
                .enumerate()
                .filter(|(_, used)| is_stale(used))
                .for_each_init(|| vec![false; sets], update_list);
        };
        update(&profile.compute_set_variables, &mut self.of_compute_sets);
        update(&profile.region_variables, &mut self.of_regions);
    }

    /// Returns the use sets (the operation groups that use each variable) of the variables that a
    /// program uses, ascending, each with the role of its variables in the program, such as
    /// destination of an exchange. Of several roles, the first in the order of [`Role`] is taken.
    pub fn roles(&self, profile: &Profile, program: u32) -> Box<[(u32, Role)]> {
        let Program { kind, regions, .. } = &profile.programs.all[program as usize];
        let mut sets: Vec<(u32, Role)> = (profile.programs.compute_set(program))
            .and_then(|set| profile.compute_set_variables.position(set.id))
            .iter()
            .flat_map(|&list| &self.of_compute_sets[list as usize])
            .map(|&set| (set, Role::Computes))
            .collect();
        for (number, &id) in (1..).zip(regions.iter()) {
            let role = match kind {
                kind if kind.is_stream_copy() => Role::Host,
                kind if kind.is_exchange() && number == regions.len() => Role::Destination,
                _ => Role::Reads,
            };
            if let Some(list) = profile.region_variables.position(id) {
                let list = &self.of_regions[list as usize];
                sets.extend(list.iter().map(|&set| (set, role)));
            }
        }
        sets.sort_unstable();
        sets.dedup_by_key(|set| set.0);
        sets.into()
    }

    pub fn of_program(&self, profile: &Profile, program: u32) -> Vec<u32> {
        let roles = self.roles(profile, program);
        roles.iter().map(|&(set, _)| set).collect()
    }
}

/// How a program uses a variable, which shows whether the program may write it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Vertices of the program read or write the variable.
    Computes,
    /// An exchange writes the variable: of the memory regions that an exchange names, the last one
    /// is its destination.
    Destination,
    /// An exchange reads the variable, or a program of the type `CodeCopy` copies code to it.
    Reads,
    /// The program copies the variable from or to the host.
    Host,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    proptest! {
        #[test]
        fn each_variable_has_the_set_of_its_users(
            used in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u32..30, 0..12), 0..3),
                0..9,
            ),
        ) {
            let lists = |group| used[group as usize].iter().map(Vec::as_slice).collect();
            let uses = used.iter().flatten().map(Vec::len).sum();
            let of = |max_sets, max_uses| of_variables(30, used.len() as u32, lists, (max_sets, max_uses));
            let (set_of, sets) = of(1 << 20, uses).unwrap();
            for (variable, &set) in (0u32..).zip(&set_of) {
                let mut groups: Vec<usize> = sets.groups(set).collect();
                groups.reverse();
                let uses = |group: &usize| used[*group].iter().flatten().any(|&v| v == variable);
                let expected: Vec<usize> = (0..used.len()).filter(uses).collect();
                prop_assert_eq!(groups, expected);
            }
            // Use sets must be numbered in the order of their last operation groups, and no two use
            // sets may consist of the same operation groups.
            let nodes: Vec<_> = sets.iter().map(|(_, smaller, group)| (smaller, group)).collect();
            prop_assert!(nodes.iter().is_sorted_by_key(|node| node.1));
            let mut distinct = nodes.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), nodes.len());
            prop_assert!(sets.is_sound(used.len(), 1));
            prop_assert!(of(sets.len(), uses).is_ok());
            prop_assert!(used.is_empty() || of(sets.len() - 1, uses).is_err());
            prop_assert!(uses == 0 || of(sets.len(), uses - 1).is_err());
        }
    }

    /// Returns the use sets (the operation groups that use a variable) of the variables of each
    /// program. They are found directly from the profile's lists of variables, so that a test can
    /// compare them with those in [`UseSetIndex`].
    fn plain(profile: &Profile, set_of: &[u32]) -> Vec<Vec<u32>> {
        let of_program = |program: u32| -> Vec<u32> {
            let used = profile.variables_of(&[program]).into_iter().flatten();
            let sets: BTreeSet<u32> = used.map(|&v| set_of[v as usize]).collect();
            sets.into_iter().collect()
        };
        let programs = 0..profile.programs.all.len() as u32;
        programs.map(of_program).collect()
    }

    fn indexed(profile: &Profile, index: &UseSetIndex) -> Vec<Vec<u32>> {
        let programs = 0..profile.programs.all.len() as u32;
        let sets = programs.map(|program| index.of_program(profile, program));
        sets.collect()
    }

    #[test]
    fn programs_have_the_sets_of_their_variables() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/popart-bert-inference");
        let profile = Profile::read(&folder.join("profile.pop")).unwrap();
        let count = profile.variables.len() as u32;
        let set_of: Vec<u32> = (0..count).map(|variable| variable / 2 % 7).collect();
        let index = UseSetIndex::new(&profile, &set_of, 7);
        let expected = plain(&profile, &set_of);
        assert_eq!(indexed(&profile, &index), expected);
        assert!(expected.iter().any(Vec::is_empty) && expected.iter().any(|list| list.len() == 7));
    }
}
