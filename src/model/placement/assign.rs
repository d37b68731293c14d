//! The rules of the full model, one after the other.

use super::by_layer::{of_named, of_sets, places_of_groups};
use super::ends::{self, Ends, Layered, ProgramPart, ProgramParts};
use super::place_sets::{EVERYWHERE, IN, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::touches::{Known, SetBytes, Touches, apart, bytes_of_sets, in_shared_functions};
use super::variables::{VariablePlaces, code_places};
use super::{
    OperationPlace, OutOn, Placement, PlacementOptions, Positions, Reason, Rules, WeightTie, calls,
    weights,
};
use crate::model::{Layering, Model, NO_CALL, Note, Operation};

/// Gives everything its places.
pub(super) fn assign(
    model: &Model,
    layering: &Layering,
    options: &PlacementOptions,
) -> Result<Placement, TooManyPlaces> {
    let out = layering.names.len() as u32;
    let mut sets = PlaceSets::new(out);
    let bytes = bytes_of_sets(model);
    let mut operations = layered(model, layering, &bytes, &mut sets)?;
    let known = Known {
        apart: apart(model, &bytes)?,
        shared: in_shared_functions(model),
        bytes,
    };
    let (firm, parts) = firm(model, layering, &known, &mut operations, out, &mut sets)?;
    let parts = parts.as_ref();
    let near = others(
        model,
        &known,
        (&firm, parts),
        &mut operations,
        out,
        &mut sets,
    )?;
    let variables = VariablePlaces::new(
        model,
        layering,
        &operations,
        (&known.bytes, &near),
        firm,
        &mut sets,
    )?;
    let (of_group, of_piece) =
        code_places(model, &operations, &variables, &known.bytes, &mut sets)?;
    for (operation, own) in model.operations.iter().zip(&mut operations) {
        if own.reason == Reason::Touched {
            own.places = of_group[operation.group as usize];
        }
    }
    let ties = weights::ties(
        model,
        &known.bytes,
        (&sets, &variables.firm),
        &options.untie,
    );
    let out_is_first = out_is_first(options.out_on, &ties, out);
    let named = of_named(model, layering, &mut sets)?;
    let named_sets = of_sets(&model.user_sets, &named, &mut sets)?;
    Ok(Placement {
        rules: Rules::Full,
        positions: Positions::full(layering, out_is_first),
        operations,
        ties,
        counted: variables.counted,
        sharing: None,
        of_group,
        of_piece,
        named_groups: named.iter().map(|&set| set != NOWHERE).collect(),
        named_sets: named_sets.iter().map(|&set| set != NOWHERE).collect(),
        by_touch: variables.by_touch,
        // Then Out is read as In everywhere.
        sets: if out_is_first {
            sets.moved(out, IN)
        } else {
            sets.clone()
        },
        apart: out_is_first.then_some(sets),
    })
}

/// Does Out run on the first IPU? With `Auto` it does where In and Out share a
/// weight.
fn out_is_first(out_on: OutOn, ties: &[WeightTie], out: u32) -> bool {
    let joins =
        |tie: &WeightTie| !tie.is_untied && tie.places.contains(&IN) && tie.places.contains(&out);
    match out_on {
        OutOn::First => true,
        OutOn::Last => false,
        OutOn::Auto => ties.iter().any(joins),
    }
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
    let end = model.operations.len().min(operation + 1 + MAX_BEFORE_BODY);
    let mut body = operation + 1..end;
    let inner = body.find(|&inner| layering.own_layer(inner).is_some())?;
    let layer = layering.own_layer(inner);
    layer.filter(|_| model.operations[inner].is_nested)
}

/// How far after a Call the first operation with a layer may be: what the
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
    known: &Known,
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<(Vec<PlaceSet>, Option<ProgramParts>), TooManyPlaces> {
    let named = named(layering, operations);
    let by_name: Vec<PlaceSet> = named.iter().map(|own| own.places).collect();
    let open = (&by_name[..], &*operations);
    let touches = touches_of_named(model, &known.bytes, named, open, out, sets)?;
    let parts = parts(model, (&by_name, operations), &touches, out);
    let Some(parts) = parts else {
        return Ok((sets_of(model, operations, sets)?, None));
    };
    let mut ends = Ends {
        model,
        parts: &parts,
        by_layer: &by_name,
        touches: &touches,
        known,
        out,
    };
    for (own, end) in operations.iter_mut().zip(ends.around_layers()) {
        if let Some(end) = end {
            own.places = sets.one(end)?;
            own.reason = match end {
                IN => Reason::BeforeLayers,
                _ => Reason::AfterLayers,
            };
        }
    }
    let of_group = places_of_groups(model, operations, sets)?;
    let of_set = of_sets(&model.user_sets, &of_group, sets)?;
    let is_open = |group: u32| of_group[group as usize] == NOWHERE;
    let touches = Touches::new(model, &known.bytes, (sets, &of_set), is_open)?;
    ends.touches = &touches;
    for (own, is_backward) in operations.iter_mut().zip(ends.backward_before_layers()) {
        if is_backward && own.places == NOWHERE {
            own.places = sets.one(IN)?;
            own.reason = Reason::BeforeLayers;
        }
    }
    Ok((sets_of(model, operations, sets)?, Some(parts)))
}

/// What operation groups without a named layer touch of the variables of
/// layers, and of what comes after these for certain.
fn touches_of_named(
    model: &Model,
    bytes: &[SetBytes],
    mut named: Vec<OperationPlace>,
    (by_name, operations): (&[PlaceSet], &[OperationPlace]),
    out: u32,
    sets: &mut PlaceSets,
) -> Result<Touches, TooManyPlaces> {
    let after = sets.one(out)?;
    for operation in ends::after_layers(model, by_name) {
        if operations[operation].places == NOWHERE && ends::computes(model, operation) {
            named[operation].places = after;
        }
    }
    let of_group = places_of_groups(model, &named, sets)?;
    let of_set = of_sets(&model.user_sets, &of_group, sets)?;
    let is_open = |group: u32| [NOWHERE, after].contains(&of_group[group as usize]);
    Touches::new(model, bytes, (sets, &of_set), is_open)
}

/// The parts of the program, by the layers that names say and by all that are
/// known.
fn parts(
    model: &Model,
    (by_name, operations): (&[PlaceSet], &[OperationPlace]),
    touches: &Touches,
    out: u32,
) -> Option<ProgramParts> {
    let all: Vec<PlaceSet> = operations.iter().map(|own| own.places).collect();
    let is_of_a_layer = |operation: usize| {
        let group = model.operations[operation].group;
        let uses_out = touches.of(group).iter().any(|touch| touch.place == out);
        !uses_out || touches.has_parameters(group, |place| place != out)
    };
    let layered = Layered {
        named: by_name,
        all: &all,
        is_of_a_layer: &is_of_a_layer,
    };
    ProgramParts::new(model, &layered)
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

/// By user set: the places of the operations of all its groups.
fn sets_of(
    model: &Model,
    operations: &[OperationPlace],
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let of_group = places_of_groups(model, operations, sets)?;
    of_sets(&model.user_sets, &of_group, sets)
}

/// Rules 4 to 6 for the operations that are left: which reach over the model,
/// which are the compiler's, and where the others go. By operation comes back
/// the place that it is near to in the program.
fn others(
    model: &Model,
    known: &Known,
    (firm, parts): (&[PlaceSet], Option<&ProgramParts>),
    operations: &mut [OperationPlace],
    out: u32,
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let mut is_open = vec![false; model.operation_groups.len()];
    for (operation, own) in model.operations.iter().zip(&*operations) {
        is_open[operation.group as usize] |= own.places == NOWHERE;
    }
    let is_open = |group: u32| is_open[group as usize];
    let touches = Touches::new(model, &known.bytes, (sets, firm), is_open)?;
    let ends = [sets.one(IN)?, sets.one(out)?];
    let (mut before, mut caller) = (ends[0], ends[0]);
    let mut near = Vec::with_capacity(operations.len());
    for (number, own) in operations.iter_mut().enumerate() {
        let operation = &model.operations[number];
        let is_shared = operation.is_nested && known.shared[operation.group as usize];
        if own.places != NOWHERE {
            before = own.places;
        }
        let part = parts.map_or(ProgramPart::Before, |parts| parts.of(number));
        near.push(match part {
            // What its group touches is that of all places that call it.
            _ if is_shared => caller,
            ProgramPart::Before => ends[0],
            ProgramPart::AfterForward => ends[1],
            ProgramPart::Layers | ProgramPart::AfterBackward => before,
        });
        if own.places == NOWHERE {
            let other = Other {
                operation,
                part,
                is_shared,
                is_apart: known.apart[operation.group as usize],
                near: near[number],
            };
            *own = other.place(&touches, out, sets)?;
        }
        if !operation.is_nested {
            caller = near[number];
            if own.places != NOWHERE {
                caller = own.places;
            }
        }
    }
    Ok(near)
}

/// An operation that neither a layer nor In or Out has.
struct Other<'a> {
    operation: &'a Operation,
    part: ProgramPart,
    /// Is it in a function that several operations call?
    is_shared: bool,
    is_apart: bool,
    /// The place that it is near to.
    near: PlaceSet,
}

impl Other<'_> {
    fn place(
        &self,
        touches: &Touches,
        out: u32,
        sets: &mut PlaceSets,
    ) -> Result<OperationPlace, TooManyPlaces> {
        let group = self.operation.group;
        let touches_nothing = touches.of(group).is_empty();
        let is_outside = match self.part {
            ProgramPart::Before => true,
            ProgramPart::AfterBackward => !self.operation.is_backward,
            ProgramPart::Layers | ProgramPart::AfterForward => false,
        };
        let is_anonymous = self.operation.is_anonymous;
        let is_compilers = is_anonymous || (self.is_apart && !self.operation.is_nested);
        let (places, reason) = if is_compilers && touches_nothing {
            (EVERYWHERE, Reason::EveryStage)
        } else if self.is_shared || (self.is_apart && touches_nothing) {
            (self.near, Reason::Neighbour)
        } else if is_outside || touches.reaches_over(group, out) {
            return Ok(open());
        } else if let Some(place) = touches.most(group, sets.only(self.near)) {
            (sets.one(place)?, Reason::Variables)
        } else {
            (self.near, Reason::Neighbour)
        };
        Ok(OperationPlace { places, reason })
    }
}
