//! The steps at which the operations of each position need a variable. A stage has only some of the
//! positions, so the variable may be live at fewer steps in the stage than in the profile
//! (docs/model.md, "Pipelines"). There are three such cases.
//!
//! * In the profile, variables of a function body are live at each call of the function. In a
//!   stage, they are live only at the calls by this stage.
//! * A tensor that is kept for the backward pass is live in a stage until the last operation of the
//!   stage that uses it. If a later stage uses it, it is live at least until the end of the forward
//!   pass.
//! * A gradient that an accumulator takes is live until the forward and the backward pass end
//!   (docs/model.md, "Accumulators and updates").

use super::{Flow, Life};
use crate::memory::steps::StepsOfPosition;
use crate::model::{Model, PlaceSet, Placement, VariableUse};

/// The half-open steps of an operation, and the places (In, layers, Out) that run it. The places
/// are `None` if the operation itself gives no places and a rule assigned it to places.
type OperationSteps = ((u32, u32), Option<PlaceSet>);

/// The steps and places of all operations. They determine the steps at which a position needs a
/// variable.
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

    /// Returns the steps at which each position needs the variables of the use `variable`: one
    /// entry per position that the variables are attributed to. Returns `None` if all these
    /// positions need the variables whenever they are live. `flow` is the flow that the variables
    /// belong to.
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
        let lasts: Vec<Option<u32>> = (0..ranges.len())
            .map(|range| ends.iter().filter_map(|ends| ends[range]).max())
            .collect();
        let backward_start = self.model.backward_start.filter(|_| spans_passes);
        let own: Vec<StepsOfPosition> = positions
            .iter()
            .zip(&ends)
            .map(|(&position, ends)| {
                let is_used = ends.iter().any(Option::is_some);
                let is_last = flow.forward.last() == Some(&position);
                let steps = ranges.iter().zip(ends.iter().zip(&lasts)).filter_map(
                    |(&(from, to), (&end, &last))| {
                        let start = backward_start.filter(|start| (from + 1..to).contains(start));
                        match (end, start) {
                            // Only other positions use the variables in this live range.
                            (None, _) if is_used && last.is_some() => None,
                            (Some(end), Some(start)) if Some(end) != last => {
                                let goes_on = end <= start && !is_last;
                                Some((from, if goes_on { start } else { end }))
                            }
                            _ => Some((from, to)),
                        }
                    },
                );
                (position, steps.collect())
            })
            .collect();
        own.iter()
            .any(|(_, steps)| steps[..] != *ranges)
            .then_some(own)
    }

    /// Finds the last operation that uses variables with the use set `set` in a live range at a
    /// position, and returns the step (exclusive) at which it ends, but at most the end of the
    /// range. The result has one entry per position of `positions` (ascending), with one entry per
    /// range of `ranges` (half-open, ascending), which is `None` if there is no such operation. An
    /// operation without places of its own is attributed to all positions.
    fn ends(&self, set: u32, ranges: &[(u32, u32)], positions: &[u32]) -> Vec<Vec<Option<u32>>> {
        let sets = &self.placement.by_pass.sets;
        let mut ends = vec![vec![None; ranges.len()]; positions.len()];
        for &((first, end), own) in self
            .model
            .use_sets
            .groups(set)
            .flat_map(|group| &self.of_groups[group as usize])
        {
            let met = ranges.partition_point(|&(_, to)| to <= first)
                ..ranges.partition_point(|&(from, _)| from < end);
            let mut raise = |at: usize| {
                for range in met.clone() {
                    let known: &mut Option<u32> = &mut ends[at][range];
                    *known = (*known).max(Some(end.min(ranges[range].1)));
                }
            };
            match own {
                None => (0..positions.len()).for_each(raise),
                Some(own) => sets
                    .places(own)
                    .iter()
                    .map(|&place| self.placement.positions.of_place(place) as u32)
                    .filter_map(|position| positions.binary_search(&position).ok())
                    .for_each(&mut raise),
            }
        }
        ends
    }
}

/// The gradients of weights for which the pipeline adds accumulators. These gradients are variables
/// that the backward pass makes and that operations after both passes use, such as an update or a
/// norm. They are live until the end of the passes, when an accumulator takes them.
#[derive(Debug, Default)]
pub(super) struct SummedGradients {
    /// One entry per use set: whether an operation that starts after both passes computes with the
    /// variables that have this use set.
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

    /// Returns the step (exclusive) at which variables of `flow` with the use set `set` cease to be
    /// live in a stage because an accumulator takes them. Returns `None` if the variables are not
    /// gradients of weights with an accumulator. `ranges` are the half-open steps at which the
    /// variables are live in the profile.
    pub fn until(&self, flow: &Flow, set: u32, ranges: &[(u32, u32)]) -> Option<u32> {
        let is_used_after = self.is_used_after.get(set as usize) == Some(&true);
        let (&(begin, _), &(_, last)) = ranges.first().zip(ranges.last())?;
        let is_summed = flow.life == Life::Backward && is_used_after;
        (is_summed && begin < self.end && self.end < last).then_some(self.end)
    }
}
