//! Where code and vertex state count.

use super::OperationPlace;
use super::assign::of_groups;
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::touches::{SetBytes, Touches};
use super::variables::VariablePlaces;
use crate::model::Model;

/// By operation group where its code counts, and where that of each of its
/// pieces does, if it reaches over the model. Code that nothing places is in every
/// stage: never too little.
pub(super) fn places(
    model: &Model,
    operations: &[OperationPlace],
    variables: &VariablePlaces,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
) -> Result<(Vec<PlaceSet>, Vec<Vec<PlaceSet>>), TooManyPlaces> {
    let mut of_group = of_groups(model, operations, sets)?;
    let mut of_piece = vec![Vec::new(); of_group.len()];
    let is_reaching = &variables.reaching.is_reaching;
    let wanted = |group: u32| is_reaching[group as usize];
    let touches = Touches::new(model, bytes, (sets, &variables.counted), wanted)?;
    for (number, group) in model.operation_groups.iter().enumerate() {
        if !is_reaching[number] {
            continue;
        }
        let all = touches.places(number as u32, sets)?;
        let own = sets.union(of_group[number], all)?;
        let whole = if own == NOWHERE { EVERYWHERE } else { own };
        of_group[number] = whole;
        for piece in &group.pieces {
            let touched = touched(&piece.sets, &variables.counted, sets)?;
            let places = if touched == NOWHERE { whole } else { touched };
            of_piece[number].push(places);
        }
    }
    Ok((of_group, of_piece))
}

/// The places of the variables that a piece uses: of those that belong to one
/// place or two, where there are such; what many places share has no say then.
fn touched(
    used: &[u32],
    counted: &[PlaceSet],
    sets: &mut PlaceSets,
) -> Result<PlaceSet, TooManyPlaces> {
    let places = used.iter().map(|&set| counted[set as usize]);
    let local: Vec<PlaceSet> = places.clone().filter(|&set| sets.is_local(set)).collect();
    if local.is_empty() {
        sets.union_of(places.collect::<Vec<_>>())
    } else {
        sets.union_of(local)
    }
}
