//! Where functions count that are called from several places (pipeline.md,
//! section 11).
//!
//! TensorFlow and plain Poplar say of a function's body only what it was made
//! for first: the names in it are those of one layer. What a call means must be
//! inferred from the programs around it.

use super::ends::{Layered, ProgramParts};
use super::place_sets::{NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::touches::SetBytes;
use crate::model::{Layering, Model, NO_CALL, NO_LAYER, Note};
use rustc_hash::FxHashMap;

/// By call site: its places.
pub(super) fn places(
    model: &Model,
    layering: &Layering,
    bytes: &[SetBytes],
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    if model.calls.is_empty() {
        return Ok(Vec::new());
    }
    let direct = direct_layers(model, layering);
    let mut found: Vec<Option<u32>> = Vec::with_capacity(model.calls.len());
    let around = layers_around(model, bytes, &direct);
    for (number, call) in model.calls.iter().enumerate() {
        let outer = found.get(call.outer as usize).copied().flatten();
        let own = call
            .operation
            .and_then(|operation| direct[operation as usize]);
        found.push(own.or(outer).or(around[number]));
    }
    between(model, &direct, &mut found);
    spread(model, layering, &found, sets)
}

/// By operation outside of such functions: the layer that its name says.
fn direct_layers(model: &Model, layering: &Layering) -> Vec<Option<u32>> {
    let layers = layering.layers.iter().zip(&layering.notes);
    let layer = |(operation, (&layer, note)): (usize, (&u32, &Note))| {
        let is_said = matches!(note, Note::Name | Note::InputNames) && layer != NO_LAYER;
        let is_outside = model.operations[operation].call == NO_CALL;
        (is_said && is_outside).then_some(layer)
    };
    layers.enumerate().map(layer).collect()
}

/// By call site: the layer with the most bytes among the variables that the
/// programs around the call move in and out.
fn layers_around(model: &Model, bytes: &[SetBytes], direct: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut layer_of_group = vec![None; model.operation_groups.len()];
    for (operation, &layer) in model.operations.iter().zip(direct) {
        let known = &mut layer_of_group[operation.group as usize];
        *known = known.or(layer);
    }
    let layer = |call: &crate::model::CallSite| {
        let mut by_layer: FxHashMap<u32, u64> = FxHashMap::default();
        for &set in &call.around {
            let groups = model.user_sets.groups(set);
            let mut layers: Vec<u32> = groups
                .filter_map(|group| layer_of_group[group as usize])
                .collect();
            layers.sort_unstable();
            layers.dedup();
            // What several layers use does not tell them apart.
            if let [layer] = layers[..] {
                *by_layer.entry(layer).or_default() += bytes[set as usize].all;
            }
        }
        let most = by_layer
            .into_iter()
            .max_by_key(|&(layer, bytes)| (bytes, std::cmp::Reverse(layer)));
        most.map(|(layer, _)| layer)
    };
    model.calls.iter().map(layer).collect()
}

/// Gives the calls that are left the layer of the operations on both sides, in
/// the same pass, where these agree.
fn between(model: &Model, direct: &[Option<u32>], found: &mut [Option<u32>]) {
    let mut known: Vec<Option<u32>> = direct.to_vec();
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; found.len()];
    for (operation, own) in model.operations.iter().enumerate() {
        if own.call != NO_CALL {
            let call = own.call as usize;
            known[operation] = found[call];
            let span = spans[call].get_or_insert((operation, operation));
            span.1 = operation;
        }
    }
    // The parts of the program only tell places apart, so that the numbers of
    // the layers, which begin at 1, do for sets.
    let placed = known.iter().map(|layer| layer.map_or(NOWHERE, PlaceSet));
    let placed: Vec<PlaceSet> = placed.collect();
    let layered = Layered {
        named: &placed,
        all: &placed,
        is_of_a_layer: &|_| true,
    };
    let Some(parts) = ProgramParts::new(model, &layered) else {
        return;
    };
    for (call, span) in spans.into_iter().enumerate() {
        let Some((first, last)) = span.filter(|_| found[call].is_none()) else {
            continue;
        };
        let before = known[..first].iter().rposition(Option::is_some);
        let after = known[last + 1..].iter().position(Option::is_some);
        if let (Some(before), Some(after)) = (before, after.map(|after| last + 1 + after)) {
            let agree = known[before] == known[after] && parts.same_pass(before, after);
            found[call] = known[before].filter(|_| agree);
        }
    }
}

/// A call without a place counts in every place between the first and the last
/// caller of its function; where none has a place, in all layers.
fn spread(
    model: &Model,
    layering: &Layering,
    found: &[Option<u32>],
    sets: &mut PlaceSets,
) -> Result<Vec<PlaceSet>, TooManyPlaces> {
    let mut callers: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
    for (call, layer) in model.calls.iter().zip(found) {
        if let &Some(layer) = layer {
            let span = callers.entry(call.function).or_insert((layer, layer));
            *span = (span.0.min(layer), span.1.max(layer));
        }
    }
    let layers = layering.names.len() as u32 - 1;
    let places = |(call, layer): (&crate::model::CallSite, &Option<u32>)| match *layer {
        Some(layer) => sets.one(layer),
        None if layers == 0 => Ok(NOWHERE),
        None => {
            let (first, last) = callers.get(&call.function).copied().unwrap_or((1, layers));
            sets.intern(&(first..=last).collect::<Vec<_>>())
        }
    };
    model.calls.iter().zip(found).map(places).collect()
}
