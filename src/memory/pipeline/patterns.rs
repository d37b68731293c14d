//! In which ranges of layers each flow counts, and for which quantity.
//!
//! A flow has the same part in all ranges whose start lies between two of its users: it begins to
//! count with some last position and ends with another.

use super::additions::{Area, StageFlows};
use super::flows::{Flow, Flows, Life, are_of_one_layer};
use super::{PlacedStage, Recompute, Schedule};

/// A quantity that flows count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Multiplied by the number of copies.
    Stash,
    /// Multiplied by the number of all pipeline stages.
    ForOut,
    /// Transfer buffers and forwarded tensors (see `Transfers`).
    PassesForward,
    PassesBackward,
    Enters,
    Leaves,
    GradientIn,
    GradientOut,
    /// Once, whatever comes after the range.
    Accumulators,
}

pub(super) const QUANTITIES: usize = 9;

/// A flow counts for `quantity` in ranges with a start in `starts` and a last position in `lasts`
/// (all ends inclusive).
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowStretch {
    pub(super) quantity: Quantity,
    pub(super) starts: (u32, u32),
    pub(super) lasts: (u32, u32),
}

/// By flow, the ranges in which it counts, and for what.
#[derive(Debug)]
pub(in crate::memory) struct Patterns {
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
    /// If Out is on the first IPU: the area of Out, and the stage of all positions, to which Out
    /// then belongs.
    pub(super) with_out: Option<(Area, StageFlows)>,
}

impl Patterns {
    pub(in crate::memory) fn new(flows: &Flows, positions: u32) -> Self {
        let pattern = |flow| Pattern::of(flows, flow, positions);
        let whole = || PlacedStage {
            positions: 0..positions as usize,
            after: Some(0),
        };
        let with_out = || (flows.area(flows.out()), flows.in_stage(whole()));
        Self {
            of_flow: flows.list.iter().map(pattern).collect(),
            with_out: flows.out_is_first.then(with_out),
        }
    }
}

/// The stretches of one flow.
struct Pattern<'a> {
    flows: &'a Flows,
    flow: &'a Flow,
    /// The last position.
    end: u32,
    found: Vec<FlowStretch>,
}

/// Starts (both inclusive) with the same next users of a flow.
#[derive(Debug, Clone, Copy)]
struct Segment {
    starts: (u32, u32),
    /// The first user at or after these starts, in the forward pass and in the backward pass.
    forward: Option<u32>,
    backward: Option<u32>,
}

impl<'a> Pattern<'a> {
    fn of(flows: &'a Flows, flow: &'a Flow, positions: u32) -> Vec<FlowStretch> {
        let mut stretches = Self {
            flows,
            flow,
            end: positions - 1,
            found: Vec::new(),
        };
        for segment in stretches.segments() {
            match flow.life {
                Life::Backward => stretches.gradient(segment),
                _ => stretches.activation(segment),
            }
        }
        stretches.found
    }

    /// Cuts the starts wherever the next user changes.
    fn segments(&self) -> Vec<Segment> {
        let users = self.flow.forward.iter().chain(&self.flow.backward);
        // Whether a user runs again may depend on the places before it.
        let again = self
            .flow
            .forward
            .iter()
            .filter_map(|&user| self.last_back(user));
        let bounds = users.copied().chain(again).map(|place| place + 1);
        let mut bounds: Vec<u32> = bounds.chain([0]).collect();
        bounds.retain(|&start| start <= self.end);
        bounds.sort_unstable();
        bounds.dedup();
        let next = |users: &[u32], start: u32| users.iter().copied().find(|&user| user >= start);
        let ends = bounds
            .iter()
            .skip(1)
            .map(|&next| next - 1)
            .chain([self.end]);
        let starts = bounds.iter().copied().zip(ends);
        starts
            .map(|starts| Segment {
                starts,
                forward: next(&self.flow.forward, starts.0),
                backward: next(&self.flow.backward, starts.0),
            })
            .collect()
    }

    fn add(&mut self, quantity: Quantity, segment: Segment, first: u32, last: u32) {
        let lasts = (first.max(segment.starts.0), last.min(self.end));
        if lasts.0 <= lasts.1 {
            self.found.push(FlowStretch {
                quantity,
                starts: segment.starts,
                lasts,
            });
        }
    }

    /// Adds a gradient, which the backward pass makes at its highest place.
    fn gradient(&mut self, segment: Segment) {
        let users = &self.flow.backward;
        let (Some(&lowest), Some(&highest)) = (users.first(), users.last()) else {
            return;
        };
        let (start, next) = (segment.starts.0, segment.backward);
        if let Some(next) = next.filter(|&next| next < highest) {
            self.add(Quantity::GradientIn, segment, next, highest - 1);
        }
        if start > lowest && start <= highest {
            self.add(Quantity::GradientOut, segment, highest, self.end);
        }
        self.pass(Quantity::PassesBackward, segment, (lowest, next));
    }

    /// Adds the ranges between two users, which the tensor passes through.
    fn pass(&mut self, passes: Quantity, segment: Segment, (lowest, next): (u32, Option<u32>)) {
        if let Some(next) = next.filter(|&next| segment.starts.0 > lowest && next > 0) {
            self.add(passes, segment, segment.starts.0, next - 1);
        }
    }

    /// Adds an activation, which the forward pass makes at its lowest place.
    fn activation(&mut self, segment: Segment) {
        let (start, next) = (segment.starts.0, segment.forward);
        let is_across = self.flow.life == Life::AcrossPasses;
        let kept = segment.backward.filter(|_| is_across);
        let Some((&lowest, &highest)) = self.flow.forward.first().zip(self.flow.forward.last())
        else {
            return self.stash(segment, kept, None);
        };
        let comes_from_before = start > lowest || self.flow.is_streamed;
        let enters = next.filter(|_| comes_from_before);
        self.stash(segment, kept, enters);
        if let Some(leaves) = next.filter(|&next| next < highest) {
            self.add(Quantity::Leaves, segment, leaves, highest - 1);
        }
        if let Some(enters) = enters {
            self.add(Quantity::Enters, segment, enters, self.end);
        }
        self.pass(Quantity::PassesForward, segment, (lowest, next));
    }

    /// The last place up to `place` that has a backward pass.
    fn last_back(&self, place: u32) -> Option<u32> {
        (0..=place).rev().find(|&place| self.flows.goes_back(place))
    }

    /// The lowest last position with which `user` runs again in ranges from `start` on, where each
    /// layer runs again.
    fn again_from(&self, start: u32, user: u32) -> Option<u32> {
        let ends = [user, 1].into_iter().filter(|&last| last >= user);
        let mut ends = ends.filter(|&last| self.flows.runs_again(user, &(start..last + 1)));
        ends.next()
    }

    /// The last position from which on ranges keep the tensor as a checkpoint of a layer.
    fn checkpoint(&self, start: u32, kept: Option<u32>, enters: Option<u32>) -> Option<u32> {
        let users = self.flow.forward.iter().copied();
        let users = users.filter(|&user| user >= start);
        let layers = users.clone().filter(|&user| user > 0);
        let again = |user: u32| self.again_from(start, user);
        let enters = enters.and_then(|_| users.clone().filter_map(again).min());
        let between = layers.skip(1).filter_map(again).min();
        let maker = self.flow.forward.first().copied();
        let maker = maker.filter(|&maker| !self.flow.is_streamed && maker >= start);
        let made = kept.zip(maker).map(|(kept, maker)| kept.max(maker));
        let runs_once = |maker| !self.flows.runs_again(maker, &(0..self.flows.places));
        let made_once = made.filter(|_| maker.is_some_and(runs_once));
        let is_other = |user: &u32| maker.is_some_and(|maker| !are_of_one_layer(maker, *user));
        let mut others = users.filter(is_other);
        let ended = made.zip(others.next()).map(|(made, other)| made.max(other));
        [enters, between, made_once, ended]
            .into_iter()
            .flatten()
            .min()
    }

    fn stash(&mut self, segment: Segment, kept: Option<u32>, enters: Option<u32>) {
        let start = segment.starts.0;
        let stashed = match self.flows.pipeline.recompute {
            Recompute::None => kept,
            Recompute::Stage => enters.and_then(|enters| {
                let before = self.last_back(enters).filter(|&place| place >= start);
                let after = || (enters..=self.end).find(|&place| self.flows.goes_back(place));
                before.map(|_| enters).or_else(after)
            }),
            Recompute::Layer => self.checkpoint(start, kept, enters),
        };
        if let Some(stashed) = stashed {
            self.add(Quantity::Stash, segment, stashed, self.end);
        }
        self.for_out(segment, stashed);
    }

    /// Adds the ranges in which Out, on the first IPU, takes the tensor.
    fn for_out(&mut self, segment: Segment, stashed: Option<u32>) {
        let flows = self.flows;
        let is_shared = flows.out_is_first
            && flows.pipeline.schedule == Schedule::Popart
            && segment.starts.0 == 0
            && self.flow.forward.last() == Some(&(flows.places - 1));
        let Some(next) = segment.forward.filter(|_| is_shared) else {
            return;
        };
        let stashed = stashed.filter(|_| flows.is_training);
        let until = stashed.unwrap_or(self.end + 1);
        if until > next {
            // Only ranges from the first position have Out on their IPU.
            let first = Segment {
                starts: (0, 0),
                ..segment
            };
            self.add(Quantity::ForOut, first, next, until - 1);
        }
    }
}
