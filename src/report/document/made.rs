//! From what a report was made, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// From what a report was made, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    /// The version of the tool.
    pub popliner: String,
    /// The arguments of the run, without the name of the command.
    pub arguments: Vec<String>,
    /// The files that were read.
    pub files: Files,
    /// The memory model: `full` or `classic`.
    pub memory_model: String,
    /// The machine that the model was compiled for.
    pub target: TargetFacts,
    /// The version of Poplar that compiled the model, when it is known.
    pub poplar: Option<String>,
    /// When the model was compiled, as the profile writes it, when it is known.
    pub compiled: Option<String>,
    /// Options of the compilation that are not their defaults; `null` when the
    /// profile does not say.
    pub options: Option<Vec<BuildOption>>,
    /// `framework.json`, where it stands beside the profile.
    pub framework: Option<Value>,
    /// `app.json`, where it stands beside the profile.
    pub app: Option<Value>,
}

/// The files that were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// The profile, or the saved model.
    pub profile: String,
    /// The debug contexts; `null` for a saved model, which holds them.
    pub debug: Option<String>,
    /// Was it a saved model?
    pub saved_model: bool,
}

/// The machine that the model was compiled for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Poplar's name of the hardware, such as `ipu2`.
    pub architecture: String,
    /// How many tiles it has.
    pub tiles: u32,
    /// Memory of each tile.
    pub bytes_per_tile: u64,
    /// Cycles in a second, when that is known.
    pub clock_hz: Option<u64>,
}

/// An option that is not its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildOption {
    /// What it belongs to: `compilation` or `target`.
    pub of: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}
