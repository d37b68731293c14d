//! Places by layer only, for the classic model.

use super::place_sets::{NOWHERE, PlaceSet, PlaceSets};
use super::{OperationPlace, Placement, Positions, Reason, Rules};
use crate::model::{Layering, Model, NO_LAYER, UseSets};

/// Puts every operation into its layer, and every variable into the layers of its users. Operations
/// without a layer form a pseudo-layer, whose variables count only if layers use them too.
pub(super) fn classic(model: &Model, layering: &Layering) -> Placement {
    let mut sets = PlaceSets::default();
    let place = |&layer: &u32| OperationPlace {
        places: sets.one(layer),
        reason: match layer {
            NO_LAYER => Reason::Pseudo,
            _ => Reason::Layer,
        },
    };
    let operations: Vec<OperationPlace> = layering.layers.iter().map(place).collect();
    let places = operations.iter().map(|own| own.places);
    let of_group = places_of_groups(model, places, &mut sets);
    let named = of_named(model, layering, &mut sets);
    let counted = of_sets(&model.use_sets, &named, &mut sets);
    Placement {
        rules: Rules::Classic,
        positions: Positions::classic(layering),
        operations,
        ties: Vec::new(),
        sharing: Some(of_sets(&model.use_sets, &of_group, &mut sets)),
        of_cluster: vec![Vec::new(); of_group.len()],
        of_group,
        named_groups: named.iter().map(|&set| set != NOWHERE).collect(),
        named_sets: counted.iter().map(|&set| set != NOWHERE).collect(),
        counted,
        by_touch: vec![false; model.use_sets.len()],
        sets,
        apart: None,
    }
}

/// By operation group: the layers that its operations have by their names.
pub(super) fn of_named(model: &Model, layering: &Layering, sets: &mut PlaceSets) -> Vec<PlaceSet> {
    let place = |&layer: &u32| match layer {
        NO_LAYER => NOWHERE,
        _ => sets.one(layer),
    };
    let places: Vec<PlaceSet> = layering.layers.iter().map(place).collect();
    places_of_groups(model, places.into_iter(), sets)
}

/// By use set: the places of all its operation groups.
pub(super) fn of_sets(
    use_sets: &UseSets,
    of_group: &[PlaceSet],
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let mut of_set = vec![NOWHERE; use_sets.len()];
    for (set, smaller, group) in use_sets.iter() {
        of_set[set as usize] = sets.union(of_set[smaller as usize], of_group[group as usize]);
    }
    of_set
}

/// By operation group: the union of the places of its operations; `places` has those of each.
pub(super) fn places_of_groups(
    model: &Model,
    places: impl Iterator<Item = PlaceSet>,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let mut of_group = vec![Vec::new(); model.operation_groups.len()];
    for (operation, places) in model.operations.iter().zip(places) {
        of_group[operation.group as usize].push(places);
    }
    of_group.into_iter().map(|all| sets.union_of(all)).collect()
}
