//! Defines the options of the pipeline that the model will be compiled for, and of its time.

use super::effects::{ON_SPLITS, ON_STAGES};
use super::values::{OrAuto, bandwidth, or_auto};
use crate::memory::{Accumulator, PipelineOptions, Recompute, Schedule, StatePlace};
use crate::time::StepOptions;
use clap::{Args, value_parser};

/// Upper bound on the numbers of micro-batches, samples and replicas; a larger number is a mistake.
const MAX_BATCHES: u64 = 1 << 32;

/// Options of the pipeline that the model will be compiled for, which adds to the memory of the
/// layers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pipeline")]
pub struct PipelineArgs {
    /// The schedule of the pipeline that you will compile; its stages keep copies for the
    /// micro-batches under way. Use popart for PopART and PopTorch, tf-grouped or tf-interleaved
    /// for TensorFlow, sequential for one stage after the other, or none, which adds no pipeline
    /// costs. For training, auto takes the best of the framework's schedules whose stages work
    /// side by side; for inference, plain Poplar and PopXL it takes none
    #[arg(long, value_name = "SCHEDULE", default_value = "auto",
          value_parser = or_auto::<Schedule>(), group = ON_SPLITS)]
    pub schedule: OrAuto<Schedule>,

    /// What the backward pass recomputes instead of keeping it: nothing (none), whole stages
    /// (stage) or each layer (layer). auto takes the best of these
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = or_auto::<Recompute>(),
          group = ON_SPLITS)]
    pub recompute: OrAuto<Recompute>,

    /// The type of the elements of gradient accumulators, which popliner adds if the profile was
    /// recorded without them. It is best to record training with gradient accumulation of 2 or
    /// more and without recomputation: then the profile itself has all accumulators and
    /// activations
    #[arg(long, value_name = "ELEMENTS", default_value = "as-weight", group = ON_SPLITS)]
    pub accumulator: Accumulator,

    /// Where the optimizer state is kept between two updates: on the chip, in memory outside the
    /// IPUs (off-chip), sharded over replicas, or both. auto tries on-chip, off-chip, sharded and
    /// sharded-off-chip in this order, and takes the first with which the model fits; with
    /// --streaming-bandwidth, the faster one of on-chip and off-chip. Without --replicas, sharded
    /// tries 2 and 4 replicas, as far as there are IPUs
    #[arg(long, value_name = "STATE", default_value = "auto",
          value_parser = or_auto::<StatePlace>(), group = ON_SPLITS)]
    pub optimizer_state: OrAuto<StatePlace>,
}

/// Options with the numbers, other than the cycles of layers, that the time of a step depends on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Micro-batches in a step: gradient accumulation in training. A profile does not record this
    /// number; without the option, popliner assumes 128
    #[arg(long, value_name = "G", value_parser = value_parser!(u64).range(1..=MAX_BATCHES),
          group = ON_SPLITS)]
    pub micro_batches: Option<u64>,

    /// Samples in a micro-batch of the profile, for samples a second
    #[arg(long, value_name = "B", value_parser = value_parser!(u64).range(1..=MAX_BATCHES),
          group = ON_STAGES)]
    pub micro_batch: Option<u64>,

    /// How many replicas of the pipeline run side by side, each on its part of the IPUs: for
    /// samples a second, and to shard the optimizer state
    #[arg(long, value_name = "R", default_value = "1",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES), group = ON_SPLITS)]
    pub replicas: u64,

    /// GB (1,000,000,000 bytes) that an IPU sends to another IPU in a second, and receives from
    /// it
    #[arg(long, value_name = "GB", default_value = "29", value_parser = bandwidth, group = ON_SPLITS)]
    pub ipu_link_bandwidth: u64,

    /// Speed of memory outside the IPUs for one IPU, in GB (10^9 bytes) a second in each direction.
    /// There is no usual number: without it, popliner prints the bytes but no time for them
    #[arg(long, value_name = "GB", value_parser = bandwidth, group = ON_SPLITS)]
    pub streaming_bandwidth: Option<u64>,
}

impl PipelineArgs {
    /// Returns the pipeline that the options request, with this number of replicas.
    pub fn options(&self, replicas: u64) -> PipelineOptions {
        PipelineOptions {
            schedule: self.schedule,
            recompute: self.recompute,
            accumulator: self.accumulator,
            state: self.optimizer_state,
            replicas,
        }
    }
}

impl TimeArgs {
    /// Returns the numbers, other than the cycles of layers, that the time of a step depends on.
    pub fn options(&self) -> StepOptions {
        StepOptions {
            micro_batches: self.micro_batches,
            link_bandwidth: self.ipu_link_bandwidth,
            micro_batch: self.micro_batch,
            replicas: self.replicas,
            streaming_bandwidth: self.streaming_bandwidth,
        }
    }
}
