//! Transfer buffers of a stage: tensors for other stages or from them, by phase of the stage's work
//! (docs/model.md, "Pipelines").

use super::flows::{Flows, QUANTITIES, Quantity};
use super::{Recompute, Schedule};
use crate::memory::lanes::{self, ByLane};

/// Number of phases: the forward pass without its last step; this step, at which all kept tensors
/// are live; the backward pass; and the steps after both passes, when no micro-batch is in flight.
pub(in crate::memory) const PHASES: usize = 4;

/// By phase: `bytes` in both passes, and 0 after them.
fn in_passes(bytes: u64) -> [u64; PHASES] {
    [bytes, bytes, bytes, 0]
}

/// Bytes of the flows that a stage has a part in, by lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transfers<const N: usize> {
    /// By [`Quantity`].
    pub(super) sums: [ByLane<u64, N>; QUANTITIES],
    pub(super) kept: Kept<N>,
}

impl<const N: usize> Transfers<N> {
    /// The bytes on the tile in `lane`.
    pub(super) fn on(&self, lane: usize) -> Transfers<1> {
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
    /// The bytes that count for a quantity.
    fn of(&self, quantity: Quantity) -> u64 {
        self.sums[quantity as usize][0]
    }
}

/// How a stage or place runs backward, and by lane, the largest variable that it keeps for that, or
/// all of them where other layers of the IPU run between both passes
/// ([`Area::waits`](super::additions::Area)).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept<const N: usize> {
    pub(super) backward: BackwardPass,
    pub(super) bytes: ByLane<u64, N>,
}

impl<const N: usize> Kept<N> {
    /// Adds a place to a range.
    pub(super) fn add(&mut self, place: &Self) {
        self.backward = self.backward.max(place.backward);
        lanes::raise(&mut self.bytes, &place.bytes);
    }
}

/// How a stage runs backward. A range of places does as the greatest of its places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BackwardPass {
    /// Not at all: all its layers are frozen.
    #[default]
    None,
    /// At its own steps.
    Own,
    /// In functions, whose steps may be listed where another place calls them and other buffers are
    /// live.
    InFunctions,
}

impl Flows {
    /// How a place runs backward.
    pub(super) fn backward_of(&self, place: u32) -> BackwardPass {
        match self.goes_back(place) {
            false => BackwardPass::None,
            true if self.windows.at(place).is_in_functions => BackwardPass::InFunctions,
            true => BackwardPass::Own,
        }
    }

    /// By phase, bytes of the transfer buffers of a stage, besides those that its own steps have.
    /// The steps of the forward pass stand for both runs of a recomputed place.
    fn transfer_buffers(&self, moves: &Transfers<1>) -> [u64; PHASES] {
        let (enters, leaves) = (moves.of(Quantity::Enters), moves.of(Quantity::Leaves));
        let gradient_in = moves.of(Quantity::GradientIn);
        let gradient_out = moves.of(Quantity::GradientOut);
        let Kept { backward, bytes } = moves.kept;
        let [kept] = *bytes;
        // A tensor for layers after frozen ones is live at the last step of the frozen layers.
        if !self.has_phases() || backward == BackwardPass::None {
            return [0; PHASES];
        }
        let (forward, last_forward, in_backward) =
            match (self.pipeline.schedule, self.pipeline.recompute) {
                (Schedule::None, _) => (0, 0, 0),
                // Only a whole stage is recomputed after its gradients arrived.
                (Schedule::Sequential, Recompute::Stage) => (gradient_in, 0, 0),
                (Schedule::Sequential, _) => (0, 0, 0),
                (Schedule::Popart, Recompute::None) => (gradient_in, 0, leaves),
                (Schedule::Popart, Recompute::Stage) => (gradient_in + leaves, 0, leaves),
                // Gradients of a layer are live on the steps at which it is recomputed.
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
                // Copies follow each half of a cycle.
                (Schedule::TfInterleaved, Recompute::None) => (0, kept + leaves, 0),
                (Schedule::TfInterleaved, Recompute::Stage) => (leaves, 0, 0),
                (Schedule::TfInterleaved, Recompute::Layer) => (0, leaves, 0),
            };
        let phases = [forward, last_forward.max(forward), in_backward, 0];
        match backward {
            BackwardPass::InFunctions => self.in_any_phase(moves, phases),
            BackwardPass::None | BackwardPass::Own => phases,
        }
    }

    /// By phase, bytes that a stage forwards. If it runs one pass at a time, they leave it at the
    /// end of that pass.
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
            // The steps of the forward pass stand for both runs.
            _ => [most, most, backward, 0],
        }
    }

    /// By phase, bytes of the buffers where both passes are in functions, so that the phase of a
    /// step is unknown: each phase of the passes has the most bytes of any phase. `phases` has the
    /// bytes by phase if phases were known.
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

    /// By phase, bytes of the transfer buffers of a stage and, if Out is on the same IPU, of Out,
    /// which is a later stage and works in between.
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
