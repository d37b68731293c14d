//! The contents of each tile. The page of `--export-html` draws them, and shows one tile at a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
