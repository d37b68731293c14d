//! The rules of the full model, one after the other.

use super::by_layer::{of_named, of_sets};
use super::ends::{self, Ends, IN, Layered, Part, Parts};
use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::touches::{SetBytes, Touches, apart, bytes_of_sets};
use super::variables::Variables;
use super::{
    OperationPlace, OutOn, Placement, PlacementOptions, Positions, Reason, Rules, Tie, calls, code,
    weights,
};
use crate::model::{Layering, Model, NO_CALL, Note};

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
    let apart = apart(model, &bytes)?;
    let known = (&bytes[..], &apart[..]);
    let (firm, parts) = firm(model, layering, known, &mut operations, out, &mut sets)?;
    let parts = parts.as_ref();
    let near = others(
        model,
        known,
        (&firm, parts),
        &mut operations,
        out,
        &mut sets,
    )?;
    let variables = Variables::new(
        model,
        layering,
        &operations,
        (&bytes, &near),
        firm,
        &mut sets,
    )?;
    let (of_body, of_piece) = code::places(model, &operations, &variables, &bytes, &mut sets)?;
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
    for (number, operation) in model.operations.iter().enumerate() {
        let own = layering.own_layer(number);
        let own = own.or_else(|| called(model, layering, number));
        places.push(match (operation.call, own) {
            (NO_CALL, None) => open(),
            (NO_CALL, Some(layer)) => OperationPlace {
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

/// The layer of the body that a Call without a layer of its own runs: that of
/// the next operation which has one, if it is in a function.
fn called(model: &Model, layering: &Layering, operation: usize) -> Option<u32> {
    let own = &model.operations[operation];
    if !own.name.starts_with("Call") {
        return None;
    }
    let mut body = operation + 1..model.operations.len();
    let inner = body.find(|&inner| layering.own_layer(inner).is_some())?;
    let is_near = inner - operation <= MAX_BEFORE_BODY;
    layering
        .own_layer(inner)
        .filter(|_| is_near && model.operations[inner].is_nested)
}

/// How far behind a Call the first operation with a layer may be: what the
/// compiler makes, and Calls in Calls, come between.
const MAX_BEFORE_BODY: usize = 8;

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
    layering: &Layering,
    (bytes, apart): (&[SetBytes], &[bool]),
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<(Vec<PlaceSet>, Option<Parts>), TooManyPlaces> {
    let named = named(layering, operations);
    let by_name: Vec<PlaceSet> = named.iter().map(|own| own.places).collect();
    let all: Vec<PlaceSet> = operations.iter().map(|own| own.places).collect();
    let mut certain = named;
    let out_set = sets.one(out)?;
    for operation in ends::after_layers(model, &by_name) {
        if all[operation] == NOWHERE && ends::computes(model, operation) {
            certain[operation].places = out_set;
        }
    }
    let of_body = of_bodies(model, &certain, sets)?;
    let of_set = of_sets(&model.body_sets, &of_body, sets)?;
    let is_open =
        |body: u32| matches!(of_body[body as usize], NOWHERE) || of_body[body as usize] == out_set;
    let touches = Touches::new(model, bytes, (sets, &of_set), is_open)?;
    let is_apart = |operation: usize| {
        let mut touched = touches.of(model.operations[operation].body).iter();
        touched.all(|touch| touch.place != out)
    };
    let layered = Layered {
        named: &by_name,
        all: &all,
        is_apart: &is_apart,
    };
    let Some(parts) = Parts::new(model, &layered) else {
        return Ok((of_set, None));
    };
    let mut ends = Ends {
        model,
        parts: &parts,
        by_layer: &by_name,
        touches: &touches,
        apart,
        out,
    };
    let in_set = sets.one(IN)?;
    for (own, end) in operations.iter_mut().zip(ends.around_layers()) {
        match end {
            Some(IN) => (own.places, own.reason) = (in_set, Reason::BeforeLayers),
            Some(_) => (own.places, own.reason) = (out_set, Reason::AfterLayers),
            None => {}
        }
    }
    let of_body = of_bodies(model, operations, sets)?;
    let of_set = of_sets(&model.body_sets, &of_body, sets)?;
    let is_open = |body: u32| of_body[body as usize] == NOWHERE;
    let touches = Touches::new(model, bytes, (sets, &of_set), is_open)?;
    ends.touches = &touches;
    for (own, is_backward) in operations.iter_mut().zip(ends.backward_before_layers()) {
        if is_backward && own.places == NOWHERE {
            (own.places, own.reason) = (in_set, Reason::BeforeLayers);
        }
    }
    let of_body = of_bodies(model, operations, sets)?;
    let of_set = of_sets(&model.body_sets, &of_body, sets)?;
    Ok((of_set, Some(parts)))
}

/// The operations whose own names say their layer, with the others open. What
/// only has inputs of one layer may as well be what comes after it, such as a
/// pooler. Where no names say anything, inputs must do.
fn named(layering: &Layering, operations: &[OperationPlace]) -> Vec<OperationPlace> {
    let is_named = |number: usize| layering.notes[number] != Note::InputNames;
    let placed = |own: &OperationPlace| own.places != NOWHERE;
    let mut numbered = operations.iter().enumerate();
    if !numbered.any(|(number, own)| placed(own) && is_named(number)) {
        return operations.to_vec();
    }
    let numbered = operations.iter().enumerate();
    let own = |(number, own): (usize, &OperationPlace)| {
        if is_named(number) || own.reason == Reason::Call {
            *own
        } else {
            open()
        }
    };
    numbered.map(own).collect()
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
/// which are the compiler's, and where the others go. By operation comes back
/// the place that it is near to in the program.
fn others(
    model: &Model,
    (bytes, apart): (&[SetBytes], &[bool]),
    (firm, parts): (&[PlaceSet], Option<&Parts>),
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let mut is_open = vec![false; model.bodies.len()];
    let mut calls = vec![0u32; model.bodies.len()];
    for (operation, own) in model.operations.iter().zip(&*operations) {
        is_open[operation.body as usize] |= own.places == NOWHERE;
        calls[operation.body as usize] += 1;
    }
    let touches = Touches::new(model, bytes, (sets, firm), |body| is_open[body as usize])?;
    let ends = [sets.one(IN)?, sets.one(out)?];
    let mut before = ends[0];
    let mut near = Vec::with_capacity(operations.len());
    for (number, own) in operations.iter_mut().enumerate() {
        if own.places != NOWHERE {
            before = own.places;
        }
        let part = parts.map_or(Part::Before, |parts| parts.of(number));
        near.push(match part {
            Part::Before => ends[0],
            Part::AfterForward => ends[1],
            Part::Layers | Part::AfterBackward => before,
        });
        let operation = &model.operations[number];
        let is_outside = match part {
            Part::Before => true,
            Part::AfterBackward => !operation.is_backward,
            Part::Layers | Part::AfterForward => false,
        };
        if own.places != NOWHERE {
            continue;
        } else if (operation.is_anonymous || apart[operation.body as usize])
            && touches.of(operation.body).is_empty()
        {
            own.places = EVERYWHERE;
            own.reason = Reason::EveryStage;
        } else if operation.is_nested && calls[operation.body as usize] > 1 {
            // What its body touches is that of all places that call it.
            own.places = near[number];
            own.reason = Reason::Neighbour;
        } else if is_outside || touches.reaches_over(operation.body, out) {
            continue;
        } else if let Some(place) = touches.most(operation.body) {
            own.places = sets.one(place)?;
            own.reason = Reason::Variables;
        } else {
            own.places = near[number];
            own.reason = Reason::Neighbour;
        }
    }
    Ok(near)
}
