//! The places (In, layers, Out) that use a tensor in the forward pass and in the backward pass.

use super::Flow;
use crate::memory::steps::{Steps, covering, merged};
use crate::model::{Model, Pass, Placement, Positions, ascending, counts};
use rustc_hash::FxHashMap;

/// All flows (tensors with the same users) that have been found so far.
pub(super) struct KnownFlows {
    pub list: Vec<Flow>,
    /// The index of each flow in `list`.
    numbers: FxHashMap<Flow, u32>,
    /// The number of the place Out if Out is on the first IPU; otherwise `None`.
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

    /// Returns the index of `flow` in `list`, to which it is added if it is new. If Out is on the
    /// first IPU, Out in `flow.backward` is first replaced by In in two cases. First, if the
    /// forward pass of some places uses the tensors, but not that of Out: a backward operation in
    /// Out then belongs to In, which shares weights with Out. Second, if only the backward passes
    /// of In and Out use the tensors: they are then gradients of the shared weights and stay on the
    /// first IPU.
    pub fn number(&mut self, mut flow: Flow) -> u32 {
        if let Some(out) = self.out {
            let is_gradient = flow.forward.is_empty() && *flow.backward == [0, out];
            let is_ins = !flow.forward.is_empty() && !flow.forward.contains(&out);
            if is_gradient || is_ins && flow.backward.contains(&out) {
                let others = flow.backward.iter().filter(|&&place| place != out);
                flow.backward = ascending(others.copied().chain([0]));
            }
        }
        if let Some(&number) = self.numbers.get(&flow) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(flow.clone());
        self.numbers.insert(flow, number);
        number
    }
}

/// The steps at which the operations of each place run: one entry per place (In, layers, Out),
/// whose number is the index.
#[derive(Debug, Default)]
pub(crate) struct PassWindows(Vec<PlaceSteps>);

/// The steps at which the operations of one place (In, a layer or Out) run, in the forward and in
/// the backward pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceSteps {
    /// The first and the last step (both inclusive) of the forward operations that run in no other
    /// place. `None` if there are no such operations.
    pub forward: Option<(u32, u32)>,
    /// The first and the last step (both inclusive) of the backward operations that run in no other
    /// place. `None` if there are no such operations.
    pub backward: Option<(u32, u32)>,
    pub backward_pass: BackwardPass,
    /// The half-open steps of those backward operations that the profile lists at the same steps
    /// for several calls of a function.
    pub bodies: Steps,
}

/// How a stage or place runs backward. The values are ordered: the value of a range of places is
/// the greatest value of any place in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackwardPass {
    /// Whether the stage or place has a backward operation. Frozen layers at the start of a model
    /// have none.
    pub goes_back: bool,
    /// Whether the stage or place has an operation that the profile lists at the same steps for
    /// several calls of a function. These steps do not tell in which call the operation runs; in a
    /// call by another place, other buffers are live.
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
        // If Out is on the first IPU, its place comes after all positions, so there may be one more
        // place than positions.
        let mut found = vec![PlaceSteps::default(); placement.positions.len() + 1];
        for (number, operation) in model.operations.iter().enumerate() {
            let group = &model.operation_groups[operation.group as usize];
            let placed = &placement.operations[number];
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
                let known = match operation.pass {
                    Pass::Backward if is_shared => {
                        steps
                            .bodies
                            .extend(operation.window.map(|(first, last)| (first, last + 1)));
                        continue;
                    }
                    Pass::Forward if !is_shared => &mut steps.forward,
                    Pass::Backward => &mut steps.backward,
                    _ => continue,
                };
                if places.len() == 1 {
                    *known = covering(&[*known, operation.window]);
                }
            }
        }
        for steps in &mut found {
            steps.bodies = merged(std::mem::take(&mut steps.bodies));
        }
        Self(found)
    }

    /// Returns the steps at which the operations of the place with the number `place` run.
    pub fn at(&self, place: u32) -> &PlaceSteps {
        &self.0[place as usize]
    }

    /// Returns the places that use a variable during one live range of its equivalence class
    /// `class`, in the forward and in the backward pass. `forward` and `backward` are all users in
    /// each pass; they include all callers of a function, while a live range belongs to one call.
    /// The live range is the first that includes the start of the backward pass; if there is none,
    /// it is the live range with the most users.
    pub fn users(
        &self,
        model: &Model,
        (forward, backward): (&[u32], &[u32]),
        class: u32,
    ) -> (Box<[u32]>, Box<[u32]>) {
        type Window = fn(&PlaceSteps) -> Option<(u32, u32)>;
        let both = |&(from, to): &(u32, u32)| {
            let met = |users: &[u32], window: Window| -> Box<[u32]> {
                users
                    .iter()
                    .copied()
                    .filter(|&user| {
                        window(self.at(user)).is_none_or(|(first, last)| first < to && from <= last)
                    })
                    .collect()
            };
            (
                met(forward, |steps| steps.forward),
                met(backward, |steps| steps.backward),
            )
        };
        let start = model.backward_start;
        let spans_passes =
            |&&(from, to): &&_| start.is_some_and(|start| from < start && start < to);
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

#[cfg(test)]
mod made {
    use super::*;

    impl PassWindows {
        /// Makes windows of places without steps, one for each entry of `go_back`, which says
        /// whether the place has a backward pass.
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
