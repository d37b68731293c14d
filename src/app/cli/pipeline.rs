//! The options of the pipeline that the model will be compiled for, and of its time.

use super::values::{OrAuto, or_auto};
use super::{Bandwidth, Milliseconds};
use crate::memory::{Accumulator, PipelineOptions, Recompute, Schedule, StatePlace};
use crate::time::StepOptions;
use clap::{Args, value_parser};

/// Upper bound on micro-batches, samples and replicas; a larger number is a mistake.
const MAX_BATCHES: u64 = 1 << 32;

/// Options of the pipeline, which adds to the memory of the layers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pipeline")]
pub struct Pipeline {
    /// The pipeline that the model will be compiled for, in which stages keep
    /// copies for the micro-batches under way: that of PopART and PopTorch
    /// (popart), of TensorFlow (tf-grouped, tf-interleaved), one stage after the
    /// other (sequential), or none, which takes stages as parts of the one-IPU
    /// compilation. auto takes the best of the framework's for training in which stages
    /// work side by side, and none for inference, plain Poplar and PopXL
    #[arg(long, value_name = "SCHEDULE", default_value = "auto",
          value_parser = or_auto::<Schedule>())]
    pub schedule: OrAuto<Schedule>,

    /// Recompute in the backward pass of the pipeline, instead of keeping
    /// it: nothing (none), whole stages (stage) or each layer (layer). auto takes the
    /// best of these
    #[arg(long, value_name = "WHAT", default_value = "auto",
          value_parser = or_auto::<Recompute>())]
    pub recompute: OrAuto<Recompute>,

    /// The elements of gradient accumulators, which are added where the profile
    /// was recorded without them. Training is best recorded with gradient
    /// accumulation of 2 or more and without recomputation: then the profile has
    /// all accumulators and activations itself
    #[arg(long, value_name = "ELEMENTS", default_value = "as-weight")]
    pub accumulator: Accumulator,

    /// Where the state of the optimizer is between two updates: on the chip, off-chip in the
    /// host's memory, shared out among replicas (sharded), or both; auto takes the first that
    /// fits of on-chip, sharded, off-chip and sharded-off-chip [default: on-chip, and --plan
    /// tries all]
    #[arg(long, value_name = "STATE",
          value_parser = or_auto::<StatePlace>())]
    pub optimizer_state: Option<OrAuto<StatePlace>>,
}

/// Numbers that a step depends on beside the cycles of the layers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Time")]
pub struct Time {
    /// The micro-batches of a step: gradient accumulation in training. Without it 128 are
    /// assumed, since a profile does not record its own
    #[arg(long, value_name = "G",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub micro_batches: Option<u64>,

    /// The samples of a micro-batch, for samples a second and --at-micro-batch
    #[arg(long, value_name = "B",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub micro_batch: Option<u64>,

    /// Estimate everything for a micro-batch of so many samples, where the profile's has those
    /// of --micro-batch: activations and cycles go with the samples, weights, state and code
    /// stay. It also says the largest that fits. Only a compilation proves it
    #[arg(long, value_name = "B", requires = "micro_batch",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub at_micro_batch: Option<u64>,

    /// How many replicas of the model run side by side, for samples a second
    #[arg(long, value_name = "R", default_value = "1",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub replicas: u64,

    /// GB that an IPU sends to another in a second, and receives from it
    /// (1,000,000,000 bytes)
    #[arg(long, value_name = "GB", default_value = "29")]
    pub ipu_link_bandwidth: Bandwidth,

    /// GB that an IPU loads in a second from memory outside the IPUs, and stores there.
    /// There is no usual number: without it, the bytes are shown, and no time for them
    #[arg(long, value_name = "GB")]
    pub streaming_bandwidth: Option<Bandwidth>,

    /// Milliseconds that a step may take; the exit code is 1 where the split takes
    /// longer
    #[arg(long, value_name = "MS")]
    pub max_step_ms: Option<Milliseconds>,
}

impl Pipeline {
    /// Returns the requested pipeline with this number of replicas.
    pub fn options(&self, replicas: u64) -> PipelineOptions {
        PipelineOptions {
            schedule: self.schedule.given(),
            recompute: self.recompute.given(),
            accumulator: self.accumulator,
            state: self.optimizer_state.and_then(OrAuto::given),
            tries_states: self.optimizer_state == Some(OrAuto::Auto),
            replicas,
        }
    }
}

impl Time {
    /// Returns the numbers that the time of a step depends on, beside the cycles of layers.
    pub fn options(&self) -> StepOptions {
        StepOptions {
            micro_batches: self.micro_batches,
            link_bandwidth: self.ipu_link_bandwidth.0,
            micro_batch: self.micro_batch,
            replicas: self.replicas,
            streaming_bandwidth: self.streaming_bandwidth.map(|bandwidth| bandwidth.0),
            max_nanoseconds: self.max_step_ms.map(|most| most.nanoseconds()),
        }
    }
}
