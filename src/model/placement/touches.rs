//! Which places an operation touches with its variables.

use super::place_sets::{PlaceSet, PlaceSets};
use crate::limits;
use crate::model::{Model, TensorKind};
use rustc_hash::FxHashMap;

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
    for own in model.variables.uses() {
        let sum = &mut sums[own.set as usize];
        sum.all += own.bytes;
        if is_weight(own.set) || classes.lasts(own.class) {
            sum.parameters += own.bytes;
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

/// A place that an operation touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) place: u32,
    /// Bytes of variables that are of this place, or of it and a neighbour;
    /// 0 when only variables of many places lead there.
    pub(super) local: SetBytes,
}

/// By operation group: the places that it touches, ascending.
#[derive(Debug)]
pub(super) struct Touches {
    by_group: Vec<Vec<Touch>>,
}

impl Touches {
    /// What the operation groups that are `wanted` touch, when use sets have
    /// the places `of_set`.
    pub(super) fn new(
        model: &Model,
        bytes: &[SetBytes],
        (sets, of_set): (&mut PlaceSets, &[PlaceSet]),
        wanted: impl Fn(u32) -> bool,
    ) -> Self {
        let pairs = pairs(model, bytes, (sets, of_set), wanted).unwrap_or_else(|| {
            sets.give_up();
            FxHashMap::default()
        });
        let mut by_group = vec![Vec::new(); model.operation_groups.len()];
        for ((group, place), local) in pairs {
            by_group[group as usize].push(Touch { place, local });
        }
        for touches in &mut by_group {
            touches.sort_unstable_by_key(|touch: &Touch| touch.place);
        }
        Self { by_group }
    }

    /// The places that an operation group touches.
    pub(super) fn of(&self, group: u32) -> &[Touch] {
        &self.by_group[group as usize]
    }

    /// All places that it touches, as a set: those of variables that belong to
    /// one place or two, where there are such; what many places share has no
    /// say then.
    pub(super) fn places(&self, group: u32, sets: &mut PlaceSets) -> PlaceSet {
        let touches = || self.of(group).iter();
        let is_local = |touch: &&Touch| touch.local.all > 0;
        let has_local = touches().any(|touch| is_local(&touch));
        let wanted = touches().filter(|touch| !has_local || is_local(touch));
        let places: Vec<u32> = wanted.map(|touch| touch.place).collect();
        sets.intern(&places)
    }
}

/// By operation group and place that it touches; `None` where these are more than in any
/// real model.
fn pairs(
    model: &Model,
    bytes: &[SetBytes],
    (sets, of_set): (&PlaceSets, &[PlaceSet]),
    wanted: impl Fn(u32) -> bool,
) -> Option<FxHashMap<(u32, u32), SetBytes>> {
    let mut left = limits::LOOKS;
    let mut pairs: FxHashMap<(u32, u32), SetBytes> = FxHashMap::default();
    let used = (0u32..).zip(bytes).skip(1);
    for (set, bytes) in used.filter(|(_, bytes)| bytes.all > 0) {
        let of_set = of_set[set as usize];
        let (places, is_local) = (sets.places(of_set), sets.is_local(of_set));
        for group in model.use_sets.groups(set) {
            left = left.checked_sub(1)?;
            if !wanted(group) {
                continue;
            }
            left = left.checked_sub(places.len())?;
            for &place in places {
                let sum = pairs.entry((group, place)).or_default();
                if is_local {
                    sum.all += bytes.all;
                    sum.parameters += bytes.parameters;
                }
            }
            if pairs.len() > limits::PAIRS {
                return None;
            }
        }
    }
    Some(pairs)
}
