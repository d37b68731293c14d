//! The bytes of the transfer buffers of a stage, which hold tensors from or for other stages, in
//! each phase (docs/model.md, "Pipelines").

use super::Recompute::{self, Layer, Stage};
use super::Schedule::{self, Popart, Sequential, TfGrouped, TfInterleaved};
use super::flows::{BackwardPass, Flows, QUANTITIES, Quantity};
use crate::memory::lanes::{self, ByLane};

/// The number of phases, into which the liveness steps are divided: (0) the forward pass without
/// its last step; (1) the last step of the forward pass, at which all tensors that are kept for the
/// backward pass are live; (2) the backward pass; (3) the steps after both passes, when no
/// micro-batch is in flight.
pub(crate) const PHASES: usize = 4;

/// Returns `bytes` in the three phases ([`PHASES`]) of the forward and backward pass, and 0 in the
/// phase after the passes.
fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// The bytes of the tensors that a stage keeps, receives, sends or forwards, by lane (tile).
#[derive(Clone, Copy, Default)]
pub(super) struct Transfers<const N: usize> {
    /// For each [`Quantity`], as an index: the sum of its bytes.
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

/// How a stage or place runs backward, and the bytes, by lane (tile), that it keeps from its
/// forward to its backward pass. The bytes are those of its largest use (variables with one class
/// and use set), or of all its uses if another pipeline stage runs on the IPU between these passes
/// ([`StageRoles::waits`](super::additions::StageRoles)).
#[derive(Clone, Copy, Default)]
pub(super) struct Kept<const N: usize> {
    pub backward: BackwardPass,
    pub bytes: ByLane<u64, N>,
}

impl Flows {
    /// Returns by phase (see [`PHASES`]) the bytes of the transfer buffers of a stage with the sums
    /// of bytes `moves`, on the tile that has the lane `lane`. Tensors that are live at the steps
    /// of the stage anyway are not counted again. The steps of the forward pass also stand for its
    /// second run if it is recomputed.
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
                // If the steps are those of another layer's call of a function, tensors wait for
                // the call of this stage or follow it, and tensors that go through the stage are
                // live too.
                _ if backward.is_in_functions && !backward.goes_back => {
                    let made = (enters_last + leaves).saturating_sub(enters);
                    (enters_last.max(made), 0, 0)
                }
                // Tensors that leave frozen layers are live at the last step of these layers anyway.
                _ if !backward.goes_back => (0, 0, 0),
                // A stage is recomputed as a whole after its gradients have arrived. In the first
                // forward run no gradient has arrived, but tensors that enter stay for the second
                // run.
                (Sequential, Stage) => (gradient_in.max(enters_last), 0, 0),
                (Schedule::None | Sequential, _) => (0, 0, 0),
                (Popart, Recompute::None) => (gradient_in, 0, leaves),
                (Popart, Stage) => (gradient_in + leaves, 0, leaves),
                // Gradients of a layer are live at the steps at which the layer is recomputed.
                (Popart, Layer) => (gradient_in.max(leaves), 0, leaves),
                // FIFOs, which stash tensors, run at the end of the forward pass, or before the
                // backward pass when gradients have arrived.
                (TfGrouped, Recompute::None) => (
                    gradient_out,
                    kept + (enters + gradient_in).max(leaves + gradient_out),
                    enters,
                ),
                // In the first forward run, tensors that enter wait for their FIFO. In the second
                // run, gradients have arrived, and so have tensors that enter for the next forward
                // pass.
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
                // Tensors are copied to other stages after each half of a cycle.
                (TfInterleaved, Recompute::None) => (0, kept + leaves.max(gradient_in), 0),
                // In the first forward run, tensors that enter wait for their FIFO. In the second
                // run, tensors that leave wait for their copy, or gradients have arrived.
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

    /// Returns by phase (see [`PHASES`]) the bytes of tensors of a stage with the sums of bytes
    /// `moves` that are live when it calls a function, but not at the steps of another place's
    /// call, under which the profile lists the function: in the forward pass, tensors from earlier
    /// stages wait for the stage's own call; in the backward pass, gradients wait for this call or
    /// follow it.
    fn in_other_calls<const N: usize>(&self, moves: &Transfers<N>, lane: usize) -> [u64; PHASES] {
        let of = |quantity| moves.of(quantity, lane);
        match self.pipeline.schedule {
            Popart | Sequential => {
                let gradients = of(Quantity::GradientIn).max(of(Quantity::GradientOut));
                let enters = of(Quantity::EntersFromStage);
                [enters, enters, gradients, 0]
            }
            // In TensorFlow's schedules, the largest buffers of any phase also cover these tensors.
            Schedule::None | TfGrouped | TfInterleaved => [0; PHASES],
        }
    }

    /// Returns by phase (see [`PHASES`]) the bytes of tensors that a stage with the sums of bytes
    /// `moves` forwards without using them. In schedules in which a stage runs one pass at a time,
    /// these tensors leave it at the end of that pass.
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
            // The steps of the forward pass also stand for its second run.
            _ => [most, most, backward, 0],
        }
    }

    /// Returns by phase (see [`PHASES`]) the bytes of the transfer buffers of a stage with the sums
    /// of bytes `moves`, if it cannot be told in which pass a step is. So all three phases of the
    /// passes get the highest bytes of any pass; the phase after them gets 0. `phases` has the
    /// bytes by phase if the pass of each step were known.
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

    /// Returns by phase (see [`PHASES`]), on the tile that has the lane `lane`, the bytes of the
    /// transfer buffers on the IPU of a stage with the sums of bytes `stage`, and the bytes of the
    /// tensors that it forwards. `out` has the sums of Out if it is a later pipeline stage on the
    /// same IPU, which runs between the passes of this stage; otherwise it is `None`.
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
