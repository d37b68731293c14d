//! The bytes of the transfer buffers of a stage, which hold tensors from or for other stages, in
//! each phase (docs/model.md, "Pipelines").

use super::Recompute::{self, Layer, Stage};
use super::Schedule::{self, Popart, Sequential, TfGrouped, TfInterleaved};
use super::flows::{BackwardPass, Flows, QUANTITIES, Quantity};
use crate::memory::lanes::{self, ByLane};

/// The number of phases. Each liveness step belongs to one phase: (0) the forward pass without its
/// last step; (1) the last step of the forward pass, at which all tensors that are kept for the
/// backward pass are live; (2) the backward pass; (3) the steps after both passes, when no
/// micro-batch is in flight.
pub(crate) const PHASES: usize = 4;

/// Returns one number per phase ([`PHASES`]): `bytes` in the three phases of the forward and the
/// backward pass, and 0 in the phase after both passes.
fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// The bytes of the tensors that a stage keeps, receives, sends or forwards, by lane (tile).
#[derive(Clone, Copy, Default)]
pub(super) struct Transfers<const N: usize> {
    /// One entry per [`Quantity`], which is its index: the sum of the bytes of this quantity.
    pub sums: [ByLane<u64, N>; QUANTITIES],
    /// How the stage runs backward, and the bytes that it keeps from its forward to its backward
    /// pass.
    pub kept: Kept<N>,
}

impl<const N: usize> Transfers<N> {
    /// Returns the sum of bytes for `quantity` on the tile that has the lane `lane`.
    fn of(&self, quantity: Quantity, lane: usize) -> u64 {
        self.sums[quantity as usize][lane]
    }
}

/// How a stage or place runs backward, and the bytes that it keeps from its forward to its backward
/// pass, by lane (tile). The bytes are those of the largest use that it keeps (a use is all
/// variables with one class and use set). They are those of all uses that it keeps if another
/// pipeline stage runs on the IPU between the two passes
/// ([`StageRoles::waits`](super::additions::StageRoles)).
#[derive(Clone, Copy, Default)]
pub(super) struct Kept<const N: usize> {
    pub backward: BackwardPass,
    pub bytes: ByLane<u64, N>,
}

impl Flows {
    /// Returns the bytes of the transfer buffers of a stage, one entry per phase (see [`PHASES`]),
    /// on the tile that has the lane `lane`. `moves` has the sums of bytes of the stage. Tensors
    /// that are live at the steps of the stage anyway are not counted again. If the forward pass is
    /// recomputed, its steps also stand for its second run.
    fn transfer_buffers<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let [enters, leaves, gradient_in, gradient_out, enters_last] = [
            Quantity::Enters,
            Quantity::Leaves,
            Quantity::GradientIn,
            Quantity::GradientOut,
            Quantity::EntersLast,
        ]
        .map(|quantity| moves.of(quantity, lane));
        let Kept { backward, bytes } = moves.kept;
        let kept = bytes[lane];
        let (forward, last_forward, in_backward) =
            match (self.pipeline.schedule, self.pipeline.recompute) {
                _ if !self.is_training => (0, 0, 0),
                // The steps may be those of a call of the function by another layer. Then tensors
                // wait before the call by this stage, or stay after it, and tensors that the stage
                // receives and sends on are live too.
                _ if backward.is_in_functions && !backward.goes_back => {
                    let made = (enters_last + leaves).saturating_sub(enters);
                    (enters_last.max(made), 0, 0)
                }
                // Tensors that leave frozen layers are live at the last step of these layers
                // anyway, so they need no buffer.
                _ if !backward.goes_back => (0, 0, 0),
                // A stage is recomputed as a whole, after its gradients have arrived. In its first
                // forward run no gradient has arrived, but tensors that enter the stage are kept
                // for the second run.
                (Sequential, Stage) => (gradient_in.max(enters_last), 0, 0),
                (Schedule::None | Sequential, _) => (0, 0, 0),
                (Popart, Recompute::None) => (gradient_in, 0, leaves),
                (Popart, Stage) => (gradient_in + leaves, 0, leaves),
                // The gradients of a layer are live at the steps at which the layer is recomputed.
                (Popart, Layer) => (gradient_in.max(leaves), 0, leaves),
                // The FIFOs that stash tensors run at the end of the forward pass, or before the
                // backward pass when the gradients have arrived.
                (TfGrouped, Recompute::None) => (
                    gradient_out,
                    kept + (enters + gradient_in).max(leaves + gradient_out),
                    enters,
                ),
                // In the first forward run, tensors that enter the stage wait for the FIFO that
                // stashes them. In the second forward run, the gradients have arrived, and also the
                // tensors that enter for the next forward pass.
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
                // Tensors are copied to other stages after each forward and each backward pass
                // (half a cycle).
                (TfInterleaved, Recompute::None) => (0, kept + leaves.max(gradient_in), 0),
                // In the first forward run, tensors that enter the stage wait for the FIFO that
                // stashes them. In the second forward run, tensors that leave the stage wait to be
                // copied, or gradients have arrived.
                (TfInterleaved, Stage) => (gradient_in.max(leaves).max(enters_last), 0, 0),
                (TfInterleaved, Layer) => (0, leaves, 0),
            };
        let phases = [forward, last_forward.max(forward), in_backward, 0];
        if backward.goes_back && backward.is_in_functions {
            let mut phases = self.in_any_phase(moves, lane, phases);
            lanes::raise(&mut phases, &self.in_other_calls(moves, lane));
            phases
        } else {
            phases
        }
    }

    /// Returns the bytes of tensors of a stage that are live when the stage calls a function, but
    /// not at the steps at which the profile lists the function, since these belong to a call by
    /// another place. In the forward pass, tensors from earlier stages wait for the call by this
    /// stage; in the backward pass, gradients wait for this call or are made by it. `moves` has the
    /// sums of bytes of the stage; the result has one entry per phase (see [`PHASES`]).
    fn in_other_calls<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let of = |quantity| moves.of(quantity, lane);
        match self.pipeline.schedule {
            Popart | Sequential => {
                let gradients = of(Quantity::GradientIn).max(of(Quantity::GradientOut));
                let enters = of(Quantity::EntersFromStage);
                [enters, enters, gradients, 0]
            }
            // In TensorFlow's schedules, the largest buffers of any phase are counted in each
            // phase, and they are large enough for these tensors too.
            Schedule::None | TfGrouped | TfInterleaved => [0; PHASES],
        }
    }

    /// Returns the bytes of tensors that a stage forwards without using them, one entry per phase
    /// (see [`PHASES`]). `moves` has the sums of bytes of the stage. If the schedule runs one pass
    /// of the stage at a time, a tensor leaves the stage at the end of the pass in which it is
    /// forwarded.
    fn forwarded<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let forward = moves.of(Quantity::PassesForward, lane);
        let backward = moves.of(Quantity::PassesBackward, lane);
        let one_at_a_time = [TfInterleaved, Sequential];
        if !one_at_a_time.contains(&self.pipeline.schedule) {
            return in_passes(forward + backward);
        }
        let most = forward.max(backward);
        let pass = moves.kept.backward;
        match self.pipeline.recompute {
            _ if pass.goes_back && pass.is_in_functions => in_passes(most),
            Recompute::None => [forward, forward, backward, 0],
            // The steps of the forward pass also stand for its second run, just before the backward
            // pass.
            _ => [most, most, backward, 0],
        }
    }

    /// Returns the bytes of the transfer buffers of a stage, one entry per phase (see [`PHASES`]),
    /// for the case that the steps do not tell in which pass they are. So each of the three phases
    /// of the passes gets the highest bytes of any phase, and the phase after the passes gets 0.
    /// `moves` has the sums of bytes of the stage. `phases` has the bytes in each phase for the
    /// case that the pass of each step is known.
    fn in_any_phase<const N: usize>(
        &self,
        moves: &Transfers<N>,
        lane: usize,
        phases: [u64; PHASES],
    ) -> [u64; PHASES] {
        let of = |quantity| moves.of(quantity, lane);
        let (enters, leaves) = (of(Quantity::Enters), of(Quantity::Leaves));
        let gradient_in = of(Quantity::GradientIn);
        let buffers = match (self.pipeline.schedule, self.pipeline.recompute) {
            _ if !self.is_training => 0,
            (Sequential, Stage) => gradient_in,
            (Schedule::None | Sequential, _) => 0,
            (Popart, _) => leaves.max(gradient_in),
            (TfGrouped | TfInterleaved, _) => {
                of(Quantity::GradientOut) + moves.kept.bytes[lane].max(enters + leaves)
            }
        };
        in_passes(phases.into_iter().fold(buffers, u64::max))
    }

    /// Returns the bytes of the transfer buffers on the IPU of a stage, and the bytes of the
    /// tensors that the stage forwards: each has one entry per phase (see [`PHASES`]), on the tile
    /// that has the lane `lane`. `stage` has the sums of bytes of the stage. `out` has those of Out
    /// if Out is a later pipeline stage on the same IPU, which runs between the forward and the
    /// backward pass of this stage; otherwise it is `None`.
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
