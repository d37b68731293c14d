//! Finds the places (In, layers, Out) of variables and of code, and combines the places of
//! operations by operation group and by use set (variables that the same groups use).

use super::{EVERYWHERE, NOWHERE, OperationPlace, PlaceSet, PlaceSets, Reason, TooManyPlaces};
use crate::{
    limits,
    model::{Label, Layering, Model, Operation, Pass, ProgramCluster, SetBytes},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The places (In, layers, Out) of the variables of each use set (the operation groups that use a
/// variable), and the data that is needed to find them.
pub struct VariablePlaces<'a> {
    model: &'a Model,
    layering: &'a Layering,
    bytes: &'a [SetBytes],
    /// One entry per use set (variables that the same operations use): the places of its variables
    /// (In, layers, Out); [`NOWHERE`] if they are not found yet.
    pub counted: Vec<PlaceSet>,
    /// One entry per use set (variables that the same operations use): whether its variables are at
    /// several places (In, layers, Out) only because of an operation that works on variables of
    /// several places, such as a norm of all gradients.
    pub by_touch: Vec<bool>,
    /// One entry per operation group (operations with one debug context): whether any of its
    /// operations has no place of its own (In, a layer or Out). The programs of such an operation
    /// are placed one by one, by the variables that they use ([`OperationPlace::is_open`]).
    is_reaching: Vec<bool>,
    of_group: Vec<PlaceSet>,
}

impl<'a> VariablePlaces<'a> {
    /// Finds the places (In, layers, Out) of the variables of each use set (variables that the same
    /// operations use). These are the places of the operations that use them. If no such operation
    /// has a place, the first of these rules that gives a place applies:
    ///
    /// 1. the layer that the name of the variables contains, or the places of the weight whose name
    ///    it contains;
    /// 2. the place of all other variables of an operation that uses them, if it is a single place;
    ///    otherwise, the single place of all other variables of one of its programs;
    /// 3. the places of the partner of the variables, such as the weight of an optimizer's moment
    ///    ([`UseSets::partner`](crate::model::UseSets::partner));
    /// 4. all places of the other variables that the operations use;
    /// 5. every stage.
    ///
    /// Rules 1 to 3 are applied twice, since a variable placed in the first round may help to place
    /// others in the second. New place sets are stored in `sets`.
    pub fn new(
        model: &'a Model,
        layering: &'a Layering,
        operations: &[OperationPlace],
        bytes: &'a [SetBytes],
        sets: &mut PlaceSets,
    ) -> Self {
        let (of_group, counted) = of_users(model, operations, sets, |_, _| true);
        let mut found = Self {
            model,
            layering,
            bytes,
            counted,
            by_touch: vec![false; model.use_sets.len()],
            is_reaching: model.groups_with(|number, _| operations[number].is_open()),
            of_group,
        };
        let mut all_used = Vec::new();
        for _ in 0..2 {
            all_used = found.used_places(sets);
            found.decide(&all_used, sets);
        }
        let all_used = of_sets(model, &all_used, sets);
        for (set, counted) in found.counted.iter_mut().enumerate() {
            if *counted == NOWHERE {
                found.by_touch[set] = sets.places(all_used[set]).len() > 1;
                // No earlier rule gives these variables a place. So they are at all places (In,
                // layers, Out) of other variables that the same operations use. If there are none,
                // they are in every stage.
                *counted = all_used[set].or(EVERYWHERE);
            }
        }
        found
    }

    /// Returns one entry per operation group (operations with one debug context). If the group has
    /// no place of its own (In, a layer or Out), the entry has the places of the variables that it
    /// uses; otherwise it is [`NOWHERE`]. Single numbers, such as the scale of all gradients, count
    /// only if no larger variable has a place. If this takes more work than for any real model
    /// ([`limits::LOOKS`], [`limits::PAIRS`]), all entries are [`EVERYWHERE`] and
    /// [`PlaceSets::check`] fails.
    fn used_places(&self, sets: &mut PlaceSets) -> Vec<PlaceSet> {
        let number = self.model.min_tensor_bytes();
        let groups = self.is_reaching.len();
        let mut used: Vec<[FxHashSet<PlaceSet>; 2]> = vec![Default::default(); groups];
        let (mut left, mut pairs_left) = (limits::LOOKS, limits::PAIRS);
        for (set, bytes) in (0u32..).zip(self.bytes).filter(|(_, bytes)| bytes.all > 0) {
            let is_number = usize::from(bytes.all < number);
            let places = self.counted[set as usize];
            for group in self.model.use_sets.groups(set) {
                let is_new = self.is_reaching[group] && used[group][is_number].insert(places);
                if left == 0 || pairs_left == 0 {
                    sets.give_up();
                    return vec![EVERYWHERE; groups];
                }
                left -= 1;
                pairs_left -= usize::from(is_new);
            }
        }
        used.into_iter()
            .map(|[used, numbers]| match sets.used_places(used) {
                NOWHERE => sets.used_places(numbers),
                places => places,
            })
            .collect()
    }

    /// Finds places (In, layers, Out) for use sets (variables that the same operations use) that
    /// have none yet: by the names of their variables, by other variables that are used with them,
    /// or by related variables, such as the weight of an optimizer's moment (rules 1 to 3 of
    /// [`new`](Self::new)). `used` is the result of [`used_places`](Self::used_places).
    fn decide(&mut self, used: &[PlaceSet], sets: &mut PlaceSets) {
        let used_with = self.used_with(used, sets);
        let named_after = self.named_after(sets);
        let use_sets = &self.model.use_sets;
        for (set, &used_with) in used_with.iter().enumerate().skip(1) {
            if self.counted[set] != NOWHERE {
                continue;
            }
            let label = use_sets.label(set as u32) as usize;
            let named = self.layering.layer_in(&self.model.labels[label]);
            let partner = use_sets.partner(set as u32);
            self.counted[set] = named
                .map_or(NOWHERE, |layer| sets.one(layer))
                .or(named_after[label])
                .or(used_with)
                .or(partner.map_or(NOWHERE, |partner| self.counted[partner as usize]));
        }
    }

    /// Returns one entry per label (the name of a tensor): the places (In, layers, Out) that use
    /// the weight whose name the label contains, or [`NOWHERE`] if there is none. The name of
    /// optimizer state contains that of its weight: `Accl1___weight` in PopART, `weight/Adam` in
    /// TensorFlow.
    fn named_after(&self, sets: &mut PlaceSets) -> Vec<PlaceSet> {
        let labels = &self.model.labels;
        let mut of_label = vec![NOWHERE; labels.len()];
        for (set, &places) in (0u32..).zip(&self.counted) {
            let known = &mut of_label[self.model.use_sets.label(set) as usize];
            *known = sets.union(*known, places);
        }
        let weights: FxHashMap<&str, PlaceSet> = labels
            .iter()
            .map(Label::weight_name)
            .zip(of_label)
            .filter(|&(name, places)| places != NOWHERE && !name.is_empty())
            .collect();
        labels
            .iter()
            .map(|label| {
                owners(label.weight_name())
                    .find_map(|owner| weights.get(owner).copied())
                    .unwrap_or(NOWHERE)
            })
            .collect()
    }

    /// Places variables by other variables that are used with them (rule 2 of [`new`](Self::new)).
    /// Returns one entry per use set (variables that the same operations use): the places (In,
    /// layers, Out) of its variables by this rule, or [`NOWHERE`] if it gives none. `used` is the
    /// result of [`used_places`](Self::used_places).
    fn used_with(&self, used: &[PlaceSet], sets: &mut PlaceSets) -> Vec<PlaceSet> {
        let single = |set: PlaceSet| {
            if sets.only(set).is_some() {
                set
            } else {
                NOWHERE
            }
        };
        let single: Vec<PlaceSet> = used.iter().copied().map(single).collect();
        let mut places = of_sets(self.model, &single, sets);
        for (number, group) in self.model.operation_groups.iter().enumerate() {
            if !self.is_reaching[number] || single[number] != NOWHERE {
                continue;
            }
            for cluster in &group.clusters {
                let of_program = self.of_cluster(cluster, sets);
                if sets.only(of_program).is_some() {
                    for &set in &cluster.sets {
                        places[set as usize] = sets.union(places[set as usize], of_program);
                    }
                }
            }
        }
        places
    }

    fn of_cluster(&self, cluster: &ProgramCluster, sets: &mut PlaceSets) -> PlaceSet {
        sets.used_places(cluster.sets.iter().map(|&set| self.counted[set as usize]))
    }

    /// Returns two lists with one entry per operation group (operations with one debug context).
    /// The first has the places (In, layers, Out) of the group's code. The second has the places of
    /// the code of each cluster of the group (programs that use the same variables); empty if the
    /// group has a place of its own. Code for which no place is found is in every stage, so that no
    /// stage is underestimated.
    pub fn of_code(&self, sets: &mut PlaceSets) -> (Vec<PlaceSet>, Vec<Vec<PlaceSet>>) {
        let mut of_group = self.of_group.clone();
        let mut of_cluster = vec![Vec::new(); of_group.len()];
        let all = self.used_places(sets);
        for (number, group) in self.model.operation_groups.iter().enumerate() {
            if self.is_reaching[number] {
                let whole = sets.union(of_group[number], all[number]).or(EVERYWHERE);
                of_group[number] = whole;
                for cluster in &group.clusters {
                    of_cluster[number].push(self.of_cluster(cluster, sets).or(whole));
                }
            }
        }
        (of_group, of_cluster)
    }
}

/// Returns the names of weights that the name of optimizer state may contain, in the order in which
/// they are tried: first `w` for `Accl1___w`, then `a/w` and `a` for `a/w/Adam`.
fn owners(name: &str) -> impl Iterator<Item = &str> {
    let marked = name.match_indices("___").map(|(at, _)| &name[at + 3..]);
    let nested = name.rmatch_indices('/').map(|(at, _)| &name[..at]);
    marked.chain(nested)
}

/// Returns the places (In, layers, Out) of each use set (variables that the same operation groups
/// use): the union of the places of its groups, which `of_group` has.
fn of_sets(model: &Model, of_group: &[PlaceSet], sets: &mut PlaceSets) -> Vec<PlaceSet> {
    model
        .use_sets
        .fold(NOWHERE, |places, group| sets.union(places, of_group[group]))
}

/// Returns two lists of places (In, layers, Out). The first has the places of each operation group
/// (operations with one debug context): the union of the places of its operations for which
/// `is_wanted` is true. The second has the places of each use set (variables that the same
/// operations use): the union of the places of its groups. `is_wanted` is called with an operation
/// and the reason for its places.
pub fn of_users(
    model: &Model,
    operations: &[OperationPlace],
    sets: &mut PlaceSets,
    is_wanted: impl Fn(&Operation, Reason) -> bool,
) -> (Vec<PlaceSet>, Vec<PlaceSet>) {
    let mut places = vec![Vec::new(); model.operation_groups.len()];
    for (operation, own) in model.operations.iter().zip(operations) {
        if is_wanted(operation, own.reason) {
            places[operation.group as usize].push(own.places);
        }
    }
    let of_group: Vec<_> = places.into_iter().map(|all| sets.union_of(all)).collect();
    let of_set = of_sets(model, &of_group, sets);
    (of_group, of_set)
}

/// Returns one entry per operation group (operations with one debug context): whether no other
/// group computes with any variable of the group. Such a group takes no part in the computation of
/// the model, so it is taken to be one that the compiler added.
pub fn isolated(model: &Model) -> Vec<bool> {
    let computes = |group: usize| model.operation_groups[group].computes();
    // One entry per use set (variables that the same operation groups use): how many groups of the
    // set run vertices; 2 means two or more. A set is stored as a smaller set plus one group. The
    // loop goes from larger sets to smaller ones. It decides about the added group by the number of
    // the set, and passes the number on to the smaller set, where it decides about the other groups
    // too.
    let mut most = model.users_by_set(computes);
    let mut isolated = vec![true; model.operation_groups.len()];
    for (set, smaller, group) in model.use_sets.iter().rev() {
        let users = most[set];
        isolated[group] &= users <= u8::from(computes(group));
        most[smaller] = most[smaller].max(users);
    }
    isolated
}

/// One entry per use set (variables that the same operations use): the places (In, layers, Out) of
/// these operations, separately for the forward pass and all later passes. Copies from or to the
/// host, and operations without a place of their own, are left out.
#[derive(Debug, Clone)]
pub struct PassPlaces {
    /// The distinct sets of places (In, layers, Out), to which the fields `forward` and `backward`
    /// refer by index. Out (the operations after the last layer) is a place of its own here, even
    /// if it shares a position with In.
    pub sets: PlaceSets,
    /// One entry per use set (variables that the same operations use): the places (In, layers, Out)
    /// that use its variables in the forward pass.
    pub forward: Vec<PlaceSet>,
    /// One entry per use set (variables that the same operations use): the places (In, layers, Out)
    /// that use its variables in the backward pass or in an update.
    pub backward: Vec<PlaceSet>,
}

impl PassPlaces {
    /// Finds, for each use set (variables that the same operations use), the places (In, layers,
    /// Out) whose operations use its variables in the forward pass, and those that use them later.
    /// The places in `operations` are indices into `sets`.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub(super) fn new(
        model: &Model,
        operations: &[OperationPlace],
        mut sets: PlaceSets,
    ) -> Result<Self, TooManyPlaces> {
        let mut in_pass = |is_wanted: fn(Pass) -> bool| {
            let (_, of_set) = of_users(model, operations, &mut sets, |operation, reason| {
                let streams = model.operation_groups[operation.group as usize].only_streams();
                reason.is_own() && !streams && is_wanted(operation.pass)
            });
            of_set
        };
        let forward = in_pass(Pass::is_forward);
        let backward = in_pass(|pass| pass != Pass::Forward);
        sets.check()?;
        Ok(Self {
            sets,
            forward,
            backward,
        })
    }

    /// Returns the places (In, layers, Out; ascending) that use the variables of the use set `set`
    /// (variables that the same operations use): first the places in the forward pass, then those
    /// in the backward pass or an update.
    pub fn places(&self, set: u32) -> (&[u32], &[u32]) {
        let places = |of_set: &[PlaceSet]| self.sets.places(of_set[set as usize]);
        (places(&self.forward), places(&self.backward))
    }
}
