//! Live bytes over the steps of the program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory of the whole model over the steps of the program: all lowered variables, with or
/// without an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// Number of liveness steps of the program.
    pub steps: u32,
    /// The first step of the backward pass; `null` for inference.
    pub turn: Option<u32>,
    /// Bytes summed over all tiles.
    pub all_tiles: Curve,
    /// The tile with the most recorded bytes.
    pub fullest_tile: u32,
    /// Bytes on the fullest tile.
    pub fullest_tile_curve: Curve,
    /// The steps of each layer, in the order of the steps; steps between bands belong to no layer.
    pub bands: Vec<Band>,
    /// The largest variables at a peak; `null` if their names are unknown.
    pub peak_variables: Option<PeakVariables>,
}

/// Bytes step by step. The bytes at a step are `fixed` + `always_live` + the entry of `bytes` for
/// that step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The first step of the curve.
    pub first_step: u32,
    /// The last step of the curve, inclusive.
    pub last_step: u32,
    /// Bytes besides variables, equal at all steps: code, vertex state, gaps, and a stage's stash and
    /// accumulators.
    pub fixed: u64,
    /// Bytes of variables that are live on every step.
    pub always_live: u64,
    /// The highest point.
    pub peak: Peak,
    /// The steps of `bytes`, ascending. Each entry holds until the next one.
    pub steps: Vec<u32>,
    /// Bytes of the variables that are not always live, one entry for each entry of `steps`.
    pub bytes: Vec<u64>,
    /// Were points left out? Of equal ranges of points, the first, last, lowest and highest ones
    /// stay, so no peak is lost.
    pub thinned: bool,
}

/// The highest point of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// The step; the first one of a tie.
    pub step: u32,
    /// All bytes at that step: fixed, always live, and the others.
    pub bytes: u64,
}

/// Steps that belong to one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Band {
    /// The layer.
    pub layer: Option<String>,
    /// The first step.
    pub from: u32,
    /// The last step, inclusive.
    pub to: u32,
}

/// The variables that are live on a tile at a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeakVariables {
    /// The tile.
    pub tile: u32,
    /// The step.
    pub step: u32,
    /// Number of lowered variables that are live.
    pub count: u64,
    /// Bytes of all live variables.
    pub bytes: u64,
    /// Bytes by category, most bytes first; empty for a saved model.
    pub categories: Vec<CategorySum>,
    /// The largest variables, the largest first.
    pub largest: Vec<LiveVariable>,
}

/// One lowered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveVariable {
    /// The variable's name, such as `weights#0`.
    pub name: String,
    /// The name of the variable's category, such as `variable`.
    pub category: String,
    /// The variable's size.
    pub bytes: u64,
    /// The layers that the variable is assigned to, in order; empty if no layer uses it.
    pub layers: Vec<Option<String>>,
}

/// The bytes of one category of lowered variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategorySum {
    /// The name of the category, such as `variable`.
    pub name: String,
    /// Bytes of its variables.
    pub bytes: u64,
}
