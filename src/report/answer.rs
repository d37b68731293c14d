//! The answer of a search or the reason why there is none, the comparison of a given split with the
//! best one, and the best split for each number of IPUs.

use super::LiveVariable;
use crate::memory::{Recompute, Schedule};
use crate::search::Advice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of layers; `None` for the first position of the layer order.
pub type LayerNames = Vec<Option<String>>;

/// The proof that the split is the best.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The requested objective: `peak`, `fewest`, `communication`, `cycles` or `time`.
    pub objective: String,
    /// Is no split better by the objective? Then the integer program was solved to optimality,
    /// and the dynamic program agrees in every number; by time, no split was left untried that
    /// could be faster. A split of a search without proof, or one that was given, says `false`
    /// and has no numbers.
    pub optimal: bool,
    /// By time, the cycles that a step of any split that fits takes at least; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_at_least: Option<u64>,
    /// The numbers that splits are compared by, the first deciding first; by time only the
    /// cycles of the slowest stage, which no split can have fewer of.
    pub objectives: Vec<ProvenObjective>,
    /// The ranges which show that the highest number of any stage cannot be lower.
    pub bottlenecks: Vec<ProvenBottleneck>,
}

/// One number of the best split, by both programs. Numbers are decimal text,
/// since they can be beyond 64 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenObjective {
    /// The name of the number: `peak` (bytes on the fullest tile of any stage),
    /// `stages`, `squares` (the sum of the squared peaks of all stages),
    /// `cut_bytes` or `cycles` (of the slowest stage).
    pub objective: String,
    /// As the integer program found it.
    pub integer_program: String,
    /// As the dynamic program found it.
    pub dynamic_program: String,
}

/// The next lower number, at which there is no split.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenBottleneck {
    /// The name of the number: `peak` or `cycles`.
    pub objective: String,
    /// The highest number of any range of layers below the best, as decimal
    /// text.
    pub below: String,
    /// The fewest stages when no stage may have more than that: more than
    /// there are IPUs. `null` when no number of stages is enough.
    pub stages_needed: Option<u32>,
}

/// Why there is no split that fits, and what would help.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The reason why there is no split.
    pub reason: RefusalReason,
    /// Bytes that a stage may take on each tile: the maximum that any IPU
    /// allows.
    pub limit: u64,
    /// Ranges of layers, each alone over the limit, that meet only at their end
    /// layers. Each must be cut in a place of its own.
    pub ranges: Vec<OverLimit>,
    /// Layers after which a cut is required, which count as well.
    pub cuts_after: LayerNames,
    /// The number of stages that the ranges prove to be needed at least. `null`
    /// when no number is enough.
    pub stages_needed: Option<u32>,
    /// The fewest bytes for a stage on each tile with which a split fits on the
    /// IPUs given; the reserve comes on top.
    pub smallest_limit: Option<u64>,
    /// Those bytes with the reserve: what `--mem-per-tile` would have to be.
    pub smallest_tile_memory: Option<u64>,
    /// The fewest IPUs on which a split fits; `null` when no number is enough.
    pub fewest_ipus: Option<u32>,
    /// The best split on the fewest IPUs of those numbers that the framework takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_more_ipus: Option<OtherSplit>,
    /// Constraints and tied weights that keep layers together which are too large as
    /// one stage.
    pub kept_together: Vec<String>,
    /// Splits that would fit without some constraints or with some weights untied; empty
    /// when nothing would, or when there are neither constraints nor tied weights.
    pub relaxations: Vec<RelaxationFacts>,
    /// Where the most is lacking, and changes that would free memory there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<AdviceFacts>,
}

/// The best split with something changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherSplit {
    /// The options to type for it.
    pub options: String,
    /// Does it fit?
    pub fits: bool,
    /// Bytes on the fullest tile of any stage of its best split.
    pub fullest_tile_bytes: u64,
    /// The difference from now, below 0 where it is less.
    pub change: i64,
    /// The layers of each stage of that split.
    pub stages: Vec<LayerNames>,
    /// The time of a step of that split, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The micro-batches of that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<u64>,
    /// Bytes that it loads from outside the IPUs and stores there, whose time is not among
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed_bytes: Option<u64>,
}

/// The changes that would free memory, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceFacts {
    /// The layer that is too large alone or else those of the stage that is the furthest over
    /// its limit.
    pub layers: LayerNames,
    /// Their fullest tile.
    pub tile: u32,
    /// Their bytes on it.
    pub bytes: u64,
    /// The largest variables that are live there at the peak; none where names are not known,
    /// such as from a saved model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<LiveVariable>,
    /// The changes, the most certain first.
    pub changes: Vec<Advice>,
}

/// Constraints and tied weights that prevent every split, and the best split
/// without them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelaxationFacts {
    /// The constraints, as they were given.
    pub constraints: Vec<String>,
    /// The names of the weights.
    pub weights: Vec<String>,
    /// The layers of each stage of the best split without them.
    pub stages: Vec<LayerNames>,
}

/// The reason why there is no split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// A layer, or several that constraints or tied weights keep together, is
    /// alone over the limit.
    TooLarge,
    /// More IPUs are needed than there are.
    #[default]
    TooFewIpus,
    /// There are IPUs enough, but not with these pins and with the limits of
    /// single IPUs.
    PinsOrLimits,
    /// The least bytes of the stages would fit; what the pipeline keeps beside
    /// that does not.
    Pipeline,
}

/// Layers that are over the limit together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverLimit {
    /// The layers, in order.
    pub layers: LayerNames,
    /// Their fullest tile as one stage; the first of several.
    pub tile: u32,
    /// The first step at which the variables there are most; `null` when the
    /// layers have no steps.
    pub step: Option<u32>,
    /// Bytes there.
    pub bytes: u64,
}

/// How a split that was given compares with the best.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenSplit {
    /// Constraints that it breaks, as they were given, and ties of weights.
    pub broken_constraints: Vec<String>,
    /// Does the best split fit?
    pub best_fits: bool,
    /// The layers of each stage of the best split.
    pub best_stages: Vec<LayerNames>,
    /// The best split's bytes on the fullest tile of any stage.
    pub best_fullest_tile_bytes: u64,
    /// The best split's bytes over all cuts together.
    pub best_cut_bytes: u64,
    /// Cycles of the best split's slowest stage, when they are known.
    pub best_slowest_stage_cycles: Option<u64>,
    /// The time of a step of the best split, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_milliseconds: Option<f64>,
}

/// A weight that several layers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TiedWeightFacts {
    /// The name of the weight.
    pub weight: String,
    /// Its bytes over all tiles.
    pub bytes: u64,
    /// The layers that use it, in order, `null` for In.
    pub layers: LayerNames,
    /// Was it untied with `--untie`? Else a split has it on one IPU.
    pub untied: bool,
    /// The stages of the split that use it; empty without a split. Several when
    /// it is untied, and where a search knows nothing of tied weights or a
    /// split was given.
    pub stages: Vec<u32>,
}

/// Layers that use the same variables that are always live, such as constants
/// and untied weights. Each stage that has one of them needs a copy.
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

/// The best split into at most this number of stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// The number of IPUs.
    pub ipus: u32,
    /// The order of work, where the schedule was chosen; the recomputation with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The activations that are recomputed, where that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute: Option<Recompute>,
    /// Does it fit?
    pub fits: bool,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The limit less that; below 0 when it does not fit.
    pub free: i64,
    /// Bytes over all cuts together.
    pub cut_bytes: u64,
    /// Cycles of the slowest stage for a micro-batch, when they are known.
    pub slowest_stage_cycles: Option<u64>,
    /// Cycles of a step, when they are known; left out in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_cycles: Option<u64>,
    /// The micro-batches of that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<u64>,
    /// Milliseconds of the step, where the clock is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// Bytes on the fullest tile of each stage; empty in reports of earlier versions.
    #[serde(default)]
    pub stage_bytes: Vec<u64>,
    /// The layers of each stage.
    pub stages: Vec<LayerNames>,
    /// Why this number is a practical one, such as `one machine`.
    pub hint: Option<String>,
}
