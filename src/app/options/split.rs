//! Defines the options that affect the split: its objective, constraints, pipeline and step time.

use super::values::{MAX_BATCHES, OfProfile, OrAuto, bandwidth, of_profile, or_auto};
use crate::{
    analysis::LayerConstraint,
    memory::{Accumulator, Recompute, Schedule, StatePlace},
    search::Solver,
    solve::Goal,
};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, value_parser};

/// Options that say which split is the best one, and which splits are allowed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// What makes one split that fits better than another [default: time, or fewest if the
    /// profile has no cycles; peak with --solver greedy or --memory-model classic]
    #[arg(long)]
    pub objective: Option<Goal>,

    /// Keep this layer on this IPU. IPUs count from 0, and each has one stage. Here and wherever
    /// you name layers, In is what runs before the layers, and Out what runs after them (None for
    /// both in the classic memory model). May be given several times, like --together
    /// and --cut-before
    #[arg(long, value_name = "LAYER=IPU", value_parser = LayerConstraint::pin)]
    pub pin: Vec<LayerConstraint>,

    /// Keep these two layers, and all layers between them, on one IPU
    #[arg(long, value_name = "LAYER,LAYER", value_parser = LayerConstraint::together)]
    pub together: Vec<LayerConstraint>,

    /// Begin a stage with this layer
    #[arg(long, value_name = "LAYER",
          value_parser = StringValueParser::new().map(LayerConstraint::CutBefore))]
    pub cut_before: Vec<LayerConstraint>,

    /// How to search: with the integer program, which proves its answer, or with the greedy
    /// search of the original tool, which supports no objectives and no constraints
    #[arg(long, default_value = "ilp")]
    pub solver: Solver,
}

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
    #[arg(long, default_value = "auto",
          value_parser = or_auto::<Schedule>())]
    pub schedule: OrAuto<Schedule>,

    /// What the backward pass recomputes instead of keeping it: nothing (none), whole stages
    /// (stage) or each layer (layer). auto takes the best of these
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = or_auto::<Recompute>())]
    pub recompute: OrAuto<Recompute>,

    /// The type of the elements of gradient accumulators, which popliner adds if the profile was
    /// recorded without them. It is best to record training with gradient accumulation of 2 or
    /// more and without recomputation: then the profile itself has all accumulators and
    /// activations
    #[arg(long, value_name = "ELEMENTS", default_value = "as-weight")]
    pub accumulator: Accumulator,

    /// Where the optimizer state is kept between two updates: on the chip, in memory outside the
    /// IPUs (off-chip), sharded over replicas, or both. auto tries on-chip, off-chip, sharded and
    /// sharded-off-chip in this order, and takes the first with which the model fits; with
    /// --streaming-bandwidth, the faster one of on-chip and off-chip. Without --replicas, sharded
    /// tries 2 and 4 replicas, as far as there are IPUs
    #[arg(long, value_name = "STATE", default_value = "auto",
          value_parser = or_auto::<StatePlace>())]
    pub optimizer_state: OrAuto<StatePlace>,

    /// The available memory proportion that the profile was compiled with. VALUE=PROFILE, which may
    /// be given several times, is a profile of the same model with another proportion: a folder, a
    /// profile.pop, or a saved model. Each stage then has the proportion that is best for it
    #[arg(long, value_name = "VALUE[=PROFILE]",
          value_parser = of_profile(0.0..=1.0, ["a proportion", "VALUE", "0.6"]))]
    pub amp: Vec<OfProfile<f64>>,
}

/// Options for the predicted time of a step, such as the number of micro-batches.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Micro-batches in a step: gradient accumulation in training. A profile does not record this
    /// number; without the option, popliner assumes 128
    #[arg(long, value_name = "G", value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub micro_batches: Option<u64>,

    /// Samples in a micro-batch of the profile, from which popliner computes samples a second.
    /// SIZE=PROFILE, which may be given several times, is a profile of the same model with another
    /// size: a folder, a profile.pop, or a saved model. The answer then has the size that fits with
    /// the most samples a second; a step has the same number of samples with each size
    #[arg(long, value_name = "SIZE[=PROFILE]",
          value_parser = of_profile(1..=MAX_BATCHES, ["a number of samples", "SIZE", "4"]))]
    pub micro_batch: Vec<OfProfile<u64>>,

    /// How many replicas of the pipeline run side by side, each on its part of the IPUs. Samples a
    /// second are those of all replicas, and sharded optimizer state is divided among them
    #[arg(long, value_name = "R", default_value = "1",
          value_parser = value_parser!(u64).range(1..=MAX_BATCHES))]
    pub replicas: u64,

    /// GB (1,000,000,000 bytes) that an IPU sends to another IPU in a second, and receives from
    /// it
    #[arg(long, value_name = "GB", default_value = "29", value_parser = bandwidth)]
    pub ipu_link_bandwidth: u64,

    /// Speed of memory outside the IPUs for one IPU, in GB (10^9 bytes) a second in each direction.
    /// There is no usual number: without it, popliner prints the bytes but no time for them
    #[arg(long, value_name = "GB", value_parser = bandwidth)]
    pub streaming_bandwidth: Option<u64>,
}
