//! The steps at which variables are live in a stage, if they differ from the profile.

use super::reruns::{Held, Segments};
use super::{Flow, Flows};
use crate::limits;
use crate::memory::steps::{Steps, StepsOfPosition, by_positions, merged};
use crate::model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse};
use rustc_hash::FxHashMap;

/// The steps at which the variables of each use (one class and use set) are live in stages of a
/// pipeline, where these differ from the profile.
#[derive(Debug)]
pub(super) struct StageLives {
    /// For each use, by its number in [`CountedUses`](crate::memory::uses::CountedUses): an
    /// index in `lives`. A model can have millions of uses, but few distinct lives.
    of_uses: Vec<u32>,
    /// For each distinct liveness of variables in stages: its parts, which add up. The entry
    /// [`AS_RECORDED`] has no parts, and stands for variables that are live as in the profile.
    lives: Vec<Box<[PartOfLife]>>,
}

/// The steps (half-open) at which variables are live in some stages: in those that have any of
/// `places` or, if that is `None`, in all stages that have the variables. Several such parts of a
/// use add up.
#[derive(Debug)]
pub(crate) struct PartOfLife {
    pub places: Option<PlaceSet>,
    /// A position that a stage must also have, so that the variables are live in it at these steps;
    /// `None` for no such condition.
    pub with: Option<u32>,
    pub steps: Steps,
}

/// Returns the half-open ranges `steps`, cut off at the step `end` (exclusive); all of them if
/// `end` is `None`.
fn until(end: Option<u32>, steps: &[(u32, u32)]) -> Steps {
    let end = end.unwrap_or(u32::MAX);
    steps
        .iter()
        .map(|&(from, to)| (from, to.min(end)))
        .filter(|(from, to)| from < to)
        .collect()
}

impl StageLives {
    /// Computes the steps at which the variables of `model` are live in stages of the pipeline of
    /// `flows`. New sets of positions are added to `sets`.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn new(
        (model, placement): (&Model, &Placement),
        flows: &Flows,
        sets: &mut PlaceSets,
    ) -> Result<Self, TooManyPlaces> {
        let mut loading = Loading {
            model,
            placement,
            flows,
            again: if flows.recomputes_layers() {
                let has_out = placement.positions.out().is_some() || flows.out_is_first;
                Segments::new(&flows.windows, flows.places, has_out)
            } else {
                Segments::default()
            },
            sets,
            known: FxHashMap::default(),
            lives: vec![Box::default()],
            left: limits::ENTRIES,
        };
        let of_uses = (0u32..)
            .zip(model.variables.uses())
            .map(|(number, variable)| loading.of_use(number, variable))
            .collect::<Result<_, _>>()?;
        let lives = loading.lives;
        sets.check()?;
        Ok(Self { of_uses, lives })
    }
}

impl Flows {
    /// Returns the steps at which the variables of a use are live in stages, as parts that add up;
    /// `None` if they are live as in the profile. `number` is as in [`Flows::of_uses`].
    #[inline]
    pub fn lives(&self, number: u32) -> Option<&[PartOfLife]> {
        let known = self.lives.as_ref()?;
        match *known.of_uses.get(number as usize)? {
            AS_RECORDED => None,
            life => Some(&known.lives[life as usize]),
        }
    }
}

/// The index in [`StageLives::lives`] for variables that are live as in the profile.
const AS_RECORDED: u32 = 0;

/// The computation of the liveness of variables in stages, which stores each distinct result once.
struct Loading<'l> {
    model: &'l Model,
    placement: &'l Placement,
    flows: &'l Flows,
    /// The segments (layers that are recomputed one by one); none unless the pipeline recomputes
    /// layers.
    again: Segments,
    sets: &'l mut PlaceSets,
    /// The index in `lives` of each result so far whose positions all need the variables at the
    /// same steps. The key is the class, the number of the flow, [`Flow::is_layered`], and the step
    /// at which an accumulator takes the variables, if they are gradients.
    known: FxHashMap<(u32, u32, bool, Option<u32>), u32>,
    lives: Vec<Box<[PartOfLife]>>,
    /// The number of step ranges that may still be stored before the computation fails.
    left: usize,
}

impl Loading<'_> {
    /// Returns the index in `lives` of the liveness of `variable`, which is stored there if it is
    /// new. `number` is the number of this use in
    /// [`CountedUses`](crate::memory::uses::CountedUses).
    ///
    /// # Errors
    /// If more step ranges must be stored than [`limits::ENTRIES`].
    fn of_use(&mut self, number: u32, variable: &VariableUse) -> Result<u32, TooManyPlaces> {
        let flows = self.flows;
        let Some(flow) = flows.of(number) else {
            return Ok(AS_RECORDED);
        };
        let own_flow = &flows.list[flow as usize];
        let recorded = self.model.classes.ranges(variable.class);
        let end = flows.summed.until(own_flow, variable.set, recorded);
        let own = flows.own_steps.get(&number);
        if own.is_none() && end.is_none() && !flows.recomputes_layers() {
            return Ok(AS_RECORDED);
        }
        let is_layered = own_flow.is_layered(self.placement, variable.set);
        let key = (variable.class, flow, is_layered, end);
        if let Some(&known) = self.known.get(&key).filter(|_| own.is_none()) {
            return Ok(known);
        }
        let parts = match own {
            Some(own) => self.of_positions((own_flow, is_layered), own, end),
            None => self.of_all((own_flow, is_layered), &until(end, recorded)),
        };
        let is_recorded = |part: &PartOfLife| {
            part.places.is_none() && part.with.is_none() && part.steps[..] == *recorded
        };
        let life = match &parts[..] {
            [] => AS_RECORDED,
            [part] if is_recorded(part) => AS_RECORDED,
            _ => self.store(parts)?,
        };
        if own.is_none() {
            self.known.insert(key, life);
        }
        Ok(life)
    }

    /// Returns the liveness in stages of variables that would be live at `steps` in all stages if
    /// no layer were recomputed. `flow` is the flow of the variables, `is_layered` its
    /// [`Flow::is_layered`].
    fn of_all(&mut self, (flow, is_layered): (&Flow, bool), steps: &Steps) -> Vec<PartOfLife> {
        let found = self.again.lives(flow, is_layered, steps);
        let others = self.flows.positions_of(found.others);
        found
            .everywhere
            .into_iter()
            .map(|held| (None, held))
            .chain(found.beside.into_iter().map(|held| (Some(&others), held)))
            .filter(|(_, (_, steps))| !steps.is_empty())
            .map(|(places, (with, steps))| PartOfLife {
                places: places.map(|places| self.sets.intern(places)),
                with,
                steps,
            })
            .collect()
    }

    /// Like [`Loading::of_all`], for variables that each position needs at other steps, which `own`
    /// has, cut off at the step `end` (exclusive).
    fn of_positions(
        &mut self,
        (flow, is_layered): (&Flow, bool),
        own: &[StepsOfPosition],
        end: Option<u32>,
    ) -> Vec<PartOfLife> {
        let (mut always, mut more, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (position, steps) in own {
            let needed = (*position, until(end, steps));
            let needed = self.again.until_rerun(flow, &needed);
            let found = self.again.lives(flow, is_layered, &needed);
            always.push((*position, all_steps(found.everywhere)));
            more.push((*position, all_steps(found.beside)));
            others = found.others;
        }
        let others = self.flows.positions_of(others);
        // The steps in `more` apply only to stages with a user of the tensor other than its maker.
        let more = by_positions(&more).into_iter().map(|(places, steps)| {
            let is_known = places.iter().all(|place| others.contains(place));
            (if is_known { places } else { others.to_vec() }, steps)
        });
        by_positions(&always)
            .into_iter()
            .chain(more)
            .map(|(places, steps)| PartOfLife {
                places: Some(self.sets.intern(&places)),
                with: None,
                steps,
            })
            .collect()
    }

    /// Stores the parts of the liveness of one use, and returns their index in `lives`.
    ///
    /// # Errors
    /// If more step ranges must be stored than [`limits::ENTRIES`].
    fn store(&mut self, parts: Vec<PartOfLife>) -> Result<u32, TooManyPlaces> {
        self.left = self
            .left
            .checked_sub(parts.iter().map(|part| part.steps.len()).sum())
            .ok_or(TooManyPlaces)?;
        self.lives.push(parts.into());
        Ok(self.lives.len() as u32 - 1)
    }
}

/// Merges the steps of all entries of `held`, ignoring the place of each entry, which stages must
/// have.
fn all_steps(held: Vec<Held>) -> Steps {
    merged(held.into_iter().flat_map(|(_, steps)| steps))
}
