//! The places (In, layers, Out) that use a tensor in the forward pass and in the backward pass.

use super::{Flow, Life};
use crate::memory::steps::{Steps, covering, merged};
use crate::model::{Model, Pass, Placement, Positions};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The number of flows that have the same users: one for each [`Life`], once with tensors from the
/// host and once with other tensors.
const OF_SET: u32 = 2 * Life::ALL.len() as u32;

/// All flows (tensors with the same users) so far. For each pair of forward and backward places,
/// `list` has [`OF_SET`] flows one after the other: by [`Life`], then without and with tensors from
/// the host.
pub(super) struct KnownFlows {
    pub list: Vec<Flow>,
    /// Keys are the forward places, [`u32::MAX`] and the backward places in one list; values are
    /// the index in `list` of the first flow with these places.
    numbers: FxHashMap<Vec<u32>, u32>,
    /// The number of the place of Out if it is on the first IPU; otherwise `None`.
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

    /// Returns the index in `list` of the first of the [`OF_SET`] flows whose tensors these places
    /// use in the forward and in the backward pass (ascending). The flows are added if they are
    /// new.
    pub fn number(&mut self, forward: &[u32], backward: &[u32]) -> u32 {
        let backward = &*self.own_backward(forward, backward);
        let key = [forward, &[u32::MAX], backward].concat();
        if let Some(&first) = self.numbers.get(&key) {
            return first;
        }
        let first = self.list.len() as u32;
        self.list.extend((0..OF_SET).map(|number| Flow {
            forward: forward.into(),
            backward: backward.into(),
            life: Life::ALL[number as usize / 2],
            is_streamed: number % 2 == 1,
        }));
        self.numbers.insert(key, first);
        first
    }

    /// Returns `backward`, the places that use a tensor in the backward pass, for the case that Out
    /// is on the first IPU; `forward` are those in the forward pass. In two cases In, once,
    /// replaces Out: if `forward` has places but not Out, since a backward operation in Out then
    /// belongs to In, which shares weights with Out; and if `forward` is empty and `backward` is In
    /// and Out, since the tensor is then a gradient of the shared weights, which stays on their
    /// IPU.
    fn own_backward<'a>(&self, forward: &[u32], backward: &'a [u32]) -> Cow<'a, [u32]> {
        let is_in = self.out.is_some_and(|out| {
            let is_gradient = forward.is_empty() && backward == [0, out];
            let is_ins = !forward.is_empty() && !forward.contains(&out);
            is_gradient || (is_ins && backward.last() == Some(&out))
        });
        if !is_in {
            return backward.into();
        }
        let mut places = backward.to_vec();
        places.pop();
        if places.first() != Some(&0) {
            places.insert(0, 0);
        }
        places.into()
    }
}

/// The steps at which the operations of each place run, by the number of the place: In, layers,
/// Out.
#[derive(Debug, Default)]
pub(crate) struct PassWindows(Vec<PlaceSteps>);

/// The steps at which the operations of one place (In, a layer or Out) run, in the forward and in
/// the backward pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceSteps {
    /// The first and the last step (inclusive) of forward operations that run in this place only;
    /// `None` if there are none.
    pub forward: Option<(u32, u32)>,
    /// The first and the last step (inclusive) of backward operations that run in this place only;
    /// `None` if there are none.
    pub backward: Option<(u32, u32)>,
    pub backward_pass: BackwardPass,
    /// The half-open steps of the backward operations that the profile lists for several calls of a
    /// function.
    pub bodies: Steps,
}

/// How a stage or place runs backward. Values are ordered: a range of places has the greatest value
/// of any of its places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackwardPass {
    /// Whether there is a backward operation. The layers at the start of a model have none if they
    /// are frozen.
    pub goes_back: bool,
    /// Whether there is an operation whose steps the profile lists for several calls of a function,
    /// so that they do not tell in which call it runs. Where another place calls the function,
    /// other buffers are live.
    pub is_in_functions: bool,
}

impl PassWindows {
    pub fn new(model: &Model, placement: &Placement) -> Self {
        let mut calls: FxHashMap<(u32, Option<(u32, u32)>), u32> = FxHashMap::default();
        for operation in &model.operations {
            *calls
                .entry((operation.group, operation.window))
                .or_default() += 1;
        }
        // Out on the first IPU is a place after all positions, so there may be one more place than
        // positions.
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

    /// Returns the steps at which the operations of the place with this number run.
    pub fn at(&self, place: u32) -> &PlaceSteps {
        &self.0[place as usize]
    }

    /// Returns, of the places `forward` and `backward` (users of a variable in the forward and in
    /// the backward pass), those whose operations run during one live range of the variable's
    /// class. The range is the first that includes the start of the backward pass, or else the
    /// range with the most users. All callers of a function use its variables, but each live range
    /// belongs to one call.
    pub fn users(
        &self,
        model: &Model,
        (forward, backward): (&[u32], &[u32]),
        class: u32,
    ) -> (Vec<u32>, Vec<u32>) {
        type Window = fn(&PlaceSteps) -> Option<(u32, u32)>;
        let both = |&(from, to): &(u32, u32)| {
            let met = |users: &[u32], window: Window| -> Vec<u32> {
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
