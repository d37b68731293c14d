//! The bytes that a pipeline adds to one stage on neighbouring tiles, directly by the rules of
//! docs/model.md, "Pipelines".

use super::flows::{Flows, Quantity, StageRole};
use super::transfer_buffers::{BackwardPass, PHASES, Transfers};
use super::{PlacedStage, Schedule};
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane};
use crate::memory::neighbours::NeighbourUses;
use crate::model::{EVERYWHERE, PlaceSet, meets};
use std::ops::Range;

/// The bytes of each flow (tensors with the same users) on up to `N` neighbouring tiles, by lane
/// (tile). The buffers are reused for the next tiles.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct TileFlows<const N: usize> {
    /// The bytes of each flow (tensors with the same users), by the number of the flow.
    bytes: Vec<FlowBytes<N>>,
    /// The numbers of the flows (tensors with the same users) that have bytes on any of the tiles.
    pub(super) met: Vec<u32>,
    /// The bytes of accumulators by lane (tile), with the positions whose stages count them.
    pub(super) accumulators: Vec<(PlaceSet, [u64; N])>,
}

/// The bytes of the tensors of one flow on some tiles, by lane (tile).
#[derive(Debug, Clone, Copy, Default)]
struct FlowBytes<const N: usize> {
    is_met: bool,
    /// The bytes of all variables of the flow.
    all: ByLane<u64, N>,
    /// The bytes of the largest variable of the flow.
    largest: ByLane<u64, N>,
}

impl<const N: usize> TileFlows<N> {
    /// Sums up the variables on some tiles by flow. Parameters, constants, and variables that no
    /// operation with a place uses have no flow.
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

    /// Adds the bytes of an accumulator, by lane (tile), which stages with any of `places` count.
    fn accumulate(&mut self, places: PlaceSet, bytes: [u64; N]) {
        match self.accumulators.last_mut() {
            Some((last, sums)) if *last == places => lanes::add(sums, &bytes),
            _ => self.accumulators.push((places, bytes)),
        }
    }

    /// Adds the bytes of one use to a flow (tensors with the same users), by lane (tile).
    fn add(&mut self, flow: u32, bytes: &[u64; N]) {
        let sums = &mut self.bytes[flow as usize];
        if !sums.is_met {
            sums.is_met = true;
            self.met.push(flow);
        }
        lanes::add(&mut sums.all, bytes);
        lanes::raise(&mut sums.largest, bytes);
    }

    /// Returns the bytes of all variables of a flow (tensors with the same users), by lane (tile).
    pub(super) fn bytes(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].all
    }

    /// Returns the bytes of the largest variable of a flow (tensors with the same users), by lane
    /// (tile).
    pub(super) fn largest(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].largest
    }
}

/// The bytes on one tile that a pipeline adds to the memory of the layers of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory) struct Additions {
    /// Bytes of the additional copies of stashed tensors for the micro-batches in flight.
    pub(in crate::memory) stash: u64,
    /// Bytes of the accumulators of gradients that the pipeline needs and the profile lacks.
    pub(in crate::memory) accumulators: u64,
    /// Bytes of a replica's shares of the optimizer state that is sharded on the chip.
    pub(in crate::memory) state: u64,
    /// For each phase: bytes of the buffers for tensors that the stage receives or sends.
    pub(in crate::memory) transfer_buffers: [u64; PHASES],
    /// For each phase: bytes of the tensors that the stage forwards to another stage without using
    /// them.
    pub(in crate::memory) forwarded: [u64; PHASES],
}

/// The role of some places (In, layers or Out), as one pipeline stage, in each flow (tensors with
/// the same users).
#[derive(Debug)]
pub(super) struct StageRoles {
    backward: BackwardPass,
    /// The role in each flow (tensors with the same users), by the number of the flow; empty if the
    /// number of stages after the stage is open.
    by_flow: Vec<StageRole>,
    /// Whether another pipeline stage runs on the IPU between the forward and the backward pass of
    /// this one. In TensorFlow's pipelines this holds for Out if it is on the first IPU.
    waits: bool,
}

/// A stage with its role in each flow (tensors with the same users).
#[derive(Debug)]
pub(in crate::memory) struct StageFlows {
    stage: PlacedStage,
    own: StageRoles,
    /// The roles of Out, if it is a separate pipeline stage on the IPU of this stage.
    out_beside: Option<StageRoles>,
}

impl StageFlows {
    /// Does the stage keep the tensors of a flow (a group with the same users) from its forward to
    /// its backward pass?
    pub(in crate::memory) fn keeps(&self, flow: u32) -> bool {
        self.own
            .by_flow
            .get(flow as usize)
            .is_some_and(|role| role.kept)
    }
}

impl Flows {
    /// Returns the bytes that the pipeline adds to a stage, by lane (tile) of `tiles`. If the
    /// number of stages after the stage is open, these are only the accumulators.
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

    /// Determines the role of a stage in each flow (tensors with the same users).
    pub(in crate::memory) fn in_stage(&self, stage: PlacedStage) -> StageFlows {
        let roles = |places| match stage.after {
            Some(_) => self.stage_roles(places),
            // If the number of stages after the stage is open, only the least bytes are computed,
            // for which no roles are needed.
            None => StageRoles {
                backward: BackwardPass::None,
                by_flow: Vec::new(),
                waits: false,
            },
        };
        let places = self.places_of(&stage.positions);
        let out_beside = self.is_beside_out(&places).then(|| roles(self.out()));
        StageFlows {
            own: roles(places),
            out_beside,
            stage,
        }
    }

    /// Returns the places of a stage with these positions. Out is one of them if the stage has all
    /// positions, even if it is in the position of In.
    pub(super) fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// Is Out a separate pipeline stage on the IPU of a stage with these places?
    pub(super) fn is_beside_out(&self, places: &Range<u32>) -> bool {
        self.out_is_first && places.start == 0 && places.end < self.places
    }

    /// Returns the place of Out as a range.
    pub(super) fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    /// Determines the role of some places, as one pipeline stage, in each flow (tensors with the
    /// same users).
    pub(super) fn stage_roles(&self, places: Range<u32>) -> StageRoles {
        let roles = self.list.iter().map(|flow| flow.role_of(&places, self));
        let roles = roles.collect();
        let schedules = [Schedule::TfGrouped, Schedule::TfInterleaved];
        let waits = self.out_is_first
            && places == self.out()
            && schedules.contains(&self.pipeline.schedule);
        let backward = places.map(|place| self.backward_of(place)).max();
        StageRoles {
            by_flow: roles,
            waits,
            backward: backward.unwrap_or_default(),
        }
    }

    /// Returns the bytes of the flows (tensors with the same users) in which a stage with these
    /// roles takes part, by quantity.
    pub(super) fn transfers<const N: usize>(
        &self,
        roles: &StageRoles,
        tiles: &TileFlows<N>,
    ) -> Transfers<N> {
        let mut transfers = Transfers::default();
        transfers.kept.backward = roles.backward;
        for &flow in &tiles.met {
            let role = roles.by_flow[flow as usize];
            let bytes = tiles.bytes(flow);
            let counting = transfers.sums.iter_mut().zip(role.counts);
            for (sums, _) in counting.filter(|&(_, counts)| counts) {
                lanes::add(sums, &bytes);
            }
            let kept = &mut transfers.kept.bytes;
            match role.kept {
                true if roles.waits => lanes::add(kept, &bytes),
                true => lanes::raise(kept, &tiles.largest(flow)),
                false => {}
            }
        }
        transfers
    }

    /// Returns by lane (tile) the bytes of the additional copies of tensors for micro-batches in
    /// flight, in a stage with `depth` forward pipeline stages after it. If Out is on the same IPU
    /// and takes tensors from the stage, the stage holds these for all pipeline stages between.
    pub(super) fn stash<const N: usize>(&self, depth: usize, stage: &Transfers<N>) -> [u64; N] {
        let of = |quantity: Quantity| stage.sums[quantity as usize];
        let (stash, for_out) = (of(Quantity::Stash), of(Quantity::ForOut));
        let copies = self.copies(depth);
        std::array::from_fn(|lane| copies * stash[lane] + (depth as u64 + 1) * for_out[lane])
    }

    /// Does a stage with these positions (end exclusive) keep additional copies of the tensors of a
    /// flow (a group with the same users)?
    pub(in crate::memory) fn is_stashed(&self, positions: &Range<usize>, flow: u32) -> bool {
        let role = self.list[flow as usize].role_of(&self.places_of(positions), self);
        role.counts[Quantity::Stash as usize]
    }
}

#[cfg(test)]
mod made {
    use super::*;

    impl TileFlows<1> {
        /// Makes a tile with these bytes of each flow (tensors with the same users).
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
