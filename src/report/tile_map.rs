//! The contents of each tile. The page of `--export-html` draws them, and shows one tile at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bytes on each tile, by category and by variable, for a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileMap {
    /// The categories that have bytes, those with most first.
    pub categories: Vec<TileCategory>,
    /// How many more categories have bytes: those with fewest are left out where there
    /// would be too many numbers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// The largest variables of each tile; absent where the names of variables cannot
    /// be looked up, as those of a saved model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<TileVariables>,
}

/// The recorded bytes of one category (`memory_by_category`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileCategory {
    /// The name that the profile has for it, such as `vertexCode`.
    pub name: String,
    /// By tile: bytes of all its variables.
    pub bytes: Vec<u64>,
    /// By tile: those of them at addresses that several variables share, each at steps
    /// of its own; empty where no tile has any. The other bytes of all categories are no
    /// more than what a tile has in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlapped: Vec<u64>,
}

/// The largest variables of tiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileVariables {
    /// How many of a tile are listed at most.
    pub most: u32,
    /// The tiles whose variables are listed, the fullest first: all tiles, or as many as
    /// there is room for.
    pub tiles: Vec<u32>,
    /// The names of the variables: several tiles have variables of one name.
    pub kinds: Vec<VariableKind>,
    /// By tile of `tiles`: its largest variables, the largest first and equal ones in the
    /// order of the profile, each as its place in `kinds` and its bytes.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// Variables that differ in their tile and bytes only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VariableKind {
    /// The name, such as `weights#0`.
    pub name: String,
    /// The name of the category, such as `variable`.
    pub category: String,
    /// Live on every step?
    pub always_live: bool,
}

/// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
