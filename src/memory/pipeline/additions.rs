//! The bytes of flows on neighbouring tiles, and the bytes that a pipeline adds to one stage there: the
//! rules in their literal form.

use super::flows::{Flows, Part, Quantity};
use super::transfer_buffers::{BackwardPass, PHASES, Transfers};
use super::{PlacedStage, Schedule};
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane};
use crate::memory::neighbours::NeighbourUses;
use crate::memory::stage::meets;
use crate::model::{EVERYWHERE, PlaceSet};
use std::ops::Range;

/// The bytes of flows on up to `N` neighbouring tiles, by lane; reused for the next tiles.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct TileFlows<const N: usize> {
    /// By flow.
    bytes: Vec<FlowBytes<N>>,
    /// Flows that any of the tiles has.
    pub(super) met: Vec<u32>,
    /// Bytes of accumulators, with the places whose stages count them.
    pub(super) accumulators: Vec<(PlaceSet, [u64; N])>,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowBytes<const N: usize> {
    is_met: bool,
    all: ByLane<u64, N>,
    /// Bytes of the largest variable.
    largest: ByLane<u64, N>,
}

impl<const N: usize> TileFlows<N> {
    /// Sums up the uses of some tiles. Parameters, constants, and variables that no operation with
    /// a place uses have no flow.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        uses: &NeighbourUses<N>,
    ) {
        for &flow in &self.met {
            self.bytes[flow as usize] = FlowBytes::default();
        }
        self.bytes.resize(flows.len(), FlowBytes::default());
        self.met.clear();
        self.accumulators.clear();
        for (number, bytes) in uses.with_bytes() {
            if let Some(flow) = flows.of(number) {
                self.add(flow, &bytes.map(u64::from));
            } else if let Some(of_weight) = flows.accumulators_of(number, bytes) {
                self.accumulate(memory.uses.known(number).counted, of_weight);
            }
        }
    }

    fn accumulate(&mut self, places: PlaceSet, bytes: [u64; N]) {
        match self.accumulators.last_mut() {
            Some((last, sums)) if *last == places => lanes::add(sums, &bytes),
            _ => self.accumulators.push((places, bytes)),
        }
    }

    fn add(&mut self, flow: u32, bytes: &[u64; N]) {
        let sums = &mut self.bytes[flow as usize];
        if !sums.is_met {
            sums.is_met = true;
            self.met.push(flow);
        }
        lanes::add(&mut sums.all, bytes);
        lanes::raise(&mut sums.largest, bytes);
    }

    /// The bytes of all variables of a flow, by lane.
    pub(super) fn bytes(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].all
    }

    /// The bytes of a flow's largest variable, by lane.
    pub(super) fn largest(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].largest
    }
}

/// Bytes on one tile that a pipeline adds to the bytes of the layers themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory) struct Additions {
    /// Stashed copies for the micro-batches in flight.
    pub(in crate::memory) stash: u64,
    /// Accumulators of gradients.
    pub(in crate::memory) accumulators: u64,
    /// Shares of optimizer state that is sharded on the chip.
    pub(in crate::memory) state: u64,
    /// By phase: buffers of tensors that go to another stage or come from one.
    pub(in crate::memory) transfer_buffers: [u64; PHASES],
    /// By phase: tensors that are on their way between two other stages.
    pub(in crate::memory) forwarded: [u64; PHASES],
}

/// The part of some places in each flow.
#[derive(Debug)]
pub(super) struct Area {
    backward: BackwardPass,
    /// By flow; empty where no part is needed.
    parts: Vec<Part>,
    /// Does another pipeline stage of the IPU run between both passes? It does between those of Out
    /// in TensorFlow's pipelines, if Out is beside In.
    waits: bool,
}

/// A stage with its part in each flow.
#[derive(Debug)]
pub(in crate::memory) struct StageFlows {
    stage: PlacedStage,
    own: Area,
    /// Out, where it is a separate pipeline stage on the IPU of this stage.
    out_beside: Option<Area>,
}

impl StageFlows {
    /// Does the stage keep the tensors of a flow from its forward to its backward pass?
    pub(in crate::memory) fn keeps(&self, flow: u32) -> bool {
        self.own
            .parts
            .get(flow as usize)
            .is_some_and(|part| part.kept)
    }
}

impl Flows {
    /// Bytes that the pipeline adds to a stage, by lane of `tiles`.
    pub(in crate::memory) fn additions<const N: usize>(
        &self,
        memory: &MemoryModel<'_>,
        stage: &StageFlows,
        tiles: &TileFlows<N>,
    ) -> [Additions; N] {
        let PlacedStage { positions, after } = &stage.stage;
        let counts = |set| set == EVERYWHERE || meets(memory.sets.places(set), positions);
        let accumulators = tiles.accumulators.iter().filter(|&&(set, _)| counts(set));
        let accumulators = lanes::sum(accumulators.map(|&(_, bytes)| bytes));
        let least = |lane: usize| Additions {
            accumulators: accumulators[lane],
            ..Additions::default()
        };
        let Some(after) = *after else {
            return std::array::from_fn(least);
        };
        let own = self.transfers(&stage.own, tiles);
        let out = stage.out_beside.as_ref();
        let out = out.map(|out| self.transfers(out, tiles));
        let stash = self.stash(self.depth(positions, after), &own);
        std::array::from_fn(|lane| {
            let (own, out) = (own.on(lane), out.map(|out| out.on(lane)));
            Additions {
                stash: stash[lane],
                transfer_buffers: self.transfer_buffers_with_out(&own, out),
                forwarded: self.forwarded(&own),
                ..least(lane)
            }
        })
    }

    /// Finds the part of a stage in each flow.
    pub(in crate::memory) fn in_stage(&self, stage: PlacedStage) -> StageFlows {
        let area = |places| match stage.after {
            Some(_) => self.area(places),
            // Without a number of stages after it only the least bytes are computed, which need no
            // parts.
            None => Area {
                backward: BackwardPass::None,
                parts: Vec::new(),
                waits: false,
            },
        };
        let places = self.places_of(&stage.positions);
        let out_beside = self.is_beside_out(&places).then(|| area(self.out()));
        StageFlows {
            own: area(places),
            out_beside,
            stage,
        }
    }

    /// The places of a stage; Out is one of them if the stage has all positions.
    pub(super) fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// Is Out a separate pipeline stage on the IPU of a stage with these places?
    pub(super) fn is_beside_out(&self, places: &Range<u32>) -> bool {
        self.out_is_first && places.start == 0 && places.end < self.places
    }

    /// The place of Out.
    pub(super) fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    pub(super) fn area(&self, places: Range<u32>) -> Area {
        let parts = self.list.iter().map(|flow| flow.part_of(&places, self));
        let parts = parts.collect();
        let schedules = [Schedule::TfGrouped, Schedule::TfInterleaved];
        let waits = self.out_is_first
            && places == self.out()
            && schedules.contains(&self.pipeline.schedule);
        let backward = places.map(|place| self.backward_of(place)).max();
        Area {
            parts,
            waits,
            backward: backward.unwrap_or_default(),
        }
    }

    /// The bytes of the flows that an area has a part in.
    pub(super) fn transfers<const N: usize>(
        &self,
        area: &Area,
        tiles: &TileFlows<N>,
    ) -> Transfers<N> {
        let mut transfers = Transfers::default();
        transfers.kept.backward = area.backward;
        for &flow in &tiles.met {
            let part = area.parts[flow as usize];
            let bytes = tiles.bytes(flow);
            let counting = transfers.sums.iter_mut().zip(part.counts);
            for (sums, _) in counting.filter(|&(_, counts)| counts) {
                lanes::add(sums, &bytes);
            }
            let kept = &mut transfers.kept.bytes;
            match part.kept {
                true if area.waits => lanes::add(kept, &bytes),
                true => lanes::raise(kept, &tiles.largest(flow)),
                false => {}
            }
        }
        transfers
    }

    /// By lane, copies of tensors for micro-batches in flight, in a stage with `depth` forward
    /// pipeline stages after it. Out, on the same IPU, takes tensors from the first stage, which
    /// keeps these for all stages between.
    pub(super) fn stash<const N: usize>(&self, depth: usize, stage: &Transfers<N>) -> [u64; N] {
        let of = |quantity: Quantity| stage.sums[quantity as usize];
        let (stash, for_out) = (of(Quantity::Stash), of(Quantity::ForOut));
        let copies = self.copies(depth);
        std::array::from_fn(|lane| copies * stash[lane] + (depth as u64 + 1) * for_out[lane])
    }

    /// Does a stage with these positions (end exclusive) keep copies of the tensors of a flow?
    pub(in crate::memory) fn is_stashed(&self, positions: &Range<usize>, flow: u32) -> bool {
        let part = self.list[flow as usize].part_of(&self.places_of(positions), self);
        part.counts[Quantity::Stash as usize]
    }
}

#[cfg(test)]
mod made {
    use super::*;

    impl TileFlows<1> {
        /// A tile with these bytes of each flow.
        pub(in crate::memory::pipeline) fn made(bytes: impl Iterator<Item = u64>) -> Self {
            let mut made = Self::default();
            for (flow, bytes) in (0u32..).zip(bytes) {
                made.bytes.push(FlowBytes::default());
                made.add(flow, &[bytes]);
            }
            made
        }
    }
}
