//! Defines the options of a pipelined compilation, how its profile is written, and the code in it
//! that the compilation for one IPU does not have.

use crate::overhead::category::{GLOBAL_EXCHANGE_CODE, HOST_EXCHANGE_CODE, INTERNAL_EXCHANGE_CODE};
use crate::random::topic;
use crate::settings::Settings;

/// The order in which micro-batches go through the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// PopART and PopTorch: in a cycle each IPU runs forward, then backward.
    Popart,
    /// TensorFlow, grouped: in a cycle each IPU runs backward, then forward.
    TfGrouped,
    /// TensorFlow, interleaved: forward and backward take turns, in half cycles.
    TfInterleaved,
    /// One micro-batch goes through all stages before the next one starts.
    Sequential,
}

impl Schedule {
    /// Returns whether kept tensors go through a FIFO, which gives out the oldest tensor and takes
    /// in the newest in its place.
    pub(super) fn has_fifo(self) -> bool {
        matches!(self, Self::TfGrouped | Self::TfInterleaved)
    }
}

/// The part of the forward pass that runs again before the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// Nothing runs again.
    None,
    /// The whole stage runs again, except for the last stage.
    Stage,
    /// One layer after the other runs again, each right before its backward pass.
    Layer,
}

/// The place of the optimizer state between two steps, if it does not stay on the chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// Whether the state is outside the IPUs.
    pub is_off_chip: bool,
    /// Number of replicas over which the state is sharded; 1 if it is not sharded.
    pub replicas: u64,
}

impl Elsewhere {
    /// The state stays on the chip.
    pub const NOT: Self = Self {
        is_off_chip: false,
        replicas: 1,
    };

    /// Returns whether any state is elsewhere.
    pub fn is_any(self) -> bool {
        self.is_off_chip || self.replicas > 1
    }
}

/// All options of a pipelined compilation, except for the cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineOptions {
    /// The order of the micro-batches.
    pub schedule: Schedule,
    /// The parts that run again.
    pub recompute: Recompute,
    /// PopART: restores all stashed tensors at the start of the backward part,
    /// not each one at its first use there.
    pub early_restore: bool,
    /// TensorFlow: lets the FIFOs run at the end of the forward part, and after them
    /// what runs again as a whole, all before the copies between IPUs, as its
    /// plugin has it; not at the start of the backward part.
    pub early_fifo: bool,
    /// Puts Out on the first IPU, as a last stage of its own.
    pub out_on_first: bool,
    /// Lets each IPU go through the steps of the others too, without running
    /// them, as [`PlaceTruth`](crate::place_truth::PlaceTruth) has it: variables
    /// of outlined bodies that are listed once then count at the call of another layer,
    /// while the tensors of this IPU wait. Without it an IPU has the steps of its own
    /// operations, and no outlined bodies.
    pub all_steps: bool,
    /// The place of the optimizer state between two steps.
    pub elsewhere: Elsewhere,
}

impl PipelineOptions {
    /// Returns options with this schedule and this recomputation, and nothing else.
    pub fn new(schedule: Schedule, recompute: Recompute) -> Self {
        Self {
            schedule,
            recompute,
            early_restore: false,
            early_fifo: false,
            out_on_first: false,
            all_steps: false,
            elsewhere: Elsewhere::NOT,
        }
    }

    /// Returns whether stages that run again do so at the end of the forward part.
    pub(super) fn early_reruns(&self) -> bool {
        self.schedule.has_fifo() && self.early_fifo && self.recompute == Recompute::Stage
    }
}

/// The form of a profile: the tables and replicas that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileForm {
    /// Whether the tables of variables have rows, as with `autoReport.outputLoweredVars`.
    pub lists_variables: bool,
    /// Number of replicas that the model was compiled for, at least 1.
    pub replicas: u32,
    /// Whether the profile lists the tiles of all replicas, one replica after the other, rather
    /// than those of the first. The target counts the tiles of all replicas in both cases.
    pub lists_replicas: bool,
    /// Adds a recorded execution of two runs. In a run, every operation runs once on each of its
    /// IPUs; then neighbouring IPUs exchange all tensors.
    pub execution: bool,
}

impl ProfileForm {
    /// The form of one replica with its variables, and nothing else.
    pub const PLAIN: Self = Self {
        lists_variables: true,
        replicas: 1,
        lists_replicas: false,
        execution: false,
    };
}

/// Code that a pipeline adds to an IPU, which is always live and belongs to no operation: its
/// category, the kind of exchange in its name, its bytes on the first IPU, on each one between, and
/// on the last one, and the maximum number of further bytes on some tiles.
pub(super) type Planted = (usize, &'static str, [u64; 3], u64);

/// Code that is small beside that of a layer, and different for each IPU: code of exchanges between
/// IPUs, of host exchanges that each IPU repeats, and, last, of taking tensors out of a stash of
/// PopART.
pub(super) const PLANTED: [Planted; 3] = [
    (GLOBAL_EXCHANGE_CODE, "global", [640, 1120, 560], 96),
    (HOST_EXCHANGE_CODE, "host", [192, 48, 128], 16),
    (INTERNAL_EXCHANGE_CODE, "internal", [320, 256, 0], 48),
];

/// Returns the bytes of planted code on each tile of an IPU in a pipeline of this number of IPUs.
pub(super) fn planted_on_tiles(
    (category, _, [first, middle, last], more): Planted,
    settings: &Settings,
    (ipu, ipus): (u32, u32),
) -> Vec<u64> {
    let base = match ipu {
        _ if ipus == 1 => 0,
        0 => first,
        ipu if ipu + 1 == ipus => last,
        _ => middle,
    };
    let number = (50 + GLOBAL_EXCHANGE_CODE - category) as u64;
    let on_tile = |tile: u32| {
        let about = [topic::TILE, tile.into(), number, ipu.into()];
        match base {
            0 => 0,
            _ => base + 4 * settings.random.below(more / 4 + 1, about),
        }
    };
    (0..settings.tiles).map(on_tile).collect()
}
