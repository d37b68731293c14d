//! Operations without a layer: their planted places, and the places that the library assigns.

use std::collections::{BTreeSet, HashMap};

use popliner::model::EVERYWHERE;
use synthesize::places::Places;
use synthesize::planted::{Home, OperationTruth};

use super::planted::{Planted, Read};

/// An operation that the library assigns elsewhere than planted.
#[derive(Debug)]
#[expect(dead_code, reason = "failures print all fields")]
pub struct Wrong {
    name: String,
    /// The operation's share of all bytes of the model.
    pub share: f64,
    home: Home,
    planted: BTreeSet<usize>,
    /// Assigned positions; `None` for all.
    found: Option<BTreeSet<usize>>,
    reason: String,
}

/// Compares the operations without a layer with the planted truth.
pub fn wrong(planted: &Planted, read: &Read) -> Vec<Wrong> {
    let Read {
        model,
        layering,
        placement,
    } = read;
    let truth = planted.truth.operations.iter();
    let truth = truth.map(|operation| (u64::from(operation.context), operation));
    let truth: HashMap<u64, &OperationTruth> = truth.collect();
    let all: u64 = planted.truth.bytes(Places::EVERY).iter().sum();
    let mut wrong = Vec::new();
    for (index, operation) in model.operations.iter().enumerate() {
        let uid = model.operation_groups[operation.group as usize].uid;
        let has_layer = layering.own_layer(index).is_some();
        let Some(truth) = truth.get(&uid).filter(|_| !has_layer) else {
            continue;
        };
        let place = placement.operations[index];
        let found = (place.places != EVERYWHERE).then(|| {
            let places = placement.sets.places(place.places).iter();
            let positions = places.map(|&place| placement.positions.of_place(place));
            positions.collect::<BTreeSet<usize>>()
        });
        let expected = match truth.home {
            Home::Places(places) | Home::Global(places) => planted.positions_of(places),
            Home::EveryIpu => planted.positions_of(Places::EVERY),
        };
        if !is_right(truth.home, &expected, operation.is_nested, found.as_ref()) {
            wrong.push(Wrong {
                name: format!("{} [{}]", operation.name, truth.op_type),
                share: truth.bytes as f64 / all as f64,
                home: truth.home,
                planted: expected,
                found,
                reason: place.reason.to_string(),
            });
        }
    }
    wrong
}

/// Returns whether the assignment is right. A body may be assigned to each of its calls. A global
/// operation may be assigned to all places or program by program, but not to one place.
fn is_right(
    home: Home,
    expected: &BTreeSet<usize>,
    is_nested: bool,
    found: Option<&BTreeSet<usize>>,
) -> bool {
    match (home, found) {
        (Home::Places(_), Some(own)) if is_nested => !own.is_empty() && own.is_subset(expected),
        (Home::Places(_), found) => found == Some(expected),
        (Home::Global(_), Some(found)) => found.len() > 1 || found == expected,
        (Home::EveryIpu, Some(found)) => found.len() > 1,
        (Home::Global(_) | Home::EveryIpu, None) => true,
    }
}
