//! When variables are live in a stage, where that differs from the profile.

use super::own_steps::{OfPosition, together};
use super::reruns::{Segments, Steps};
use super::{Flow, Flows};
use crate::limits;
use crate::model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse};
use rustc_hash::FxHashMap;

/// When the variables of each use are live in stages.
#[derive(Debug, Default)]
pub(in crate::memory) struct StageLives {
    /// By number of a use: its parts; none if the use is live as in the profile.
    of_uses: Vec<Parts>,
    parts: Vec<StoredPart>,
    /// Live ranges of all parts, one part after the other.
    steps: Vec<(u32, u32)>,
}

/// Index of the first part of a use, and number of its parts; 0 if it is live as in the profile.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    first: u32,
    count: u32,
}

#[derive(Debug)]
struct StoredPart {
    places: Option<PlaceSet>,
    with: Option<u32>,
    /// End of the part's ranges in `steps`; they begin where the ranges of the previous part end.
    end: u32,
}

/// Half-open steps at which variables are live in stages that have one of `places`, or (`None`) in
/// all stages that count the variables.
#[derive(Debug)]
pub(in crate::memory) struct PartOfLife<'l> {
    pub(in crate::memory) places: Option<PlaceSet>,
    /// A position that the stages must have too.
    pub(in crate::memory) with: Option<u32>,
    pub(in crate::memory) steps: &'l [(u32, u32)],
}

/// A [`PartOfLife`] with its places as a list.
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

    /// Is the part live on the recorded steps in all stages?
    fn is_as(&self, recorded: &[(u32, u32)]) -> bool {
        self.places.is_none() && self.with.is_none() && self.steps[..] == *recorded
    }
}

/// Cuts `steps` off at the step `end`, if there is one.
fn until(end: Option<u32>, steps: &[(u32, u32)]) -> Steps {
    let end = end.unwrap_or(u32::MAX);
    let steps = steps.iter().map(|&(from, to)| (from, to.min(end)));
    steps.filter(|(from, to)| from < to).collect()
}

impl StageLives {
    /// Computes when the variables of `model` are live, and adds the place sets that this needs to
    /// `sets`.
    ///
    /// # Errors
    /// When more distinct sets of layers share variables than in any real model.
    pub(super) fn new(
        (model, placement): (&Model, &Placement),
        flows: &Flows,
        sets: &mut PlaceSets,
    ) -> Result<Self, TooManyPlaces> {
        let mut lives = Self::default();
        let mut loading = Loading {
            model,
            placement,
            flows,
            again: flows.recomputes_layers().then_some(&*flows.segments),
            sets,
            known: FxHashMap::default(),
            parts: &mut lives.parts,
            steps: &mut lives.steps,
            left: limits::ENTRIES,
        };
        let numbered = (0u32..).zip(model.variables.uses());
        let of_uses = numbered.map(|(number, variable)| loading.of_use(number, variable));
        lives.of_uses = of_uses.collect::<Result<_, _>>()?;
        sets.check()?;
        Ok(lives)
    }

    /// The parts of the life of a use's variables; `None` if they are live as in the profile.
    #[inline]
    pub(in crate::memory) fn of(
        &self,
        number: u32,
    ) -> Option<impl Iterator<Item = PartOfLife<'_>>> {
        let Parts { first, count } = *self.of_uses.get(number as usize)?;
        let first = first as usize;
        let parts = self.parts[first..][..count as usize].iter();
        let mut from = match first.checked_sub(1) {
            Some(before) if count > 0 => self.parts[before].end as usize,
            _ => 0,
        };
        let parts = parts.map(move |part| {
            let steps = from..part.end as usize;
            from = steps.end;
            PartOfLife {
                places: part.places,
                with: part.with,
                steps: &self.steps[steps],
            }
        });
        (count > 0).then_some(parts)
    }
}

/// Computes when variables are live, once for uses that are alike.
struct Loading<'l> {
    model: &'l Model,
    placement: &'l Placement,
    flows: &'l Flows,
    /// The segments of layers that run again, if any do.
    again: Option<&'l Segments>,
    sets: &'l mut PlaceSets,
    /// Parts by class, flow, [`Flow::is_layered`] and the step where gradients end.
    known: FxHashMap<(u32, u32, bool, Option<u32>), Parts>,
    parts: &'l mut Vec<StoredPart>,
    steps: &'l mut Vec<(u32, u32)>,
    /// Number of step ranges that may still be added.
    left: usize,
}

impl Loading<'_> {
    fn of_use(&mut self, number: u32, variable: &VariableUse) -> Result<Parts, TooManyPlaces> {
        let flows = self.flows;
        let Some(flow) = flows.of(number) else {
            return Ok(Parts::default());
        };
        let own_flow = &flows.list[flow as usize];
        let recorded = self.model.classes.ranges(variable.class);
        let end = flows.summed.until(own_flow, variable.set, recorded);
        let own = flows.own_steps.get(&number);
        if own.is_none() && self.again.is_none() && end.is_none() {
            return Ok(Parts::default());
        }
        let is_layered = own_flow.is_layered(self.placement, variable.set);
        let key = (variable.class, flow, is_layered, end);
        if let Some(&known) = self.known.get(&key).filter(|_| own.is_none()) {
            return Ok(known);
        }
        let of_flow = (own_flow, is_layered);
        let parts = match own {
            None => self.parts(of_flow, until(end, recorded), recorded),
            Some(own) => {
                let own = own.iter();
                let own = own.map(|(position, steps)| (*position, until(end, steps)));
                self.own_parts(of_flow, &own.collect::<Vec<_>>())
            }
        };
        let found = self.add(parts)?;
        if own.is_none() {
            self.known.insert(key, found);
        }
        Ok(found)
    }

    /// Parts of variables that are live at `steps`; empty if that equals the recorded ranges.
    fn parts(
        &self,
        of_flow: (&Flow, bool),
        steps: Steps,
        recorded: &[(u32, u32)],
    ) -> Vec<PartInPlaces> {
        let parts = match self.again {
            None => vec![PartInPlaces::new(None, steps)],
            Some(again) => self.flows.again(again, of_flow, &steps),
        };
        match &parts[..] {
            [part] if part.is_as(recorded) => Vec::new(),
            _ => parts,
        }
    }

    /// Parts of variables that positions need at different steps.
    fn own_parts(&self, of_flow: (&Flow, bool), own: &[OfPosition]) -> Vec<PartInPlaces> {
        match self.again {
            None => listed(together(own)).collect(),
            Some(again) => self.flows.own_again(again, of_flow, own),
        }
    }

    /// Stores parts.
    fn add(&mut self, parts: Vec<PartInPlaces>) -> Result<Parts, TooManyPlaces> {
        let found = Parts {
            first: self.parts.len() as u32,
            count: parts.len() as u32,
        };
        for part in parts {
            let left = self.left.checked_sub(part.steps.len());
            self.left = left.ok_or(TooManyPlaces)?;
            self.steps.extend(part.steps);
            self.parts.push(StoredPart {
                places: part.places.map(|places| self.sets.intern(&places)),
                with: part.with,
                end: self.steps.len() as u32,
            });
        }
        Ok(found)
    }
}

impl Flows {
    /// Parts of variables that are live on `ranges`, where layers run again.
    fn again(
        &self,
        runs: &Segments,
        (flow, is_layered): (&Flow, bool),
        ranges: &[(u32, u32)],
    ) -> Vec<PartInPlaces> {
        let found = runs.lives(flow, is_layered, ranges);
        let others = self.positions_of(found.others);
        let part = |others: Option<&Vec<u32>>, with: Option<u32>, steps: Steps| PartInPlaces {
            with,
            ..PartInPlaces::new(others.cloned(), steps)
        };
        let mut parts = Vec::with_capacity(2 + found.held.len() + found.more_held.len());
        parts.push(part(None, None, found.always));
        parts.push(part(Some(&others), None, found.more));
        let held = found.held.into_iter();
        parts.extend(held.map(|(with, steps)| part(None, with, steps)));
        let held = found.more_held.into_iter();
        parts.extend(held.map(|(with, steps)| part(Some(&others), with, steps)));
        parts.retain(|part| !part.steps.is_empty());
        parts
    }

    /// As [`Flows::again`], for variables that positions need at different steps.
    fn own_again(
        &self,
        runs: &Segments,
        (flow, is_layered): (&Flow, bool),
        own: &[OfPosition],
    ) -> Vec<PartInPlaces> {
        let (mut always, mut more, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for of_position in own {
            let steps = runs.until_rerun(flow, of_position);
            let found = runs.lives(flow, is_layered, &steps).anywhere();
            always.push((of_position.0, found.always));
            more.push((of_position.0, found.more));
            others = found.others;
        }
        let others = self.positions_of(others);
        // More steps count only in stages that have a user besides the maker.
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
