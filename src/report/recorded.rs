//! Recorded memory and cycles, the contents of each tile, and the memory of single layers.

use super::CoverageFacts;
use crate::memory::Parts;
use crate::model::PassCycles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory that the compiler recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedMemory {
    /// Bytes that a stage may take on each tile: the target's memory or `--mem-per-tile`, less the
    /// reserve.
    pub limit: u64,
    /// Totals by tile; `null` if the profile does not record them.
    pub tiles: Option<TileTotals>,
    /// Bytes by category, in the order of the profile; empty if it has none.
    pub categories: Vec<CategoryBytes>,
    /// How much of the fullest tile the model explains; `null` if nothing was recorded.
    pub coverage: Option<CoverageFacts>,
    /// The bytes on each tile, if a page was requested and bytes of tiles were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tile_map: Option<TileMap>,
}

/// The bytes that the compiler counted on each tile (`memory_by_tile`). Lists have one entry for
/// each tile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileTotals {
    /// The fullest tile; the first one of a tie.
    pub fullest: u32,
    /// Distinct bytes in use, without gaps.
    pub total: Vec<u64>,
    /// Bytes in use with the gaps between variables; `null` if unknown.
    pub with_gaps: Option<Vec<u64>>,
    /// Bytes of variables that are live on every step.
    pub always_live: Vec<u64>,
    /// The highest bytes of other variables at one step.
    pub not_always_live: Vec<u64>,
}

/// The recorded bytes of one category of lowered variables. Variables that share memory at
/// different steps all count, so the categories of a tile can add up to more than its total.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryBytes {
    /// The category's name in the profile, such as `vertexCode`.
    pub name: String,
    /// Bytes over all tiles.
    pub all_tiles: u64,
    /// Bytes on the fullest tile by recorded totals; `null` if these are unknown.
    pub fullest_tile: Option<u64>,
}

/// The bytes on each tile, by category and by variable, for a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileMap {
    /// The categories that have bytes, most bytes first.
    pub categories: Vec<TileCategory>,
    /// Number of other categories with bytes. The smallest ones are left out if there would be too
    /// many numbers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// The largest variables of each tile; absent if names of variables cannot be looked up, such
    /// as for a saved model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<TileVariables>,
}

/// The recorded bytes of one category (`memory_by_category`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileCategory {
    /// The category's name in the profile, such as `vertexCode`.
    pub name: String,
    /// Bytes of all variables of the category, by tile.
    pub bytes: Vec<u64>,
    /// The part of `bytes` at addresses that several variables share, each at other steps; empty if
    /// no tile has any. The other bytes of all categories are at most the bytes in use on a tile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlapped: Vec<u64>,
}

/// The largest variables of tiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileVariables {
    /// Upper bound on variables listed for a tile.
    pub most: u32,
    /// The tiles whose variables are listed, the fullest first: all tiles, or as many as there is
    /// room for.
    pub tiles: Vec<u32>,
    /// The names and categories of the variables. Several tiles can have variables of one name.
    pub kinds: Vec<VariableKind>,
    /// For each tile of `tiles`, its largest variables, the largest first and equal ones in the
    /// order of the profile, each as an index of `kinds` and its bytes.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// The facts that variables on several tiles share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VariableKind {
    /// The name, such as `weights#0`.
    pub name: String,
    /// The name of the category, such as `variable`.
    pub category: String,
    /// Is the variable live on every step?
    pub always_live: bool,
}

/// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The memory of one layer as a stage of its own, without the memory that every stage needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerMemory {
    /// The layer's name; `null` for the first position.
    pub name: Option<String>,
    /// Bytes summed over all tiles, each tile at its own peak.
    pub total: u64,
    /// The bytes by kind of contents.
    pub parts: Parts,
    /// The layer's fullest tile; the first one of a tie.
    pub fullest_tile: u32,
    /// Bytes on the fullest tile.
    pub fullest_tile_bytes: u64,
    /// The path of the layer's module, as the framework writes it; `null` if unknown.
    pub module: Option<String>,
}

/// Cycles of layers and stages, as far as the profile has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Where the cycles come from.
    pub source: ExecutionSource,
    /// Cycles of everything, each run once.
    pub total: u64,
    /// Cycles by layer, in the order of the report's layers.
    pub layers: Vec<LayerCycles>,
    /// Cycles by stage; empty without a split.
    pub stages: Vec<StageCycles>,
    /// Cycles of compute sets and exchanges that are assigned to no layer.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges between tiles take.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow; 0 for estimates. All layers,
    /// `unplaced` and `other` add up to `total`.
    pub other: u64,
}

/// Where cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionSource {
    /// Measured steps of a run.
    ExecutedSteps,
    /// Estimates of the compiler.
    CompileTimeEstimates,
}

/// The cycles of one layer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCycles {
    /// The layer.
    pub name: Option<String>,
    /// Cycles of the layer.
    pub cycles: u64,
    /// The time of the cycles, in milliseconds; absent if the profile lacks the target's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The part of `cycles` that exchanges between tiles take; compute sets take the rest.
    pub exchange: u64,
    /// The layer's cycles by pass.
    pub passes: PassCycles,
}

/// The cycles of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCycles {
    /// The stage.
    pub stage: u32,
    /// Cycles of the stage's layers, each counted once.
    pub cycles: u64,
    /// Cycles of a micro-batch, with recomputation in the pipeline and without the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch_cycles: Option<u64>,
    /// The time of a micro-batch, in milliseconds; absent if the profile lacks the target's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch_milliseconds: Option<f64>,
    /// The part of `cycles` that exchanges between tiles take; compute sets take the rest.
    pub exchange: u64,
    /// The stage's cycles by pass; cycles of the update are for a step. Absent without a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassCycles>,
}
