//! The steps at which variables are live in stages of a pipeline. Only variables for which these
//! steps differ from the profile need them.

use super::reruns::{Held, Segments};
use super::{Flow, Flows};
use crate::limits;
use crate::memory::steps::{Steps, StepsOfPosition, by_positions, merged};
use crate::model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse};
use rustc_hash::FxHashMap;

/// The steps at which the variables of each use are live in stages of a pipeline. A use is all
/// variables with the same equivalence class and use set.
#[derive(Debug)]
pub(super) struct StageLives {
    /// One entry per use, in the order of [`CountedUses`](crate::memory::uses::CountedUses): an
    /// index into `lives`. Many uses share an entry of `lives`: a model can have millions of uses.
    of_uses: Vec<u32>,
    /// One entry per distinct liveness of variables: a list of parts. The variables are live in a
    /// stage at the steps of all parts that apply to the stage. The entry with the index
    /// [`AS_RECORDED`] has no parts and stands for variables that are live as in the profile.
    lives: Vec<Box<[PartOfLife]>>,
}

/// Half-open steps at which variables are live in some stages. The steps apply to stages that have
/// any of `places`; if `places` is `None`, they apply to all stages that have the variables. A use
/// can have several such parts, whose steps add up.
#[derive(Debug)]
pub(crate) struct PartOfLife {
    pub places: Option<PlaceSet>,
    /// One more position that a stage must have, or the steps do not apply to it. `None` if there
    /// is no such condition.
    pub with: Option<u32>,
    pub steps: Steps,
}

/// Returns the half-open ranges `steps`, cut off at the step `end` (exclusive). Returns all of
/// `steps` if `end` is `None`.
fn until(end: Option<u32>, steps: &[(u32, u32)]) -> Steps {
    let end = end.unwrap_or(u32::MAX);
    steps
        .iter()
        .map(|&(from, to)| (from, to.min(end)))
        .filter(|(from, to)| from < to)
        .collect()
}

impl StageLives {
    /// Computes the steps at which the variables of `model` are live in stages of the pipeline that
    /// `flows` belongs to. New sets of positions are added to `sets`.
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
    /// Returns the steps at which the variables of one use are live in stages, as parts whose steps
    /// add up. Returns `None` if the variables are live as in the profile. `number` is the number
    /// of the use in [`CountedUses`](crate::memory::uses::CountedUses).
    #[inline]
    pub fn lives(&self, number: u32) -> Option<&[PartOfLife]> {
        let known = self.lives.as_ref()?;
        match known.of_uses[number as usize] {
            AS_RECORDED => None,
            life => Some(&known.lives[life as usize]),
        }
    }
}

/// The index into [`StageLives::lives`] that stands for variables that are live as in the profile.
const AS_RECORDED: u32 = 0;

/// State of the computation in [`StageLives::new`], which stores each distinct liveness of
/// variables once.
struct Loading<'l> {
    model: &'l Model,
    placement: &'l Placement,
    flows: &'l Flows,
    /// The segments: runs of layers that are recomputed together. There are none unless the
    /// pipeline recomputes layers.
    again: Segments,
    sets: &'l mut PlaceSets,
    /// Indices into `lives` of results that are already stored, for uses whose variables all
    /// positions need at the same steps. The key is the equivalence class, the index of the flow,
    /// [`Flow::is_layered`] and, for gradients, the step at which an accumulator takes the
    /// variables.
    known: FxHashMap<(u32, u32, bool, Option<u32>), u32>,
    lives: Vec<Box<[PartOfLife]>>,
    /// The number of step ranges that may still be stored. If more are needed, the computation
    /// fails.
    left: usize,
}

impl Loading<'_> {
    /// Returns the index into `lives` of the steps at which the variables of one use (`variable`)
    /// are live in stages. If these steps are new, they are stored in `lives`. `number` is the
    /// number of the use in [`CountedUses`](crate::memory::uses::CountedUses).
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
        let is_recorded = match &parts[..] {
            [] => true,
            [
                PartOfLife {
                    places: None,
                    with: None,
                    steps,
                },
            ] => **steps == *recorded,
            _ => false,
        };
        let mut life = AS_RECORDED;
        if !is_recorded {
            life = self.lives.len() as u32;
            self.left = self
                .left
                .checked_sub(parts.iter().map(|part| part.steps.len()).sum())
                .ok_or(TooManyPlaces)?;
            self.lives.push(parts.into());
        }
        if own.is_none() {
            self.known.insert(key, life);
        }
        Ok(life)
    }

    /// Returns the steps at which the variables of a use are live in stages, if they would be live
    /// at `steps` in all stages without recomputation. `flow` is the flow of the variables, and
    /// `is_layered` is [`Flow::is_layered`] for them.
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

    /// Returns the same as [`Loading::of_all`], for variables that different positions need at
    /// different steps. `own` has the steps of each position; they are cut off at the step `end`
    /// (exclusive).
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
        // The steps in `more` apply only to stages that have a user of the tensor besides its
        // maker.
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
}

/// Returns all steps in `held`, merged. The place of each entry, which stages must have, is
/// ignored.
fn all_steps(held: Vec<Held>) -> Steps {
    merged(held.into_iter().flat_map(|(_, steps)| steps))
}
