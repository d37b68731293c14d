//! The layers (also In and Out) that use a tensor in the forward pass and in the backward pass, and
//! the liveness steps at which each of them needs the tensor. A variable may be live at fewer steps
//! in a stage than in the profile (docs/model.md, "Pipelines"), in two cases.
//!
//! * In the profile, variables of a function are live at each call of the function. In a stage,
//!   they are live only at the calls by this stage.
//! * A tensor that is kept for the backward pass is live in a stage until the last operation of the
//!   stage that uses the tensor. If a later stage uses it, it is live at least until the end of the
//!   forward pass.

use super::{Flow, Life};
use crate::{
    memory::steps::{Steps, StepsOfPosition, covering},
    model::{Model, Pass, PlaceSet, Placement, Positions, VariableUse, ascending, counts},
};
use rustc_hash::FxHashMap;

/// The flows that have been found so far. A flow is a group of tensors that the same layers use.
pub struct KnownFlows {
    pub list: Vec<Flow>,
    numbers: FxHashMap<Flow, u32>,
    out: Option<u32>,
}

impl KnownFlows {
    pub fn new(positions: &Positions) -> Self {
        Self {
            list: Vec::new(),
            numbers: FxHashMap::default(),
            out: positions.out_is_first().then_some(positions.len() as u32),
        }
    }

    /// Returns the index of `flow` (tensors that the same layers use) in `list`. Adds it if it is
    /// new.
    ///
    /// If Out (the operations after the last layer) is on the first IPU, together with In (the
    /// operations before the first layer), a use by Out in the backward pass counts as a use by In
    /// in two cases:
    /// - No place (In, a layer or Out) uses the tensors in the forward pass, and only In and Out
    ///   use them in the backward pass. Examples are gradients of a weight that In and Out share.
    ///   No stage then sends these gradients.
    /// - Some place uses the tensors in the forward pass, but Out does not.
    pub fn number(&mut self, mut flow: Flow) -> u32 {
        if let Some(out) = self.out {
            let is_gradient = flow.forward.is_empty() && *flow.backward == [0, out];
            let is_ins = !flow.forward.is_empty() && !flow.forward.contains(&out);
            if is_gradient || is_ins && flow.backward.contains(&out) {
                let others = flow.backward.iter().filter(|&&place| place != out);
                flow.backward = ascending(others.copied().chain([0]));
            }
        }
        *self.numbers.entry(flow).or_insert_with_key(|flow| {
            self.list.push(flow.clone());
            self.list.len() as u32 - 1
        })
    }
}

/// The liveness steps at which the operations of each place (In, a layer or Out) run, by number of
/// the place.
#[derive(Debug, Default)]
pub struct PassWindows(Vec<PlaceSteps>);

/// The steps at which the operations of one place (In, a layer or Out) run, in the forward and in
/// the backward pass.
#[derive(Debug, Clone, Default)]
pub struct PlaceSteps {
    /// The first and the last liveness step (both inclusive) of the forward operations that belong
    /// to this place (In, a layer or Out) and to no other. `None` if there are no such operations.
    pub forward: Option<(u32, u32)>,
    /// The first and the last liveness step (both inclusive) of the backward operations that belong
    /// to this place (In, a layer or Out) and to no other. `None` if there are no such operations.
    pub backward: Option<(u32, u32)>,
    pub backward_pass: BackwardPass,
    /// Ranges of liveness steps (half-open, in any order) of the backward operations that run in
    /// functions with several calls. All calls of a function have the same steps in the profile.
    pub bodies: Steps,
}

/// Whether a stage or a place (In, a layer or Out) has a backward pass, and whether it runs
/// functions with several calls. The value of a stage is the highest value of its places, ordered
/// by `goes_back` and then by `is_in_functions`. So if any place of the stage has a backward pass,
/// functions of places without one are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackwardPass {
    /// Whether the stage or place (In, a layer or Out) has a backward operation. Frozen layers at
    /// the start of a model have none.
    pub goes_back: bool,
    /// Whether an operation of the place (In, a layer or Out) runs in a function with several
    /// calls. All calls have the same liveness steps in the profile, and it is unknown which of the
    /// calls ran at these steps.
    pub is_in_functions: bool,
}

impl PassWindows {
    pub fn new(model: &Model, placement: &Placement) -> Self {
        let calls = counts(
            model
                .operations
                .iter()
                .map(|operation| (operation.group, operation.window)),
        );
        // One entry per place. There may be one more place than positions: if Out (the operations
        // after the last layer) is on the first IPU, it has the position of In, but is a place of
        // its own after all others.
        let mut found = vec![PlaceSteps::default(); placement.positions.len() + 1];
        for (operation, placed) in model.operations.iter().zip(&placement.operations) {
            let group = &model.operation_groups[operation.group as usize];
            if !placed.reason.is_own() || group.only_streams() {
                continue;
            }
            let places = placement.by_pass.sets.places(placed.places);
            let is_shared = calls[&(operation.group, operation.window)] > 1;
            for &place in places {
                let steps = &mut found[place as usize];
                let pass = &mut steps.backward_pass;
                pass.goes_back |= matches!(operation.pass, Pass::Backward | Pass::Both);
                pass.is_in_functions |= is_shared;
                let window = operation.window;
                match operation.pass {
                    Pass::Backward if is_shared => {
                        let body = window.map(|(first, last)| (first, last + 1));
                        steps.bodies.extend(body);
                    }
                    _ if is_shared || places.len() > 1 => {}
                    Pass::Forward => steps.forward = covering(&[steps.forward, window]),
                    Pass::Backward => steps.backward = covering(&[steps.backward, window]),
                    _ => {}
                }
            }
        }
        Self(found)
    }

    pub fn at(&self, place: u32) -> &PlaceSteps {
        &self.0[place as usize]
    }

    /// Returns the places among `forward` (In, layers, Out) that use variables in the forward pass,
    /// and those among `backward` that use them in the backward pass. `class` is the equivalence
    /// class of the variables (they are live at the same steps).
    ///
    /// If a function uses the variables, `forward` and `backward` have all places that call it, but
    /// each live range of the variables belongs to one call. So one live range is chosen, and the
    /// places that run during it are returned. This is the first range that spans the start of the
    /// backward pass, where the variables are kept for that pass. If there is none, it is the range
    /// during which most of the places run.
    pub fn users(
        &self,
        model: &Model,
        (forward, backward): (&[u32], &[u32]),
        class: u32,
    ) -> (Box<[u32]>, Box<[u32]>) {
        let both = |&(from, to): &(u32, u32)| {
            let runs = |window: Option<(u32, u32)>| {
                window.is_none_or(|(first, last)| first < to && from <= last)
            };
            let (forward, backward) = (forward.iter().copied(), backward.iter().copied());
            (
                forward
                    .filter(|&user| runs(self.at(user).forward))
                    .collect(),
                backward
                    .filter(|&user| runs(self.at(user).backward))
                    .collect(),
            )
        };
        let spans_passes = |&&(from, to): &&(u32, u32)| {
            let start = model.backward_start;
            start.is_some_and(|start| (from + 1..to).contains(&start))
        };
        let ranges = model.classes.ranges(class);
        match ranges.iter().find(spans_passes) {
            Some(range) => both(range),
            None => ranges
                .iter()
                .map(both)
                .rev()
                .max_by_key(|(forward, backward)| forward.len() + backward.len())
                .unwrap_or_default(),
        }
    }
}

/// The half-open liveness steps of an operation, and the set of places (In, layers, Out) to which
/// it belongs. The set is `None` if the operation has no place of its own. The operation then
/// counts for every place that has the variables which it uses.
type OperationSteps = ((u32, u32), Option<PlaceSet>);

/// The liveness steps and the places (In, layers, Out) of all operations. [`OwnSteps::of`] derives
/// from them at which steps each position needs a variable.
pub struct OwnSteps<'a> {
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

    /// Returns the liveness steps at which each position (In, a layer or Out) needs certain
    /// variables, or `None` if each position that has them needs them at all steps at which they
    /// are live in the profile. `variable` says which variables: those that are live at the same
    /// steps and are used by the same operations. `flow` has the places that use them.
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
                            // Only other positions (In, layers, Out) use the variables in the live
                            // range `from..to`, and this position uses them in another live range.
                            // So it does not need them in this one.
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

    /// Returns one list per position in `positions` (In, layers, Out). It has one entry per live
    /// range in `ranges` (half-open, ascending): the end of the last operation of the position that
    /// uses variables with the use set `set` in this range, but at most the end of the range, or
    /// `None` if no operation uses them. Operations without a place of their own count for all
    /// positions.
    fn ends(&self, set: u32, ranges: &[(u32, u32)], positions: &[u32]) -> Vec<Vec<Option<u32>>> {
        let sets = &self.placement.by_pass.sets;
        let mut ends = vec![vec![None; ranges.len()]; positions.len()];
        for &((first, end), own) in self
            .model
            .use_sets
            .groups(set)
            .flat_map(|group| &self.of_groups[group])
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

#[cfg(test)]
mod made {
    use super::*;

    impl PassWindows {
        pub(crate) fn made(go_back: Vec<bool>) -> Self {
            let steps = |goes_back| PlaceSteps {
                backward_pass: BackwardPass {
                    goes_back,
                    is_in_functions: false,
                },
                ..PlaceSteps::default()
            };
            Self(go_back.into_iter().map(steps).collect())
        }
    }
}
