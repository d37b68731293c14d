//! Variables that are live at chosen steps on the fullest tile and on other tiles, for a page in
//! which the reader goes from step to step.

use super::LayerNames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variables of tiles at chosen steps. Lists are by chosen step unless they say
/// otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSteps {
    /// The chosen steps, ascending: peaks, where layers and stages begin and end, where
    /// the backward pass begins, and the highest and lowest points between.
    pub steps: Vec<u32>,
    /// The programs that run, such as `OnTileExecute encoder/3/MatMul`.
    pub programs: Vec<String>,
    /// The operation that it belongs to; `null` for none, and the first one where
    /// outlined code belongs to several.
    pub operations: Vec<Option<String>>,
    /// Over all tiles, bytes of the variables that are live at the step but not always.
    pub not_always_live: Vec<u64>,
    /// The fullest tile.
    #[serde(flatten)]
    pub fullest: TileAtSteps,
    /// The fullest tile of each stage, as far as there is room, or the next fullest ones of
    /// the whole model; each once, and without the fullest of all. Of each at most as many of
    /// its largest variables as there is room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<TileAtSteps>,
}

/// The variables of one tile at the chosen steps. Lists are by chosen step unless they say
/// otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileAtSteps {
    /// The tile.
    pub tile: u32,
    /// How many lowered variables of the tile are live.
    pub counts: Vec<u64>,
    /// Their bytes, those of code among them.
    pub bytes: Vec<u64>,
    /// Bytes of all variables of the tile that are live on every step.
    pub always_live: u64,
    /// The bytes by category, most bytes first.
    pub categories: Vec<CategoryAtSteps>,
    /// The bytes by layer, in the order of the report's layers. What several layers use
    /// counts in each. Empty where that would be too many numbers.
    pub layers: Vec<LayerAtSteps>,
    /// Bytes of the variables that count in no layer, but in every stage.
    pub in_every_stage: Vec<u64>,
    /// Of each step the 20 largest variables are among these, and the 10 largest of
    /// each layer: the largest first.
    pub variables: Vec<VariableAtSteps>,
}

/// One category of lowered variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryAtSteps {
    /// Its name, such as `variable`.
    pub name: String,
    /// By chosen step: bytes that are live.
    pub bytes: Vec<u64>,
}

/// One layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerAtSteps {
    /// Its name.
    pub name: Option<String>,
    /// By chosen step: bytes that are live.
    pub bytes: Vec<u64>,
}

/// One lowered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariableAtSteps {
    /// Its name, such as `weights#0`.
    pub name: String,
    /// Its category.
    pub category: String,
    /// Its size.
    pub bytes: u64,
    /// The layers that it counts in, in order; empty when it counts in every stage.
    pub layers: LayerNames,
    /// Is it live on every step of the program?
    pub is_always_live: bool,
    /// From which to which of the chosen steps it is live, both inclusive, ascending.
    /// Between chosen steps it need not be.
    pub live: Vec<(u32, u32)>,
}
