//! Describes the stage that exceeds its memory limit most, and changes of the model that free
//! memory in this stage (docs/model.md, "Advice"). A profile cannot show whether these changes are
//! enough.

use super::{pipeline_costs::PipelineCosts, shown_split::ShownSplit};
use crate::{
    memory::{MemoryModel, PlacedStage, StageMemory},
    model::LayerNames,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A change of the model is suggested only if it frees more than a thousandth (1/`MIN_SHARE`) of
/// the bytes on the fullest tile of a stage.
const MIN_SHARE: u64 = 1000;

/// A change of the model that frees memory on the fullest tile of a stage that exceeds its limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// The kind of change to the model, such as 16 instead of 32 bits for weights.
    pub change: Change,
    /// If `change` is `serialized-weight`: name of the weight whose operations are to run in two
    /// parts. `null` for any other change of the model.
    pub weight: Option<String>,
    /// Upper bound on the bytes that this change to the model frees on the fullest tile of the
    /// stage.
    pub frees: u64,
}

/// A change of the model that frees memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Split the operations that use a weight, such as a matrix product, into two parts that run
    /// one after the other. This frees at most half of the bytes of their temporaries.
    #[default]
    SerializedWeight,
    /// Lower the available memory proportion of operations, so that they need fewer temporaries.
    MemoryProportion,
    /// Use 16 bits instead of 32 for weights and their state.
    HalfPrecision,
}

/// Consecutive layers that exceed the memory limit if they run as one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverLimit {
    /// The layers as a range of indices into the report's list of layers; the end of the range is
    /// exclusive.
    pub positions: Range<usize>,
    /// The names of the layers, in order.
    pub layers: LayerNames,
    /// The tile on which the layers, run as one stage, take the most bytes; of several such tiles,
    /// the first.
    pub tile: u32,
    /// The first liveness step at which variables of the layers take the most bytes on `tile`;
    /// `null` if the layers have no liveness steps.
    pub step: Option<u32>,
    /// The most bytes that the layers, run as one stage, take on `tile` at any liveness step.
    pub bytes: u64,
    /// Bytes that the stage may take on each tile.
    pub limit: u64,
}

impl OverLimit {
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        positions: Range<usize>,
        limit: u64,
        memory: &StageMemory,
    ) -> Self {
        Self {
            layers: costs.memory().positions().layer_names(positions.clone()),
            positions,
            tile: memory.max_tile(),
            step: memory.peak_step(),
            bytes: memory.max_tile_bytes(),
            limit,
        }
    }
}

/// Returns the stage of `split` that exceeds the limit of its IPU most, and changes of the model
/// that free memory in this stage, or `None` if no stage exceeds its limit.
pub fn most_over(
    costs: &PipelineCosts<'_>,
    split: &ShownSplit,
) -> Option<(OverLimit, Vec<Advice>)> {
    let over = |ipu: usize| split.peaks[ipu].saturating_sub(costs.limit_of(ipu));
    let most = (0..split.peaks.len())
        .rev()
        .filter(|&ipu| over(ipu) > 0)
        .max_by_key(|&ipu| over(ipu))?;
    let stage = PlacedStage::of_split(&split.stages).into_iter().nth(most)?;
    let (memory, positions) = (&split.memory[most], stage.positions.clone());
    Some((
        OverLimit::new(costs, positions, costs.limit_of(most), memory),
        advice(
            &costs.memory_by_profile[split.profiles[most]],
            &stage,
            memory,
        ),
    ))
}

/// Returns the changes of the model that may each free more than a thousandth of the bytes on the
/// fullest tile of `stage`. `fullest` is the memory of `stage` on each tile.
fn advice(memory: &MemoryModel<'_>, stage: &PlacedStage, fullest: &StageMemory) -> Vec<Advice> {
    let reducible = memory.reducible(stage, fullest);
    let (weight, of_weight) = reducible.by_weight.unzip();
    [
        (Change::SerializedWeight, weight, of_weight.unwrap_or(0) / 2),
        (Change::MemoryProportion, None, reducible.temporaries),
        (Change::HalfPrecision, None, reducible.wide / 2),
    ]
    .into_iter()
    .filter(|(.., frees)| *frees > fullest.max_tile_bytes() / MIN_SHARE)
    .map(|(change, weight, frees)| Advice {
        change,
        weight,
        frees,
    })
    .collect()
}
