//! Variables that are live at chosen steps on the fullest tile and on other tiles, for a page in
//! which the reader goes from step to step.

use super::LayerNames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variables of tiles at chosen steps. Unless stated otherwise, lists have an entry for each
/// chosen step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSteps {
    /// The chosen steps, ascending: peaks, ends of layers and stages, the start of the backward
    /// pass, and the highest and lowest points between.
    pub steps: Vec<u32>,
    /// The program at each step, such as `OnTileExecute encoder/3/MatMul`.
    pub programs: Vec<String>,
    /// The operation that the program belongs to; `null` for none. If outlined code belongs to
    /// several operations, the first one.
    pub operations: Vec<Option<String>>,
    /// Bytes of the variables that are live at the step but not always, over all tiles.
    pub not_always_live: Vec<u64>,
    /// The fullest tile.
    #[serde(flatten)]
    pub fullest: TileAtSteps,
    /// The fullest tile of each stage, as far as there is room, or the next fullest tiles of the
    /// whole model, without duplicates and without `fullest`. The number of listed variables of
    /// each is limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<TileAtSteps>,
}

/// The variables of one tile at the chosen steps. Unless stated otherwise, lists have an entry for
/// each chosen step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileAtSteps {
    /// The tile.
    pub tile: u32,
    /// Number of lowered variables that are live on the tile.
    pub counts: Vec<u64>,
    /// Bytes of the live variables, code included.
    pub bytes: Vec<u64>,
    /// Bytes of all variables of the tile that are live on every step; one number.
    pub always_live: u64,
    /// The bytes by category, most bytes first.
    pub categories: Vec<CategoryAtSteps>,
    /// The bytes by layer, in the order of the report's layers. Variables of several layers count
    /// in each. Empty if there would be too many numbers.
    pub layers: Vec<LayerAtSteps>,
    /// Bytes of the variables that are assigned to no layer, but to every stage.
    pub in_every_stage: Vec<u64>,
    /// The largest variables, the largest first: at least the 20 largest at each step and the 10
    /// largest of each layer.
    pub variables: Vec<VariableAtSteps>,
}

/// One category of lowered variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryAtSteps {
    /// Its name, such as `variable`.
    pub name: String,
    /// Live bytes at each chosen step.
    pub bytes: Vec<u64>,
}

/// One layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerAtSteps {
    /// The layer's name.
    pub name: Option<String>,
    /// Live bytes at each chosen step.
    pub bytes: Vec<u64>,
}

/// One lowered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariableAtSteps {
    /// The variable's name, such as `weights#0`.
    pub name: String,
    /// The name of the variable's category.
    pub category: String,
    /// The variable's size.
    pub bytes: u64,
    /// The layers that the variable is assigned to, in order; empty if it counts in every stage.
    pub layers: LayerNames,
    /// Is it live on every step of the program?
    pub is_always_live: bool,
    /// Ranges of chosen steps at which it is live, both ends inclusive, ascending. Between chosen
    /// steps it may be dead.
    pub live: Vec<(u32, u32)>,
}
