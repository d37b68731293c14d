//! The best split for each number of IPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The best split for each number of IPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// One row for each number of IPUs, ascending.
    pub rows: Vec<SweepRow>,
}

/// The best split into at most so many stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// The number of IPUs.
    pub ipus: u32,
    /// Does it fit?
    pub fits: bool,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The limit less that; below 0 when it does not fit.
    pub free: i64,
    /// Bytes over all cuts together.
    pub cut_bytes: u64,
    /// Cycles of the slowest stage, when they are known.
    pub slowest_stage_cycles: Option<u64>,
    /// The layers of each stage.
    pub stages: Vec<Vec<Option<String>>>,
    /// Why this number is a practical one, such as `one machine`.
    pub hint: Option<String>,
}
