//! When variables are live in a stage, where that is not as in the profile.

use super::own_steps::{OfPosition, together};
use super::reruns::{Segments, Steps};
use super::{Flow, Flows};
use crate::limits;
use crate::model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse};
use rustc_hash::FxHashMap;

/// When the variables of uses are live in stages.
#[derive(Debug)]
pub(in crate::memory) struct StageLives {
    /// By number of the use: its place in `lives`, if that is not as in the profile.
    of_uses: Box<[Option<u32>]>,
    lives: Vec<Box<[PartOfLife]>>,
}

/// Half-open steps at which variables are live in the stages with one of these places; `None`
/// for all that count them.
#[derive(Debug)]
pub(in crate::memory) struct PartOfLife {
    pub(in crate::memory) places: Option<PlaceSet>,
    /// A position that the stages must have too.
    pub(in crate::memory) with: Option<u32>,
    pub(in crate::memory) steps: Box<[(u32, u32)]>,
}

/// The same with the places as a list.
struct PartInPlaces {
    places: Option<Vec<u32>>,
    with: Option<u32>,
    steps: Steps,
}

impl PartInPlaces {
    fn new(places: Option<Vec<u32>>, steps: Steps) -> Self {
        Self {
            places,
            with: None,
            steps,
        }
    }
}

impl StageLives {
    /// Those of `model`, of the uses with the numbers `only`; `sets` get what is needed for
    /// that.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(in crate::memory) fn new(
        (model, placement): (&Model, &Placement),
        flows: &Flows,
        sets: &mut PlaceSets,
        only: impl IntoIterator<Item = u32>,
    ) -> Result<Self, TooManyPlaces> {
        let positions = &placement.positions;
        let has_out = positions.out().is_some() || positions.out_is_first();
        let segments = flows.recomputes_layers();
        let segments = segments.then(|| Segments::layers(flows, has_out));
        let mut known = FxHashMap::default();
        let mut lives = Vec::new();
        let mut left = limits::ENTRIES;
        let mut of_use = |number: u32, variable: &VariableUse| {
            let own = flows.own_steps.get(&number);
            let Some(flow) = flows
                .of(number)
                .filter(|_| own.is_some() || segments.is_some())
            else {
                return Ok(None);
            };
            let own_flow = &flows.list[flow as usize];
            let is_layered = own_flow.is_layered(placement, variable.set);
            let key = (variable.class, flow, is_layered);
            if let Some(&known) = known.get(&key).filter(|_| own.is_none()) {
                return Ok(known);
            }
            let ranges = model.classes.ranges(variable.class);
            let parts = match (own, &segments) {
                (None, None) => Vec::new(),
                (None, Some(segments)) => flows.again(segments, (own_flow, is_layered), ranges),
                (Some(own), None) => listed(together(own)).collect(),
                (Some(own), Some(segments)) => {
                    flows.own_again(segments, (own_flow, is_layered), own)
                }
            };
            let mut number = None;
            if !parts.is_empty() {
                let steps: usize = parts.iter().map(|part| part.steps.len()).sum();
                left = left.checked_sub(steps).ok_or(TooManyPlaces)?;
                number = Some(lives.len() as u32);
                let part = |part: PartInPlaces| PartOfLife {
                    places: part.places.map(|places| sets.intern(&places)),
                    with: part.with,
                    steps: part.steps.into(),
                };
                lives.push(parts.into_iter().map(part).collect());
            }
            if own.is_none() {
                known.insert(key, number);
            }
            Ok(number)
        };
        let uses = model.variables.uses();
        let mut of_uses = vec![None; uses.len()];
        for number in only {
            if let Some(variable) = uses.get(number as usize) {
                of_uses[number as usize] = of_use(number, variable)?;
            }
        }
        sets.check()?;
        let of_uses = of_uses.into();
        Ok(Self { of_uses, lives })
    }

    /// When the variables of a use are live, if that is not as in the profile.
    #[inline]
    pub(in crate::memory) fn of(&self, number: u32) -> Option<&[PartOfLife]> {
        let life = *self.of_uses.get(number as usize)?;
        Some(&self.lives[life? as usize])
    }
}

impl Flows {
    /// When variables are live where layers run again; nothing if that is as in the profile.
    fn again(
        &self,
        segments: &Segments,
        (flow, is_layered): (&Flow, bool),
        ranges: &[(u32, u32)],
    ) -> Vec<PartInPlaces> {
        let found = segments.lives(flow, is_layered, ranges);
        let others = self.positions_of(found.others);
        let part = |others: Option<&Vec<u32>>, with: Option<u32>, steps: Steps| PartInPlaces {
            with,
            ..PartInPlaces::new(others.cloned(), steps)
        };
        let is_as_recorded = found.always == ranges;
        let mut parts = vec![part(None, None, found.always)];
        parts.push(part(Some(&others), None, found.more));
        let held = found.held.into_iter();
        parts.extend(held.map(|(with, steps)| part(None, with, steps)));
        let held = found.more_held.into_iter();
        parts.extend(held.map(|(with, steps)| part(Some(&others), with, steps)));
        parts.retain(|part| !part.steps.is_empty());
        if is_as_recorded && parts.len() == 1 {
            parts.clear();
        }
        parts
    }

    /// The same where positions need the variables at steps of their own.
    fn own_again(
        &self,
        segments: &Segments,
        (flow, is_layered): (&Flow, bool),
        own: &[OfPosition],
    ) -> Vec<PartInPlaces> {
        let (mut always, mut more, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for of_position in own {
            let steps = segments.until_rerun(flow, of_position);
            let found = segments.lives(flow, is_layered, &steps).anywhere();
            always.push((of_position.0, found.always));
            more.push((of_position.0, found.more));
            others = found.others;
        }
        let others = self.positions_of(others);
        // A tensor that the maker needs only beside another one counts where the others are.
        let beside = |(places, steps): (Vec<u32>, Steps)| {
            let is_known = places.iter().all(|place| others.contains(place));
            PartInPlaces::new(Some(if is_known { places } else { others.clone() }), steps)
        };
        let more = together(&more).into_iter().map(beside);
        listed(together(&always)).chain(more).collect()
    }
}

fn listed(parts: Vec<(Vec<u32>, Steps)>) -> impl Iterator<Item = PartInPlaces> {
    let parts = parts.into_iter();
    parts.map(|(places, steps)| PartInPlaces::new(Some(places), steps))
}
