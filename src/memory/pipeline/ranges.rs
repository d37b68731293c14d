//! What a pipeline adds to every range of layers on some tiles, for any number of
//! stages after it.
//!
//! Each flow does the same in all ranges whose start lies between two of its
//! users: it begins to count with some last position and ends with another. Those
//! stretches are the same on all tiles and found once (`Patterns`); tiles have their
//! bytes, and go through the starts as the sweep does.

use super::additions::{Area, StageFlows};
use super::flows::{Flow, Flows, Life, TileFlows};
use super::waiting::{BackwardPass, PHASES, Transfers};
use super::{PlacedStage, Recompute, Schedule};
use crate::memory::{MemoryModel, lanes};
use crate::model::EVERYWHERE;

/// What a flow counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// Times the number of copies.
    Stash,
    /// Times the number of all pipeline stages.
    ForOut,
    /// Once.
    Fixed,
    /// What may wait (see [`Transfers`]).
    Enters,
    Leaves,
    GradientIn,
    GradientOut,
    /// Once, even where nothing is known of the stages after it.
    Accumulators,
}

const QUANTITIES: usize = 8;

/// From the starts `starts` (both inclusive) it counts in ranges with a last
/// position in `lasts` (both inclusive).
#[derive(Debug, Clone, Copy)]
struct FlowStretch {
    quantity: Quantity,
    starts: (u32, u32),
    lasts: (u32, u32),
}

/// By flow: where it counts for what.
#[derive(Debug)]
pub(in crate::memory) struct Patterns {
    of_flow: Vec<Vec<FlowStretch>>,
    /// Where Out is on the first IPU: Out by itself, and all positions as one
    /// stage, to which Out belongs then.
    with_out: Option<(Area, StageFlows)>,
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

/// A segment of starts in which a flow's next users are the same.
#[derive(Debug, Clone, Copy)]
struct Segment {
    starts: (u32, u32),
    /// The first user at or after these starts, by pass.
    forward: Option<u32>,
    backward: Option<u32>,
}

impl<'a> Pattern<'a> {
    fn of(flows: &'a Flows, flow: &'a Flow, positions: u32) -> Vec<FlowStretch> {
        let mut own = Self {
            flows,
            flow,
            end: positions - 1,
            found: Vec::new(),
        };
        for segment in own.segments() {
            match flow.life {
                Life::Backward => own.gradient(segment),
                _ => own.activation(segment),
            }
        }
        own.found
    }

    /// Where starts go on to another next user.
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

    /// A gradient that the backward pass makes in its highest place.
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
        self.pass(segment, lowest, next);
    }

    /// On its way through a range between two users.
    fn pass(&mut self, segment: Segment, lowest: u32, next: Option<u32>) {
        if let Some(next) = next.filter(|&next| segment.starts.0 > lowest && next > 0) {
            self.add(Quantity::Fixed, segment, segment.starts.0, next - 1);
        }
    }

    /// What the forward pass makes in its lowest place.
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
        self.pass(segment, lowest, next);
    }

    /// The last place up to `place` that has a backward pass.
    fn last_back(&self, place: u32) -> Option<u32> {
        (0..=place).rev().find(|&place| self.flows.goes_back(place))
    }

    /// The first last position with which a user of ranges from `start` on runs again,
    /// where each layer does.
    fn again_from(&self, start: u32, user: u32) -> Option<u32> {
        let ends = [user, 1].into_iter().filter(|&last| last >= user);
        let mut ends = ends.filter(|&last| self.flows.runs_again(user, &(start..last + 1)));
        ends.next()
    }

    /// From which last position on a checkpoint of layers is kept.
    fn checkpoint(&self, start: u32, kept: Option<u32>, enters: Option<u32>) -> Option<u32> {
        let own = self.flow.forward.iter().copied();
        let own = own.filter(|&user| user >= start);
        let layers = own.clone().filter(|&user| user > 0);
        let again = |user: u32| self.again_from(start, user);
        let enters = enters.and_then(|_| own.clone().filter_map(again).min());
        let between = layers.skip(1).filter_map(again).min();
        let maker = self.flow.forward.first().copied();
        let maker = maker.filter(|&maker| !self.flow.is_streamed && maker >= start);
        let made_once = kept.zip(maker).map(|(kept, maker)| kept.max(maker));
        let runs_once = |maker| !self.flows.runs_again(maker, &(0..self.flows.places));
        let made_once = made_once.filter(|_| maker.is_some_and(runs_once));
        [enters, between, made_once].into_iter().flatten().min()
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

    /// What Out takes, where it is on the first IPU.
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
            // Only ranges from the first position have Out beside them.
            let first = Segment {
                starts: (0, 0),
                ..segment
            };
            self.add(Quantity::ForOut, first, next, until - 1);
        }
    }
}

/// A change of what counts at a last position, from some start on.
#[derive(Debug, Clone, Copy)]
struct Event {
    quantity: usize,
    last: u32,
    is_end: bool,
    /// What begins or ends to count, as a position in [`RangeAdditions::bytes`].
    what: u32,
}

/// What is added on up to `N` neighbouring tiles; its memory is used again for the next.
/// Bytes are by lane.
#[derive(Debug)]
pub(in crate::memory) struct RangeAdditions<const N: usize> {
    /// Those of flows and accumulators.
    bytes: Vec<[i64; N]>,
    /// By start.
    events: Vec<Vec<Event>>,
    /// By quantity, then by last position.
    changes: Vec<Vec<[i64; N]>>,
    /// The sums of the range.
    sums: [[i64; N]; QUANTITIES],
    /// By place: the largest variable that is kept there; that of the range.
    largest_of_place: Vec<[u64; N]>,
    largest: [u64; N],
    /// By place: how it runs backward; how the range does.
    backward_of_place: Vec<BackwardPass>,
    backward: BackwardPass,
    /// What may wait in Out, where it is on the first IPU.
    out: Option<[Transfers; N]>,
    /// What all positions need on one IPU beside the least, where Out is on it.
    whole: Option<[[u64; PHASES]; N]>,
    start: usize,
}

impl<const N: usize> Default for RangeAdditions<N> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            events: Vec::new(),
            changes: Vec::new(),
            sums: [[0; N]; QUANTITIES],
            largest_of_place: Vec::new(),
            largest: [0; N],
            backward_of_place: Vec::new(),
            backward: BackwardPass::None,
            out: None,
            whole: None,
            start: 0,
        }
    }
}

impl<const N: usize> RangeAdditions<N> {
    /// Takes the flows of some tiles.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        patterns: &Patterns,
        tiles: &TileFlows<N>,
    ) {
        let positions = memory.layers();
        self.restart(positions, flows);
        for &flow in &tiles.met {
            let what = self.named(tiles.bytes(flow));
            for stretch in &patterns.of_flow[flow as usize] {
                self.enter(*stretch, what, positions);
            }
            self.keep(flows, flow, tiles);
        }
        let accumulators = tiles.accumulators.iter();
        for &(set, bytes) in accumulators.filter(|_| flows.has_accumulators()) {
            let everywhere = [0];
            let places = match set {
                EVERYWHERE => &everywhere[..],
                _ => memory.sets.places(set),
            };
            let what = self.named(bytes);
            self.accumulate(places, set == EVERYWHERE, what, positions);
        }
        let with_out = patterns.with_out.as_ref();
        self.out = with_out.map(|(out, _)| flows.transfers(out, tiles));
        self.whole = with_out.map(|(_, whole)| {
            let additions = flows.additions(memory, whole, tiles);
            additions.map(|own| own.beside_least())
        });
    }

    fn restart(&mut self, positions: usize, flows: &Flows) {
        self.bytes.clear();
        self.events.resize_with(positions + 1, Vec::new);
        self.events.iter_mut().for_each(Vec::clear);
        self.changes.resize_with(QUANTITIES, Vec::new);
        for changes in &mut self.changes {
            changes.clear();
            changes.resize(positions + 1, [0; N]);
        }
        self.backward_of_place.clear();
        let backward = (0..flows.places).map(|place| flows.backward_of(place));
        self.backward_of_place.extend(backward);
        self.largest_of_place.clear();
        self.largest_of_place.resize(flows.places as usize, [0; N]);
    }

    /// Where these bytes are in the list.
    fn named(&mut self, bytes: [u64; N]) -> u32 {
        self.bytes.push(bytes.map(|bytes| bytes as i64));
        self.bytes.len() as u32 - 1
    }

    fn enter(&mut self, stretch: FlowStretch, what: u32, positions: usize) {
        let (first, last) = stretch.starts;
        for (start, is_end) in [(first as usize, false), (last as usize + 1, true)] {
            if start >= positions {
                continue;
            }
            let (first, after) = (stretch.lasts.0, stretch.lasts.1 + 1);
            let own = |(last, is_end)| Event {
                quantity: stretch.quantity as usize,
                last,
                is_end,
                what,
            };
            self.events[start].extend([(first, is_end), (after, !is_end)].map(own));
        }
    }

    /// What is kept from the forward to the backward pass, by place.
    fn keep(&mut self, flows: &Flows, flow: u32, tiles: &TileFlows<N>) {
        let own = &flows.list[flow as usize];
        if own.life == Life::AcrossPasses {
            for &place in &own.backward {
                let largest = &mut self.largest_of_place[place as usize];
                lanes::raise(largest, &tiles.largest(flow));
            }
        }
    }

    fn accumulate(&mut self, places: &[u32], everywhere: bool, what: u32, positions: usize) {
        let end = positions as u32 - 1;
        let mut start = 0;
        for &place in places {
            let stretch = FlowStretch {
                quantity: Quantity::Accumulators,
                starts: if everywhere { (0, end) } else { (start, place) },
                lasts: if everywhere { (0, end) } else { (place, end) },
            };
            self.enter(stretch, what, positions);
            start = place + 1;
        }
    }

    /// Begins with an empty range before the position `start`.
    pub(in crate::memory) fn begin(&mut self, start: usize) {
        for event in &self.events[start] {
            let bytes = &self.bytes[event.what as usize];
            let changes = &mut self.changes[event.quantity][event.last as usize];
            match event.is_end {
                true => lanes::subtract(changes, bytes),
                false => lanes::add(changes, bytes),
            }
        }
        for (sums, changes) in self.sums.iter_mut().zip(&self.changes) {
            *sums = [0; N];
            changes[..start]
                .iter()
                .for_each(|own| lanes::add(sums, own));
        }
        self.start = start;
        self.largest = [0; N];
        self.backward = BackwardPass::None;
    }

    /// Adds the next position to the range.
    pub(in crate::memory) fn add(&mut self, last: usize) {
        for (sums, changes) in self.sums.iter_mut().zip(&self.changes) {
            lanes::add(sums, &changes[last]);
        }
        lanes::raise(&mut self.largest, &self.largest_of_place[last]);
        self.backward = self.backward.with(self.backward_of_place[last]);
    }

    fn sum(&self, quantity: Quantity, lane: usize) -> u64 {
        self.sums[quantity as usize][lane] as u64
    }

    /// What any stage with this range needs at least.
    pub(in crate::memory) fn least(&self) -> [u64; N] {
        std::array::from_fn(|lane| self.sum(Quantity::Accumulators, lane))
    }

    /// One copy of what the range stashes.
    pub(in crate::memory) fn stashed(&self) -> [u64; N] {
        std::array::from_fn(|lane| self.sum(Quantity::Stash, lane))
    }

    /// What of it, beside the least, is there in the update too.
    pub(in crate::memory) fn kept(&self, flows: &Flows, depth: usize, is_whole: bool) -> [u64; N] {
        match self.whole.is_some() && is_whole {
            true => [0; N],
            false => std::array::from_fn(|lane| self.copies_on(flows, depth, lane)),
        }
    }

    /// By phase: what it needs beside the least with `depth` forward pipeline stages after it.
    pub(in crate::memory) fn beside(
        &self,
        flows: &Flows,
        depth: usize,
        is_whole: bool,
    ) -> [[u64; N]; PHASES] {
        let by_lane: [[u64; PHASES]; N] = match self.whole.filter(|_| is_whole) {
            Some(whole) => whole,
            None => std::array::from_fn(|lane| self.beside_on(flows, depth, lane)),
        };
        std::array::from_fn(|phase| by_lane.map(|own| own[phase]))
    }

    fn beside_on(&self, flows: &Flows, depth: usize, lane: usize) -> [u64; PHASES] {
        let own = Transfers {
            enters: self.sum(Quantity::Enters, lane),
            leaves: self.sum(Quantity::Leaves, lane),
            gradient_in: self.sum(Quantity::GradientIn, lane),
            gradient_out: self.sum(Quantity::GradientOut, lane),
            largest_kept: self.largest[lane],
            backward: self.backward,
        };
        let out = self.out.as_ref().filter(|_| self.start == 0);
        let waiting = match out {
            None => flows.waiting(&own),
            Some(out) => flows.waiting_beside_out(&own, &out[lane]),
        };
        let fixed = self.copies_on(flows, depth, lane) + self.sum(Quantity::Fixed, lane);
        waiting.map(|waiting| fixed + waiting)
    }

    /// All copies for the micro-batches that are under way.
    fn copies_on(&self, flows: &Flows, depth: usize, lane: usize) -> u64 {
        let of_out = match self.start == 0 {
            true => (depth as u64 + 1) * self.sum(Quantity::ForOut, lane),
            false => 0,
        };
        flows.copies(depth) * self.sum(Quantity::Stash, lane) + of_out
    }
}
