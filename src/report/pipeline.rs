//! The pipeline of the stages, and the memory that other pipelines would need.

use super::{LayerNames, OtherSplit};
use crate::memory::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::Framework;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pipeline, why it was chosen, and the splits that other pipelines would need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineFacts {
    /// The order in which stages work on micro-batches. With `none`, stages are parts of the
    /// one-IPU compilation.
    pub schedule: Schedule,
    /// The activations that are recomputed in the backward pass.
    pub recompute: Recompute,
    /// The type of the elements of accumulators.
    pub accumulator: Accumulator,
    /// The place of optimizer state between two updates.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: StatePlace,
    /// Number of replicas if the state is not on the chip; otherwise absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replicas: u64,
    /// Is the place of the state the first one in which the model fits?
    #[serde(default, skip_serializing_if = "is_default")]
    pub state_is_first_fit: bool,
    /// Bytes of the state that is not on the chip, over all tiles of all stages, before it is
    /// divided among replicas; absent if all state is on the chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_bytes: Option<u64>,
    /// Was the profile recorded with tensors that are loaded from outside the IPUs, such as
    /// optimizer state? Then it has these tensors only while they are used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recorded_state_off_chip: bool,
    /// Was the profile recorded with tensors that are gathered from several replicas?
    #[serde(default, skip_serializing_if = "is_default")]
    pub recorded_state_sharded: bool,
    /// Was the schedule left open, and chosen among the framework's schedules?
    pub schedule_by_default: bool,
    /// Was the recomputation left open, and chosen with the schedule?
    pub recompute_by_default: bool,
    /// The framework of the model.
    pub framework: Framework,
    /// Does the profile have a backward pass?
    pub is_training: bool,
    /// Was the profile recorded with gradient accumulation? Otherwise accumulators are added for
    /// the updated weights.
    pub recorded_accumulation: bool,
    /// Was the profile recorded with recomputation? Then it has only the activations that are kept.
    pub recorded_recomputation: bool,
    /// Bytes on the fullest tile of this split without recomputation; `null` if nothing is
    /// recomputed.
    pub without_recomputation: Option<u64>,
    /// The best splits in other pipelines, in the order in which a user would try them; empty if
    /// they were not searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<PipelineAlternative>,
}

impl PipelineFacts {
    /// Returns the best splits in other pipelines.
    pub fn other_splits(&self) -> impl Iterator<Item = &OtherSplit> {
        self.alternatives.iter().map(|other| &other.split)
    }

    /// Returns the options that request the schedule and the recomputation, if the tool chose them.
    pub fn chosen_options(&self) -> Vec<String> {
        let schedule = self.schedule_by_default && self.schedule != Schedule::None;
        let recompute = self.recompute_by_default && self.schedule != Schedule::None;
        let schedule = schedule.then(|| format!("--schedule={}", self.schedule));
        let recompute = recompute.then(|| format!("--recompute={}", self.recompute));
        schedule.into_iter().chain(recompute).collect()
    }
}

/// Is the value a default, which JSON leaves out?
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The best split in a pipeline with another schedule, recomputation or place of the optimizer
/// state, for comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineAlternative {
    /// The pipeline's schedule.
    pub schedule: Schedule,
    /// The pipeline's recomputation.
    pub recompute: Recompute,
    /// The place of optimizer state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: StatePlace,
    /// The best split in this pipeline.
    #[serde(flatten)]
    pub split: OtherSplit,
}

impl PipelineFacts {
    /// Returns the pipeline itself.
    pub(super) fn pipeline(&self) -> Pipeline {
        Pipeline {
            schedule: self.schedule,
            recompute: self.recompute,
            accumulator: self.accumulator,
            state: self.state,
            replicas: self.replicas,
        }
    }

    /// Does the pipeline train the model?
    pub(super) fn trains(&self) -> bool {
        self.is_training && self.pipeline().is_on()
    }
}

/// A stage of the split in the pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePipeline {
    /// Number of forward pipeline stages after the stage.
    pub depth: u32,
    /// Number of additional copies of the stash.
    pub copies: u64,
    /// Bytes on the stage's fullest tile if the compiler restores stashed tensors as late as
    /// possible; `null` if that makes no difference.
    pub late_restores: Option<u64>,
    /// The largest variables that the stage stashes on its fullest tile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stashed: Vec<StashedVariable>,
    /// The weight update, if optimizer state is not on the chip between updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<StageUpdate>,
}

/// The bytes of a stage during the update of the weight that takes the most, on the tile with the
/// most bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageUpdate {
    /// The tile.
    pub tile: u32,
    /// All bytes on `tile` during the update, with landing pads for all state of the weight.
    pub bytes: u64,
    /// Bytes on `tile` with a pad for one tensor of state at a time, which may be enough for the
    /// compiler.
    pub at_least: u64,
    /// Bytes on the fullest tile in the forward and backward passes, without the state.
    pub in_passes: u64,
    /// The part of `bytes` that only this update needs: loaded state, landing pads, gathered
    /// tensors, and the update's own tensors.
    pub taken: u64,
    /// The updated weights, as far as they have names.
    pub weights: Vec<String>,
    /// Does the update of the weights need more bytes on the fullest tile than the passes? The
    /// stage's peak is then in the update.
    pub decides: bool,
}

/// A variable that a stage copies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StashedVariable {
    /// Its name.
    pub name: String,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The layers that use it.
    pub layers: LayerNames,
}
