//! The steps at which the operations of each position need a variable. A stage has only some of the
//! positions, so its variables may be live at fewer steps than in the profile (docs/model.md,
//! "Pipelines").
//!
//! * Variables of a function body are live at each call of it; in a stage, only at the calls of the
//!   stage.
//! * A tensor that is kept for the backward pass is live until the last operation of the stage that
//!   uses it; if a later stage uses it, at least until the end of the forward pass.
//! * A gradient that an accumulator takes is live until the passes end ("Accumulators and
//!   updates").

use super::{Flow, Life};
use crate::memory::steps::StepsOfPosition;
use crate::model::{Model, PlaceSet, Placement, VariableUse};

/// The half-open steps of an operation, and the places (In, layers, Out) that run it; `None` if the
/// operation has no places of its own, but only places that a rule assigned.
type OperationSteps = ((u32, u32), Option<PlaceSet>);

/// The steps and places of the operations of each group, from which it follows at which steps a
/// position needs a variable.
pub(super) struct OwnSteps<'a> {
    model: &'a Model,
    placement: &'a Placement,
    of_groups: Vec<Vec<OperationSteps>>,
}

impl<'a> OwnSteps<'a> {
    pub fn new(model: &'a Model, placement: &'a Placement) -> Self {
        let mut of_groups = vec![Vec::new(); model.operation_groups.len()];
        for (operation, placed) in model.operations.iter().zip(&placement.operations) {
            let Some((first, last)) = operation.window else {
                continue;
            };
            of_groups[operation.group as usize].push((
                (first, last + 1),
                placed.reason.is_own().then_some(placed.places),
            ));
        }
        Self {
            model,
            placement,
            of_groups,
        }
    }

    /// Returns, for each position to which the variables of a use (`variable`) are attributed, the
    /// steps at which the position needs the variables; `None` if all positions need the variables
    /// whenever they are live. `flow` is the flow that the variables belong to.
    pub fn of(&self, variable: &VariableUse, flow: &Flow) -> Option<Vec<StepsOfPosition>> {
        let positions = self
            .placement
            .sets
            .places(self.placement.counted[variable.set as usize]);
        let ranges = self.model.classes.ranges(variable.class);
        let spans_passes = flow.life == Life::AcrossPasses;
        if positions.len() < 2 || (ranges.len() < 2 && !spans_passes) {
            return None;
        }
        let ends = self.ends(variable.set, ranges, positions);
        let own: Vec<StepsOfPosition> = positions
            .iter()
            .enumerate()
            .map(|(at, &position)| {
                let is_used = ends.iter().any(|ends| ends[at].is_some());
                let steps = ranges.iter().zip(&ends).filter_map(|(&range, ends)| {
                    let is_elsewhere =
                        is_used && ends[at].is_none() && ends.iter().any(Option::is_some);
                    (!is_elsewhere).then(|| (range.0, self.end(range, (at, position), ends, flow)))
                });
                (position, steps.collect())
            })
            .collect();
        own.iter()
            .any(|(_, steps)| steps[..] != *ranges)
            .then_some(own)
    }

    /// Returns, for each of `ranges` (half-open, ascending) and then for each of `positions`, the
    /// step (exclusive) at which the last operation ends that uses variables with the use set `set`
    /// at this position and in this range; at most the end of the range. `None` if there is no such
    /// operation. An operation without places of its own is attributed to all positions.
    fn ends(&self, set: u32, ranges: &[(u32, u32)], positions: &[u32]) -> Vec<Vec<Option<u32>>> {
        let mut ends = vec![vec![None; positions.len()]; ranges.len()];
        for &((first, end), own) in self
            .model
            .use_sets
            .groups(set)
            .flat_map(|group| &self.of_groups[group as usize])
        {
            let met = ranges.partition_point(|&(_, to)| to <= first);
            for (&(_, to), ends) in ranges
                .iter()
                .zip(&mut ends)
                .skip(met)
                .take_while(|((from, _), _)| *from < end)
            {
                let mut raise = |at: usize| ends[at] = ends[at].max(Some(end.min(to)));
                match own {
                    None => (0..positions.len()).for_each(raise),
                    Some(own) => self.positions_of(own, positions).for_each(&mut raise),
                }
            }
        }
        ends
    }

    /// Returns the indices in `positions` (ascending) of the positions that have any place of
    /// `places`.
    fn positions_of(&self, places: PlaceSet, positions: &[u32]) -> impl Iterator<Item = usize> {
        self.placement
            .by_pass
            .sets
            .places(places)
            .iter()
            .map(move |&place| self.placement.positions.of_place(place) as u32)
            .filter_map(move |position| positions.binary_search(&position).ok())
    }

    /// Returns the step (exclusive) until which a position needs a variable of `flow` in one live
    /// range (half-open). `at` is the index of `position` in `ends`, which has for each position
    /// the end of its last operation in this range, as [`OwnSteps::ends`] returns it.
    fn end(
        &self,
        (from, to): (u32, u32),
        (at, position): (usize, u32),
        ends: &[Option<u32>],
        flow: &Flow,
    ) -> u32 {
        let is_inside = |start: &u32| (from + 1..to).contains(start);
        let (Some(backward_start), Some(end)) =
            (self.model.backward_start.filter(is_inside), ends[at])
        else {
            return to;
        };
        let last = ends.iter().flatten().max();
        if flow.life != Life::AcrossPasses || last == Some(&end) {
            return to;
        }
        let goes_on = end <= backward_start && flow.forward.last() != Some(&position);
        if goes_on { backward_start } else { end }
    }
}

/// The gradients of weights for which the pipeline adds accumulators: variables that the backward
/// pass makes and that operations after both passes, such as an update or a norm, use. They are
/// live up to the end of the passes, where an accumulator takes them.
#[derive(Debug, Default)]
pub(super) struct SummedGradients {
    /// For each use set: whether an operation that starts after both passes computes with its
    /// variables.
    is_used_after: Vec<bool>,
    /// The first step after both passes: gradients that an accumulator takes are live only before
    /// this step.
    end: u32,
}

impl SummedGradients {
    /// Finds the gradients of `model`, whose profile has no accumulators. `end` is the first step
    /// after both passes.
    pub fn new(model: &Model, end: u32) -> Self {
        let is_after =
            model.groups_with(|operation| operation.window.is_some_and(|(first, _)| first >= end));
        let users =
            model.users_by_set(|group| is_after[group] && model.operation_groups[group].computes());
        Self {
            is_used_after: users.into_iter().map(|users| users > 0).collect(),
            end,
        }
    }

    /// Returns the step (exclusive) at which variables of `flow` with the use set `set` end in a
    /// stage, since an accumulator takes them; `None` if the variables are no gradients of weights
    /// with an accumulator. `ranges` are the half-open steps at which they are live in the profile.
    pub fn until(&self, flow: &Flow, set: u32, ranges: &[(u32, u32)]) -> Option<u32> {
        let is_used_after = self.is_used_after.get(set as usize) == Some(&true);
        let (&(begin, _), &(_, last)) = ranges.first().zip(ranges.last())?;
        let is_summed = flow.life == Life::Backward && is_used_after;
        (is_summed && begin < self.end && self.end < last).then_some(self.end)
    }
}
