//! When variables are live in a stage, where that is not as in the profile.

use super::own_steps::{OfPosition, together};
use super::reruns::{RunAgain, Steps};
use super::{Flow, Flows};
use crate::limits;
use crate::model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// When the variables of uses are live in stages.
#[derive(Debug, Default)]
pub(in crate::memory) struct StageLives {
    /// By number of the use: its place in `lives`, if that is not as in the profile.
    of_uses: Vec<Option<u32>>,
    lives: Vec<Box<[PartOfLife]>>,
}

/// The uses that one stage is computed of.
#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct UsesInStage<'s> {
    pub(in crate::memory) positions: &'s Range<usize>,
    /// Those of data, ascending.
    pub(in crate::memory) numbers: &'s [u32],
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

    /// Is it in all places what was recorded?
    fn is_as(&self, recorded: &[(u32, u32)]) -> bool {
        self.places.is_none() && self.with.is_none() && self.steps == recorded
    }
}

/// These steps as far as they are before one.
fn until(end: Option<u32>, steps: &[(u32, u32)]) -> Steps {
    let end = end.unwrap_or(u32::MAX);
    let steps = steps.iter().map(|&(from, to)| (from, to.min(end)));
    steps.filter(|(from, to)| from < to).collect()
}

impl StageLives {
    /// Those of `model`, whose `sets` get what is needed for that. They take the place of what
    /// was loaded `only` for the same uses before, or for all.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(in crate::memory) fn load(
        &mut self,
        (model, placement): (&Model, &Placement),
        flows: &Flows,
        sets: &mut PlaceSets,
        only: Option<UsesInStage<'_>>,
    ) -> Result<(), TooManyPlaces> {
        self.lives.clear();
        let stage = only.map(|only| only.positions);
        let again = flows.recomputes_layers();
        let again = again.then(|| [stage, None].map(|stage| flows.segments.chosen(flows, stage)));
        let mut loading = Loading {
            model,
            placement,
            flows,
            again,
            sets,
            known: FxHashMap::default(),
            lives: &mut self.lives,
            left: limits::ENTRIES,
        };
        let uses = model.variables.uses();
        self.of_uses.resize(uses.len(), None);
        let mut load = |number: u32| -> Result<(), TooManyPlaces> {
            let at = number as usize;
            if let Some(variable) = uses.get(at) {
                self.of_uses[at] = loading.of_use(number, variable)?;
            }
            Ok(())
        };
        match only {
            Some(only) => only.numbers.iter().try_for_each(|&number| load(number)),
            None => (0..uses.len() as u32).try_for_each(load),
        }?;
        sets.check()
    }

    /// When the variables of a use are live, if that is not as in the profile.
    #[inline]
    pub(in crate::memory) fn of(&self, number: u32) -> Option<&[PartOfLife]> {
        let life = *self.of_uses.get(number as usize)?;
        Some(&self.lives[life? as usize])
    }
}

/// Finds when variables are live, each kind of them once.
struct Loading<'l> {
    model: &'l Model,
    placement: &'l Placement,
    flows: &'l Flows,
    /// What runs again, if anything does: as far as it counts in the stages that are asked for,
    /// and all of it.
    again: Option<[RunAgain<'l>; 2]>,
    sets: &'l mut PlaceSets,
    /// By class, flow and where gradients end.
    known: FxHashMap<(u32, u32, bool, Option<u32>), Option<u32>>,
    lives: &'l mut Vec<Box<[PartOfLife]>>,
    /// How many more steps there may be.
    left: usize,
}

impl Loading<'_> {
    /// The place in `lives` of the variables of a use.
    fn of_use(
        &mut self,
        number: u32,
        variable: &VariableUse,
    ) -> Result<Option<u32>, TooManyPlaces> {
        let flows = self.flows;
        let Some(flow) = flows.of(number) else {
            return Ok(None);
        };
        let own_flow = &flows.list[flow as usize];
        let recorded = self.model.classes.ranges(variable.class);
        let end = flows.summed.until(own_flow, variable.set, recorded);
        let own = flows.own_steps.get(&number);
        if own.is_none() && self.again.is_none() && end.is_none() {
            return Ok(None);
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

    /// Those of variables that are live at these steps; none if that comes to what is recorded.
    fn parts(
        &self,
        of_flow: (&Flow, bool),
        steps: Steps,
        recorded: &[(u32, u32)],
    ) -> Vec<PartInPlaces> {
        let parts = match &self.again {
            None => vec![PartInPlaces::new(None, steps)],
            Some([again, _]) => self.flows.again(again, of_flow, &steps),
        };
        match &parts[..] {
            [part] if part.is_as(recorded) => Vec::new(),
            _ => parts,
        }
    }

    /// Those of variables that positions need at steps of their own.
    fn own_parts(&self, of_flow: (&Flow, bool), own: &[OfPosition]) -> Vec<PartInPlaces> {
        match &self.again {
            None => listed(together(own)).collect(),
            Some([_, again]) => self.flows.own_again(again, of_flow, own),
        }
    }

    /// Where these come in `lives`; nowhere if there are none.
    fn add(&mut self, parts: Vec<PartInPlaces>) -> Result<Option<u32>, TooManyPlaces> {
        if parts.is_empty() {
            return Ok(None);
        }
        let steps: usize = parts.iter().map(|part| part.steps.len()).sum();
        self.left = self.left.checked_sub(steps).ok_or(TooManyPlaces)?;
        let part = |part: PartInPlaces| PartOfLife {
            places: part.places.map(|places| self.sets.intern(&places)),
            with: part.with,
            steps: part.steps.into(),
        };
        self.lives.push(parts.into_iter().map(part).collect());
        Ok(Some(self.lives.len() as u32 - 1))
    }
}

impl Flows {
    /// When variables are live where layers run again.
    fn again(
        &self,
        runs: &RunAgain<'_>,
        (flow, is_layered): (&Flow, bool),
        ranges: &[(u32, u32)],
    ) -> Vec<PartInPlaces> {
        let found = runs.lives(flow, is_layered, ranges);
        let others = self.positions_of(found.others);
        let part = |others: Option<&Vec<u32>>, with: Option<u32>, steps: Steps| PartInPlaces {
            with,
            ..PartInPlaces::new(others.cloned(), steps)
        };
        let mut parts = vec![part(None, None, found.always)];
        parts.push(part(Some(&others), None, found.more));
        let held = found.held.into_iter();
        parts.extend(held.map(|(with, steps)| part(None, with, steps)));
        let held = found.more_held.into_iter();
        parts.extend(held.map(|(with, steps)| part(Some(&others), with, steps)));
        parts.retain(|part| !part.steps.is_empty());
        parts
    }

    /// The same where positions need the variables at steps of their own.
    fn own_again(
        &self,
        runs: &RunAgain<'_>,
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
