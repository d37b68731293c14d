//! Finds the places of operation groups, of the variables that they use, and of the groups that use
//! each use set.

use super::OperationPlace;
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use crate::limits;
use crate::model::operations::NUMBER_BYTES;
use crate::model::{Layering, Model, NO_LAYER, Pass, SetBytes};
use rustc_hash::FxHashSet;

/// Returns, by operation group, the set of layers that `layering` gives to its operations;
/// [`NOWHERE`] without any. Stores new sets in `sets`.
pub(super) fn layers_of_groups(
    model: &Model,
    layering: &Layering,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let place = |&layer: &u32| match layer {
        NO_LAYER => NOWHERE,
        _ => sets.one(layer),
    };
    let places: Vec<PlaceSet> = layering.layers.iter().map(place).collect();
    places_of_groups(model, places, sets)
}

/// Returns, by use set, the union of the places of the operation groups that use it. `of_group` has
/// the places of each group; new sets are stored in `sets`.
pub(super) fn of_sets(model: &Model, of_group: &[PlaceSet], sets: &mut PlaceSets) -> Vec<PlaceSet> {
    let union = |places, group| sets.union(places, of_group[group as usize]);
    model.use_sets.fold(NOWHERE, union)
}

/// Returns, by operation group, the union of the places of its operations. `places` has the places
/// of each operation of the model; new sets are stored in `sets`.
pub(super) fn places_of_groups(
    model: &Model,
    places: impl IntoIterator<Item = PlaceSet>,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let mut of_group = vec![Vec::new(); model.operation_groups.len()];
    for (operation, places) in model.operations.iter().zip(places) {
        of_group[operation.group as usize].push(places);
    }
    of_group.into_iter().map(|all| sets.union_of(all)).collect()
}

/// Returns, by operation group, whether no other group computes with any variable that it uses.
/// Then it is not part of the model: the compiler made it for the machine that runs the model.
pub(super) fn isolated(model: &Model) -> Vec<bool> {
    let computes = |group: usize| model.operation_groups[group].computes();
    // The maximum over a set and all sets that extend it.
    let mut most = model.users_by_set(computes);
    let mut isolated = vec![true; model.operation_groups.len()];
    for (set, smaller, group) in model.use_sets.iter().rev() {
        let users = most[set as usize];
        isolated[group as usize] &= users <= u8::from(computes(group as usize));
        most[smaller as usize] = most[smaller as usize].max(users);
    }
    isolated
}

/// Returns, by operation group, the places of the variables that it uses; [`NOWHERE`] for groups
/// without `is_wanted`. `of_set` has the places, and `bytes` the bytes, of each use set. A number,
/// such as the scale of all gradients, counts only if larger variables give no place. If there are
/// more places than in any real model, all groups get [`EVERYWHERE`] and [`PlaceSets::check`]
/// fails.
pub(super) fn used_places(
    model: &Model,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
    of_set: &[PlaceSet],
    is_wanted: &[bool],
) -> Vec<PlaceSet> {
    let number = NUMBER_BYTES * u64::from(model.target.num_tiles);
    let mut used: Vec<[FxHashSet<PlaceSet>; 2]> = vec![Default::default(); is_wanted.len()];
    let (mut left, mut pairs_left) = (limits::LOOKS, limits::PAIRS);
    for (set, bytes) in (0u32..).zip(bytes).filter(|(_, bytes)| bytes.all > 0) {
        let is_number = usize::from(bytes.all < number);
        for group in model.use_sets.groups(set).map(|group| group as usize) {
            let is_new = is_wanted[group] && used[group][is_number].insert(of_set[set as usize]);
            if left == 0 || pairs_left == 0 {
                sets.give_up();
                return vec![EVERYWHERE; is_wanted.len()];
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

/// By use set: the places of the operations that use its variables, separately for the forward pass
/// and all later passes. Only operations with a place of their own count, without copies from or to
/// the host.
#[derive(Debug, Clone)]
pub struct PassPlaces {
    /// The place sets to which the other fields refer. Out is a separate place after the last
    /// layer, even if it shares a position with In.
    pub sets: PlaceSets,
    /// By use set: the places that use its variables in the forward pass.
    pub forward: Vec<PlaceSet>,
    /// By use set: the places that use its variables in the backward pass or in an update.
    pub backward: Vec<PlaceSet>,
}

impl PassPlaces {
    /// Unites the places of all operations by use set and pass. `operations` has the places of each
    /// operation, as sets of `sets`.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub(super) fn new(
        model: &Model,
        operations: &[OperationPlace],
        mut sets: PlaceSets,
    ) -> Result<Self, TooManyPlaces> {
        let none = || vec![NOWHERE; model.operation_groups.len()];
        let (mut forward, mut backward) = (none(), none());
        for (operation, place) in model.operations.iter().zip(operations) {
            let group = operation.group as usize;
            if !place.reason.is_own() || model.operation_groups[group].only_streams() {
                continue;
            }
            if matches!(operation.pass, Pass::Forward | Pass::Both) {
                forward[group] = sets.union(forward[group], place.places);
            }
            if operation.pass != Pass::Forward {
                backward[group] = sets.union(backward[group], place.places);
            }
        }
        let forward = of_sets(model, &forward, &mut sets);
        let backward = of_sets(model, &backward, &mut sets);
        sets.check()?;
        Ok(Self {
            sets,
            forward,
            backward,
        })
    }

    /// Returns the places that use the variables of a use set, ascending: in the forward pass
    /// (first) and in the backward pass or an update (second).
    pub fn places(&self, set: u32) -> (&[u32], &[u32]) {
        let places = |of_set: &[PlaceSet]| self.sets.places(of_set[set as usize]);
        (places(&self.forward), places(&self.backward))
    }
}
