//! The bytes that a pipeline adds to every range of layers on some tiles, for any number of stages
//! after the range.
//!
//! Which ranges add the bytes of a flow (tensors with the same users) is the same on all tiles, so
//! it is computed once ([`Patterns`]). For this, the definition ([`Flow::role_of`]) is evaluated
//! only where a range gains or loses a place (In, a layer or Out) that can change the result. The
//! bytes of each flow differ between tiles. Ranges are visited in the order of their starts and,
//! from each start, grow layer by layer, as in `memory::ranges`.

use super::Recompute;
use super::additions::{PHASES, TileFlows, Transfers};
use super::flows::{Flow, Flows, Life, QUANTITIES, StageRole, users_in};
use crate::memory::MemoryModel;
use crate::memory::entering::{Entries, GrowingSums};
use crate::memory::lanes::{self, ByLane};
use crate::model::{TooManyPlaces, ascending};
use std::ops::Range;

/// A change of one sum by the bytes of the flow `flow`. The change applies to all ranges of
/// positions that begin at a certain start and reach at least to a certain position.
#[derive(Clone, Copy, Default)]
struct Event {
    /// The sum that changes, as an index into [`StageRole::counts`](super::flows::StageRole).
    quantity: usize,
    /// Whether the bytes of the flow are subtracted from the sum, rather than added to it.
    is_end: bool,
    flow: u32,
}

/// The bytes that a pipeline adds to a range that grows layer by layer, on up to `N` neighbouring
/// tiles, by lane (tile). The same buffers are used for one group of tiles after the other.
#[derive(Default)]
pub(crate) struct RangeAdditions<const N: usize> {
    /// The bytes of accumulators that the pipeline adds. They do not depend on the number of stages
    /// after the range.
    pub accumulators: GrowingSums<N, 1>,
    /// The changes of sums of ranges that grow to a position, for ranges that begin at a certain
    /// start or later.
    events: Entries<Event>,
    /// One entry per position, for ranges from the current start: the change of each sum when a
    /// range grows to this position, with the [`Quantity`](super::flows::Quantity) of the sum as
    /// its index. Numbers wrap around.
    changes: Vec<[ByLane<u64, N>; QUANTITIES]>,
    /// One entry per place (In, layers, Out): the bytes that the place keeps from its forward to
    /// its backward pass.
    kept: Vec<ByLane<u64, N>>,
    /// The sums of bytes that the current range stashes, receives, sends, forwards and keeps.
    range: Transfers<N>,
    /// The same sums as in `range` for Out, if Out is on the first IPU and so can be a pipeline
    /// stage of its own there; otherwise `None`.
    out: Option<Transfers<N>>,
    /// Whether Out is a pipeline stage of its own on the first IPU and the current range runs on
    /// this IPU too.
    is_beside_out: bool,
}

impl<const N: usize> RangeAdditions<N> {
    /// Loads the bytes of flows (tensors with the same users) and of accumulators from `tiles`.
    /// `patterns` tells for each flow which ranges add its bytes to their sums.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    pub fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        patterns: &Patterns<'_>,
        tiles: &TileFlows<N>,
    ) -> Result<(), TooManyPlaces> {
        let (positions, flows) = (memory.layers(), patterns.flows);
        self.accumulators.restart(positions);
        self.events.restart(positions);
        self.changes.clear();
        self.changes.resize_with(positions + 1, Default::default);
        self.kept.clear();
        self.kept.resize(flows.places as usize, ByLane::default());
        for &flow in &tiles.met {
            for stretch in &patterns.of_flow[flow as usize] {
                self.enter(stretch, flow);
            }
            let kept = &flows.list[flow as usize];
            for &place in kept
                .backward
                .iter()
                .filter(|_| kept.life == Life::AcrossPasses)
            {
                let bytes = &mut self.kept[place as usize];
                lanes::raise(bytes, &tiles.bytes[flow as usize].largest);
            }
        }
        for &(set, bytes) in &tiles.accumulators {
            self.accumulators.enter(memory, set, 0, bytes);
        }
        let out = flows.roles_of_out.as_ref();
        self.out = out.map(|out| flows.transfers(out, tiles));
        self.accumulators.entries.check()
    }

    fn enter(&mut self, stretch: &FlowStretch, flow: u32) {
        let (starts, lasts) = (&stretch.starts, &stretch.lasts);
        for (start, is_after) in [(starts.start, false), (starts.end, true)] {
            for (last, is_end) in [(lasts.start, is_after), (lasts.end, !is_after)] {
                let event = Event {
                    quantity: stretch.quantity,
                    is_end,
                    flow,
                };
                self.events.push(start as usize, last, event);
            }
        }
    }

    /// Starts an empty range before the position `start`. `tiles` must be the argument of the last
    /// call of [`RangeAdditions::load`]. The method must be called for the starts 0, 1, ... in this
    /// order.
    pub fn begin(&mut self, start: usize, tiles: &TileFlows<N>) {
        for (last, event) in self.events.from(start) {
            let bytes = &tiles.bytes[event.flow as usize].all;
            let changes = &mut self.changes[last][event.quantity];
            if event.is_end {
                lanes::subtract(changes, bytes)
            } else {
                lanes::add(changes, bytes)
            }
        }
        self.range = Transfers::default();
        for changes in &self.changes[..start] {
            lanes::add_each(&mut self.range.sums, changes);
        }
        self.accumulators.begin(start);
    }

    /// Adds the last position of `range` (end exclusive) to the end of the current range, which
    /// then is `range`.
    pub fn add(&mut self, flows: &Flows, range: &Range<usize>) {
        let last = range.end - 1;
        self.accumulators.add(last);
        lanes::add_each(&mut self.range.sums, &self.changes[last]);
        let places = flows.places_of(range);
        self.is_beside_out = flows.is_beside_out(&places);
        // A range keeps as many bytes as the place in it that keeps the most, and runs backward as
        // the place with the greatest `BackwardPass`.
        let sums = &mut self.range;
        for place in last as u32..places.end {
            sums.backward = sums.backward.max(flows.backward_of(place));
            lanes::raise(&mut sums.kept, &self.kept[place as usize]);
        }
    }

    /// Returns for each lane (tile) the bytes of all additional copies of tensors that the current
    /// range keeps for micro-batches in flight. `depth` is the number of forward pipeline stages
    /// after the range. The memory of the copies stays in use during the weight update.
    pub fn copies(&self, flows: &Flows, depth: usize) -> [u64; N] {
        flows.stash(depth, &self.range)
    }

    /// Returns the bytes of transfer buffers and forwarded tensors of the current range, one entry
    /// per phase (see [`PHASES`]), with one number per lane (tile). Accumulators and
    /// [`RangeAdditions::copies`] are the only other bytes that `self` adds to the range.
    pub fn beside(&self, flows: &Flows) -> [[u64; N]; PHASES] {
        let out = self.out.as_ref().filter(|_| self.is_beside_out);
        let by_lane: [_; N] = std::array::from_fn(|lane| flows.in_phases(&self.range, out, lane));
        std::array::from_fn(|phase| {
            by_lane.map(|[buffers, forwarded]| buffers[phase] + forwarded[phase])
        })
    }
}

/// All ranges of positions whose first position is in `starts` and whose last position is in
/// `lasts`. A stage with one of these ranges counts the bytes of one given flow in one given
/// [`Quantity`](super::flows::Quantity).
pub(super) struct FlowStretch {
    /// The quantity, as an index into [`StageRole::counts`].
    pub quantity: usize,
    pub starts: Range<u32>,
    pub lasts: Range<u32>,
}

/// What stages do with the tensors of each flow (tensors with the same users), as sets of ranges of
/// positions whose stages treat the tensors alike.
pub(crate) struct Patterns<'a> {
    pub flows: &'a Flows,
    /// One entry per flow, in the order of [`Flows::list`]: the ranges of positions whose stages
    /// add the bytes of the flow to a quantity, for each quantity.
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
}

impl<'a> Patterns<'a> {
    pub fn new(flows: &'a Flows, positions: u32) -> Self {
        Self {
            flows,
            of_flow: flows
                .list
                .iter()
                .map(|flow| stretches(flows, flow, positions))
                .collect(),
        }
    }
}

/// Returns the ranges of positions whose stages add the bytes of `flow` to a quantity, for each
/// quantity. `positions` is the number of positions in the layer order.
fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let mut found = Vec::new();
    let lost = turns_of_starts(flows, flow);
    for starts in pieces(0..positions, lost.into_iter().map(|place| place + 1)) {
        let first = starts.start;
        let lasts = pieces(first..positions, turns_from(flows, flow, first));
        let role = |lasts: Range<u32>| {
            let places = flows.places_of(&(first as usize..lasts.start as usize + 1));
            (lasts, flow.role_of(&places, flows))
        };
        let roles: Vec<_> = lasts.into_iter().map(role).collect();
        for quantity in 0..QUANTITIES {
            let counts = |(_, role): &(_, StageRole)| role.counts[quantity];
            for alike in roles.chunk_by(|a, b| counts(a) == counts(b)) {
                if counts(&alike[0]) {
                    found.push(FlowStretch {
                        quantity,
                        starts: starts.clone(),
                        lasts: alike[0].0.start..alike[alike.len() - 1].0.end,
                    });
                }
            }
        }
    }
    found
}

/// Returns the places whose loss can change what a range does with the tensors of `flow`, when the
/// range becomes shorter at its start. The places are numbers of In, layers or Out, in any order;
/// the loss of any other place changes nothing.
fn turns_of_starts(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let mut turns: Vec<u32> = flow.forward.iter().chain(&flow.backward).copied().collect();
    match flows.pipeline.recompute {
        Recompute::None => {}
        // If each stage is recomputed as a whole, a stage runs again if any of its places has a
        // backward pass.
        Recompute::Stage => {
            turns.extend(
                flow.forward
                    .iter()
                    .filter_map(|&user| (0..=user).rev().find(|&place| flows.goes_back(place))),
            );
        }
        // In and the first layer run again together.
        Recompute::Layer if turns.iter().any(|&place| place < 2) => turns.extend([0, 1]),
        Recompute::Layer => {}
    }
    if flows.out_is_first {
        // Only a range that begins with the first position can be on the same IPU as Out.
        turns.push(0);
    }
    turns
}

/// Returns the places whose gain can change what a range does with the tensors of `flow`, when the
/// range begins with the place `start` and grows at its end. The places are numbers of In, layers
/// or Out, in any order; the gain of any other place changes nothing.
fn turns_from(flows: &Flows, flow: &Flow, start: u32) -> Vec<u32> {
    let places = start..flows.places;
    let forward = users_in(&flow.forward, &places);
    let backward = users_in(&flow.backward, &places);
    let ends = [backward.first(), forward.last(), backward.last()];
    // In and the first layer run again together. The last pipeline stage, which has the last place,
    // does not run again.
    let mut turns = vec![0, 1, flows.places - 1];
    if flows.out_is_first {
        // A range of all positions also contains the place Out.
        turns.push(flows.places - 2);
    }
    turns.extend(ends.into_iter().flatten());
    // Whether tensors are stashed for the recomputation of a layer depends on at most the first
    // three users of the tensor that have a backward pass.
    let mut back = 0;
    for &user in forward {
        turns.push(user);
        back += u32::from(flows.goes_back(user));
        if back == 3 {
            break;
        }
    }
    if flows.pipeline.recompute == Recompute::Stage
        && let Some(&next) = forward.first()
    {
        turns.extend((next..flows.places).find(|&place| flows.goes_back(place)));
    }
    turns
}

/// Cuts the half-open range `positions` into pieces, before each of `cuts` (in any order) that is
/// inside the range. Returns the pieces in order.
fn pieces(positions: Range<u32>, cuts: impl IntoIterator<Item = u32>) -> Vec<Range<u32>> {
    let inside = cuts
        .into_iter()
        .filter(|cut| (positions.start + 1..positions.end).contains(cut));
    ascending(inside.chain([positions.start, positions.end]))
        .windows(2)
        .map(|piece| piece[0]..piece[1])
        .collect()
}
