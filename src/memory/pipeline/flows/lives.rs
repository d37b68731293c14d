//! The liveness steps at which variables are live in stages of a pipeline. Only variables for which
//! these steps differ from the profile have an entry, above all variables of recomputed layers.
//!
//! A layer that is recomputed is a *segment* (In and the first layer together are one): its forward
//! pass runs again right before its backward pass. The steps of its forward pass in the profile
//! stand for both runs.
//! * A tensor that only its segment uses is not live between the forward and the backward pass of
//!   the segment (the *gap*).
//! * A tensor that other layers of the stage also use, or that comes from an earlier layer, is a
//!   checkpoint. It is live as in the profile. If only forward passes use it, it is live until the
//!   first of these passes has been recomputed.
//! * A tensor that is live across the start of a segment's backward pass is also live while the
//!   segment is recomputed.
//!
//! A gradient that is added to an accumulator is live only until both passes end (docs/model.md,
//! "Accumulators and updates").
//!
//! A tensor may be a checkpoint in one stage and not in another, since stages have different users
//! of it. So some of its liveness steps apply only to stages with a user besides its maker.

use super::{Flow, Flows, Life, PassWindows, UseInPipeline};
use crate::{
    limits,
    memory::phases,
    memory::steps::{Steps, StepsOfPosition, by_positions, merged, without},
    model::{Model, PlaceSet, PlaceSets, Placement, TooManyPlaces, VariableUse, ascending},
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The liveness steps at which variables are live in stages of a pipeline, for each use (variables
/// that are live at the same steps of the profile and are used by the same operations).
#[derive(Debug, Default)]
pub struct StageLives {
    /// One entry per use (variables that are live at the same steps of the profile and are used by
    /// the same operations): the range of indices of the use's entries in `parts`. The range is
    /// empty if the variables are live in stages as in the profile. Many uses share a range.
    of_uses: Vec<Range<u32>>,
    /// Liveness steps, as a range of indices into `steps`, and the condition on stages under which
    /// variables are live at these steps. `of_uses` says for which variables.
    parts: Vec<(Condition, Range<u32>)>,
    steps: Steps,
}

/// Selects the stages in which variables are live at given liveness steps: those that have a
/// position of the set `places` (In, layers, Out), and also have the position `with`. If a field is
/// `None`, it excludes no stage.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    /// Selects stages that have at least one of these positions (In, layers, Out); `None` selects
    /// all.
    pub places: Option<PlaceSet>,
    /// Selects stages that have this position (In, a layer or Out); `None` selects all.
    pub with: Option<u32>,
}

/// The number of cases that are computed in parallel. A case ([`LifeCase`]) stands for variables
/// that are live at the same steps in each stage. The steps of these cases are stored before the
/// next cases begin, which limits the memory of steps that are not yet stored.
const CASES_AT_ONCE: usize = 1 << 14;

impl StageLives {
    /// Computes the liveness steps at which the variables of `model` are live in stages of a
    /// pipeline. `flows` has the settings of the pipeline, and the groups of tensors that the same
    /// layers use. New sets of positions (In, layers, Out) are added to `sets`.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn new(
        (model, placement): (&Model, &Placement),
        flows: &Flows,
        sets: &mut PlaceSets,
    ) -> Result<Self, TooManyPlaces> {
        let has_accumulators = flows
            .of_uses
            .iter()
            .any(|of_use| matches!(of_use, UseInPipeline::Accumulated(_)));
        let [.., after] = phases(model, placement);
        let end = after.start;
        let finder = LifeFinder {
            model,
            placement,
            flows,
            again: if flows.recomputes_layers() {
                let has_out = placement.positions.out().is_some() || flows.out_is_first;
                Segments::new(&flows.windows, flows.places - u32::from(has_out))
            } else {
                Segments::default()
            },
            is_used_after: if has_accumulators {
                let is_after = model.groups_from(end);
                model.sets_of_any(|group| {
                    is_after[group] && model.operation_groups[group].computes()
                })
            } else {
                vec![false; model.use_sets.len()]
            },
            end,
        };
        let of_uses: Vec<Option<LifeCase>> = (0..model.variables.uses().len() as u32)
            .into_par_iter()
            .map(|number| finder.case(number))
            .collect();
        let (mut cases, mut numbers) = (Vec::new(), FxHashMap::default());
        let mut number = |case: LifeCase| {
            *numbers.entry(case).or_insert_with(|| {
                cases.push(case);
                cases.len() - 1
            })
        };
        let case_of: Vec<Option<usize>> = of_uses
            .into_iter()
            .map(|case| case.map(&mut number))
            .collect();
        let mut found = Self::default();
        let mut stored = Vec::new();
        for cases in cases.chunks(CASES_AT_ONCE) {
            let lives: Vec<_> = cases.par_iter().map(|case| finder.parts(case)).collect();
            for parts in lives {
                stored.push(found.store(parts, sets)?);
            }
        }
        found.of_uses = case_of
            .into_iter()
            .map(|case| case.map_or(0..0, |case| stored[case].clone()))
            .collect();
        sets.check()?;
        Ok(found)
    }

    /// Stores `parts`: liveness steps of variables, each part with the condition that a stage must
    /// meet for the variables to be live in it at these steps. Returns the range of the new entries
    /// of `self.parts`. New sets of positions (In, layers, Out) are added to `sets`.
    fn store(
        &mut self,
        parts: Vec<LifePart>,
        sets: &mut PlaceSets,
    ) -> Result<Range<u32>, TooManyPlaces> {
        let first = self.parts.len() as u32;
        for part in parts {
            let condition = Condition {
                places: part.places.map(|places| sets.intern(&places)),
                with: part.with,
            };
            let from = self.steps.len() as u32;
            self.steps.extend(part.steps);
            self.parts.push((condition, from..self.steps.len() as u32));
        }
        if self.steps.len() > limits::ENTRIES {
            return Err(TooManyPlaces);
        }
        Ok(first..self.parts.len() as u32)
    }
}

impl Flows {
    /// Returns the liveness steps at which variables are live in stages, as pairs of a
    /// [`Condition`] and at least one range of steps. In a stage, the variables are live at the
    /// steps of all pairs whose condition the stage meets. Returns `None` if they are live in
    /// stages as in the profile. `number` is the index of the variables in
    /// [`CountedUses`](crate::memory::uses::CountedUses).
    #[inline]
    pub fn lives(&self, number: u32) -> Option<impl Iterator<Item = (Condition, &[(u32, u32)])>> {
        let known = self.lives.as_ref()?;
        let range = |of: &Range<u32>| of.start as usize..of.end as usize;
        let parts = &known.parts[range(&known.of_uses[number as usize])];
        (!parts.is_empty()).then(|| {
            parts
                .iter()
                .map(move |(condition, steps)| (*condition, &known.steps[range(steps)]))
        })
    }
}

/// The properties of variables that determine at which liveness steps they are live in stages. A
/// model can have millions of groups of variables, but few distinct cases.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LifeCase {
    class: u32,
    flow: u32,
    is_layered: bool,
    /// If the variables are gradients that an accumulator takes before they die in the profile: the
    /// liveness step from which on they are not live in stages. `None` for all other variables.
    end: Option<u32>,
    /// If positions (In, layers, Out) need the variables at different liveness steps: the index of
    /// the variables, under which [`Flows::own_steps`] has these steps. `None` if all positions
    /// need them at the same steps.
    own: Option<u32>,
}

/// Liveness steps at which variables are live in the stages that meet a [`Condition`].
struct LifePart {
    places: Option<Box<[u32]>>,
    with: Option<u32>,
    steps: Steps,
}

/// Finds the liveness steps at which variables are live in stages of a pipeline.
struct LifeFinder<'f> {
    model: &'f Model,
    placement: &'f Placement,
    flows: &'f Flows,
    /// One entry per layer that may be recomputed, with the liveness steps of its passes. Empty
    /// unless the pipeline recomputes layers.
    again: Segments,
    /// One entry per use set (the operations that use a variable): whether one of these operations
    /// starts after the forward and the backward pass and runs vertices, such as a weight update.
    /// In a stage, such an operation uses the accumulator in place of the gradient, so the gradient
    /// is live only until both passes end. All entries are false if the pipeline adds no
    /// accumulators.
    is_used_after: Vec<bool>,
    /// The first liveness step after the forward and the backward pass of the model. In stages,
    /// gradients that are added to accumulators are live only before this step.
    end: u32,
}

impl LifeFinder<'_> {
    /// Returns the properties that determine at which liveness steps the variables of a use are
    /// live in stages; `None` if they are live as in the profile. `number` is the index of the use
    /// (variables that are live at the same steps of the profile and are used by the same
    /// operations).
    fn case(&self, number: u32) -> Option<LifeCase> {
        let VariableUse { class, set, .. } = self.model.variables.uses()[number as usize];
        let flow = self.flows.of(number)?;
        let own_flow = &self.flows.list[flow as usize];
        let recorded = self.model.classes.ranges(class);
        let end = self.end_of_gradient(own_flow, set, recorded);
        let has_own = self.flows.own_steps.contains_key(&number);
        (has_own || end.is_some() || self.flows.recomputes_layers()).then(|| LifeCase {
            class,
            flow,
            is_layered: own_flow.is_layered(self.placement, set),
            end,
            own: has_own.then_some(number),
        })
    }

    /// Returns the first liveness step at which gradients are no longer live in stages, because
    /// they have been added to an accumulator. Returns `None` for other variables, and for
    /// gradients that are not live across this step in the profile (live ranges `ranges`,
    /// half-open). The gradients belong to `flow`, and `set` is their use set (the operations that
    /// use them).
    fn end_of_gradient(&self, flow: &Flow, set: u32, ranges: &[(u32, u32)]) -> Option<u32> {
        let (&(begin, _), &(_, last)) = ranges.first().zip(ranges.last())?;
        let is_summed = flow.life == Life::Backward && self.is_used_after[set as usize];
        (is_summed && begin < self.end && self.end < last).then_some(self.end)
    }

    /// Returns the liveness steps at which a group of variables, described by `case`, is live in
    /// stages, with the stages to which they apply. The list is empty if the variables are live in
    /// stages as in the profile.
    fn parts(&self, case: &LifeCase) -> Vec<LifePart> {
        let recorded = self.model.classes.ranges(case.class);
        let mut parts = match case.own {
            Some(number) => self.of_positions(case, &self.flows.own_steps[&number]),
            None => self.of_all(case, recorded),
        };
        let is_recorded = |part: &LifePart| {
            part.places.is_none() && part.with.is_none() && *part.steps == *recorded
        };
        if parts.iter().all(is_recorded) {
            parts.clear();
        }
        parts
    }

    /// Returns the liveness steps at which the variables of `case` are live in stages, if all
    /// positions (In, layers, Out) need them at the same steps. Recomputation of layers and
    /// accumulators of gradients can make them differ from `recorded`, the steps of the profile.
    fn of_all(&self, case: &LifeCase, recorded: &[(u32, u32)]) -> Vec<LifePart> {
        let flow = &self.flows.list[case.flow as usize];
        let found = self
            .again
            .lives(flow, case.is_layered, &case.until_end(recorded));
        let others = self.positions_of(found.others);
        let parts = [(None, found.everywhere), (Some(others), found.beside)];
        parts
            .into_iter()
            .flat_map(|(places, held)| {
                held.into_iter().map(move |(with, steps)| LifePart {
                    places: places.clone(),
                    with,
                    steps,
                })
            })
            .filter(|part| !part.steps.is_empty())
            .collect()
    }

    /// Converts places (In, layers, Out) to positions in the layer order, ascending and without
    /// duplicates. They differ only if Out is on the first IPU: Out then has the position of In.
    fn positions_of(&self, places: Vec<u32>) -> Box<[u32]> {
        let positions = &self.placement.positions;
        let places = places.into_iter();
        ascending(places.map(|place| positions.of_place(place) as u32))
    }

    /// Returns the liveness steps at which the variables of `case` are live in stages, if positions
    /// (In, layers, Out) need them at different steps. `own` has the steps at which each position
    /// needs them if no layer is recomputed.
    fn of_positions(&self, case: &LifeCase, own: &[StepsOfPosition]) -> Vec<LifePart> {
        let flow = &self.flows.list[case.flow as usize];
        let (mut always, mut more, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (position, steps) in own {
            let needed = self
                .again
                .until_rerun(flow, &(*position, case.until_end(steps)));
            let found = self.again.lives(flow, case.is_layered, &needed);
            let at = |(_, steps): Held| (*position, steps);
            always.extend(found.everywhere.into_iter().map(at));
            more.extend(found.beside.into_iter().map(at));
            others = found.others;
        }
        let others = self.positions_of(others);
        // Both lists pair positions (In, layers, Out) with liveness steps. At the steps in
        // `always`, the variables are live in each stage with the position. At those in `more`,
        // they are live only in stages with a position of `others`, which use the variables but do
        // not make them.
        let more = by_positions(&more).into_iter().map(|(places, steps)| {
            let is_known = places.iter().all(|place| others.contains(place));
            (if is_known { places } else { others.to_vec() }, steps)
        });
        by_positions(&always)
            .into_iter()
            .chain(more)
            .map(|(places, steps)| LifePart {
                places: Some(places.into()),
                with: None,
                steps,
            })
            .collect()
    }
}

impl LifeCase {
    /// Returns `steps`, the liveness steps of these variables, as half-open ranges. If the
    /// variables are gradients that are added to an accumulator, steps at which they are no longer
    /// live in stages ([`LifeCase::end`]) are left out.
    fn until_end(&self, steps: &[(u32, u32)]) -> Steps {
        let end = self.end.unwrap_or(u32::MAX);
        steps
            .iter()
            .map(|&(from, to)| (from, to.min(end)))
            .filter(|(from, to)| from < to)
            .collect()
    }
}

/// A place (In or a layer) that is recomputed: its forward pass runs again right before its
/// backward pass.
struct Segment {
    /// The liveness steps of the forward pass in the profile (end exclusive). They stand for both
    /// runs of this pass: the first run, and the recomputation before the backward pass.
    forward: (u32, u32),
    /// The first liveness step of the backward pass of a recomputed layer. Tensors that are live
    /// just before and at this step are also live while the layer is recomputed.
    backward_start: u32,
    /// The liveness steps between the forward and the backward pass of a recomputed layer, at which
    /// its own activations are not live.
    gap: Steps,
}

/// One entry per place (In, layers, Out) in a pipeline that recomputes each layer: the liveness
/// steps of the place's passes, and those between them. `None` for a place that is not recomputed,
/// such as Out (the operations after the last layer), whose tensors are all kept. In (the
/// operations before the first layer) is recomputed together with the first layer.
#[derive(Default)]
struct Segments(Vec<Option<Segment>>);

impl Segments {
    /// Finds the liveness steps of each place that is recomputed. `layers` is the number of places
    /// that may be recomputed: In and the layers.
    fn new(windows: &PassWindows, layers: u32) -> Self {
        let known = |place: u32| windows.at(place).forward.zip(windows.at(place).backward);
        // The profile may list some forward steps of one layer as steps of another. So the forward
        // pass of a layer is taken to last until the forward pass of the next layer starts.
        let starts = |next: u32| windows.at(next).forward.map_or(0, |(first, _)| first);
        let segment = |place: u32| {
            let ((first_forward, last_forward), (backward_start, _)) = known(place)?;
            // In (place 0) and the first layer (place 1) are recomputed together. So activations of
            // In are not live between the forward and the backward passes of both.
            let next = match place {
                0 if layers > 1 => 2,
                _ => place + 1,
            };
            let found = || (place..next).filter_map(known);
            let last = found().map(|((_, last), _)| last + 1).max()?;
            let first = found().map(|(_, (first, _))| first).min()?;
            let ends = windows
                .at(next)
                .backward
                .map_or(first, |(_, last)| last + 1);
            let gap = (starts(next).max(last), first.min(ends));
            let bodies = (place..next).flat_map(|place| &windows.at(place).bodies);
            Some(Segment {
                forward: (first_forward, starts(place + 1).max(last_forward + 1)),
                backward_start,
                gap: without(&[gap], &merged(bodies.copied())),
            })
        };
        Self((0..layers).map(segment).collect())
    }

    fn of(&self, place: u32) -> Option<&Segment> {
        self.0.get(place as usize)?.as_ref()
    }

    /// Returns additional liveness steps at which variables are live because layers are recomputed.
    /// Variables that are live across the start of a layer's backward pass are also live while the
    /// layer is recomputed. `ranges` are their half-open live ranges in the profile. Only places
    /// (In or layers) for which `is_of` returns true are considered.
    fn held(&self, ranges: &[(u32, u32)], is_of: impl Fn(u32) -> bool) -> Vec<Held> {
        let is_live_over = |start: u32| {
            let begun = ranges.partition_point(|&(from, _)| from < start);
            ranges[..begun].last().is_some_and(|&(_, to)| start < to)
        };
        let found: Vec<StepsOfPosition> = (0..self.0.len() as u32)
            .filter(|&place| {
                is_of(place)
                    && self
                        .of(place)
                        .is_some_and(|segment| is_live_over(segment.backward_start))
            })
            // In (place 0) is recomputed together with the first layer (place 1). Variables that
            // are live during the recomputation of the first layer are also live during that of In.
            .flat_map(|place| if place == 1 { 0..2 } else { place..place + 1 })
            .filter_map(|place| Some((place, without(&[self.of(place)?.forward], ranges))))
            .collect();
        by_positions(&found)
            .into_iter()
            .map(|(places, steps)| match places[..] {
                [place] => (Some(place), steps),
                _ => (None, steps),
            })
            .collect()
    }

    /// Returns the liveness steps at which variables of `flow` are live in stages with recomputed
    /// layers. `ranges` are the half-open steps at which they would be live without recomputation.
    /// `is_layered` says whether it is known which layer recomputes them.
    fn lives(&self, flow: &Flow, is_layered: bool, ranges: &[(u32, u32)]) -> Lives {
        let maker = flow.maker();
        let recomputed = maker.and_then(|maker| Some((maker, self.of(maker)?)));
        match (flow.life, recomputed) {
            (Life::Forward, _) => {
                let (others, until): (Vec<_>, Vec<_>) = flow
                    .forward
                    .iter()
                    .copied()
                    .filter(|&place| Some(place) != maker)
                    .filter_map(|place| Some((place, self.of(place)?.backward_start)))
                    .unzip();
                let kept = ranges
                    .first()
                    .zip(until.iter().min())
                    .map(|(&(from, _), &until)| (from, until.max(from)));
                Lives {
                    everywhere: vec![(None, ranges.into())],
                    beside: vec![(None, without(kept.as_slice(), ranges))],
                    others,
                }
            }
            (Life::AcrossPasses, Some((maker, segment))) if is_layered => {
                // In (place 0) and the first layer (place 1) are recomputed together. If one of
                // them makes the tensors, both count as the maker.
                let is_own = |place: u32| place.max(1) == maker.max(1);
                let of_others = self.held(ranges, |place| !is_own(place));
                let all = merged(of_others.iter().flat_map(|(_, steps)| steps).copied());
                let mut beside = self.held(ranges, is_own);
                for (_, steps) in &mut beside {
                    *steps = without(steps, &all);
                }
                let mut everywhere = Vec::new();
                for (place, steps) in of_others.into_iter().chain([(None, ranges.into())]) {
                    let kept = without(&steps, &segment.gap);
                    beside.push((place, without(&steps, &kept)));
                    everywhere.push((place, kept));
                }
                Lives {
                    everywhere,
                    beside,
                    others: flow
                        .forward
                        .iter()
                        .chain(&flow.backward)
                        .copied()
                        .filter(|&user| user != maker)
                        .collect(),
                }
            }
            // All other tensors are live as in the profile, such as gradients, and tensors whose
            // maker is unknown or is not recomputed. If they are live across the start of a layer's
            // backward pass, they are also live while the layer is recomputed.
            _ => {
                let mut everywhere = self.held(ranges, |_| true);
                everywhere.push((None, ranges.into()));
                Lives {
                    everywhere,
                    ..Lives::default()
                }
            }
        }
    }

    /// Returns the liveness steps at which a position (In, a layer or Out) needs a variable in a
    /// pipeline that recomputes layers. These are `steps`, at which it needs the variable without
    /// recomputation. If the variable is an input of the position's forward pass, all steps from
    /// the first of `steps` to the start of its backward pass are added, since its forward pass
    /// runs again just before this start. `flow` has the users of the variable.
    fn until_rerun(&self, flow: &Flow, (position, steps): &StepsOfPosition) -> Steps {
        let is_input = flow.forward.contains(position) && flow.maker() != Some(*position);
        let kept = steps
            .first()
            .zip(self.of(*position).filter(|_| is_input))
            .map(|(&(from, _), segment)| (from, segment.backward_start));
        merged(steps.iter().copied().chain(kept))
    }
}

/// Half-open ranges of liveness steps at which variables are live in stages that have a certain
/// place (In, a layer or Out). The place comes first; `None` stands for all stages that have the
/// variables.
type Held = (Option<u32>, Steps);

/// The liveness steps at which variables of one flow (tensors with the same users) are live in
/// stages with recomputed layers.
#[derive(Default)]
struct Lives {
    /// Ranges of liveness steps at which tensors with the same users are live in a stage, whichever
    /// of these users the stage has.
    everywhere: Vec<Held>,
    /// Ranges of liveness steps at which tensors with the same users are live only in stages with
    /// at least one of `others`: users that do not make the tensors.
    beside: Vec<Held>,
    /// The users (In, layers, Out) of a group of tensors, without the user that makes the tensors.
    /// If the tensors are live only in the forward pass, only users whose forward pass is recomputed
    /// are listed.
    others: Vec<u32>,
}
