//! Which places use a tensor in the forward pass and in the backward pass.

use super::steps::{Steps, joined};
use super::{Flow, Life};
use crate::memory::join;
use crate::model::{Model, Pass, PassPlaces, Placement, Positions, TensorKind};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Flow of the variables of a use set.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfSet {
    /// No flow: the set holds weights or constants, or no operation with a place uses it.
    None,
    /// The flow of the first [`Life`]; those of the other lives follow.
    First(u32),
    /// The flow depends on the class.
    ByClass,
}

/// Number of flows with the same places: one for each life, streamed or not.
const OF_SET: u32 = 2 * Life::ALL.len() as u32;

/// Values by list of places, looked up by a slice without a copy.
type ByPlaces<T> = FxHashMap<Box<[u32]>, T>;

/// All flows, with each pair of forward and backward places once.
pub(super) struct KnownFlows {
    pub(super) list: Vec<Flow>,
    /// By forward places, then by backward places: number of the first flow with them.
    numbers: ByPlaces<ByPlaces<u32>>,
    /// The place of Out if it is on the first IPU.
    out: Option<u32>,
}

impl KnownFlows {
    pub(super) fn new(positions: &Positions) -> Self {
        Self {
            list: Vec::new(),
            numbers: FxHashMap::default(),
            out: positions.out_is_first().then_some(positions.len() as u32),
        }
    }

    /// The number of the first flow with these places, which are added if they are new.
    pub(super) fn number(&mut self, forward: &[u32], backward: &[u32]) -> u32 {
        let backward = &*self.own_backward(forward, backward);
        let known = self.numbers.get(forward);
        if let Some(&first) = known.and_then(|known| known.get(backward)) {
            return first;
        }
        let first = self.list.len() as u32;
        self.list.extend((0..OF_SET).map(|number| Flow {
            forward: forward.into(),
            backward: backward.into(),
            life: Life::ALL[number as usize / 2],
            is_streamed: number % 2 == 1,
        }));
        let known = self.numbers.entry(forward.into()).or_default();
        known.insert(backward.into(), first);
        first
    }

    /// Removes Out from backward places where the forward pass does not use the variable in Out:
    /// then the backward operation there belongs to In, which has the same weights. The gradient of
    /// the shared weights stays on their IPU likewise.
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

    pub(super) fn of_sets(&mut self, model: &Model, by_pass: &PassPlaces) -> Vec<OfSet> {
        let of_set = |set: u32| {
            let kind = model.label_of(set).kind;
            let (forward, backward) = by_pass.places(set);
            match (forward.len(), backward.len()) {
                _ if [TensorKind::Variable, TensorKind::Constant].contains(&kind) => OfSet::None,
                (0, 0) => OfSet::None,
                (0..2, 0..2) => OfSet::First(self.number(forward, backward)),
                _ => OfSet::ByClass,
            }
        };
        (0..model.use_sets.len() as u32).map(of_set).collect()
    }
}

/// The steps at which operations of each place run, by pass; only operations that run in a single
/// place count.
#[derive(Debug, Default)]
pub(in crate::memory::pipeline) struct PassWindows {
    forward: Vec<Option<(u32, u32)>>,
    backward: Vec<Option<(u32, u32)>>,
    /// By place: does the place have a backward operation, and (`in_functions`) an operation in a
    /// body that is listed for several calls?
    go_back: Vec<bool>,
    in_functions: Vec<bool>,
    /// By place: half-open steps in the backward pass of bodies that are listed for several calls.
    bodies: Vec<Steps>,
}

impl PassWindows {
    pub(super) fn new(model: &Model, placement: &Placement, by_pass: &PassPlaces) -> Self {
        let mut calls: FxHashMap<(u32, Option<(u32, u32)>), u32> = FxHashMap::default();
        for operation in &model.operations {
            *calls
                .entry((operation.group, operation.window))
                .or_default() += 1;
        }
        // Out may be a place beyond all positions.
        let places = placement.positions.len() + 1;
        let (mut forward, mut backward) = (vec![None; places], vec![None; places]);
        let (mut go_back, mut in_functions) = (vec![false; places], vec![false; places]);
        let mut bodies = vec![Vec::new(); places];
        for (number, operation) in model.operations.iter().enumerate() {
            let group = &model.operation_groups[operation.group as usize];
            let placed = &placement.operations[number];
            if !placed.reason.is_own() || group.only_streams() {
                continue;
            }
            let places = by_pass.sets.places(placed.places);
            let is_shared = calls[&(operation.group, operation.window)] > 1;
            for &place in places {
                let place = place as usize;
                go_back[place] |= matches!(operation.pass, Pass::Backward | Pass::Both);
                in_functions[place] |= is_shared;
                if let (Pass::Backward, Some((first, last)), true) =
                    (operation.pass, operation.window, is_shared)
                {
                    bodies[place].push((first, last + 1));
                }
            }
            let (&[place], Some(window), false) = (places, operation.window, is_shared) else {
                continue;
            };
            let windows = match operation.pass {
                Pass::Forward => &mut forward,
                Pass::Backward => &mut backward,
                Pass::Update | Pass::Both => continue,
            };
            let known = &mut windows[place as usize];
            *known = join(&[*known, Some(window)]);
        }
        Self {
            forward,
            backward,
            go_back,
            in_functions,
            bodies: bodies.into_iter().map(joined).collect(),
        }
    }

    /// Does a place have a backward operation? A place that is out of range counts as having one.
    pub(in crate::memory::pipeline) fn goes_back(&self, place: u32) -> bool {
        let goes_back = self.go_back.get(place as usize);
        goes_back.is_none_or(|&goes_back| goes_back)
    }

    /// Half-open steps of bodies that the backward pass of a place shares with other calls.
    pub(super) fn bodies(&self, place: u32) -> &[(u32, u32)] {
        self.bodies.get(place as usize).map_or(&[], |steps| steps)
    }

    /// Does a place have an operation in a body that is listed for several calls?
    pub(in crate::memory::pipeline) fn is_in_functions(&self, place: u32) -> bool {
        let is_inside = self.in_functions.get(place as usize);
        is_inside.is_some_and(|&is_inside| is_inside)
    }

    /// The first and the last step (inclusive) of a place in the forward pass, if they are known.
    pub(in crate::memory::pipeline) fn forward(&self, place: u32) -> Option<(u32, u32)> {
        *self.forward.get(place as usize)?
    }

    /// The first and the last step (inclusive) of a place in the backward pass, if they are known.
    pub(in crate::memory::pipeline) fn backward(&self, place: u32) -> Option<(u32, u32)> {
        *self.backward.get(place as usize)?
    }

    /// The users of a variable, by pass, during one of its live ranges: the range that is live into
    /// the backward pass, else the range with the most users. All callers of a function use its
    /// variables, but a live range belongs to one call.
    pub(super) fn users(
        &self,
        model: &Model,
        (forward, backward): (&[u32], &[u32]),
        class: u32,
    ) -> (Vec<u32>, Vec<u32>) {
        let meet = |users: &[u32], windows: &[Option<(u32, u32)>], (from, to): (u32, u32)| {
            let is_met = |user: &&u32| {
                let window = windows[**user as usize];
                window.is_none_or(|(first, last)| first < to && from <= last)
            };
            users.iter().filter(is_met).copied().collect::<Vec<u32>>()
        };
        let both = |&range: &(u32, u32)| {
            let forward = meet(forward, &self.forward, range);
            (forward, meet(backward, &self.backward, range))
        };
        let spans_passes = |&(from, to): &(u32, u32)| {
            model
                .backward_start
                .is_some_and(|backward_start| from < backward_start && backward_start < to)
        };
        let ranges = model.classes.ranges(class);
        match ranges.iter().find(|range| spans_passes(range)) {
            Some(range) => both(range),
            None => {
                let all = ranges.iter().map(both).rev();
                let most = all.max_by_key(|(forward, backward)| forward.len() + backward.len());
                most.unwrap_or_default()
            }
        }
    }
}
