//! Cycles of layers and stages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cycles of layers and stages, as far as the profile knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Where the cycles come from.
    pub source: ExecutionSource,
    /// Cycles of all that runs once, when they are known.
    pub total: Option<u64>,
    /// By layer, in the order of the report's layers.
    pub layers: Vec<LayerCycles>,
    /// By stage; empty without a split.
    pub stages: Vec<StageCycles>,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCycles {
    /// The layer.
    pub name: Option<String>,
    /// Its cycles.
    pub cycles: u64,
}

/// The cycles of one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageCycles {
    /// The stage.
    pub stage: u32,
    /// Its cycles.
    pub cycles: u64,
}
