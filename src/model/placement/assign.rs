//! The rules of the full model, one after the other.

use super::by_layer::{of_named, of_sets};
use super::ends::{Ends, IN, Part, Parts};
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::touches::{SetBytes, Touches, bytes_of_sets};
use super::variables::Variables;
use super::{
    OperationPlace, OutOn, Placement, PlacementOptions, Positions, Reason, Rules, Tie, calls, code,
    weights,
};
use crate::model::{Layering, Model, NO_CALL};

/// Gives everything its places.
pub(super) fn assign(
    model: &Model,
    layering: &Layering,
    options: &PlacementOptions,
) -> Result<Placement, TooManyPlaces> {
    let mut sets = PlaceSets::default();
    let out = layering.names.len() as u32;
    let bytes = bytes_of_sets(model);
    let mut operations = layered(model, layering, &bytes, &mut sets)?;
    let firm = firm(model, &bytes, &mut operations, out, &mut sets)?;
    others(model, &bytes, &firm, &mut operations, out, &mut sets)?;
    let variables = Variables::new(model, layering, &operations, &bytes, firm, &mut sets)?;
    let (of_body, of_piece) = code::places(model, &operations, &variables, &mut sets)?;
    for (operation, own) in model.operations.iter().zip(&mut operations) {
        if own.reason == Reason::Touched {
            own.places = of_body[operation.body as usize];
        }
    }
    let ties = weights::ties(model, &bytes, (&sets, &variables.firm), &options.untie);
    let out_is_first = match options.out_on {
        OutOn::First => true,
        OutOn::Last => false,
        OutOn::Auto => ties.iter().any(|tie| joins(tie, IN, out)),
    };
    let named = of_named(model, layering, &mut sets)?;
    let named_sets = of_sets(&model.body_sets, &named, &mut sets)?;
    let placement = Placement {
        rules: Rules::Full,
        positions: Positions::full(layering, out_is_first),
        operations,
        ties,
        counted: variables.counted,
        sharing: None,
        of_body,
        of_piece,
        named_bodies: named.iter().map(|&set| set != NOWHERE).collect(),
        named_sets: named_sets.iter().map(|&set| set != NOWHERE).collect(),
        by_touch: variables.by_touch,
        sets,
    };
    Ok(if out_is_first {
        with_out_first(placement, out)
    } else {
        placement
    })
}

fn joins(tie: &Tie, a: u32, b: u32) -> bool {
    !tie.is_untied && tie.places.contains(&a) && tie.places.contains(&b)
}

/// Reads Out as In everywhere.
fn with_out_first(mut placement: Placement, out: u32) -> Placement {
    placement.sets = placement.sets.moved(out, IN);
    placement
}

/// Rule 1: the operations that have a layer. All others are left open.
fn layered(
    model: &Model,
    layering: &Layering,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
) -> Result<Vec<OperationPlace>, TooManyPlaces> {
    let of_calls = calls::places(model, layering, bytes, sets)?;
    let mut places = Vec::with_capacity(model.operations.len());
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        places.push(match (operation.call, layer) {
            (NO_CALL, crate::model::NO_LAYER) => open(),
            (NO_CALL, layer) => OperationPlace {
                places: sets.one(layer)?,
                reason: Reason::Layer,
            },
            (call, _) => OperationPlace {
                places: of_calls[call as usize],
                reason: Reason::Call,
            },
        });
    }
    Ok(places)
}

/// The place of an operation that no rule has placed yet; in the end it is one
/// that counts with what it touches.
fn open() -> OperationPlace {
    OperationPlace {
        places: NOWHERE,
        reason: Reason::Touched,
    }
}

/// Rules 2 and 3: finds In and Out, and gives every variable the places of the
/// operations of layers, In and Out that use it.
fn firm(
    model: &Model,
    bytes: &[SetBytes],
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let of_body = of_bodies(model, operations, sets)?;
    let of_set = of_sets(&model.body_sets, &of_body, sets)?;
    let by_layer: Vec<PlaceSet> = operations.iter().map(|own| own.places).collect();
    let Some(parts) = Parts::new(model, &by_layer) else {
        return Ok(of_set);
    };
    let is_open = |body: u32| of_body[body as usize] == NOWHERE;
    let touches = Touches::new(model, bytes, (sets, &of_set), is_open)?;
    let ends = Ends {
        model,
        parts: &parts,
        by_layer: &by_layer,
        touches: &touches,
        out,
    };
    for (own, end) in operations.iter_mut().zip(ends.find()) {
        let Some(end) = end else { continue };
        *own = OperationPlace {
            places: sets.one(end)?,
            reason: match end {
                IN => Reason::BeforeLayers,
                _ => Reason::AfterLayers,
            },
        };
    }
    let of_body = of_bodies(model, operations, sets)?;
    of_sets(&model.body_sets, &of_body, sets)
}

/// By body: the places of its operations.
pub(super) fn of_bodies(
    model: &Model,
    operations: &[OperationPlace],
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let mut of_body = vec![NOWHERE; model.bodies.len()];
    for (operation, own) in model.operations.iter().zip(operations) {
        let known = &mut of_body[operation.body as usize];
        *known = sets.union(*known, own.places)?;
    }
    Ok(of_body)
}

/// Rules 4 to 6 for the operations that are left: which reach over the model,
/// which are the compiler's, and where the others go.
fn others(
    model: &Model,
    bytes: &[SetBytes],
    firm: &[PlaceSet],
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<(), TooManyPlaces> {
    let by_layer: Vec<PlaceSet> = operations
        .iter()
        .map(|own| match own.reason {
            Reason::Layer | Reason::Call => own.places,
            _ => NOWHERE,
        })
        .collect();
    let parts = Parts::new(model, &by_layer);
    let mut is_open = vec![false; model.bodies.len()];
    for (operation, own) in model.operations.iter().zip(&*operations) {
        is_open[operation.body as usize] |= own.places == NOWHERE;
    }
    let touches = Touches::new(model, bytes, (sets, firm), |body| is_open[body as usize])?;
    let mut before: Option<usize> = None;
    for index in 0..operations.len() {
        if operations[index].places != NOWHERE {
            before = Some(index);
            continue;
        }
        let operation = &model.operations[index];
        let part = parts.as_ref().map_or(Part::Before, |parts| parts.of(index));
        let touches_nothing = touches.of(operation.body).is_empty();
        if operation.is_anonymous && touches_nothing {
            operations[index] = OperationPlace {
                places: EVERYWHERE,
                reason: Reason::EveryStage,
            };
            continue;
        }
        let is_outside = matches!(part, Part::Before | Part::AfterBackward);
        if touches.reaches_over(operation.body) || (is_outside && !touches_nothing) {
            continue;
        }
        if let Some(place) = touches.most(operation.body) {
            operations[index] = OperationPlace {
                places: sets.one(place)?,
                reason: Reason::Variables,
            };
            continue;
        }
        let neighbour = match part {
            Part::Before => None,
            Part::AfterForward => Some(sets.one(out)?),
            Part::Layers | Part::AfterBackward => before.map(|before| operations[before].places),
        };
        operations[index] = OperationPlace {
            places: neighbour.map_or_else(|| sets.one(IN), Ok)?,
            reason: Reason::Neighbour,
        };
    }
    Ok(())
}
