//! Transfer buffers of a stage: tensors for other stages or from them, by the phase of its work
//! (docs/model.md, "Pipelines").

use super::flows::Flows;
use super::{Pipeline, Recompute, Schedule};

/// Phases of the steps: the forward pass but for its last step, that step, at which all is
/// there that is kept, the backward pass, and what comes after both, when no micro-batch is
/// under way.
pub(in crate::memory) const PHASES: usize = 4;

/// The same bytes in both passes.
fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// Bytes that a stage may hold for other stages, or forward.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transfers {
    /// Made before the stage, and used in its forward pass.
    pub(super) enters: u64,
    /// Used in its forward pass, and after it.
    pub(super) leaves: u64,
    /// Gradients from later stages.
    pub(super) gradient_in: u64,
    /// Gradients for earlier stages.
    pub(super) gradient_out: u64,
    /// On its way to a later stage.
    pub(super) passes_forward: u64,
    /// On its way to an earlier one.
    pub(super) passes_backward: u64,
    /// The largest variable that is kept.
    pub(super) largest_kept: u64,
    /// How the stage runs backward.
    pub(super) backward: BackwardPass,
}

/// How a stage runs backward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BackwardPass {
    /// Not at all: all its layers are frozen.
    #[default]
    None,
    /// At its own steps.
    Own,
    /// With functions whose steps may be listed where another place calls them, when other
    /// buffers are needed.
    InFunctions,
}

impl BackwardPass {
    /// That of a range which has one more place.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, other) => other,
            (Self::Own, Self::InFunctions) => other,
            (first, _) => first,
        }
    }
}

impl Flows {
    /// How a place runs backward.
    pub(super) fn backward_of(&self, place: u32) -> BackwardPass {
        match self.goes_back(place) {
            false => BackwardPass::None,
            true if self.windows.is_in_functions(place) => BackwardPass::InFunctions,
            true => BackwardPass::Own,
        }
    }

    /// By phase: the bytes of the transfer buffers of a stage, beside what its own steps have.
    ///
    /// The steps of the forward pass stand for both runs of what runs again.
    pub(super) fn transfer_buffers(&self, moves: &Transfers) -> [u64; PHASES] {
        let Transfers {
            enters,
            leaves,
            gradient_in,
            gradient_out,
            largest_kept,
            backward,
            ..
        } = *moves;
        // A tensor for the layers after frozen ones is live when these end.
        if !self.has_phases() || backward == BackwardPass::None {
            return [0; PHASES];
        }
        let Pipeline {
            schedule,
            recompute,
            ..
        } = self.pipeline;
        let (forward, last_forward, in_backward) = match (schedule, recompute) {
            (Schedule::None, _) => (0, 0, 0),
            // Only a whole stage is recomputed after it got its gradients.
            (Schedule::Sequential, Recompute::Stage) => (gradient_in, 0, 0),
            (Schedule::Sequential, _) => (0, 0, 0),
            (Schedule::Popart, Recompute::None) => (gradient_in, 0, leaves),
            (Schedule::Popart, Recompute::Stage) => (gradient_in + leaves, 0, leaves),
            // Gradients for a layer are live on the steps at which it is recomputed.
            (Schedule::Popart, Recompute::Layer) => (gradient_in.max(leaves), 0, leaves),
            // FIFOs run at the end of the forward pass or before the backward pass.
            (Schedule::TfGrouped, Recompute::None) => {
                let last_forward = largest_kept + enters.max(leaves + gradient_out);
                (gradient_out, last_forward, enters)
            }
            (Schedule::TfGrouped, Recompute::Stage) => {
                (enters.max(leaves + gradient_out), 0, enters)
            }
            (Schedule::TfGrouped, Recompute::Layer) => {
                let last_forward = enters.max(leaves + gradient_out);
                (enters.max(gradient_out), last_forward, enters)
            }
            // Copies come after each half of a cycle.
            (Schedule::TfInterleaved, Recompute::None) => (0, largest_kept + leaves, 0),
            (Schedule::TfInterleaved, Recompute::Stage) => (leaves, 0, 0),
            (Schedule::TfInterleaved, Recompute::Layer) => (0, leaves, 0),
        };
        let phases = [forward, last_forward.max(forward), in_backward, 0];
        match backward {
            BackwardPass::InFunctions => self.in_any_phase(moves, phases),
            BackwardPass::None | BackwardPass::Own => phases,
        }
    }

    /// By phase: the bytes that a stage forwards. Where a stage runs one pass
    /// at a time, they leave it at the end of that.
    pub(super) fn forwarded(&self, moves: &Transfers) -> [u64; PHASES] {
        let (forward, backward) = (moves.passes_forward, moves.passes_backward);
        let one_at_a_time = [Schedule::TfInterleaved, Schedule::Sequential];
        if !one_at_a_time.contains(&self.pipeline.schedule) {
            return in_passes(forward + backward);
        }
        let most = forward.max(backward);
        match (moves.backward, self.pipeline.recompute) {
            (BackwardPass::InFunctions, _) => in_passes(most),
            (_, Recompute::None) => [forward, forward, backward, 0],
            // The steps of the forward pass stand for both runs.
            _ => [most, most, backward, 0],
        }
    }

    /// The same where it is not known in which phase a step runs: in all the buffers of any.
    fn in_any_phase(&self, moves: &Transfers, phases: [u64; PHASES]) -> [u64; PHASES] {
        let buffers = match self.pipeline.schedule {
            _ if !self.has_phases() => 0,
            Schedule::Sequential if self.pipeline.recompute == Recompute::Stage => {
                moves.gradient_in
            }
            Schedule::None | Schedule::Sequential => 0,
            Schedule::Popart => moves.leaves.max(moves.gradient_in),
            Schedule::TfGrouped | Schedule::TfInterleaved => {
                moves.gradient_out + moves.largest_kept.max(moves.enters + moves.leaves)
            }
        };
        in_passes(phases.into_iter().fold(buffers, u64::max))
    }

    /// The same where a later stage is on the same IPU, and has work between that of this
    /// one.
    pub(super) fn transfer_buffers_beside_out(
        &self,
        moves: &Transfers,
        out: &Transfers,
    ) -> [u64; PHASES] {
        let [of_out, ..] = self.in_any_phase(out, [0; PHASES]);
        let of_own = self.in_any_phase(moves, self.transfer_buffers(moves));
        std::array::from_fn(|phase| of_own[phase] + in_passes(of_out)[phase])
    }
}
