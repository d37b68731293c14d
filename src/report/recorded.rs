//! Recorded memory and cycles, and the memory of single layers.

use super::{CoverageFacts, TileMap};
use crate::memory::Parts;
use crate::model::PassCycles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory that the compiler recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedMemory {
    /// Bytes that a stage may take on each tile: the target's, or those of
    /// `--mem-per-tile`, less the reserve.
    pub limit: u64,
    /// By tile; `null` when the profile does not record it.
    pub tiles: Option<TileTotals>,
    /// By category, in the order of the profile; empty when it has none.
    pub categories: Vec<CategoryBytes>,
    /// How much of the fullest tile the model explains; `null` when nothing
    /// was recorded.
    pub coverage: Option<CoverageFacts>,
    /// The bytes on each tile, when a page was requested and the bytes of tiles were
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tile_map: Option<TileMap>,
}

/// The recorded bytes of each tile: lists with one entry for each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileTotals {
    /// The fullest tile; the first of several.
    pub fullest: u32,
    /// Distinct bytes in use, without gaps.
    pub total: Vec<u64>,
    /// Those bytes with the gaps between variables, when that is known.
    pub with_gaps: Option<Vec<u64>>,
    /// Variables that are live on every step.
    pub always_live: Vec<u64>,
    /// The maximum that other variables take at one step.
    pub not_always_live: Vec<u64>,
}

/// The recorded bytes of one category of lowered variables. Variables that
/// share memory at different steps all count, so the categories of a tile can
/// add up to more than its total.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryBytes {
    /// The name that the profile has for it, such as `vertexCode`.
    pub name: String,
    /// Over all tiles.
    pub all_tiles: u64,
    /// On the fullest tile of the recorded totals; `null` when these are not
    /// known.
    pub fullest_tile: Option<u64>,
}

/// One layer as if it stood alone, without what comes with every stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerMemory {
    /// Its name; `null` for the first position.
    pub name: Option<String>,
    /// All its bytes: the sum over all tiles, each at its own peak.
    pub total: u64,
    /// Its bytes by what they hold.
    pub parts: Parts,
    /// Its fullest tile; the first of several.
    pub fullest_tile: u32,
    /// Bytes there.
    pub fullest_tile_bytes: u64,
    /// The path of the module that it is, as the framework writes it; `null` where it is
    /// not known.
    pub module: Option<String>,
}

/// Cycles of layers and stages, as far as the profile knows them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Where the cycles come from.
    pub source: ExecutionSource,
    /// Cycles of all that runs once.
    pub total: u64,
    /// By layer, in the order of the report's layers.
    pub layers: Vec<LayerCycles>,
    /// By stage; empty without a split.
    pub stages: Vec<StageCycles>,
    /// Cycles of compute sets and exchanges that count in no layer.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges between tiles take.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow, 0 of estimates. All layers,
    /// `unplaced` and `other` together are `total`.
    pub other: u64,
}

/// Where cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionSource {
    /// Steps that were run and measured.
    ExecutedSteps,
    /// Estimates of the compiler.
    CompileTimeEstimates,
}

/// The cycles of one layer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCycles {
    /// The layer.
    pub name: Option<String>,
    /// Its cycles.
    pub cycles: u64,
    /// Their time, where the profile has the clock of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The part of them that exchanges between tiles take, the rest being of compute
    /// sets.
    pub exchange: u64,
    /// Its cycles by pass.
    pub passes: PassCycles,
}

/// The cycles of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCycles {
    /// The stage.
    pub stage: u32,
    /// All cycles of its layers, each once.
    pub cycles: u64,
    /// Its cycles for a micro-batch: with what the pipeline recomputes, and without the
    /// update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch_cycles: Option<u64>,
    /// Their time, where the profile has the clock of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch_milliseconds: Option<f64>,
    /// The part of them that exchanges between tiles take, the rest being of compute
    /// sets.
    pub exchange: u64,
    /// Its cycles by pass, those of the update in a step; left out without a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassCycles>,
}
