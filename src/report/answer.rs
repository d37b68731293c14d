//! The answer of a search or the reason why there is none, the comparison of a given split with the
//! best one, and the best split for each number of IPUs.

use super::LiveVariable;
use crate::memory::{Recompute, Schedule};
use crate::search::Advice;
use crate::solve::{BottleneckProof, Cause, ObjectiveProof};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of layers; `None` for the first position of the layer order.
pub type LayerNames = Vec<Option<String>>;

/// The proof that the split is the best.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The requested objective: `peak`, `fewest`, `communication`, `cycles` or `time`.
    pub objective: String,
    /// Is no split better by the objective? If true, the integer program was solved to optimality
    /// and the dynamic program agrees in every number; for `time`, every split that could be faster
    /// was tried. A search without proof, or a given split, has `false` and no numbers.
    pub optimal: bool,
    /// For `time`, a lower bound on the cycles of a step of any split that fits; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_at_least: Option<u64>,
    /// What was proved about each number by which splits are compared, the most important first. If
    /// the fastest split was searched for (`time`), there is one entry: the fewest possible cycles of
    /// the slowest stage.
    pub objectives: Vec<ObjectiveProof>,
    /// Ranges of layers that prove that the highest number of any stage cannot be lower.
    pub bottlenecks: Vec<BottleneckProof>,
}

/// Why there is no split that fits, and what would help.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The reason why there is no split.
    pub reason: Cause,
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// Ranges of layers that are each over the limit and meet only at their end layers. Each range
    /// needs a cut of its own.
    pub ranges: Vec<OverLimit>,
    /// Layers after which a cut is required. These cuts count in the proof.
    pub cuts_after: LayerNames,
    /// Lower bound on stages, as the ranges prove. `null` if no number is enough.
    pub stages_needed: Option<u32>,
    /// The lowest limit of a stage on each tile, in bytes, with which a split fits on the given
    /// IPUs. The reserve is not included.
    pub smallest_limit: Option<u64>,
    /// The lowest `--mem-per-tile` with which a split fits, in bytes: `smallest_limit` and the
    /// reserve.
    pub smallest_tile_memory: Option<u64>,
    /// The fewest IPUs on which a split fits; `null` if no number is enough.
    pub fewest_ipus: Option<u32>,
    /// The best split on the fewest IPUs that are enough and that the framework accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_more_ipus: Option<OtherSplit>,
    /// Constraints and tied weights that keep layers together that are too large as one stage.
    pub kept_together: Vec<String>,
    /// Splits that fit without some constraints or with some weights untied; empty if no such split
    /// fits, or if there are neither constraints nor tied weights.
    pub relaxations: Vec<RelaxationFacts>,
    /// The stage that lacks the most memory, and changes that would free memory there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<AdviceFacts>,
}

/// The best split with changed options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherSplit {
    /// The changed options, as typed.
    pub options: String,
    /// Does it fit?
    pub fits: bool,
    /// Bytes on the fullest tile of any stage of the best split with these options.
    pub fullest_tile_bytes: u64,
    /// The difference in bytes from the current options, below 0 for less.
    pub change: i64,
    /// The layers of each stage of that split.
    pub stages: Vec<LayerNames>,
    /// The time of a step of that split, in milliseconds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The micro-batches of that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<u64>,
    /// Bytes that the step loads from outside the IPUs and stores there, whose time is not in
    /// `milliseconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed_bytes: Option<u64>,
}

/// Changes that would free memory, and the place that lacks the most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceFacts {
    /// The layers of the stage that is furthest over its limit, or one layer that is too large by
    /// itself.
    pub layers: LayerNames,
    /// The fullest tile of the layers.
    pub tile: u32,
    /// Bytes of the layers on `tile`.
    pub bytes: u64,
    /// The largest variables that are live on `tile` at its peak; empty if their names are unknown,
    /// such as for a saved model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<LiveVariable>,
    /// The changes, the most certain first.
    pub changes: Vec<Advice>,
}

/// Constraints and tied weights that prevent every split, and the best split without them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelaxationFacts {
    /// The constraints, as the user gave them.
    pub constraints: Vec<String>,
    /// The names of the tied weights.
    pub weights: Vec<String>,
    /// The layers of each stage of the best split without them.
    pub stages: Vec<LayerNames>,
}

/// Layers that are over the limit together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverLimit {
    /// The layers, in order.
    pub layers: LayerNames,
    /// Their fullest tile as one stage; the first one of a tie.
    pub tile: u32,
    /// The first step at which variables take the most on `tile`; `null` if the layers have no
    /// steps.
    pub step: Option<u32>,
    /// Bytes on `tile`.
    pub bytes: u64,
}

/// Comparison of a given split with the best one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenSplit {
    /// Broken constraints, as the user gave them, and broken ties of weights.
    pub broken_constraints: Vec<String>,
    /// Does the best split fit?
    pub best_fits: bool,
    /// The layers of each stage of the best split.
    pub best_stages: Vec<LayerNames>,
    /// The best split's bytes on the fullest tile of any stage.
    pub best_fullest_tile_bytes: u64,
    /// The best split's bytes over all cuts.
    pub best_cut_bytes: u64,
    /// Cycles of the best split's slowest stage; `null` without cycles.
    pub best_slowest_stage_cycles: Option<u64>,
    /// The time of a step of the best split, in milliseconds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_milliseconds: Option<f64>,
}

/// A weight that several layers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TiedWeightFacts {
    /// The name of the weight.
    pub weight: String,
    /// Bytes of the weight over all tiles.
    pub bytes: u64,
    /// The layers that use the weight, in order, `null` for In.
    pub layers: LayerNames,
    /// Was the weight untied with `--untie`? Otherwise a split has it on one IPU.
    pub untied: bool,
    /// The stages of the split that use the weight; empty without a split. There are several if the
    /// weight is untied, the search ignores ties, or the split was given.
    pub stages: Vec<u32>,
}

/// Layers that use the same always-live variables, such as constants and untied weights. Each stage
/// with one of these layers needs a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedVariables {
    /// The layers, in order.
    pub layers: LayerNames,
    /// Bytes of the variables, over all tiles.
    pub bytes: u64,
}

/// The best split for each number of IPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// One row for each number of IPUs, ascending.
    pub rows: Vec<SweepRow>,
}

/// The best split into at most `ipus` stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// The number of IPUs.
    pub ipus: u32,
    /// The schedule; absent if it was not left open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The activations that are recomputed; absent if the schedule was not left open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute: Option<Recompute>,
    /// Does it fit?
    pub fits: bool,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The limit less `fullest_tile_bytes`; below 0 if the split does not fit.
    pub free: i64,
    /// Bytes over all cuts.
    pub cut_bytes: u64,
    /// Cycles of the slowest stage for a micro-batch; `null` without cycles.
    pub slowest_stage_cycles: Option<u64>,
    /// Cycles of a step; absent without cycles, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_cycles: Option<u64>,
    /// The micro-batches of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<u64>,
    /// The time of the step, in milliseconds; absent if the clock is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// Bytes on the fullest tile of each stage; empty in reports of earlier versions.
    #[serde(default)]
    pub stage_bytes: Vec<u64>,
    /// The layers of each stage.
    pub stages: Vec<LayerNames>,
    /// Why this number is practical, such as `one machine`, or how many IPUs stay empty.
    pub hint: Option<String>,
}
