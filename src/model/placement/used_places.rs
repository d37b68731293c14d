//! The places of the variables that an operation uses.

use super::place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets};
use crate::limits;
use crate::model::passes::NUMBER_BYTES;
use crate::model::{Model, TensorKind};
use rustc_hash::FxHashSet;

/// Bytes of the variables of one use set, over all tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::model) struct SetBytes {
    pub(in crate::model) all: u64,
    /// Bytes of parameters: live on the first and on the last step, or a variable of the framework
    /// by its context (docs/model.md, "Variables").
    pub(super) parameters: u64,
}

pub(in crate::model) fn bytes_of_sets(model: &Model) -> Vec<SetBytes> {
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

/// By operation group: does it use no variable that another operation computes with? Then it is no
/// part of the model but made for the machine that runs it.
pub(super) fn isolated(model: &Model) -> Vec<bool> {
    let computes = |group: usize| model.operation_groups[group].computes();
    // Maximum over the set and all sets that extend it.
    let mut most = model.users_by_set(computes);
    let mut isolated = vec![true; model.operation_groups.len()];
    for (set, smaller, group) in model.use_sets.iter().rev() {
        let users = most[set as usize];
        isolated[group as usize] &= users <= u8::from(computes(group as usize));
        most[smaller as usize] = most[smaller as usize].max(users);
    }
    isolated
}

/// By operation group that is wanted: the places of the variables that it uses, where
/// `of_set` has the places of each use set. A number, such as the scale of all gradients, counts
/// only if there is no other variable. Gives up if there are more places than in any real model.
pub(super) fn used_places(
    model: &Model,
    bytes: &[SetBytes],
    (sets, of_set): (&mut PlaceSets, &[PlaceSet]),
    is_wanted: &[bool],
) -> Vec<PlaceSet> {
    let number = NUMBER_BYTES * u64::from(model.target.num_tiles);
    let mut used: Vec<[FxHashSet<PlaceSet>; 2]> = vec![Default::default(); is_wanted.len()];
    let (mut left, mut pairs_left) = (limits::LOOKS, limits::PAIRS);
    for (set, bytes) in (0u32..).zip(bytes).filter(|(_, bytes)| bytes.all > 0) {
        let is_number = usize::from(bytes.all < number);
        for group in model.use_sets.groups(set).map(|group| group as usize) {
            let is_new = is_wanted[group] && used[group][is_number].insert(of_set[set as usize]);
            if left == 0 || pairs_left == 0 {
                sets.give_up();
                return vec![EVERYWHERE; is_wanted.len()];
            }
            left -= 1;
            pairs_left -= usize::from(is_new);
        }
    }
    used.into_iter()
        .map(|[used, numbers]| match sets.used_places(used) {
            NOWHERE => sets.used_places(numbers),
            places => places,
        })
        .collect()
}
