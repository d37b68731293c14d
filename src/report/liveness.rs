//! Live bytes over the steps of the program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory of the whole model over the steps of the program: all lowered
/// variables, whichever operations use them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// How many liveness steps the program has.
    pub steps: u32,
    /// The first step of the backward pass; `null` for inference.
    pub turn: Option<u32>,
    /// Summed over all tiles.
    pub all_tiles: Curve,
    /// The tile that the compiler recorded most bytes for.
    pub fullest_tile: u32,
    /// Its bytes.
    pub fullest_tile_curve: Curve,
    /// Which steps belong to which layer, in the order of the steps; steps
    /// between bands belong to none.
    pub bands: Vec<Band>,
    /// The largest variables at a peak; `null` when their names are not known.
    pub peak_variables: Option<PeakVariables>,
}

/// Bytes step by step. The bytes at a step are `fixed` + `always_live` + the
/// entry of `bytes` that holds there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The first step that counts.
    pub first_step: u32,
    /// The last step that counts, inclusive.
    pub last_step: u32,
    /// Bytes that do not change with the step: code, state, and memory that no
    /// variable explains.
    pub fixed: u64,
    /// Variables that are live on every step.
    pub always_live: u64,
    /// The highest point.
    pub peak: Peak,
    /// The steps of `bytes`, ascending: each entry holds up to the next.
    pub steps: Vec<u32>,
    /// Bytes of the variables that are not always live, as many entries as
    /// `steps`.
    pub bytes: Vec<u64>,
    /// Were points left out? Those that stay are the first, last, lowest and
    /// highest of equal stretches of steps, so no peak is lost.
    pub thinned: bool,
}

/// The highest point of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// The step; the first of several.
    pub step: u32,
    /// All bytes there: fixed, always live, and the others.
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
    /// How many lowered variables are live there.
    pub count: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// Their bytes by category, most bytes first; empty in a saved model.
    pub categories: Vec<CategorySum>,
    /// The largest of them, the largest first.
    pub largest: Vec<LiveVariable>,
}

/// One lowered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveVariable {
    /// Its name, such as `weights#0`.
    pub name: String,
    /// The name of its category, such as `variable`.
    pub category: String,
    /// Its size.
    pub bytes: u64,
    /// The layers that it counts in, in order; empty when no layer uses it.
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
