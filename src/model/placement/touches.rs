//! Which places an operation touches with its variables.

use super::place_sets::{EVERYWHERE, PlaceSet, PlaceSets};
use crate::limits;
use crate::model::{Model, TensorKind};
use rustc_hash::FxHashSet;

/// Bytes of the variables of one use set, over all tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SetBytes {
    pub(super) all: u64,
    /// Those of parameters: live on the first and on the last step, or a
    /// variable of the framework by its context (docs/model.md, "Variables").
    pub(super) parameters: u64,
}

/// By use set: its bytes.
pub(super) fn bytes_of_sets(model: &Model) -> Vec<SetBytes> {
    let classes = &model.classes;
    let is_weight = |set: u32| model.label_of(set).kind == TensorKind::Variable;
    let mut sums = vec![SetBytes::default(); model.use_sets.len()];
    for item in model.variables.uses() {
        let sum = &mut sums[item.set as usize];
        sum.all += item.bytes;
        if is_weight(item.set) || classes.lasts(item.class) {
            sum.parameters += item.bytes;
        }
    }
    sums
}

/// By operation group: does it use nothing that another operation computes with? It has
/// no part in the model, but is made for the machine that runs it.
pub(super) fn isolated(model: &Model, bytes: &[SetBytes], sets: &mut PlaceSets) -> Vec<bool> {
    let computes = |group: u32| model.operation_groups[group as usize].computes();
    let mut isolated = vec![true; model.operation_groups.len()];
    let mut left = limits::LOOKS;
    for set in (1u32..)
        .zip(&bytes[1..])
        .filter(|(_, bytes)| bytes.all > 0)
        .map(|(set, _)| set)
    {
        let users = || model.use_sets.groups(set);
        let computing = users().filter(|&group| computes(group)).take(2).count();
        for group in users() {
            if left == 0 {
                sets.give_up();
                return isolated;
            }
            left -= 1;
            isolated[group as usize] &= computing <= usize::from(computes(group));
        }
    }
    isolated
}

/// By operation group that is wanted: the places that it touches with its variables, when use
/// sets have the places `of_set`.
pub(super) fn touched(
    model: &Model,
    bytes: &[SetBytes],
    (sets, of_set): (&mut PlaceSets, &[PlaceSet]),
    wanted: impl Fn(u32) -> bool,
) -> Vec<PlaceSet> {
    let groups = model.operation_groups.len();
    let Some(pairs) = pairs(model, bytes, of_set, wanted) else {
        sets.give_up();
        return vec![EVERYWHERE; groups];
    };
    let mut used: Vec<Vec<PlaceSet>> = vec![Vec::new(); groups];
    for (group, places) in pairs {
        used[group as usize].push(places);
    }
    used.into_iter()
        .map(|places| sets.touched(places))
        .collect()
}

/// The operation groups that are wanted, with the places of the variables that each uses;
/// `None` where these are more than in any real model.
fn pairs(
    model: &Model,
    bytes: &[SetBytes],
    of_set: &[PlaceSet],
    wanted: impl Fn(u32) -> bool,
) -> Option<FxHashSet<(u32, PlaceSet)>> {
    let mut left = limits::LOOKS;
    let mut pairs = FxHashSet::default();
    for (set, _) in (0u32..).zip(bytes).filter(|(_, bytes)| bytes.all > 0) {
        for group in model.use_sets.groups(set) {
            left = left.checked_sub(1)?;
            if wanted(group) {
                pairs.insert((group, of_set[set as usize]));
            }
        }
        if pairs.len() > limits::PAIRS {
            return None;
        }
    }
    Some(pairs)
}
