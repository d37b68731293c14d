//! Which places an operation touches with its variables.

use super::place_sets::{IN, PlaceSet, PlaceSets, TooManyPlaces};
use crate::limits;
use crate::model::{Model, TensorKind};
use rustc_hash::FxHashMap;

/// What is known before anything has a place.
pub(super) struct Known {
    /// By user set: its bytes.
    pub(super) bytes: Vec<SetBytes>,
    /// By operation group: does it share nothing with others?
    pub(super) apart: Vec<bool>,
    /// By operation group: is it in a function that several operations call?
    pub(super) shared: Vec<bool>,
}

/// Bytes of the variables of one user set, over all tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SetBytes {
    pub(super) all: u64,
    /// Those of parameters: live on the first and on the last step, or a
    /// variable of the framework by its context (pipeline.md, section 13).
    pub(super) parameters: u64,
}

/// By user set: its bytes.
pub(super) fn bytes_of_sets(model: &Model) -> Vec<SetBytes> {
    let classes = &model.classes;
    let last = model.steps().saturating_sub(1);
    let stays = |class: u32| classes.is_live(class, 0) && classes.is_live(class, last);
    let is_weight = |set: u32| model.label_of(set).kind == TensorKind::Variable;
    let mut sums = vec![SetBytes::default(); model.user_sets.len()];
    for own in model.variables.uses() {
        let sum = &mut sums[own.set as usize];
        sum.all += own.bytes;
        if is_weight(own.set) || stays(own.class) {
            sum.parameters += own.bytes;
        }
    }
    sums
}

/// By operation group: does it compute, and with nothing that another operation
/// computes with? It has no part in the model, but is made for the machine that
/// runs it.
pub(super) fn apart(model: &Model, bytes: &[SetBytes]) -> Result<Vec<bool>, TooManyPlaces> {
    let computes = |group: u32| model.operation_groups[group as usize].computes();
    let mut users = vec![0u8; model.user_sets.len()];
    for (set, smaller, group) in model.user_sets.iter() {
        users[set as usize] = (users[smaller as usize] + u8::from(computes(group))).min(2);
    }
    let mut apart: Vec<bool> = (0..model.operation_groups.len() as u32)
        .map(computes)
        .collect();
    let mut left = limits::LOOKS;
    let shared = (0u32..).zip(&users).filter(|&(_, &users)| users > 1);
    for (set, _) in shared.filter(|&(set, _)| bytes[set as usize].all > 0) {
        for group in model.user_sets.groups(set) {
            left = left.checked_sub(1).ok_or(TooManyPlaces)?;
            apart[group as usize] = false;
        }
    }
    Ok(apart)
}

/// By operation group: is it in a function that several operations call?
pub(super) fn in_shared_functions(model: &Model) -> Vec<bool> {
    let mut runs = vec![0u8; model.operation_groups.len()];
    for operation in model.operations.iter().filter(|own| own.is_nested) {
        let runs = &mut runs[operation.group as usize];
        *runs = runs.saturating_add(1);
    }
    runs.into_iter().map(|runs| runs > 1).collect()
}

/// How many times the bytes of a neighbour a place has clearly more.
const CLEARLY_MORE: u64 = 2;

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
    /// What the operation groups that are `wanted` touch, when user sets have
    /// the places `of_set`.
    pub(super) fn new(
        model: &Model,
        bytes: &[SetBytes],
        (sets, of_set): (&PlaceSets, &[PlaceSet]),
        wanted: impl Fn(u32) -> bool,
    ) -> Result<Self, TooManyPlaces> {
        let mut left = limits::LOOKS;
        let mut pairs: FxHashMap<(u32, u32), SetBytes> = FxHashMap::default();
        let used = (0u32..)
            .zip(bytes)
            .skip(1)
            .filter(|(_, bytes)| bytes.all > 0);
        for (set, bytes) in used {
            let (places, is_local) = {
                let of_set = of_set[set as usize];
                (sets.places(of_set), sets.is_local(of_set))
            };
            for group in model.user_sets.groups(set) {
                left = left.checked_sub(1).ok_or(TooManyPlaces)?;
                if !wanted(group) {
                    continue;
                }
                left = left.checked_sub(places.len()).ok_or(TooManyPlaces)?;
                for &place in places {
                    let sum = pairs.entry((group, place)).or_default();
                    if is_local {
                        sum.all += bytes.all;
                        sum.parameters += bytes.parameters;
                    }
                }
                if pairs.len() > limits::PAIRS {
                    return Err(TooManyPlaces);
                }
            }
        }
        let mut by_group = vec![Vec::new(); model.operation_groups.len()];
        for ((group, place), local) in pairs {
            by_group[group as usize].push(Touch { place, local });
        }
        for touches in &mut by_group {
            touches.sort_unstable_by_key(|touch: &Touch| touch.place);
        }
        Ok(Self { by_group })
    }

    /// The places that an operation group touches.
    pub(super) fn of(&self, group: u32) -> &[Touch] {
        &self.by_group[group as usize]
    }

    /// Does what it touches belong to more than two neighbouring layers? In and
    /// Out may use anything of each other, and variables of many places, such as
    /// a mask, have no say in it.
    pub(super) fn reaches_over(&self, group: u32, out: u32) -> bool {
        let local = self.of(group).iter().filter(|touch| touch.local.all > 0);
        let layers = local.filter(|touch| touch.place != IN && touch.place != out);
        let layers: Vec<u32> = layers.map(|touch| touch.place).collect();
        match layers[..] {
            [] | [_] => false,
            [a, b] => b != a + 1,
            _ => true,
        }
    }

    /// The place that most bytes of its variables are of; the first of several.
    /// `near` is preferred to a neighbour with less than [`CLEARLY_MORE`] times
    /// its bytes and without a weight that it uses: what is between two layers
    /// uses as much of one as of the other.
    pub(super) fn most(&self, group: u32, near: Option<u32>) -> Option<u32> {
        let touches = self.of(group).iter();
        let most = touches.clone().rev().max_by_key(|touch| touch.local.all)?;
        let is_as_good = |touch: &&Touch| {
            let is_much = touch.local.all.saturating_mul(CLEARLY_MORE) > most.local.all;
            let has_weight = touch.local.parameters > 0 || most.local.parameters == 0;
            touch.place.abs_diff(most.place) == 1 && is_much && has_weight
        };
        let mut near = touches.filter(|touch| Some(touch.place) == near);
        let near = near.find(is_as_good);
        Some(near.unwrap_or(most).place)
    }

    /// Does it use variables of one of these places that are no parameters?
    pub(super) fn uses_passing(&self, group: u32, of: impl Fn(u32) -> bool) -> bool {
        let mut touches = self.of(group).iter();
        touches.any(|touch| touch.local.all > touch.local.parameters && of(touch.place))
    }

    /// Does it use parameters of one of these places?
    pub(super) fn has_parameters(&self, group: u32, of: impl Fn(u32) -> bool) -> bool {
        let mut touches = self.of(group).iter();
        touches.any(|touch| touch.local.parameters > 0 && of(touch.place))
    }

    /// All places that it touches, as a set: those of variables that belong to
    /// one place or two, where there are such; what many places share has no
    /// say then.
    pub(super) fn places(
        &self,
        group: u32,
        sets: &mut PlaceSets,
    ) -> Result<PlaceSet, TooManyPlaces> {
        let touches = || self.of(group).iter();
        let is_local = |touch: &&Touch| touch.local.all > 0;
        let has_local = touches().any(|touch| is_local(&touch));
        let wanted = touches().filter(|touch| !has_local || is_local(touch));
        let places: Vec<u32> = wanted.map(|touch| touch.place).collect();
        sets.intern(&places)
    }
}
