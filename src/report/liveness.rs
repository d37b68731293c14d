//! Defines what the report says about live bytes over the steps of the program: curves, which can
//! be thinned, and the variables that are live at peaks and at the steps that an HTML page shows.

use crate::model::LayerNames;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The live bytes of the whole model at each step of the program. All lowered variables are
/// included, with or without an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Liveness {
    /// Number of liveness steps of the program; steps have the indices from 0.
    pub steps: u32,
    /// The first liveness step of the backward pass; `null` for inference.
    pub turn: Option<u32>,
    /// Live bytes of the whole model at each liveness step, summed over all tiles.
    pub all_tiles: Curve,
    /// The tile with the most recorded bytes, or with the most bytes of variables if the
    /// profile has no recorded totals.
    pub fullest_tile: u32,
    /// Live bytes of the whole model at each liveness step on the tile `fullest_tile`.
    pub fullest_tile_curve: Curve,
    /// The ranges of steps that run a single layer, in the order of the steps. Steps between
    /// these ranges belong to no layer.
    pub bands: Vec<Band>,
    /// The largest variables that are live on `fullest_tile` at its peak; `null` if names are
    /// unknown.
    pub peak_variables: Option<PeakVariables>,
}

/// Live bytes of a stage, of an IPU or of the whole model as a function of the liveness step. The
/// bytes at a step are `fixed` + `always_live` + the last entry of `bytes` whose entry of `steps`
/// is at or before the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Curve {
    /// The first liveness step of this curve of live bytes.
    pub first_step: u32,
    /// The last liveness step of this curve of live bytes, inclusive.
    pub last_step: u32,
    /// Bytes that are the same at each step and are no variables: code, vertex state, gaps
    /// between variables, and a stage's stash and accumulators.
    pub fixed: u64,
    /// Bytes of the variables that are always live, that is, live at every step of the program.
    pub always_live: u64,
    /// The highest point of this curve of live bytes, which decides how much memory is needed.
    pub peak: Peak,
    /// The liveness steps at which live bytes change, ascending. Each entry of `bytes` holds
    /// from its step to the next one.
    pub steps: Vec<u32>,
    /// Bytes of the live variables that are not always live. Each entry belongs to the entry of
    /// `steps` at the same index.
    pub bytes: Vec<u64>,
}

/// The highest point of a curve of live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Peak {
    /// The liveness step with the most live bytes; of equal steps, the first one.
    pub step: u32,
    /// All bytes at this step: the live variables and the `fixed` bytes of the curve, such as code.
    pub bytes: u64,
}

/// Consecutive liveness steps that run one layer, which a chart marks as a band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Band {
    /// The name of the layer that runs at these liveness steps; `"Out"` after the last layer;
    /// `null` before the first layer and, in the classic memory model, for operations without a
    /// layer.
    pub layer: Option<String>,
    /// The first of the consecutive liveness steps that run this layer.
    pub from: u32,
    /// The last of the consecutive liveness steps that run this layer, inclusive.
    pub to: u32,
}

/// The variables that are live on one tile at one step: number, bytes, and the largest by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PeakVariables {
    /// The index of the tile on which the variables are live, from 0.
    pub tile: u32,
    /// The liveness step at which the variables are live.
    pub step: u32,
    /// Number of all lowered variables that are live on the tile at the step, listed or not.
    pub count: u64,
    /// Bytes of all lowered variables that are live on the tile at the step, listed or not.
    pub bytes: u64,
    /// Bytes of the live variables by category, most bytes first; empty if they were read from a
    /// file of `--save-to-file`.
    pub categories: Vec<CategorySum>,
    /// The largest live variables, most bytes first. Variables of one category whose names
    /// differ only in numbers are one entry; there are at most 20 entries, from the 5,000
    /// largest variables.
    pub largest: Vec<VariableSum>,
}

/// One variable, or the sum of several listed variables that have one category and names that
/// differ only in numbers. A sum has the common name, with `#` for each number, the bytes of
/// all its variables, and the layers of any of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct VariableSum {
    /// The name, the category, the bytes and the layers of the variable, or of all variables
    /// that this entry adds up.
    #[serde(flatten)]
    pub variable: LiveVariable,
    /// Number of variables in this sum; 1 for a single variable.
    pub count: u64,
}

/// A lowered variable (the part of a tensor on one tile) with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LiveVariable {
    /// The name of the variable in the profile, such as `weights#0`.
    pub name: String,
    /// The category of the variable in the profile, such as `variable` or `vertexCode`.
    pub category: String,
    /// The size of the lowered variable (the part of a tensor on one tile) in bytes.
    pub bytes: u64,
    /// The layers that the variable is assigned to, in order. Empty if no layer uses the
    /// variable, which is then part of every stage.
    pub layers: LayerNames,
}

/// The bytes of all variables of one category that are live on a tile at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CategorySum {
    /// The name of the category of variables, as the profile has it, such as `variable` or
    /// `vertexCode`.
    pub name: String,
    /// The sum of the bytes of the live variables that have this category.
    pub bytes: u64,
}

/// The variables that are live at the steps of the program that an HTML page draws, on some
/// tiles. Unless stated otherwise, lists have one entry for each drawn step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LiveSteps {
    /// The steps that an HTML page draws, ascending: peaks, the ends of layers and stages, the
    /// start of the backward pass, and high and low points of the curve of live bytes between
    /// these steps.
    pub steps: Vec<u32>,
    /// For each entry of `steps` (the steps that an HTML page draws), the program that runs at the
    /// step, such as `OnTileExecute encoder/3/MatMul`.
    pub programs: Vec<String>,
    /// For each entry of `steps`, the name of the operation whose program runs at the step; `null`
    /// if the program belongs to no operation. If outlined code belongs to several operations, the
    /// first one.
    pub operations: Vec<Option<String>>,
    /// For each entry of `steps` (the steps that an HTML page draws), the bytes of the variables
    /// that are live at the step but not at every step of the program, summed over all tiles.
    pub not_always_live: Vec<u64>,
    /// The variables that are live at each drawn step on the fullest tile of the whole model.
    #[serde(flatten)]
    pub fullest: TileAtSteps,
    /// The live variables of other tiles than the fullest one, each tile once: the fullest tile
    /// of each stage of the split, up to 15 tiles, and if there are fewer than 3, the next
    /// fullest tiles of the whole model. All of these tiles together list at most 15,000
    /// variables.
    pub others: Vec<TileAtSteps>,
}

/// The variables that are live on one tile at the steps that an HTML page draws. Unless stated
/// otherwise, lists have one entry for each drawn step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileAtSteps {
    /// The index of the tile, from 0.
    pub tile: u32,
    /// For each step that the page draws, the number of lowered variables that are live on the
    /// tile.
    pub counts: Vec<u64>,
    /// For each step that the page draws, the bytes of the variables (and of code) that are
    /// live on the tile.
    pub bytes: Vec<u64>,
    /// Bytes of all variables of the tile that are always live, that is, live at every step of
    /// the program. This is a single number, since it is equal at all steps.
    pub always_live: u64,
    /// The live bytes by category, the category with the highest bytes at any drawn step first.
    pub categories: Vec<CategoryAtSteps>,
    /// The live bytes by layer, one entry for each layer of the report, in layer order. A
    /// variable that several layers use counts in each of them. Empty if the report would have
    /// too many numbers.
    pub layers: Vec<LayerAtSteps>,
    /// The largest variables of the tile, the largest first: the 20 largest of those that are
    /// always live, the 20 largest others at each step that the HTML page draws, and the 10 largest
    /// of each layer. The list may be cut short on other tiles than the model's fullest one.
    pub variables: Vec<VariableAtSteps>,
}

/// The live bytes of one category of variables on a tile, at each step that an HTML page draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CategoryAtSteps {
    /// The name of the category of variables, as the profile has it, such as `variable` or
    /// `vertexCode`.
    pub name: String,
    /// For each step that the page draws, the bytes of this category that are live on the tile.
    pub bytes: Vec<u64>,
}

/// The live bytes of one layer on a tile, at each step that an HTML page draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LayerAtSteps {
    /// The name of the layer; `null` for the position before the layers (In or None).
    pub name: Option<String>,
    /// For each step that the page draws, the bytes of the layer's variables that are live on
    /// the tile.
    pub bytes: Vec<u64>,
}

/// A lowered variable of a tile, and the steps drawn by an HTML page at which the variable is
/// live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct VariableAtSteps {
    /// The name, category, size and layers of a lowered variable (the part of a tensor on one
    /// tile).
    #[serde(flatten)]
    pub variable: LiveVariable,
    /// Whether the variable is always live, that is, live at every step of the program.
    pub is_always_live: bool,
    /// When the variable is live: ranges of drawn steps, ascending, each as its first and last
    /// drawn step, both inclusive. Between two drawn steps of a range the variable may be dead.
    pub live: Vec<(u32, u32)>,
}

/// Thins a curve of live bytes to about `max_points` points, each a liveness step and its bytes,
/// ascending by step. Divides the curve into pieces, and keeps the first, lowest, highest and last
/// point of each piece, so that no peak is lost.
pub fn thin(points: &[(u32, u64)], max_points: usize) -> Vec<(u32, u64)> {
    if points.len() <= max_points {
        return points.to_vec();
    }
    let chunk = points.len().div_ceil((max_points / 4).max(1)).max(4);
    // The first of several equally high points is kept. `max_by_key` returns the last one, so the
    // points are in reverse order.
    let corners = |points: &[(u32, u64)]| {
        let bytes = |&&(_, bytes): &&(u32, u64)| bytes;
        let lowest = points.iter().min_by_key(bytes);
        let highest = points.iter().rev().max_by_key(bytes);
        let ends = points.first().into_iter().chain(points.last());
        BTreeSet::from_iter(ends.chain(lowest).chain(highest).copied())
    };
    points.chunks(chunk).flat_map(corners).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0, 5), (3, 1)];
        assert_eq!(thin(&points, 2), points);
        assert!(thin(&[], 2).is_empty());
    }

    #[test]
    fn of_many_points_no_peak_is_lost() {
        let hashed = |step: u32| u64::from(step.wrapping_mul(2_654_435_761) >> 12);
        let points: Vec<_> = (0..20_001).map(|step| (step, hashed(step))).collect();
        for max in [1, 4, 100, 1000] {
            let kept = thin(&points, max);
            assert!(kept.len() <= max.max(4), "{max}: {}", kept.len());
            assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(kept.first(), points.first());
            assert_eq!(kept.last(), points.last());
            let bytes = |point: &&(u32, u64)| point.1;
            let highest = points.iter().rev().max_by_key(bytes);
            assert!(kept.contains(highest.unwrap()));
            assert!(kept.contains(points.iter().min_by_key(bytes).unwrap()));
        }
    }
}
