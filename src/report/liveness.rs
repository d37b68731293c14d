//! Live bytes over the steps of the program: curves, which can be thinned, and the variables at
//! peaks and at the steps that a page shows.

use super::LayerNames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory of the whole model over the steps of the program: all lowered variables, with or
/// without an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// Number of liveness steps of the program.
    pub steps: u32,
    /// The first step of the backward pass; `null` for inference.
    pub turn: Option<u32>,
    /// Bytes summed over all tiles.
    pub all_tiles: Curve,
    /// The tile with the most recorded bytes.
    pub fullest_tile: u32,
    /// Bytes on the fullest tile.
    pub fullest_tile_curve: Curve,
    /// The steps of each layer, in the order of the steps; steps between bands belong to no layer.
    pub bands: Vec<Band>,
    /// The largest variables at a peak; `null` if their names are unknown.
    pub peak_variables: Option<PeakVariables>,
}

/// Bytes step by step. The bytes at a step are `fixed` + `always_live` + the entry of `bytes` for
/// that step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The first step of the curve.
    pub first_step: u32,
    /// The last step of the curve, inclusive.
    pub last_step: u32,
    /// Bytes besides variables, equal at all steps: code, vertex state, gaps, and a stage's stash and
    /// accumulators.
    pub fixed: u64,
    /// Bytes of variables that are live on every step.
    pub always_live: u64,
    /// The highest point.
    pub peak: Peak,
    /// The steps of `bytes`, ascending. Each entry holds until the next one.
    pub steps: Vec<u32>,
    /// Bytes of the variables that are not always live, one entry for each entry of `steps`.
    pub bytes: Vec<u64>,
    /// Were points left out? Of equal ranges of points, the first, last, lowest and highest ones
    /// stay, so no peak is lost.
    pub thinned: bool,
}

/// The highest point of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// The step; the first one of a tie.
    pub step: u32,
    /// All bytes at that step: fixed, always live, and the others.
    pub bytes: u64,
}

/// Steps that belong to one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Band {
    /// The layer.
    pub layer: Option<String>,
    /// The first step.
    pub from: u32,
    /// The last step, inclusive.
    pub to: u32,
}

/// The variables that are live on a tile at a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeakVariables {
    /// The tile.
    pub tile: u32,
    /// The step.
    pub step: u32,
    /// Number of lowered variables that are live.
    pub count: u64,
    /// Bytes of all live variables.
    pub bytes: u64,
    /// Bytes by category, most bytes first; empty for a saved model.
    pub categories: Vec<CategorySum>,
    /// The largest variables, the largest first.
    pub largest: Vec<LiveVariable>,
}

/// One lowered variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveVariable {
    /// The variable's name, such as `weights#0`.
    pub name: String,
    /// The name of the variable's category, such as `variable`.
    pub category: String,
    /// The variable's size.
    pub bytes: u64,
    /// The layers that the variable is assigned to, in order; empty if no layer uses it, and it counts
    /// in every stage.
    pub layers: LayerNames,
}

/// The bytes of one category of lowered variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategorySum {
    /// The name of the category, such as `variable`.
    pub name: String,
    /// Bytes of its variables.
    pub bytes: u64,
}

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
    /// Other tiles than `fullest`, each once. With a split, the fullest tile of each stage, as far as
    /// the bound on numbers in a report allows; without a split, the next fullest tiles of the whole
    /// model. Each lists its largest variables; all of them together list at most 15,000.
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

/// A lowered variable, and the chosen steps at which it is live.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariableAtSteps {
    /// The variable.
    #[serde(flatten)]
    pub variable: LiveVariable,
    /// Is it live on every step of the program?
    pub is_always_live: bool,
    /// Ranges of chosen steps at which it is live, both ends inclusive, ascending. Between chosen
    /// steps it may be dead.
    pub live: Vec<(u32, u32)>,
}

/// Returns the indices of at most about `max_points` of the points (step, bytes), ascending. The
/// curve is cut into pieces of equally many points; the first, the lowest, the highest and the last
/// point of each piece stay, so that no peak is lost.
pub(super) fn thin(points: &[(u32, u64)], max_points: usize) -> Vec<usize> {
    if points.len() <= max_points {
        return (0..points.len()).collect();
    }
    let chunk = points.len().div_ceil((max_points / 4).max(1)).max(4);
    let mut kept = Vec::with_capacity(max_points);
    for (number, points) in points.chunks(chunk).enumerate() {
        kept.extend(corners(points).map(|place| number * chunk + place));
    }
    kept
}

/// Returns the indices of the first, the lowest, the highest and the last point, without
/// duplicates, ascending. Of equal points the first one is taken.
fn corners(points: &[(u32, u64)]) -> impl Iterator<Item = usize> {
    let bytes = |&place: &usize| points[place].1;
    let lowest = (0..points.len()).min_by_key(bytes).unwrap_or(0);
    let highest = (0..points.len()).rev().max_by_key(bytes).unwrap_or(0);
    let mut places = vec![0, lowest, highest, points.len().saturating_sub(1)];
    places.sort_unstable();
    places.dedup();
    places.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0, 5), (3, 1)];
        assert_eq!(thin(&points, 2), [0, 1]);
        assert!(thin(&[], 2).is_empty());
    }

    #[test]
    fn of_many_points_no_peak_is_lost() {
        let hashed = |step: u32| u64::from(step.wrapping_mul(2_654_435_761) >> 12);
        let points: Vec<_> = (0..20_001).map(|step| (step, hashed(step))).collect();
        for max in [1, 4, 100, 1000] {
            let kept = thin(&points, max);
            let kept: Vec<_> = kept.into_iter().map(|place| points[place]).collect();
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
