//! The bytes that a pipeline adds to one stage on neighbouring tiles, directly by the rules of
//! docs/model.md, "Pipelines".

use super::PlacedStage;
use super::flows::{BackwardPass, Flows, Quantity, StageRole, UseInPipeline};
use super::transfer_buffers::{PHASES, Transfers};
use crate::memory::lanes::{self, ByLane};
use crate::memory::uses::{NeighbourUses, Placing};
use crate::memory::{MemoryModel, Parts};
use std::ops::Range;

/// The bytes of each flow (tensors with the same users) on up to `N` neighbouring tiles, by lane
/// (tile), and the bytes of the accumulators that a pipeline adds on these tiles.
#[derive(Clone, Default)]
pub(crate) struct TileFlows<const N: usize> {
    /// One entry per flow: the bytes of the flow whose index in [`Flows::list`] is the same.
    pub bytes: Vec<FlowBytes<N>>,
    /// The flows that have bytes on any of the tiles, as indices into [`Flows::list`].
    pub met: Vec<u32>,
    /// The bytes of accumulators, by lane (tile), each with a set of positions: a stage that has
    /// any of these positions has the bytes. Several entries may have the same set.
    pub accumulators: Vec<Placing<N>>,
}

/// The bytes of the tensors of one flow on some tiles, by lane (tile).
#[derive(Clone, Copy, Default)]
pub(crate) struct FlowBytes<const N: usize> {
    is_met: bool,
    /// The sum of the bytes of all variables of the flow (tensors with the same users).
    pub all: ByLane<u64, N>,
    /// The bytes of the largest use of the flow on each tile. A use is all variables with the same
    /// class and use set.
    pub largest: ByLane<u64, N>,
}

impl<const N: usize> TileFlows<N> {
    /// Replaces the contents by the bytes of `uses`, summed up by flow. Weights with an accumulator
    /// add the bytes of their accumulators to `accumulators`. Other parameters, constants, and
    /// variables that no operation with a place uses are skipped.
    pub fn load(&mut self, memory: &MemoryModel<'_>, flows: &Flows, uses: &NeighbourUses<N>) {
        for &flow in &self.met {
            self.bytes[flow as usize] = FlowBytes::default();
        }
        self.bytes.resize(flows.list.len(), FlowBytes::default());
        self.met.clear();
        self.accumulators.clear();
        for &(number, bytes) in &uses.rows {
            let bytes = bytes.map(u64::from);
            match flows.of_use(number) {
                UseInPipeline::Flow(flow) => self.add(flow, &bytes),
                UseInPipeline::Accumulated(element) => {
                    let accumulator = flows.pipeline.accumulator;
                    let of_weight = bytes.map(|bytes| accumulator.bytes(bytes, element));
                    let positions = memory.counted(memory.uses.of(number).set);
                    match self.accumulators.last_mut() {
                        Some((last, sums)) if *last == positions => lanes::add(sums, &of_weight),
                        _ => self.accumulators.push((positions, of_weight)),
                    }
                }
                UseInPipeline::NotUpdated | UseInPipeline::Other => {}
            }
        }
    }

    /// Adds `bytes`, by lane (tile), of the variables of one class and use set, to the flow with
    /// the index `flow`.
    fn add(&mut self, flow: u32, bytes: &[u64; N]) {
        let sums = &mut self.bytes[flow as usize];
        if !sums.is_met {
            sums.is_met = true;
            self.met.push(flow);
        }
        lanes::add(&mut sums.all, bytes);
        lanes::raise(&mut sums.largest, bytes);
    }
}

/// What one pipeline stage, a range of places (In, layers or Out), does with the tensors of each
/// flow (tensors with the same users), and how the stage runs backward.
#[derive(Debug)]
pub(crate) struct StageRoles {
    backward: BackwardPass,
    /// The role of the stage in each flow: one entry per flow, in the order of [`Flows::list`].
    pub by_flow: Vec<StageRole>,
    /// Whether another pipeline stage runs on the IPU between the forward and the backward pass of
    /// this pipeline stage. In TensorFlow's pipelines this holds for Out if Out is on the first
    /// IPU.
    waits: bool,
}

impl Flows {
    /// Returns the bytes that the pipeline adds to `stage`, except optimizer state: one entry per
    /// lane (tile) of `tiles`, with one [`Parts`] per phase (see [`PHASES`]). `roles` must be the
    /// result of [`Flows::in_stage`] for the stage; if it is `None`, only accumulators are added.
    /// `memory` is needed to look up the positions of the sets in `tiles`.
    pub fn additions<const N: usize>(
        &self,
        memory: &MemoryModel<'_>,
        (stage, roles): (&PlacedStage, Option<&StageRoles>),
        tiles: &TileFlows<N>,
    ) -> [[Parts; PHASES]; N] {
        let PlacedStage { positions, after } = stage;
        let accumulators = memory.sum_in(&tiles.accumulators, positions);
        let least = accumulators.map(|accumulators| Parts {
            accumulators,
            ..Parts::default()
        });
        let Some((after, roles)) = after.zip(roles) else {
            return least.map(|least| [least; PHASES]);
        };
        let own = self.transfers(roles, tiles);
        let is_beside_out = self.is_beside_out(&self.places_of(positions));
        let out = self
            .roles_of_out
            .as_ref()
            .filter(|_| is_beside_out)
            .map(|out| self.transfers(out, tiles));
        let stash = self.stash(self.depth(positions, after), &own);
        std::array::from_fn(|lane| {
            let [waiting, passing] = self.in_phases(&own, out.as_ref(), lane);
            std::array::from_fn(|phase| Parts {
                stash: stash[lane],
                waiting: waiting[phase],
                passing: passing[phase],
                ..least[lane]
            })
        })
    }

    /// Determines what `stage` does with the tensors of each flow. Returns `None` if the number of
    /// stages after `stage` is open: then only the least bytes are computed, which do not depend on
    /// roles.
    pub fn in_stage(&self, stage: &PlacedStage) -> Option<StageRoles> {
        stage.after?;
        Some(self.stage_roles(self.places_of(&stage.positions)))
    }

    /// Returns the range of places (numbers of In, layers and Out; end exclusive) that a stage with
    /// the positions `positions` (end exclusive) runs as one pipeline stage. If Out is on the first
    /// IPU, where it shares the position of In, the range includes Out only if the stage has all
    /// positions.
    pub fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// Returns whether Out is a pipeline stage of its own on the IPU of the stage that runs
    /// `places`. This is the case if Out is on the first IPU and `places` begins with In but does
    /// not include Out.
    pub fn is_beside_out(&self, places: &Range<u32>) -> bool {
        self.out_is_first && places.start == 0 && places.end < self.places
    }

    /// Returns the number of the place Out, which is the last place, as a range of one place.
    pub fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    /// Determines what a pipeline stage that runs `places` (the numbers of In, layers or Out; end
    /// exclusive) does with the tensors of each flow.
    pub(super) fn stage_roles(&self, places: Range<u32>) -> StageRoles {
        let roles = self.list.iter().map(|flow| flow.role_of(&places, self));
        StageRoles {
            by_flow: roles.collect(),
            waits: self.out_is_first
                && places == self.out()
                && self.pipeline.schedule.is_of_tensorflow(),
            backward: places
                .map(|place| self.backward_of(place))
                .max()
                .unwrap_or_default(),
        }
    }

    /// Sums the bytes of the flows in `tiles`, for a stage with the roles `roles`. The result has
    /// one sum per [`Quantity`], and the bytes that the stage keeps from its forward to its
    /// backward pass.
    pub(super) fn transfers<const N: usize>(
        &self,
        roles: &StageRoles,
        tiles: &TileFlows<N>,
    ) -> Transfers<N> {
        let mut transfers = Transfers::default();
        transfers.kept.backward = roles.backward;
        for &flow in &tiles.met {
            let role = roles.by_flow[flow as usize];
            let bytes = &tiles.bytes[flow as usize];
            for (sums, _) in transfers
                .sums
                .iter_mut()
                .zip(role.counts)
                .filter(|&(_, counts)| counts)
            {
                lanes::add(sums, &bytes.all);
            }
            let kept = &mut transfers.kept.bytes;
            if role.kept && roles.waits {
                lanes::add(kept, &bytes.all);
            } else if role.kept {
                lanes::raise(kept, &bytes.largest);
            }
        }
        transfers
    }

    /// Returns for each lane (tile) the bytes of the additional copies of tensors that a stage
    /// keeps for micro-batches in flight. `stage` has the sums of bytes of the stage, and `depth`
    /// is the number of forward pipeline stages after it. If Out is on the same IPU and takes
    /// tensors from the stage, the stage holds these tensors once for each pipeline stage from
    /// itself to Out.
    pub(super) fn stash<const N: usize>(&self, depth: usize, stage: &Transfers<N>) -> [u64; N] {
        let of = |quantity: Quantity| stage.sums[quantity as usize];
        let (stash, for_out) = (of(Quantity::Stash), of(Quantity::ForOut));
        let copies = self.copies(depth);
        std::array::from_fn(|lane| copies * stash[lane] + (depth as u64 + 1) * for_out[lane])
    }

    /// Returns whether a stage with the positions `positions` (end exclusive) stashes the tensors
    /// of the flow with the index `flow`: it keeps additional copies of these tensors while several
    /// micro-batches are in flight.
    pub fn is_stashed(&self, positions: &Range<usize>, flow: u32) -> bool {
        self.list[flow as usize]
            .role_of(&self.places_of(positions), self)
            .counts[Quantity::Stash as usize]
    }
}

#[cfg(test)]
mod made {
    use super::*;

    impl TileFlows<1> {
        /// Makes a tile with these bytes of each flow (tensors with the same users).
        pub(crate) fn made(bytes: impl Iterator<Item = u64>) -> Self {
            let mut made = Self::default();
            for (flow, bytes) in (0u32..).zip(bytes) {
                made.bytes.push(FlowBytes::default());
                made.add(flow, &[bytes]);
            }
            made
        }
    }
}
