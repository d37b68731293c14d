//! The bytes that a pipeline adds to every range of layers on some tiles, for any number of stages
//! after the range.
//!
//! The ranges in which each flow counts are the same on all tiles, so they are computed once
//! ([`Patterns`]). Tiles differ in the bytes of each flow. Ranges are visited by start, then layer
//! by layer, as in `memory::ranges`.

use super::additions::TileFlows;
use super::flows::{Flows, Life, QUANTITIES};
use super::patterns::{FlowStretch, Patterns};
use super::transfer_buffers::{Kept, PHASES, Transfers};
use crate::memory::MemoryModel;
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, ByLane};
use crate::model::TooManyPlaces;

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
    accumulators: GrowingSums<N, 1>,
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
    /// The same sums of Out as a pipeline stage of its own, if it is on the first IPU; otherwise
    /// `None`.
    out: Option<Transfers<N>>,
    /// Whether Out is on the first IPU as a pipeline stage of its own, beside the current range.
    is_beside_out: bool,
    start: usize,
}

impl<const N: usize> RangeAdditions<N> {
    /// Loads the flows (tensors with the same users) and accumulators of `tiles`. `patterns` has
    /// the ranges in which each of `flows` counts.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    pub fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        patterns: &Patterns,
        tiles: &TileFlows<N>,
    ) -> Result<(), TooManyPlaces> {
        let positions = memory.layers();
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
                self.enter(*stretch, flow);
            }
            self.keep(flows, flow, tiles);
        }
        for &(set, bytes) in &tiles.accumulators {
            self.accumulators.enter(memory, set, 0, bytes);
        }
        let out = patterns.out.as_ref();
        self.out = out.map(|out| flows.transfers(out, tiles));
        self.accumulators.entries.check()
    }

    fn enter(&mut self, stretch: FlowStretch, flow: u32) {
        let FlowStretch {
            quantity,
            starts,
            lasts,
        } = stretch;
        for (start, is_end) in [(starts.0, false), (starts.1 + 1, true)] {
            if let Some(events) = self.events.get_mut(start as usize) {
                events.extend(
                    [(lasts.0, is_end), (lasts.1 + 1, !is_end)].map(|(last, is_end)| Event {
                        quantity,
                        last,
                        is_end,
                        flow,
                    }),
                );
            }
        }
    }

    /// Raises the bytes that a place keeps between its passes to the largest use of the flow with
    /// the number `flow`, at each place that keeps tensors of this flow.
    fn keep(&mut self, flows: &Flows, flow: u32, tiles: &TileFlows<N>) {
        let kept = &flows.list[flow as usize];
        if kept.life == Life::AcrossPasses {
            for &place in &kept.backward {
                lanes::raise(
                    &mut self.of_place[place as usize].bytes,
                    &tiles.largest(flow),
                );
            }
        }
    }

    /// Starts an empty range before the position `start`. `tiles` must be those of the last
    /// [`RangeAdditions::load`]. Starts must come one after the other, from 0.
    pub fn begin(&mut self, start: usize, tiles: &TileFlows<N>) {
        for event in &self.events[start] {
            let bytes = &tiles.bytes(event.flow);
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

    /// Adds the position `last` to the end of the current range; it must be the one after the
    /// range.
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
        // Of all places of a range, the largest bytes and the greatest backward pass count.
        let kept = &mut self.range.kept;
        for place in &self.of_place[last..end] {
            kept.backward = kept.backward.max(place.backward);
            lanes::raise(&mut kept.bytes, &place.bytes);
        }
        self.is_beside_out = self.start == 0 && !is_whole;
    }

    /// Returns for each lane (tile) the bytes of accumulators that the pipeline adds to the current
    /// range. They are the same whatever the number of stages after it.
    pub fn least(&self) -> &[u64; N] {
        &self.accumulators.sums[0]
    }

    /// Returns for each lane (tile) the bytes of all additional copies of tensors that the current
    /// range keeps for micro-batches in flight, with `depth` forward pipeline stages after it. The
    /// copies stay during the update.
    pub fn copies(&self, flows: &Flows, depth: usize) -> [u64; N] {
        flows.stash(depth, &self.range)
    }

    /// Returns, by phase (see [`PHASES`]) and then by lane (tile), the bytes of transfer buffers
    /// and forwarded tensors of the current range: all that the pipeline adds besides
    /// [`RangeAdditions::least`] and [`RangeAdditions::copies`].
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
