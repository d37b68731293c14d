//! Operations without a layer: their planted places, and the places that the library assigns.

use std::collections::HashMap;
use std::fmt;

use popliner::model::{EVERYWHERE, Layering, Model, Placement};
use synthesize::operation_truth::{Home, OperationTruth};
use synthesize::places::Places;

use super::planted::Planted;

/// Comparison of the operations without a layer of a model.
#[derive(Default)]
pub struct Found {
    /// Number of operations without a layer.
    pub count: usize,
    pub wrong: Vec<Wrong>,
}

/// An operation that the library assigns elsewhere than planted.
pub struct Wrong {
    name: String,
    /// The operation's share of all bytes of the model.
    pub share: f64,
    planted: (Home, Vec<usize>),
    /// Assigned positions; `None` for all.
    found: Option<Vec<usize>>,
    reason: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, share) = (&self.name, 100.0 * self.share);
        write!(f, "{name} ({share:.3} % of the bytes) is ")?;
        match &self.planted {
            (Home::Places(_), positions) => write!(f, "in {positions:?}")?,
            (Home::Global(_), _) => f.write_str("global")?,
            (Home::EveryIpu, _) => f.write_str("on every IPU")?,
        }
        let found = self.found.as_deref();
        let reason = &self.reason;
        match found {
            Some(found) => write!(f, ", found in {found:?} ({reason})"),
            None => write!(f, ", found everywhere ({reason})"),
        }
    }
}

/// Compares the operations without a layer with the planted truth.
pub fn check(
    planted: &Planted,
    model: &Model,
    layering: &Layering,
    placement: &Placement,
) -> Found {
    let truth = planted.truth.operations().iter();
    let truth: HashMap<u64, &OperationTruth> = truth
        .map(|operation| (u64::from(operation.context), operation))
        .collect();
    let all: u64 = planted.truth.bytes(Places::EVERY).iter().sum();
    let mut found = Found::default();
    for (index, operation) in model.operations.iter().enumerate() {
        let uid = model.operation_groups[operation.group as usize].uid;
        let Some(known) = truth
            .get(&uid)
            .filter(|_| layering.own_layer(index).is_none())
        else {
            continue;
        };
        found.count += 1;
        let place = placement.operations[index];
        let positions = (place.places != EVERYWHERE).then(|| {
            let places = placement.sets.places(place.places).iter();
            let mut all: Vec<usize> = places
                .map(|&place| placement.positions.of_place(place))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        if !is_right(planted, known, operation.is_nested, positions.as_deref()) {
            found.wrong.push(Wrong {
                name: format!("{} [{}]", operation.name, known.op_type),
                share: known.bytes as f64 / all as f64,
                planted: (known.home, positions_of(planted, known.home)),
                found: positions,
                reason: place.reason.to_string(),
            });
        }
    }
    found
}

fn positions_of(planted: &Planted, home: Home) -> Vec<usize> {
    match home {
        Home::Places(places) | Home::Global(places) => planted.positions_of(places),
        Home::EveryIpu => planted.positions_of(Places::EVERY),
    }
}

/// Is the assignment right? A body may be assigned to each of its calls. A global operation may be
/// assigned to all places or program by program, but not to one place.
fn is_right(
    planted: &Planted,
    truth: &OperationTruth,
    is_nested: bool,
    found: Option<&[usize]>,
) -> bool {
    let expected = positions_of(planted, truth.home);
    match (truth.home, found) {
        (Home::Places(_), Some(found)) if is_nested => {
            !found.is_empty() && found.iter().all(|position| expected.contains(position))
        }
        (Home::Places(_), found) => found == Some(&expected[..]),
        (Home::Global(_), Some(found)) => found.len() > 1 || found == expected,
        (Home::EveryIpu, Some(found)) => found.len() > 1,
        (Home::Global(_) | Home::EveryIpu, None) => true,
    }
}
