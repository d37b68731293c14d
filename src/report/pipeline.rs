//! The pipeline of the stages, and the memory that other pipelines would need.

use super::{LayerNames, OtherSplit};
use crate::memory::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::Framework;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pipeline, what it was chosen by, and what others would need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineFacts {
    /// The order in which stages work on micro-batches; `none` takes them as
    /// parts of the one-IPU compilation.
    pub schedule: Schedule,
    /// The activations that are recomputed in the backward pass.
    pub recompute: Recompute,
    /// The elements of what sums up gradients.
    pub accumulator: Accumulator,
    /// Where the state of the optimizer is between two updates.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: StatePlace,
    /// How many replicas there are where the state is not on the chip; else absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replicas: u64,
    /// Was the place of the state chosen as the first where the model fits?
    #[serde(default, skip_serializing_if = "is_default")]
    pub state_is_first_fit: bool,
    /// Bytes of the state that is not on the chip, over all tiles of all stages, without what
    /// replicas share; absent where all is on the chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_bytes: Option<u64>,
    /// Was the profile recorded with tensors that are loaded from outside the IPUs, as state of
    /// the optimizer is? Then it has them only while they are used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recorded_state_off_chip: bool,
    /// Was it recorded with tensors that are gathered from several replicas?
    #[serde(default, skip_serializing_if = "is_default")]
    pub recorded_state_sharded: bool,
    /// Was the schedule left open, and chosen among those of the framework?
    pub schedule_by_default: bool,
    /// Was the recomputation left open, and chosen with it?
    pub recompute_by_default: bool,
    /// The framework of the model.
    pub framework: Framework,
    /// Has the profile a backward pass?
    pub is_training: bool,
    /// Was it recorded with gradient accumulation? Else accumulators are added
    /// for the weights that are updated.
    pub recorded_accumulation: bool,
    /// Was it recorded with recomputation? Then it has only what that keeps.
    pub recorded_recomputation: bool,
    /// Bytes on the fullest tile of this split if nothing were computed again;
    /// `null` where nothing is.
    pub without_recomputation: Option<u64>,
    /// The best splits in other pipelines, in the order in which a user would try
    /// them; empty where that was not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<PipelineAlternative>,
}

impl PipelineFacts {
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

/// The best split in another pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineAlternative {
    /// Its schedule.
    pub schedule: Schedule,
    /// Its recomputation.
    pub recompute: Recompute,
    /// Where the state of the optimizer is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: StatePlace,
    /// The split.
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

/// One stage in a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePipeline {
    /// How many forward pipeline stages come after it.
    pub depth: u32,
    /// How many more copies it keeps of what it stashes.
    pub copies: u64,
    /// Bytes on its fullest tile when the compiler restores what it stashed as late
    /// as it can; `null` where that makes no difference.
    pub late_restores: Option<u64>,
    /// The largest variables that it stashes on its fullest tile: bytes of one
    /// copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stashed: Vec<StashedVariable>,
    /// The update, where the state of the optimizer is not on the chip in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<StageUpdate>,
}

/// The bytes of a stage in the update of the weight that takes the most, on the tile where that
/// is most in all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageUpdate {
    /// The tile.
    pub tile: u32,
    /// All its bytes then, with landing pads for all state of the weight.
    pub bytes: u64,
    /// Its bytes with a pad for one tensor of state at a time, which may be enough for the
    /// compiler.
    pub at_least: u64,
    /// The bytes on the fullest tile in the passes, without the state.
    pub in_passes: u64,
    /// The part of `bytes` that is there for this update: state that is loaded, pads, what is gathered
    /// and what the update makes.
    pub taken: u64,
    /// The weights that it updates, as far as they have names.
    pub weights: Vec<String>,
    /// Does the update take more than the passes?
    pub decides: bool,
}

/// A variable of which a stage keeps copies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StashedVariable {
    /// Its name.
    pub name: String,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The layers that use it.
    pub layers: LayerNames,
}
