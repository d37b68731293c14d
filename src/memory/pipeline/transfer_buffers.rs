//! The bytes of the transfer buffers of a stage, which hold tensors from or for other stages, in
//! each phase (docs/model.md, "Pipelines").

use super::flows::{Flows, QUANTITIES, Quantity};
use super::{Recompute, Schedule};
use crate::memory::lanes::{self, ByLane};

/// The number of phases, into which the liveness steps are divided: (0) the forward pass without
/// its last step; (1) the last step of the forward pass, at which all tensors that are kept for the
/// backward pass are live; (2) the backward pass; (3) the steps after both passes, when no
/// micro-batch is in flight.
pub(crate) const PHASES: usize = 4;

/// Returns `bytes` in the phases of both passes, and 0 in the phase after them.
fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// The bytes of the tensors that a stage keeps, receives, sends or forwards, by lane (tile).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transfers<const N: usize> {
    /// The sum of the bytes that count for each [`Quantity`], as an index.
    pub sums: [ByLane<u64, N>; QUANTITIES],
    /// How the stage runs backward, and the bytes that it keeps from its forward to its backward
    /// pass.
    pub kept: Kept<N>,
}

impl<const N: usize> Transfers<N> {
    /// Returns the bytes on the one tile that has the lane `lane`.
    pub fn on(&self, lane: usize) -> Transfers<1> {
        Transfers {
            sums: self.sums.map(|sums| ByLane([sums[lane]])),
            kept: Kept {
                backward: self.kept.backward,
                bytes: ByLane([self.kept.bytes[lane]]),
            },
        }
    }
}

impl Transfers<1> {
    /// Returns the sum of bytes for `quantity`, on the only tile.
    fn of(&self, quantity: Quantity) -> u64 {
        self.sums[quantity as usize][0]
    }
}

/// How a stage or place runs backward, and the bytes, by lane (tile), that it keeps from its
/// forward to its backward pass. They are those of its largest use (variables with one class and
/// use set), or of all if another pipeline stage runs on the IPU in between
/// ([`StageRoles::waits`](super::additions::StageRoles)).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept<const N: usize> {
    pub backward: BackwardPass,
    pub bytes: ByLane<u64, N>,
}

impl<const N: usize> Kept<N> {
    /// Extends a range of places by `place` (In, a layer or Out): the larger bytes and the greater
    /// [`BackwardPass`] count.
    pub fn add(&mut self, place: &Self) {
        self.backward = self.backward.max(place.backward);
        lanes::raise(&mut self.bytes, &place.bytes);
    }
}

/// How a stage or place runs backward. Values are ordered: a range of places has the greatest one
/// of its places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BackwardPass {
    /// There is no backward pass, since all layers are frozen.
    #[default]
    None,
    /// There is no backward pass, and the forward operations run in functions that other places
    /// call too. The profile may list their steps where another place calls them.
    NoneInFunctions,
    /// The backward operations run at steps of their own.
    Own,
    /// The backward operations run in functions that other places call too. The profile may list
    /// their steps where another place calls them, and where other buffers are live.
    InFunctions,
}

impl Flows {
    /// Returns how the place with this number (In, a layer or Out) runs backward.
    pub(super) fn backward_of(&self, place: u32) -> BackwardPass {
        match (
            self.goes_back(place),
            self.windows.at(place).is_in_functions,
        ) {
            (false, false) => BackwardPass::None,
            (false, true) => BackwardPass::NoneInFunctions,
            (true, false) => BackwardPass::Own,
            (true, true) => BackwardPass::InFunctions,
        }
    }

    /// Returns by phase (see [`PHASES`]) the bytes of the transfer buffers of a stage with the sums
    /// `moves`. Tensors that are live at the steps of the stage anyway are not counted again. The
    /// steps of the forward pass also stand for its second run if it is recomputed.
    fn transfer_buffers(&self, moves: &Transfers<1>) -> [u64; PHASES] {
        let (enters, leaves) = (moves.of(Quantity::Enters), moves.of(Quantity::Leaves));
        let gradient_in = moves.of(Quantity::GradientIn);
        let gradient_out = moves.of(Quantity::GradientOut);
        let Kept { backward, bytes } = moves.kept;
        let [kept] = *bytes;
        match backward {
            _ if !self.has_phases() => return [0; PHASES],
            // Tensors that leave frozen layers are live at the last step of these layers anyway.
            BackwardPass::None => return [0; PHASES],
            // Where another layer's call has the steps, tensors wait for the own call or follow it.
            // Other pipelines are not too low without it (docs/model.md).
            BackwardPass::NoneInFunctions => {
                let (schedule, recompute) = (self.pipeline.schedule, self.pipeline.recompute);
                return match (schedule, recompute) {
                    (Schedule::TfInterleaved, Recompute::Stage) => {
                        let waiting = enters.max(leaves);
                        [waiting, waiting, 0, 0]
                    }
                    _ => [0; PHASES],
                };
            }
            BackwardPass::Own | BackwardPass::InFunctions => {}
        }
        let (forward, last_forward, in_backward) =
            match (self.pipeline.schedule, self.pipeline.recompute) {
                (Schedule::None, _) => (0, 0, 0),
                // Only a whole stage is recomputed after its gradients have arrived.
                (Schedule::Sequential, Recompute::Stage) => (gradient_in, 0, 0),
                (Schedule::Sequential, _) => (0, 0, 0),
                (Schedule::Popart, Recompute::None) => (gradient_in, 0, leaves),
                (Schedule::Popart, Recompute::Stage) => (gradient_in + leaves, 0, leaves),
                // Gradients of a layer are live at the steps at which the layer is recomputed.
                (Schedule::Popart, Recompute::Layer) => (gradient_in.max(leaves), 0, leaves),
                // FIFOs run at the end of the forward pass or before the backward pass.
                (Schedule::TfGrouped, Recompute::None) => {
                    let last_forward = kept + enters.max(leaves + gradient_out);
                    (gradient_out, last_forward, enters)
                }
                (Schedule::TfGrouped, Recompute::Stage) => {
                    (enters.max(leaves + gradient_out), 0, enters)
                }
                (Schedule::TfGrouped, Recompute::Layer) => {
                    let last_forward = enters.max(leaves + gradient_out);
                    (enters.max(gradient_out), last_forward, enters)
                }
                // Tensors are copied to other stages after each half of a cycle.
                (Schedule::TfInterleaved, Recompute::None) => (0, kept + leaves, 0),
                (Schedule::TfInterleaved, Recompute::Stage) => (leaves, 0, 0),
                (Schedule::TfInterleaved, Recompute::Layer) => (0, leaves, 0),
            };
        let phases = [forward, last_forward.max(forward), in_backward, 0];
        match backward {
            BackwardPass::InFunctions => self.in_any_phase(moves, phases),
            _ => phases,
        }
    }

    /// Returns by phase (see [`PHASES`]) the bytes of tensors that a stage with the sums `moves`
    /// forwards without using them. In schedules in which a stage runs one pass at a time, these
    /// tensors leave it at the end of that pass.
    pub(super) fn forwarded(&self, moves: &Transfers<1>) -> [u64; PHASES] {
        let forward = moves.of(Quantity::PassesForward);
        let backward = moves.of(Quantity::PassesBackward);
        let one_at_a_time = [Schedule::TfInterleaved, Schedule::Sequential];
        if !one_at_a_time.contains(&self.pipeline.schedule) {
            return in_passes(forward + backward);
        }
        let most = forward.max(backward);
        match (moves.kept.backward, self.pipeline.recompute) {
            (BackwardPass::InFunctions, _) => in_passes(most),
            (_, Recompute::None) => [forward, forward, backward, 0],
            // The steps of the forward pass also stand for its second run.
            _ => [most, most, backward, 0],
        }
    }

    /// Returns by phase (see [`PHASES`]) the bytes of the transfer buffers of a stage with the sums
    /// `moves`, if it cannot be told in which pass a step is. So all three phases of the passes get
    /// the highest bytes of any pass; the phase after them gets 0. `phases` are the bytes if it
    /// could be told.
    fn in_any_phase(&self, moves: &Transfers<1>, phases: [u64; PHASES]) -> [u64; PHASES] {
        let (enters, leaves) = (moves.of(Quantity::Enters), moves.of(Quantity::Leaves));
        let gradient_in = moves.of(Quantity::GradientIn);
        let buffers = match (self.pipeline.schedule, self.pipeline.recompute) {
            _ if !self.has_phases() => 0,
            (Schedule::Sequential, Recompute::Stage) => gradient_in,
            (Schedule::None | Schedule::Sequential, _) => 0,
            (Schedule::Popart, _) => leaves.max(gradient_in),
            (Schedule::TfGrouped | Schedule::TfInterleaved, _) => {
                moves.of(Quantity::GradientOut) + moves.kept.bytes[0].max(enters + leaves)
            }
        };
        in_passes(phases.into_iter().fold(buffers, u64::max))
    }

    /// Returns by phase (see [`PHASES`]) the bytes of the transfer buffers on the IPU of a stage
    /// with the sums `moves`. `out` has the sums of Out if it is a later pipeline stage on the same
    /// IPU, which runs between the passes of this one; otherwise it is `None`.
    pub(super) fn transfer_buffers_with_out(
        &self,
        moves: &Transfers<1>,
        out: Option<Transfers<1>>,
    ) -> [u64; PHASES] {
        let Some(out) = out else {
            return self.transfer_buffers(moves);
        };
        let [of_out, ..] = self.in_any_phase(&out, [0; PHASES]);
        let of_own = self.in_any_phase(moves, self.transfer_buffers(moves));
        std::array::from_fn(|phase| of_own[phase] + in_passes(of_out)[phase])
    }
}
