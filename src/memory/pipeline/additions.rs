//! The bytes that a pipeline adds to one stage on neighbouring tiles, computed directly by the
//! rules of docs/model.md, "Pipelines": accumulators of gradients, the stash, and in each phase
//! (such as the backward pass) the transfer buffers, which hold tensors from or for other stages.

use super::{
    PlacedStage,
    Recompute::{self, Layer, Stage},
    Schedule::{self, Popart, Sequential, TfGrouped, TfInterleaved},
    flows::{
        BackwardPass, Flows, QUANTITIES,
        Quantity::{
            self, Enters, EntersFromStage, EntersLast, ForOut, GradientIn, GradientOut, Leaves,
            PassesBackward, PassesForward, Stash,
        },
        StageRole, UseInPipeline,
    },
};
use crate::{
    memory::lanes::{self, ByLane},
    memory::uses::{NeighbourUses, Placing},
    memory::{MemoryModel, Parts},
};
use std::{array::from_fn, ops::Range};

/// The bytes of each flow (tensors that the same layers use) on up to `N` neighbouring tiles, one
/// lane per tile, and the bytes of the accumulators that a pipeline adds on these tiles.
#[derive(Default)]
pub struct TileFlows<const N: usize> {
    pub bytes: Vec<FlowBytes<N>>,
    /// The flows (tensors that the same layers use) that have bytes on any of the tiles, as indices
    /// into [`Flows::list`]. All other flows are skipped.
    pub met: Vec<u32>,
    /// Bytes of accumulators of gradients, by lane (tile), each with a set of positions (In,
    /// layers, Out). A stage that has any of these positions has the bytes. Several entries may
    /// have the same set.
    pub accumulators: Vec<Placing<N>>,
}

/// The sizes, in bytes on up to `N` neighbouring tiles, of the variables of one flow (tensors that
/// the same layers use).
#[derive(Clone, Copy, Default)]
pub struct FlowBytes<const N: usize> {
    is_met: bool,
    pub all: ByLane<u64, N>,
    /// On each tile, the bytes of the largest group of variables in the flow (tensors that the same
    /// layers use). The variables of a group are live at the same steps and are used by the same
    /// operations.
    pub largest: ByLane<u32, N>,
}

impl<const N: usize> TileFlows<N> {
    /// Computes the size of each flow (tensors that the same layers use) on each tile: the sum of
    /// the sizes of its variables in `uses`. For weights that get accumulators of gradients, stores
    /// the bytes of the accumulators instead. Other parameters, constants, and variables that no
    /// layer uses are ignored.
    pub fn load(&mut self, memory: &MemoryModel<'_>, flows: &Flows, uses: &NeighbourUses<N>) {
        self.bytes.clear();
        self.bytes.resize(flows.list.len(), FlowBytes::default());
        self.met.clear();
        self.accumulators.clear();
        for &(number, ref bytes) in &uses.rows {
            match flows.of_use(number) {
                UseInPipeline::Flow(flow) => self.add(flow, bytes),
                UseInPipeline::Accumulated(element) => {
                    let accumulator = flows.pipeline.accumulator;
                    self.accumulators.push((
                        memory.counted(memory.uses.of(number).set),
                        bytes.map(|bytes| accumulator.bytes(bytes.into(), element)),
                    ));
                }
                UseInPipeline::NotUpdated | UseInPipeline::Other => {}
            }
        }
    }

    fn add(&mut self, flow: u32, bytes: &[u32; N]) {
        let sums = &mut self.bytes[flow as usize];
        if !sums.is_met {
            sums.is_met = true;
            self.met.push(flow);
        }
        lanes::add(&mut sums.all, &bytes.map(u64::from));
        lanes::raise(&mut sums.largest, bytes);
    }
}

/// The work of one pipeline stage: whether the stage runs a backward pass, and which tensors it
/// stashes, receives or sends. Tensors that the same layers use are one flow.
#[derive(Debug)]
pub struct StageRoles {
    backward: BackwardPass,
    pub by_flow: Vec<StageRole>,
    /// Whether the IPU runs another pipeline stage between the forward and the backward pass of
    /// this one. True only for Out (the operations after the last layer) on the first IPU, with
    /// TensorFlow's grouped or interleaved schedule.
    waits: bool,
}

impl Flows {
    /// Returns the bytes that the pipeline adds to `stage`, for each lane (tile) and each phase,
    /// such as the backward pass (see [`PHASES`]). Optimizer state is not included. `roles` says
    /// which tensors the stage stashes or forwards. Without `roles`, or if the number of later
    /// stages is open, the result has only accumulators of gradients.
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
        let out = self
            .roles_of_out
            .as_ref()
            .filter(|_| self.is_beside_out(&self.places_of(positions)))
            .map(|out| self.transfers(out, tiles));
        let stash = self.stash(self.depth(positions, after), &own);
        from_fn(|lane| {
            let [waiting, passing] = self.in_phases(&own, out.as_ref(), lane);
            from_fn(|phase| Parts {
                stash: stash[lane],
                waiting: waiting[phase],
                passing: passing[phase],
                ..least[lane]
            })
        })
    }

    /// Returns the places (In, layers, Out; end exclusive) that a stage with the positions
    /// `positions` runs.
    ///
    /// Places differ from positions only if Out (the operations after the last layer) is on the
    /// first IPU. Out then has no position of its own, but shares that of In (the operations before
    /// the first layer). As a place, it still comes last. A stage with all positions also runs Out.
    /// In a split into several stages, none of these runs Out, which is a pipeline stage of its
    /// own.
    pub fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// Returns whether a stage that runs `places` (numbers of In and layers) shares its IPU with
    /// Out (the operations after the last layer), which is a pipeline stage of its own. It does if
    /// Out is on the first IPU, and the stage is the first of several.
    pub fn is_beside_out(&self, places: &Range<u32>) -> bool {
        self.out_is_first && places.start == 0 && places.end < self.places
    }

    pub fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    /// Determines what a pipeline stage does with the tensors of each flow (tensors that the same
    /// layers use), such as stashing them. The stage runs `places`, the numbers of In, layers or
    /// Out (end exclusive).
    pub fn stage_roles(&self, places: Range<u32>) -> StageRoles {
        StageRoles {
            by_flow: self
                .list
                .iter()
                .map(|flow| flow.role_of(&places, self))
                .collect(),
            waits: self.out_is_first
                && places == self.out()
                && self.pipeline.schedule.is_of_tensorflow(),
            backward: places
                .map(|place| self.backward_of(place))
                .max()
                .unwrap_or_default(),
        }
    }

    /// Sums up the bytes of the tensors that a stage stashes, of those that it receives, and so on,
    /// with one sum for each [`Quantity`]. Also computes the bytes that buffers need for tensors
    /// that the stage keeps from its forward to its backward pass ([`Transfers::kept`]).
    pub(super) fn transfers<const N: usize>(
        &self,
        roles: &StageRoles,
        tiles: &TileFlows<N>,
    ) -> Transfers<N> {
        let mut transfers = Transfers {
            backward: roles.backward,
            ..Transfers::default()
        };
        for &flow in &tiles.met {
            let role = roles.by_flow[flow as usize];
            let bytes = &tiles.bytes[flow as usize];
            for (sums, counts) in transfers.sums.iter_mut().zip(role.counts) {
                if counts {
                    lanes::add(sums, &bytes.all);
                }
            }
            let kept = &mut transfers.kept;
            if role.kept && roles.waits {
                lanes::add(kept, &bytes.all);
            } else if role.kept {
                lanes::raise(kept, &bytes.largest.map(u64::from));
            }
        }
        transfers
    }

    /// Returns for each lane (tile) the bytes of the additional copies of tensors that a stage
    /// keeps for micro-batches in flight. `depth` is the number of forward pipeline stages after
    /// the stage. If Out (the operations after the last layer) is on the same IPU, tensors for Out
    /// are held once for each pipeline stage from this stage to Out (both included).
    pub(super) fn stash<const N: usize>(&self, depth: usize, stage: &Transfers<N>) -> [u64; N] {
        let of = |quantity: Quantity| stage.sums[quantity as usize];
        let (stash, for_out) = (of(Stash), of(ForOut));
        let copies = self.copies(depth);
        from_fn(|lane| copies * stash[lane] + (depth as u64 + 1) * for_out[lane])
    }

    /// Returns whether a stage with the positions `positions` (end exclusive) stashes variables,
    /// that is, keeps additional copies of them while several micro-batches are in flight. `number`
    /// is the index of the variables in [`CountedUses`](crate::memory::uses::CountedUses).
    pub fn is_stashed(&self, positions: &Range<usize>, number: u32) -> bool {
        let places = self.places_of(positions);
        let role = |flow: u32| self.list[flow as usize].role_of(&places, self);
        self.of(number)
            .is_some_and(|flow| role(flow).counts[Stash as usize])
    }
}

/// The number of phases. Each liveness step belongs to one phase:
/// - 0: the forward pass without its last step;
/// - 1: the last step of the forward pass, at which all tensors that are kept for the backward pass
///   are live;
/// - 2: the backward pass;
/// - 3: the steps after both passes, when no micro-batch is in flight.
pub const PHASES: usize = 4;

fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// The bytes of the tensors that a stage keeps, receives, sends or forwards, by lane (tile). From
/// these bytes follow the sizes of its stash and of its transfer buffers.
#[derive(Clone, Copy, Default)]
pub struct Transfers<const N: usize> {
    pub sums: [ByLane<u64, N>; QUANTITIES],
    pub backward: BackwardPass,
    /// The bytes that buffers need for tensors that the stage keeps from its forward to its
    /// backward pass:
    /// - in most stages, those of the largest group of variables (live at the same steps and used
    ///   by the same operations), since FIFOs copy one group after the other;
    /// - those of all kept tensors if the IPU runs another pipeline stage between the two passes,
    ///   since all of them are live then.
    pub kept: ByLane<u64, N>,
}

impl<const N: usize> Transfers<N> {
    fn of(&self, quantity: Quantity, lane: usize) -> u64 {
        self.sums[quantity as usize][lane]
    }
}

impl Flows {
    /// Returns the bytes of the transfer buffers of a stage, which hold tensors from or for other
    /// stages, in each phase, such as the backward pass (see [`PHASES`]). Tensors that are live at
    /// the steps of the phase anyway need no buffer.
    fn transfer_buffers<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let phases = self.buffers_in_passes(moves, lane);
        if !(moves.backward.goes_back && moves.backward.is_in_functions) {
            return phases;
        }
        // If several layers call a function, the profile has the liveness steps of only one call.
        // Tensors that wait for a call by this stage need not be live at these steps, so buffers
        // must hold them. With PopART's and the sequential schedule, buffers have room at least for
        // tensors from earlier stages in the forward pass, and for gradients in the backward pass.
        let mut phases = self.in_any_phase(moves, lane, phases);
        if let Popart | Sequential = self.pipeline.schedule {
            let of = |quantity| moves.of(quantity, lane);
            let gradients = of(GradientIn).max(of(GradientOut));
            let enters = of(EntersFromStage);
            lanes::raise(&mut phases, &[enters, enters, gradients, 0]);
        }
        phases
    }

    /// Returns the bytes of the transfer buffers of a stage, which hold tensors from or for other
    /// stages, in each phase (see [`PHASES`]). If it is unknown to which pass a liveness step
    /// belongs, callers pass the result on to `in_any_phase`. If the forward pass is recomputed,
    /// the buffers at its steps are large enough for both the first run and the recomputation.
    fn buffers_in_passes<const N: usize>(
        &self,
        moves: &Transfers<N>,
        lane: usize,
    ) -> [u64; PHASES] {
        let [enters, leaves, gradient_in, gradient_out, enters_last] =
            [Enters, Leaves, GradientIn, GradientOut, EntersLast]
                .map(|quantity| moves.of(quantity, lane));
        let (backward, kept) = (moves.backward, moves.kept[lane]);
        let (forward, last_forward, in_backward) =
            match (self.pipeline.schedule, self.pipeline.recompute) {
                _ if !self.is_training => (0, 0, 0),
                // Frozen layers (without a backward pass) may call a function that the profile
                // lists only at the steps of a call by another layer. Inputs and results of the
                // call by this stage are not live at these steps, so buffers hold them. Tensors
                // that enter the stage and leave it again need no buffers, since they are live at
                // these steps.
                _ if backward.is_in_functions && !backward.goes_back => {
                    let made = (enters_last + leaves).saturating_sub(enters);
                    (enters_last.max(made), 0, 0)
                }
                // Frozen layers have no backward pass, so no gradients wait in buffers. Tensors
                // that leave the stage need no buffer either: in the profile they are live at the
                // last step of the stage, so they are among the stage's live bytes.
                _ if !backward.goes_back => (0, 0, 0),
                // A recomputed stage runs its forward pass twice, and the steps of this pass in the
                // profile stand for both runs. In the first run, buffers hold tensors that enter
                // the stage. In the second, they hold gradients that have arrived. The larger bytes
                // count.
                (Sequential, Stage) => (gradient_in.max(enters_last), 0, 0),
                (Schedule::None | Sequential, _) => (0, 0, 0),
                (Popart, Recompute::None) => (gradient_in, 0, leaves),
                (Popart, Stage) => (gradient_in + leaves, 0, leaves),
                // The steps of a layer's forward pass in the profile stand for two runs. In the
                // first run, gradients for the backward pass have arrived and wait in buffers. In
                // the recomputation, which is part of the backward pass, tensors that leave the
                // stage wait. The larger bytes count.
                (Popart, Layer) => (gradient_in.max(leaves), 0, leaves),
                // FIFOs copy the tensors that they stash through buffers. If the FIFOs run at the
                // end of the forward pass, tensors and gradients for other stages also wait in
                // buffers; if the FIFOs run before the backward pass, tensors and gradients from
                // other stages do. The larger bytes count.
                (TfGrouped, Recompute::None) => (
                    gradient_out,
                    kept + (enters + gradient_in).max(leaves + gradient_out),
                    enters,
                ),
                // The transfer buffers must be large enough for both forward runs of a recomputed
                // stage. In the first run, they hold gradients for earlier stages, and either
                // tensors that leave the stage or tensors that wait for the FIFOs. In the second,
                // they hold gradients from later stages, and the tensors that enter for the next
                // micro-batch.
                (TfGrouped, Stage) => (
                    (enters + gradient_in).max(leaves.max(enters_last) + gradient_out),
                    0,
                    enters,
                ),
                (TfGrouped, Layer) => (
                    enters.max(gradient_out),
                    enters.max(leaves + gradient_out),
                    enters,
                ),
                // In TensorFlow's interleaved schedule, tensors are copied between stages after
                // each pass. Before the copy, buffers hold tensors that leave the stage; after it,
                // gradients that have arrived. Both times belong to the last step of the forward
                // pass, so the larger bytes count.
                (TfInterleaved, Recompute::None) => (0, kept + leaves.max(gradient_in), 0),
                // Buffers must have room for any of these tensors, but only for one kind at a time:
                // tensors that enter the stage and wait for the FIFO that stashes them, tensors
                // that leave the stage, and gradients that have arrived.
                (TfInterleaved, Stage) => (gradient_in.max(leaves).max(enters_last), 0, 0),
                (TfInterleaved, Layer) => (0, leaves, 0),
            };
        [forward, last_forward.max(forward), in_backward, 0]
    }

    /// Returns the bytes of tensors that a stage forwards without using them, in each phase, such
    /// as the backward pass (see [`PHASES`]). In the interleaved and the sequential schedule, the
    /// stage has a tensor only in the pass (forward or backward) in which it forwards the tensor.
    fn forwarded<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let forward = moves.of(PassesForward, lane);
        let backward = moves.of(PassesBackward, lane);
        if !matches!(self.pipeline.schedule, TfInterleaved | Sequential) {
            return in_passes(forward + backward);
        }
        let most = forward.max(backward);
        let pass = moves.backward;
        match self.pipeline.recompute {
            _ if pass.goes_back && pass.is_in_functions => in_passes(most),
            Recompute::None => [forward, forward, backward, 0],
            // The steps of a recomputed forward pass in the profile stand for two runs: the first,
            // when the stage forwards tensors of the forward pass, and the second, just before the
            // backward pass, when it forwards gradients. The larger bytes count.
            _ => [most, most, backward, 0],
        }
    }

    /// Returns the bytes of the transfer buffers of a stage in each phase (see [`PHASES`]) if it is
    /// unknown whether a liveness step belongs to the forward or the backward pass. All phases of
    /// the two passes then get the same bytes, the most that any of them may need, and at least the
    /// highest number in `phases`. The phase after both passes gets none.
    fn in_any_phase<const N: usize>(
        &self,
        moves: &Transfers<N>,
        lane: usize,
        phases: [u64; PHASES],
    ) -> [u64; PHASES] {
        let of = |quantity| moves.of(quantity, lane);
        let (enters, leaves) = (of(Enters), of(Leaves));
        let gradient_in = of(GradientIn);
        let buffers = match (self.pipeline.schedule, self.pipeline.recompute) {
            _ if !self.is_training => 0,
            (Sequential, Stage) => gradient_in,
            (Schedule::None | Sequential, _) => 0,
            (Popart, _) => leaves.max(gradient_in),
            (TfGrouped | TfInterleaved, _) => {
                of(GradientOut) + moves.kept[lane].max(enters + leaves)
            }
        };
        in_passes(phases.into_iter().fold(buffers, u64::max))
    }

    /// Returns for each phase (see [`PHASES`]) the bytes of all transfer buffers on the IPU of a
    /// stage, then for each phase the bytes of the tensors that the stage forwards. `out` has the
    /// tensors of Out (the operations after the last layer) if Out is another pipeline stage on the
    /// same IPU. Out then runs between the forward and the backward pass of this stage, so the IPU
    /// holds the buffers of both.
    pub(super) fn in_phases<const N: usize>(
        &self,
        stage: &Transfers<N>,
        out: Option<&Transfers<N>>,
        lane: usize,
    ) -> [[u64; PHASES]; 2] {
        let mut buffers = self.transfer_buffers(stage, lane);
        if let Some(out) = out {
            buffers = lanes::plus(
                &self.in_any_phase(stage, lane, buffers),
                &self.in_any_phase(out, lane, [0; PHASES]),
            );
        }
        [buffers, self.forwarded(stage, lane)]
    }
}

#[cfg(test)]
mod made {
    use super::*;

    impl TileFlows<1> {
        pub(crate) fn made(bytes: impl Iterator<Item = u64>) -> Self {
            let mut made = Self::default();
            for (flow, bytes) in (0u32..).zip(bytes) {
                made.bytes.push(FlowBytes::default());
                made.add(flow, &[u32::try_from(bytes).expect("few bytes")]);
            }
            made
        }
    }
}
