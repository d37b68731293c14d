//! Bytes that a pipeline adds to every range of layers on some tiles, for any number of stages
//! after the range.
//!
//! Where a flow counts is the same on all tiles and computed once ([`Patterns`]); tiles bring the
//! bytes, and go through the starts as `memory::ranges` does.

use super::additions::TileFlows;
use super::flows::{Flows, Life, QUANTITIES, Quantity};
use super::patterns::{FlowStretch, Patterns};
use super::transfer_buffers::{BackwardPass, PHASES, Transfers};
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane};
use crate::model::EVERYWHERE;

/// A change of a sum at the last position `last`, which applies from some start on.
#[derive(Debug, Clone, Copy)]
struct Event {
    quantity: usize,
    last: u32,
    is_end: bool,
    /// Index in [`RangeAdditions::bytes`] of the bytes that begin or cease to count.
    what: u32,
}

/// Bytes that a pipeline adds to the growing range on up to `N` neighbouring tiles, by lane; reused
/// for the next tiles.
#[derive(Debug, Default)]
pub(in crate::memory) struct RangeAdditions<const N: usize> {
    /// Bytes of flows and accumulators.
    bytes: Vec<[i64; N]>,
    /// By start, the changes that apply from there on.
    events: Vec<Vec<Event>>,
    /// By quantity, then by last position.
    changes: Vec<Vec<[i64; N]>>,
    /// By quantity, the sum of the range.
    sums: [ByLane<i64, N>; QUANTITIES],
    /// By place, the largest variable that is kept there; and the largest in the range.
    largest_of_place: Vec<[u64; N]>,
    largest: ByLane<u64, N>,
    /// By place, how the place runs backward; and how the range does.
    backward_of_place: Vec<BackwardPass>,
    backward: BackwardPass,
    /// What determines the transfer buffers of Out, if it is on the first IPU.
    out: Option<[Transfers; N]>,
    /// Bytes of a stage with all positions besides its least bytes, if Out is on the first IPU.
    whole: Option<[[u64; PHASES]; N]>,
    start: usize,
    /// End of the range of positions (exclusive).
    end: usize,
}

impl<const N: usize> RangeAdditions<N> {
    /// Loads the flows of some tiles.
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
            let what = self.store(tiles.bytes(flow));
            for stretch in &patterns.of_flow[flow as usize] {
                self.enter(*stretch, what, positions);
            }
            self.keep(flows, flow, tiles);
        }
        for &(set, bytes) in &tiles.accumulators {
            let what = self.store(bytes);
            match set {
                EVERYWHERE => self.accumulate((0, positions as u32 - 1), 0, what, positions),
                _ => {
                    let mut start = 0;
                    for &place in memory.sets.places(set) {
                        self.accumulate((start, place), place, what, positions);
                        start = place + 1;
                    }
                }
            }
        }
        let with_out = patterns.with_out.as_ref();
        self.out = with_out.map(|(out, _)| flows.transfers(out, tiles));
        self.whole = with_out.map(|(_, whole)| {
            let additions = flows.additions(memory, whole, tiles);
            additions.map(|added| added.beside_least())
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

    /// Stores bytes and returns their index in the list.
    fn store(&mut self, bytes: [u64; N]) -> u32 {
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
            let event = |(last, is_end)| Event {
                quantity: stretch.quantity,
                last,
                is_end,
                what,
            };
            self.events[start].extend([(first, is_end), (after, !is_end)].map(event));
        }
    }

    /// Notes at which places an activation is kept from the forward to the backward pass.
    fn keep(&mut self, flows: &Flows, flow: u32, tiles: &TileFlows<N>) {
        let kept = &flows.list[flow as usize];
        if kept.life == Life::AcrossPasses {
            for &place in &kept.backward {
                let largest = &mut self.largest_of_place[place as usize];
                lanes::raise(largest, &tiles.largest(flow));
            }
        }
    }

    /// Enters accumulators of ranges with a start in `starts` (end inclusive) from the last
    /// position `first` on.
    fn accumulate(&mut self, starts: (u32, u32), first: u32, what: u32, positions: usize) {
        let stretch = FlowStretch {
            quantity: Quantity::Accumulators as usize,
            starts,
            lasts: (first, positions as u32 - 1),
        };
        self.enter(stretch, what, positions);
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
            *sums = ByLane::default();
            changes[..start]
                .iter()
                .for_each(|change| lanes::add(sums, change));
        }
        (self.start, self.end) = (start, start);
        self.largest = ByLane::default();
        self.backward = BackwardPass::None;
    }

    /// Adds the next position to the range.
    pub(in crate::memory) fn add(&mut self, last: usize) {
        self.end = last + 1;
        for (sums, changes) in self.sums.iter_mut().zip(&self.changes) {
            lanes::add(sums, &changes[last]);
        }
        lanes::raise(&mut self.largest, &self.largest_of_place[last]);
        self.backward = self.backward.with(self.backward_of_place[last]);
    }

    fn sum(&self, quantity: Quantity, lane: usize) -> u64 {
        self.sums[quantity as usize][lane] as u64
    }

    /// By lane, the least bytes that the pipeline adds to any stage with this range.
    pub(in crate::memory) fn least(&self) -> [u64; N] {
        std::array::from_fn(|lane| self.sum(Quantity::Accumulators, lane))
    }

    /// By lane, all copies of tensors that the range stashes for micro-batches in flight, with
    /// `depth` forward pipeline stages after the range. The update has them too.
    pub(in crate::memory) fn copies(&self, flows: &Flows, depth: usize) -> [u64; N] {
        match self.whole {
            Some(_) if self.is_whole() => [0; N],
            _ => std::array::from_fn(|lane| flows.stash(depth, |sum| self.sum(sum, lane))),
        }
    }

    /// By phase, then by lane: added bytes besides [`RangeAdditions::least`] and
    /// [`RangeAdditions::copies`].
    pub(in crate::memory) fn beside(&self, flows: &Flows) -> [[u64; N]; PHASES] {
        let by_lane: [[u64; PHASES]; N] = match self.whole {
            Some(whole) if self.is_whole() => whole,
            _ => std::array::from_fn(|lane| self.beside_on(flows, lane)),
        };
        std::array::from_fn(|phase| by_lane.map(|phases| phases[phase]))
    }

    /// Does the range have all positions?
    fn is_whole(&self) -> bool {
        self.start == 0 && self.end == self.events.len() - 1
    }

    fn beside_on(&self, flows: &Flows, lane: usize) -> [u64; PHASES] {
        let transfers = Transfers {
            sums: self.sums.map(|sums| sums[lane] as u64),
            kept: self.largest[lane],
            backward: self.backward,
        };
        let out = self.out.as_ref().filter(|_| self.start == 0);
        let buffers = flows.transfer_buffers_with_out(&transfers, out.map(|out| &out[lane]));
        let forwarded = flows.forwarded(&transfers);
        std::array::from_fn(|phase| buffers[phase] + forwarded[phase])
    }
}
