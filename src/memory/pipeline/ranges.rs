//! The bytes that a pipeline adds to every range of layers on some tiles, for any number of stages
//! after the range.
//!
//! The ranges whose stages add the bytes of a flow (tensors with the same users) are the same on
//! all tiles, so they are computed once ([`Patterns`]). For this, the definition
//! ([`Flow::role_of`]) is evaluated only where a range gains or loses a place (In, a layer or Out)
//! that can change the result. Tiles differ in the bytes of each flow. Ranges are visited by start,
//! then layer by layer, as in `memory::ranges`.

use super::Recompute;
use super::additions::{StageRoles, TileFlows};
use super::flows::{Flow, Flows, Life, QUANTITIES, StageRole};
use super::transfer_buffers::{Kept, PHASES, Transfers};
use crate::memory::MemoryModel;
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, ByLane};
use crate::model::TooManyPlaces;
use std::ops::Range;

/// A change of one sum by the bytes of `flow`, for all ranges of positions from a start that reach
/// at least the last position `last`.
#[derive(Clone, Copy)]
struct Event {
    /// The sum that changes, as an index in [`StageRole::counts`](super::flows::StageRole).
    quantity: usize,
    last: u32,
    /// Whether the bytes of the flow are subtracted from the sum, rather than added to it.
    is_end: bool,
    flow: u32,
}

/// The bytes that a pipeline adds to a range that grows layer by layer, on up to `N` neighbouring
/// tiles, by lane (tile). The buffers are reused for the next tiles.
#[derive(Default)]
pub(crate) struct RangeAdditions<const N: usize> {
    /// The bytes of accumulators that the pipeline adds, whatever the number of stages after the
    /// range.
    pub accumulators: GrowingSums<N, 1>,
    /// For each start: the changes of sums that apply to ranges from this start and from later
    /// ones.
    events: Vec<Vec<Event>>,
    /// For ranges from the current start: the change of each sum when a range reaches a last
    /// position, by this position and then by [`Quantity`](super::flows::Quantity). Numbers wrap
    /// around.
    changes: Vec<[ByLane<u64, N>; QUANTITIES]>,
    /// For each place (In, layers, Out): the bytes that it keeps for its backward pass.
    of_place: Vec<Kept<N>>,
    /// The sums of the current range: of the bytes that it stashes, receives, sends, forwards and
    /// keeps.
    range: Transfers<N>,
    /// The sums, as in `range`, of Out as a pipeline stage of its own, if Out is on the first IPU;
    /// otherwise `None`.
    out: Option<Transfers<N>>,
    /// Whether Out is on the first IPU as a pipeline stage of its own, beside the current range.
    is_beside_out: bool,
    start: usize,
}

impl<const N: usize> RangeAdditions<N> {
    /// Loads the flows (tensors with the same users) and accumulators of `tiles`. `patterns` has
    /// for each flow the ranges whose stages add its bytes.
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
        self.events.resize_with(positions, Vec::new);
        self.events.iter_mut().for_each(Vec::clear);
        self.changes.clear();
        self.changes.resize_with(positions + 1, Default::default);
        self.of_place.clear();
        self.of_place.extend((0..flows.places).map(|place| Kept {
            backward: flows.backward_of(place),
            ..Kept::default()
        }));
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
                let bytes = &mut self.of_place[place as usize].bytes;
                lanes::raise(bytes, &tiles.bytes[flow as usize].largest);
            }
        }
        for &(set, bytes) in &tiles.accumulators {
            self.accumulators.enter(memory, set, 0, bytes);
        }
        let out = patterns.out.as_ref();
        self.out = out.map(|out| flows.transfers(out, tiles));
        self.accumulators.entries.check()
    }

    fn enter(&mut self, stretch: &FlowStretch, flow: u32) {
        let &FlowStretch {
            quantity,
            starts,
            lasts,
        } = stretch;
        for (start, is_end) in [(starts.0, false), (starts.1 + 1, true)] {
            let event = |(last, is_end)| Event {
                quantity,
                last,
                is_end,
                flow,
            };
            if let Some(events) = self.events.get_mut(start as usize) {
                events.extend([(lasts.0, is_end), (lasts.1 + 1, !is_end)].map(event));
            }
        }
    }

    /// Starts an empty range before the position `start`. `tiles` must be those of the last
    /// [`RangeAdditions::load`]. The method must be called for the starts 0, 1, ... in this order.
    pub fn begin(&mut self, start: usize, tiles: &TileFlows<N>) {
        for event in &self.events[start] {
            let bytes = &tiles.bytes[event.flow as usize].all;
            let changes = &mut self.changes[event.last as usize][event.quantity];
            if event.is_end {
                lanes::subtract(changes, bytes)
            } else {
                lanes::add(changes, bytes)
            }
        }
        self.range = Transfers::default();
        for changes in &self.changes[..start] {
            add(&mut self.range.sums, changes);
        }
        self.accumulators.begin(start);
        self.start = start;
    }

    /// Adds the position `last` to the end of the current range, which it must directly follow.
    pub fn add(&mut self, last: usize) {
        self.accumulators.add(last);
        add(&mut self.range.sums, &self.changes[last]);
        let is_whole = self.start == 0 && last + 1 == self.events.len();
        // A range of all positions also contains Out.
        let end = if is_whole {
            self.of_place.len()
        } else {
            last + 1
        };
        // The bytes that a range keeps are the largest of any of its places; it runs backward as
        // the place with the greatest `Kept::backward`.
        let kept = &mut self.range.kept;
        for place in &self.of_place[last..end] {
            kept.backward = kept.backward.max(place.backward);
            lanes::raise(&mut kept.bytes, &place.bytes);
        }
        self.is_beside_out = self.start == 0 && !is_whole;
    }

    /// Returns for each lane (tile) the bytes of all additional copies of tensors that the current
    /// range keeps for micro-batches in flight, with `depth` forward pipeline stages after it. The
    /// copies stay during the update.
    pub fn copies(&self, flows: &Flows, depth: usize) -> [u64; N] {
        flows.stash(depth, &self.range)
    }

    /// Returns, by phase (see [`PHASES`]) and then by lane (tile), the bytes of transfer buffers
    /// and forwarded tensors of the current range: all that the pipeline adds besides
    /// accumulators and [`RangeAdditions::copies`].
    pub fn beside(&self, flows: &Flows) -> [[u64; N]; PHASES] {
        let out = self.out.as_ref().filter(|_| self.is_beside_out);
        let by_lane: [_; N] = std::array::from_fn(|lane| flows.in_phases(&self.range, out, lane));
        std::array::from_fn(|phase| {
            by_lane.map(|[buffers, forwarded]| buffers[phase] + forwarded[phase])
        })
    }
}

/// Adds to each sum, by [`Quantity`](super::flows::Quantity) and lane (tile), the change with the
/// same index.
fn add<const N: usize>(
    sums: &mut [ByLane<u64, N>; QUANTITIES],
    changes: &[ByLane<u64, N>; QUANTITIES],
) {
    for (sums, changes) in sums.iter_mut().zip(changes) {
        lanes::add(sums, changes);
    }
}

/// Ranges of positions whose stages add the bytes of one flow to one
/// [`Quantity`](super::flows::Quantity): all ranges with a first position in `starts` and a last
/// position in `lasts`.
#[derive(Clone, Copy)]
pub(super) struct FlowStretch {
    /// The quantity, as an index in [`StageRole::counts`].
    pub quantity: usize,
    /// The lowest and the highest first position of the ranges, both inclusive.
    pub starts: (u32, u32),
    /// The lowest and the highest last position of the ranges, both inclusive.
    pub lasts: (u32, u32),
}

/// For each flow (tensors with the same users), the ranges of positions whose stages do something
/// with its tensors, and what they do.
pub(crate) struct Patterns<'a> {
    pub flows: &'a Flows,
    /// For each flow, by its number in [`Flows`]: the ranges of positions whose stages add its
    /// bytes to a quantity, for each quantity.
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
    /// What Out, as a pipeline stage of its own, does with the tensors of each flow, if Out is on
    /// the first IPU; otherwise `None`.
    pub(super) out: Option<StageRoles>,
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
            out: flows.out_is_first.then(|| flows.stage_roles(flows.out())),
        }
    }
}

/// Returns the ranges of positions whose stages add the bytes of `flow` to a quantity. `positions`
/// is the number of positions in the layer order.
fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let mut found = Vec::new();
    let lost = turns_of_starts(flows, flow);
    for starts in pieces(0..positions, lost.into_iter().map(|place| place + 1)) {
        let first = starts.0;
        let lasts = pieces(first..positions, turns_from(flows, flow, first));
        let role = |lasts: (u32, u32)| {
            let places = flows.places_of(&(first as usize..lasts.0 as usize + 1));
            (lasts, flow.role_of(&places, flows))
        };
        let roles: Vec<_> = lasts.into_iter().map(role).collect();
        for quantity in 0..QUANTITIES {
            let counts = |(_, role): &(_, StageRole)| role.counts[quantity];
            for alike in roles.chunk_by(|a, b| counts(a) == counts(b)) {
                if counts(&alike[0]) {
                    found.push(FlowStretch {
                        quantity,
                        starts,
                        lasts: (alike[0].0.0, alike[alike.len() - 1].0.1),
                    });
                }
            }
        }
    }
    found
}

/// Returns the numbers of places (In, layers or Out), in any order. The role of a range in `flow`
/// can only change when the range loses one of these places at its start.
fn turns_of_starts(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let mut turns: Vec<u32> = flow.forward.iter().chain(&flow.backward).copied().collect();
    match flows.pipeline.recompute {
        Recompute::None => {}
        // With recomputation of stages, a stage runs again if any of its places has a backward
        // pass.
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
        // Only ranges from the first position on can have Out on their IPU.
        turns.push(0);
    }
    turns
}

/// Returns the numbers of places (In, layers or Out), in any order. The role in `flow` of a range
/// that begins with the place `start` can only change when the range gains one of these places at
/// its end.
fn turns_from(flows: &Flows, flow: &Flow, start: u32) -> Vec<u32> {
    let from = |users: &'_ [u32]| users.partition_point(|&user| user < start);
    let forward = &flow.forward[from(&flow.forward)..];
    let backward = &flow.backward[from(&flow.backward)..];
    let ends = [backward.first(), forward.last(), backward.last()];
    // In and the first layer run again together; the last pipeline stage (with the last place) does
    // not run again.
    let mut turns = vec![0, 1, flows.places - 1];
    if flows.out_is_first {
        // A range of all positions also contains Out.
        turns.push(flows.places - 2);
    }
    turns.extend(ends.into_iter().flatten());
    // Recomputation of a layer depends on at most three users of the tensor with a backward pass.
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

/// Cuts the half-open range `positions` before each of `cuts` that lies inside it (in any order).
/// Returns the first and the last position (both inclusive) of each piece, in order.
fn pieces(positions: Range<u32>, cuts: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ends: Vec<u32> = cuts
        .into_iter()
        .filter(|cut| (positions.start + 1..positions.end).contains(cut))
        .collect();
    ends.push(positions.end);
    ends.sort_unstable();
    ends.dedup();
    let mut first = positions.start;
    ends.into_iter()
        .map(|end| (std::mem::replace(&mut first, end), end - 1))
        .collect()
}
