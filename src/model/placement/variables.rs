//! Finds the places (In, layers, Out) at which variables and code count.

use super::OperationPlace;
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets};
use super::used_places::{of_sets, places_of_groups, used_places};
use crate::model::{Label, Layering, Model, SetBytes};
use rustc_hash::FxHashMap;

/// The places at which the variables of each use set count.
pub(super) struct VariablePlaces {
    /// By use set: the places at which its variables count.
    pub(super) counted: Vec<PlaceSet>,
    /// By use set: whether it counts at several places only because an operation without a place of
    /// its own uses variables of all of them.
    pub(super) by_touch: Vec<bool>,
    /// By operation group: whether any of its operations has no place of its own, because it uses
    /// variables of several places or only copies from and to the host.
    pub(super) is_reaching: Vec<bool>,
    /// By operation group: the places of its operations.
    of_group: Vec<PlaceSet>,
}

impl VariablePlaces {
    /// Finds the places at which the variables of each use set (variables that the same operations
    /// use) count. These are the places of the operations that use the set. If no such operation
    /// has a place, the first rule that applies decides:
    ///
    /// 1. the layer in the variables' own name, or the place of the weight in their name;
    /// 2. the only place of all other variables of an operation that uses the set, or else of one
    ///    of its programs;
    /// 3. the places of the partner of the variables
    ///    ([`UseSets::partner`](crate::model::UseSets::partner));
    /// 4. all places whose variables the operations use;
    /// 5. every stage.
    ///
    /// A variable that rules 1 to 3 place helps to place others that it is used with, so these
    /// rules are applied twice.
    pub(super) fn new(
        model: &Model,
        layering: &Layering,
        operations: &[OperationPlace],
        bytes: &[SetBytes],
        sets: &mut PlaceSets,
    ) -> Self {
        let of_group = places_of_groups(model, operations.iter().map(|place| place.places), sets);
        let mut counted = of_sets(model, &of_group, sets);
        let mut is_reaching = vec![false; model.operation_groups.len()];
        for (operation, place) in model.operations.iter().zip(operations) {
            is_reaching[operation.group as usize] |= place.is_open();
        }
        let mut all_used = Vec::new();
        for _ in 0..2 {
            all_used = used_places(model, bytes, sets, &counted, &is_reaching);
            decide(model, layering, &is_reaching, &all_used, &mut counted, sets);
        }
        let all_used = of_sets(model, &all_used, sets);
        let mut by_touch = vec![false; counted.len()];
        for (set, counted) in counted.iter_mut().enumerate() {
            if *counted == NOWHERE {
                by_touch[set] = sets.places(all_used[set]).len() > 1;
                // Without any place, no operation or variable with a place is related to it.
                *counted = all_used[set].or(EVERYWHERE);
            }
        }
        Self {
            counted,
            by_touch,
            is_reaching,
            of_group,
        }
    }
}

/// Applies rules 1 to 3 of [`VariablePlaces::new`] once to the use sets without places in
/// `counted`. `is_reaching` says, by operation group, whether any of its operations has no place of
/// its own; `used` has, for such groups, all places of the variables that they use.
fn decide(
    model: &Model,
    layering: &Layering,
    is_reaching: &[bool],
    used: &[PlaceSet],
    counted: &mut [PlaceSet],
    sets: &mut PlaceSets,
) {
    let used_with = used_with(model, counted, is_reaching, used, sets);
    let named_after = named_after(model, counted, sets);
    for set in 1..counted.len() {
        if counted[set] != NOWHERE {
            continue;
        }
        let label = model.use_sets.label(set as u32) as usize;
        let named = layering.layer_in(&model.labels[label]);
        let partner = model.use_sets.partner(set as u32);
        let decided = [
            named.map_or(NOWHERE, |layer| sets.one(layer)),
            named_after[label],
            used_with[set],
            partner.map_or(NOWHERE, |partner| counted[partner as usize]),
        ]
        .into_iter()
        .find(|&places| places != NOWHERE);
        counted[set] = decided.unwrap_or(NOWHERE);
    }
}

/// Returns, by label, the places of the weight whose name is part of the label's name; [`NOWHERE`]
/// if there is none. PopART calls optimizer state `Accl1___weight`, and TensorFlow calls it
/// `weight/Adam`. `seeded` has, by use set, the places that are found so far.
fn named_after(model: &Model, seeded: &[PlaceSet], sets: &mut PlaceSets) -> Vec<PlaceSet> {
    let mut of_label = vec![NOWHERE; model.labels.len()];
    for (set, &places) in (0u32..).zip(seeded) {
        let known = &mut of_label[model.use_sets.label(set) as usize];
        *known = sets.union(*known, places);
    }
    let weights: FxHashMap<&str, PlaceSet> = model
        .labels
        .iter()
        .map(Label::weight_name)
        .zip(of_label)
        .filter(|&(name, places)| places != NOWHERE && !name.is_empty())
        .collect();
    let places = |label: &Label| {
        owners(label.weight_name())
            .find_map(|owner| weights.get(owner).copied())
            .unwrap_or(NOWHERE)
    };
    model.labels.iter().map(places).collect()
}

/// Returns the names that a weight may have if `name` is that of its optimizer state: all after a
/// `___`, or all before a `/`; longer ones first.
fn owners(name: &str) -> impl Iterator<Item = &str> {
    let marked = name.match_indices("___").map(|(at, _)| &name[at + 3..]);
    let nested = name.rmatch_indices('/').map(|(at, _)| &name[..at]);
    marked.chain(nested)
}

/// Returns, by use set, the place of the variables that it is used with in an operation without a
/// place of its own or, if these have several places, in one of its programs; [`NOWHERE`] if they
/// have no single place. `seeded` has, by use set, the places that are found so far; `is_reaching`
/// and `used` are as for [`decide`].
fn used_with(
    model: &Model,
    seeded: &[PlaceSet],
    is_reaching: &[bool],
    used: &[PlaceSet],
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let single = |group: usize| {
        let is_single = is_reaching[group] && sets.only(used[group]).is_some();
        if is_single { used[group] } else { NOWHERE }
    };
    let single: Vec<PlaceSet> = (0..used.len()).map(single).collect();
    let mut places = of_sets(model, &single, sets);
    let others = (0..used.len()).filter(|&group| is_reaching[group] && single[group] == NOWHERE);
    for cluster in others.flat_map(|group| &model.operation_groups[group].clusters) {
        let of_program = sets.used_places(cluster.sets.iter().map(|&set| seeded[set as usize]));
        if sets.only(of_program).is_some() {
            for &set in &cluster.sets {
                places[set as usize] = sets.union(places[set as usize], of_program);
            }
        }
    }
    places
}

/// Returns, by operation group, the places at which its code counts; and for a group with an
/// operation that has no place of its own, by cluster, the places at which the code of the cluster
/// counts (empty for other groups). `variables` has the places found before, `bytes` the bytes of
/// each use set. Code of such a group without a place counts in every stage, so that it is never
/// underestimated.
pub(super) fn code_places(
    model: &Model,
    variables: &VariablePlaces,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
) -> (Vec<PlaceSet>, Vec<Vec<PlaceSet>>) {
    let mut of_group = variables.of_group.clone();
    let mut of_cluster = vec![Vec::new(); of_group.len()];
    let is_reaching = &variables.is_reaching;
    let all = used_places(model, bytes, sets, &variables.counted, is_reaching);
    for (number, group) in model.operation_groups.iter().enumerate() {
        if !is_reaching[number] {
            continue;
        }
        let whole = sets.union(of_group[number], all[number]).or(EVERYWHERE);
        of_group[number] = whole;
        for cluster in &group.clusters {
            let used = cluster
                .sets
                .iter()
                .map(|&set| variables.counted[set as usize]);
            of_cluster[number].push(sets.used_places(used).or(whole));
        }
    }
    (of_group, of_cluster)
}
