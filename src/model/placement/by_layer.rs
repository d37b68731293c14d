//! Places by layer alone: the classic model, and the full one where operations
//! without a layer are one pseudo-layer or left out.

use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets};
use super::{OperationPlace, Placement, Positions, Reason, Rules};
use crate::model::{Layering, Model, NO_LAYER, UseSets};

/// All operations count, those without a layer as a pseudo-layer whose
/// variables are only counted with those of layers.
pub(super) fn classic(model: &Model, layering: &Layering) -> Placement {
    let mut placement = by_layer(model, layering, true);
    let sets = &mut placement.sets;
    let named = of_named(model, layering, sets);
    let counted = of_sets(&model.use_sets, &named, sets);
    Placement {
        rules: Rules::Classic,
        sharing: Some(std::mem::replace(&mut placement.counted, counted)),
        ..placement
    }
}

/// The full model with all operations without a layer in one place, or left
/// out.
///
/// A variable belongs to the layers that use it by name and to those whose
/// operations compute with it; only without any, to those that move it.
/// Otherwise the upload of all weights would put every one of them into one
/// layer more.
pub(super) fn full(model: &Model, layering: &Layering, with_layerless: bool) -> Placement {
    let mut placement = by_layer(model, layering, with_layerless);
    let is_computing = |operation: usize| {
        let group = model.operations[operation].group as usize;
        model.operation_groups[group].computes()
    };
    let seeded = |operation: usize| {
        let layer = layering.layers[operation];
        let counts = layer != NO_LAYER || (with_layerless && is_computing(operation));
        counts.then_some(layer)
    };
    let sets = &mut placement.sets;
    let seeded = of_groups(model, seeded, sets);
    let seeded = of_sets(&model.use_sets, &seeded, sets);
    let both = seeded.into_iter().zip(placement.counted);
    Placement {
        counted: [EVERYWHERE]
            .into_iter()
            .chain(
                both.skip(1)
                    .map(|(seeded, any)| if seeded == NOWHERE { any } else { seeded }),
            )
            .collect(),
        ..placement
    }
}

/// Every operation in its layer, and every variable in the layers of those
/// that use it.
fn by_layer(model: &Model, layering: &Layering, with_layerless: bool) -> Placement {
    let mut sets = PlaceSets::new(layering.names.len() as u32);
    let place = |operation: usize| {
        let layer = layering.layers[operation];
        (layer != NO_LAYER || with_layerless).then_some(layer)
    };
    let mut operations = Vec::with_capacity(model.operations.len());
    for (operation, &layer) in layering.layers.iter().enumerate() {
        let place = place(operation);
        operations.push(OperationPlace {
            places: place.map_or(NOWHERE, |place| sets.one(place)),
            reason: match (layer, place) {
                (NO_LAYER, None) => Reason::Ignored,
                (NO_LAYER, _) => Reason::Pseudo,
                _ => Reason::Layer,
            },
        });
    }
    let places = operations.iter().map(|own| own.places);
    let of_group = places_of_groups(model, places, &mut sets);
    let named = of_named(model, layering, &mut sets);
    let named_sets = of_sets(&model.use_sets, &named, &mut sets);
    Placement {
        rules: Rules::Full,
        positions: Positions::classic(layering),
        operations,
        ties: Vec::new(),
        counted: of_sets(&model.use_sets, &of_group, &mut sets),
        sharing: None,
        of_piece: vec![Vec::new(); of_group.len()],
        of_group,
        named_groups: named.iter().map(|&set| set != NOWHERE).collect(),
        named_sets: named_sets.iter().map(|&set| set != NOWHERE).collect(),
        by_touch: vec![false; model.use_sets.len()],
        sets,
        apart: None,
    }
}

/// By operation group: the layers that its operations have by their names.
pub(super) fn of_named(model: &Model, layering: &Layering, sets: &mut PlaceSets) -> Vec<PlaceSet> {
    let named = |operation: usize| Some(layering.layers[operation]).filter(|&l| l != NO_LAYER);
    of_groups(model, named, sets)
}

/// By operation group: the places that `place` gives its operations.
fn of_groups(
    model: &Model,
    place: impl Fn(usize) -> Option<u32>,
    sets: &mut PlaceSets,
) -> Vec<PlaceSet> {
    let one = |operation| place(operation).map_or(NOWHERE, |place| sets.one(place));
    let places: Vec<PlaceSet> = (0..model.operations.len()).map(one).collect();
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

/// By operation group: the places of its operations, of which `places` has those of each.
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
