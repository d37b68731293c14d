//! Changes of the model if nothing fits (docs/model.md, "Advice").

use super::alternatives::other_states;
use super::{CostedRequest, SearchError, SearchResult, estimate};
use crate::memory::{
    MemoryModel, MicroBatchScale, Pipeline, PlacedStage, Recompute, Schedule, StageMemory,
    StatePlace,
};
use crate::model::{Framework, Placement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change must free more than the bytes of the fullest tile divided by this number.
const MIN_SHARE: u64 = 1000;

/// A change that frees memory where it is over the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The kind of change.
    pub change: Change,
    /// The weight that the change is about; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Bytes that the change frees on the fullest tile. If it is no option of `popliner`, an upper
    /// bound.
    pub frees: u64,
    /// Is the change enough for some split on as many IPUs? Only tried for half the micro-batch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_enough: bool,
}

/// A change of the model or its options, the most certain to help first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// `--optimizer-state off-chip`.
    #[default]
    StateOffChip,
    /// `--recompute layer`.
    Checkpoints,
    /// `--schedule tf-interleaved`.
    Interleaved,
    /// The operations of a weight in two parts, one after the other.
    SerializedWeight,
    /// A lower available memory proportion.
    MemoryProportion,
    /// Half the samples of a micro-batch, by an estimate.
    HalfMicroBatch,
    /// 16 bits in place of 32 for weights and state.
    HalfPrecision,
}

/// Advice of a search, and the stage that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdviceFor {
    /// The layer that exceeds the limit most as a stage of its own, or else the stage of the split
    /// that exceeds its limit most.
    pub stage: PlacedStage,
    /// Memory of that stage.
    pub fullest: StageMemory,
    /// Changes that free memory in that stage.
    pub advice: Vec<Advice>,
}

impl AdviceFor {
    /// Advice for a split that does not fit; `None` if no stage exceeds its limit.
    pub(super) fn new(
        found: &SearchResult,
        memory: &MemoryModel<'_>,
        placement: &Placement,
    ) -> Result<Option<Self>, SearchError> {
        let Some((stage, fullest)) = furthest_over(found) else {
            return Ok(None);
        };
        let stages = std::slice::from_ref(&stage);
        let bytes = fullest.max_tile_bytes();
        let mut advice = Vec::new();
        let mut add = |change, weight, frees| {
            advice.push(Advice {
                change,
                weight,
                frees,
                is_enough: false,
            });
        };
        let less_in = |other: &MemoryModel<'_>| {
            let left = other.peaks(stages).first().copied();
            bytes.saturating_sub(left.unwrap_or(bytes))
        };
        for (change, pipeline) in pipelines(&found.costed, memory)? {
            add(change, None, less_in(&memory.in_pipeline(pipeline)?));
        }
        let reducible = memory.reducible(&stage, fullest);
        let (weight, of_weight) = reducible.by_weight.unzip();
        add(Change::SerializedWeight, weight, of_weight.unwrap_or(0) / 2);
        add(Change::MemoryProportion, None, reducible.temporaries);
        let half = MicroBatchScale {
            recorded: 2,
            wanted: 1,
        };
        let at_half = memory.at_micro_batch(half);
        add(Change::HalfMicroBatch, None, less_in(&at_half));
        add(Change::HalfPrecision, None, reducible.wide / 2);
        let may_halve = found.costed.request.at_micro_batch.is_none();
        for item in &mut advice {
            item.is_enough = may_halve
                && item.change == Change::HalfMicroBatch
                && estimate::fits(&at_half, placement, found)?;
        }
        advice.retain(|item| item.frees > bytes / MIN_SHARE);
        Ok(Some(Self {
            fullest: fullest.clone(),
            stage,
            advice,
        }))
    }
}

/// The layer that exceeds the limit most as a stage of its own, or, if each layer would fit, the
/// stage that exceeds its limit most.
fn furthest_over(found: &SearchResult) -> Option<(PlacedStage, &StageMemory)> {
    let alone = found.too_large.iter();
    let alone = alone.max_by_key(|(_, memory)| memory.max_tile_bytes());
    if let Some((position, memory)) = alone {
        return Some((PlacedStage::alone(*position..position + 1), memory));
    }
    let over = |ipu: usize| {
        let bytes = found.memory[ipu].max_tile_bytes();
        bytes.saturating_sub(found.costed.limit_of(ipu))
    };
    let furthest = (0..found.memory.len()).rev().max_by_key(|&ipu| over(ipu))?;
    let stage = PlacedStage::of_split(&found.stages)
        .into_iter()
        .nth(furthest)?;
    (over(furthest) > 0).then(|| (stage, &found.memory[furthest]))
}

/// Pipelines that need less memory than the current one, with the change that leads to each.
fn pipelines(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
) -> Result<Vec<(Change, Pipeline)>, SearchError> {
    let current = memory.pipeline();
    let state = current.with_state(StatePlace::OffChip, costed.request.pipeline.replicas);
    let mut layer = current;
    layer.recompute = Recompute::Layer;
    let mut interleaved = current;
    interleaved.schedule = Schedule::TfInterleaved;
    let has_state = other_states(costed, memory)?.contains(&StatePlace::OffChip);
    let is_grouped = current.schedule == Schedule::TfGrouped;
    let is_tensorflow = memory.framework() == Framework::Tensorflow && is_grouped;
    let is_on = current.is_on() && memory.is_training();
    let all = [
        (has_state, Change::StateOffChip, state),
        (
            is_on && current.recompute != Recompute::Layer,
            Change::Checkpoints,
            layer,
        ),
        (is_on && is_tensorflow, Change::Interleaved, interleaved),
    ];
    let possible = all.into_iter().filter(|(is_possible, ..)| *is_possible);
    Ok(possible
        .map(|(_, change, pipeline)| (change, pipeline))
        .collect())
}
