//! Weights that several places use: no framework puts one on two IPUs.

use super::place_sets::{PlaceSet, PlaceSets};
use super::touches::SetBytes;
use crate::model::{Model, TensorKind};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A weight that several positions use, so that these must be on one IPU
/// (pipeline.md, section 11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// The name of the weight: that of its tensor, or of its variable.
    pub weight: String,
    /// Its bytes over all tiles.
    pub bytes: u64,
    /// The positions that use it, ascending; two or more.
    pub positions: Vec<u32>,
}

/// The weights that several places use, the largest first. A weight is a
/// variable of the framework by its context or, in profiles without such
/// contexts, an always-live variable that an update uses.
pub(super) fn ties(
    model: &Model,
    bytes: &[SetBytes],
    (sets, of_set): (&PlaceSets, &[PlaceSet]),
) -> Vec<Tie> {
    let has_kinds = model
        .labels
        .iter()
        .any(|label| label.kind == TensorKind::Variable);
    let updates = used_by_updates(model);
    let mut weights: BTreeMap<&str, Tie> = BTreeMap::new();
    for (set, bytes) in (0u32..)
        .zip(bytes)
        .filter(|(_, bytes)| bytes.parameters > 0)
    {
        let label = model.label_of(set);
        let is_weight = if has_kinds {
            label.kind == TensorKind::Variable
        } else {
            label.kind != TensorKind::Constant && updates[set as usize]
        };
        let name = label.weight_name();
        if !is_weight || name.is_empty() {
            continue;
        }
        let tie = weights.entry(name).or_insert_with(|| Tie {
            weight: name.to_string(),
            bytes: 0,
            positions: Vec::new(),
        });
        tie.bytes += bytes.parameters;
        tie.positions
            .extend_from_slice(sets.places(of_set[set as usize]));
    }
    let mut ties: Vec<Tie> = weights.into_values().collect();
    for tie in &mut ties {
        tie.positions.sort_unstable();
        tie.positions.dedup();
    }
    ties.retain(|tie| tie.positions.len() > 1);
    ties.sort_by_key(|tie| Reverse(tie.bytes));
    ties
}

/// By set of bodies: does an update use what they use?
fn used_by_updates(model: &Model) -> Vec<bool> {
    let mut is_update = vec![false; model.bodies.len()];
    for operation in &model.operations {
        is_update[operation.body as usize] |= operation.is_update;
    }
    let mut of_set = vec![false; model.body_sets.len()];
    for (set, smaller, body) in model.body_sets.iter() {
        of_set[set as usize] = of_set[smaller as usize] || is_update[body as usize];
    }
    of_set
}
