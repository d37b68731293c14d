//! Suggests changes if nothing fits: other pipelines that the user could choose (`--recompute`,
//! `--schedule`, `--optimizer-state`), and changes of the model (docs/model.md, "Advice").

use super::candidate::Candidate;
use super::error::SearchError;
use super::pipeline_costs::PipelineCosts;
use super::shown_split::ShownSplit;
use crate::memory::{
    MemoryModel, Pipeline, PlacedStage, Recompute, Schedule, StageMemory, StatePlace,
};
use crate::model::{Framework, LayerNames};
use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Only changes that free more than 1/`MIN_SHARE` of the bytes on the fullest tile are suggested.
const MIN_SHARE: u64 = 1000;

/// A change that frees memory on the tile that exceeds the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// The change of the pipeline or the model.
    pub change: Change,
    /// The weight that the change is about; `null` if the change is not about a weight.
    pub weight: Option<String>,
    /// Bytes that the change frees on the fullest tile. An upper bound unless the change is an
    /// option of `popliner`.
    pub frees: u64,
}

/// A change of the pipeline or the model that frees memory, the most certain first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Keep optimizer state off the chip (`--optimizer-state off-chip`).
    #[default]
    StateOffChip,
    /// Recompute layers one by one (`--recompute layer`).
    Checkpoints,
    /// Use the interleaved schedule of TensorFlow (`--schedule tf-interleaved`).
    Interleaved,
    /// Run the operations of a weight in two parts, one after the other.
    SerializedWeight,
    /// Lower the available memory proportion of operations, so that they need fewer temporaries.
    MemoryProportion,
    /// Use 16 bits instead of 32 for weights and their state.
    HalfPrecision,
}

/// Consecutive layers that exceed the limit as one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverLimit {
    /// Positions of the layers in the order of the report's layers; the end is exclusive.
    pub positions: Range<usize>,
    /// The names of the layers, in order.
    pub layers: LayerNames,
    /// The tile with the most bytes of the layers as one stage; the first one of a tie.
    pub tile: u32,
    /// The first step at which live variables of the layers take the most bytes on `tile`; `null`
    /// if the layers have no steps.
    pub step: Option<u32>,
    /// Bytes of the layers as one stage on `tile`, at its peak.
    pub bytes: u64,
}

impl OverLimit {
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        positions: Range<usize>,
        memory: &StageMemory,
    ) -> Self {
        Self {
            layers: costs.memory.positions().layer_names(positions.clone()),
            positions,
            tile: memory.max_tile() as u32,
            step: memory.peak_step(),
            bytes: memory.max_tile_bytes(),
        }
    }
}

/// The stage that exceeds its limit most, and changes that would free memory there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviceFor {
    /// The layer that exceeds the limit most as a stage of its own or, if every layer fits, the
    /// stage of the split that exceeds its limit most.
    #[serde(flatten)]
    pub stage: OverLimit,
    /// Changes that would free memory on the fullest tile of the stage, the most certain to help
    /// first.
    pub changes: Vec<Advice>,
}

impl AdviceFor {
    /// Finds changes for a split that does not fit; `None` if no stage exceeds its limit.
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        split: &ShownSplit,
    ) -> Result<Option<Self>, SearchError> {
        let Some((stage, fullest)) = furthest_over(costs, split) else {
            return Ok(None);
        };
        let changes = changes(costs, &stage, fullest)?;
        let stage = OverLimit::new(costs, stage.positions, fullest);
        Ok(Some(Self { stage, changes }))
    }
}

/// Returns the layer that exceeds the limit most as a stage of its own or, if every layer fits, the
/// stage of the split that exceeds its limit most, with its memory. `None` if no stage exceeds its
/// limit.
fn furthest_over<'m>(
    costs: &PipelineCosts<'_>,
    split: &'m ShownSplit,
) -> Option<(PlacedStage, &'m StageMemory)> {
    let single = split.too_large.iter();
    let single = single.max_by_key(|(_, memory)| memory.max_tile_bytes());
    if let Some((position, memory)) = single {
        return Some((PlacedStage::anywhere(*position..position + 1), memory));
    }
    let over = |ipu: usize| {
        let bytes = split.memory[ipu].max_tile_bytes();
        bytes.saturating_sub(costs.limit_of(ipu))
    };
    let furthest = (0..split.memory.len()).rev().max_by_key(|&ipu| over(ipu))?;
    let stages = PlacedStage::of_split(&split.stages);
    let stage = stages.into_iter().nth(furthest)?;
    (over(furthest) > 0).then(|| (stage, &split.memory[furthest]))
}

/// Lists the changes that free memory in `stage`, the most certain to help first, without those
/// that free too little ([`MIN_SHARE`]). `fullest` is the memory of `stage` in the current
/// pipeline.
fn changes(
    costs: &PipelineCosts<'_>,
    stage: &PlacedStage,
    fullest: &StageMemory,
) -> Result<Vec<Advice>, SearchError> {
    let memory = &costs.memory;
    let bytes = fullest.max_tile_bytes();
    let less_in = |other: &MemoryModel<'_>| {
        let left = other.peaks(std::slice::from_ref(stage)).first().copied();
        bytes.saturating_sub(left.unwrap_or(bytes))
    };
    let mut all = Vec::new();
    for (change, pipeline) in pipelines(costs)? {
        all.push((change, less_in(&memory.in_pipeline(pipeline)?)));
    }
    let reducible = memory.reducible(stage, fullest);
    let (weight, of_weight) = reducible.by_weight.unzip();
    all.extend([
        (Change::SerializedWeight, of_weight.unwrap_or(0) / 2),
        (Change::MemoryProportion, reducible.temporaries),
        (Change::HalfPrecision, reducible.wide / 2),
    ]);
    let worthwhile = all
        .into_iter()
        .filter(|(_, frees)| *frees > bytes / MIN_SHARE);
    let advice = worthwhile.map(|(change, frees)| Advice {
        weight: weight
            .clone()
            .filter(|_| change == Change::SerializedWeight),
        change,
        frees,
    });
    Ok(advice.collect())
}

/// Returns the current pipeline with one option changed so that it may need less memory: optimizer
/// state off the chip, layers recomputed one by one, or the interleaved schedule. Only changes that
/// the model and framework permit, each with its name for the report.
fn pipelines(costs: &PipelineCosts<'_>) -> Result<Vec<(Change, Pipeline)>, SearchError> {
    let current = costs.pipeline();
    let state = current.with_state(
        StatePlace::OffChip,
        costs.request().options.pipeline.replicas,
    );
    let layer = Pipeline {
        recompute: Recompute::Layer,
        ..current
    };
    let interleaved = Pipeline {
        schedule: Schedule::TfInterleaved,
        ..current
    };
    let has_state = costs.other_states()?.contains(&StatePlace::OffChip);
    let is_grouped = current.schedule == Schedule::TfGrouped;
    let is_tensorflow = costs.memory.framework() == Framework::Tensorflow && is_grouped;
    let is_on = current.is_on() && costs.memory.is_training();
    let all = [
        (has_state, Change::StateOffChip, state),
        (is_on && layer != current, Change::Checkpoints, layer),
        (is_on && is_tensorflow, Change::Interleaved, interleaved),
    ];
    let possible = all.into_iter().filter(|(is_possible, ..)| *is_possible);
    Ok(possible
        .map(|(_, change, pipeline)| (change, pipeline))
        .collect())
}

impl PipelineCosts<'_> {
    /// Returns the request in other pipelines that may be better than the current one, with `up_to`
    /// set to the bytes up to which ranges are needed to find the best split; the ranges themselves
    /// are not computed yet. If nothing fits, pipelines that the request leaves open are left out,
    /// because all of them were tried.
    pub(super) fn alternatives(&self) -> Result<Vec<Self>, SearchError> {
        let (pipeline, asked) = (self.pipeline(), self.request().options.pipeline);
        let states = self.other_states()?.into_iter();
        let states = states.map(|state| pipeline.with_state(state, asked.replicas));
        // If nothing fits, the pipelines that the request leaves open were tried already.
        let open = pipeline.open(asked, self.memory.is_training());
        let is_untried = |other: &Pipeline| self.request().options.moves || !open.contains(other);
        let pipelines = pipeline.alternatives().into_iter().filter(is_untried);
        let others = states.chain(pipelines).map(|pipeline| {
            let mut other = self.in_pipeline(pipeline)?;
            other.try_few_tiles()?;
            other.up_to = other.limit_of_best();
            Ok(other)
        });
        others.collect()
    }

    /// Returns the other places for the optimizer state that the search did not try. Empty if
    /// training has no such state, the state is not on the chip, there is no pipeline, or the
    /// search tried all places.
    pub(super) fn other_states(&self) -> Result<Vec<StatePlace>, SearchError> {
        let (pipeline, asked) = (self.pipeline(), self.request().options.pipeline);
        let is_on_chip = pipeline.state == StatePlace::OnChip && pipeline.is_on();
        Ok(match asked.replicas {
            _ if !is_on_chip || asked.tries_states || !self.has_state()? => Vec::new(),
            0 | 1 => vec![StatePlace::OffChip],
            _ => vec![StatePlace::Sharded, StatePlace::OffChip],
        })
    }

    /// Returns the bytes on the fullest tile of `stages` without recomputation; `None` if the
    /// pipeline does not recompute.
    pub(super) fn peak_without_recomputation(
        &self,
        stages: &[Range<usize>],
    ) -> Result<Option<u64>, SearchError> {
        let plain = Pipeline {
            recompute: Recompute::None,
            ..self.pipeline()
        };
        if plain == self.pipeline() {
            return Ok(None);
        }
        let plain = self.memory.in_pipeline(plain)?;
        let peaks = plain.peaks(&PlacedStage::of_split(stages));
        Ok(peaks.into_iter().max())
    }
}

/// Computes the costs of each of `others`, and returns the best split of each that has any. If
/// nothing fits in pipeline `now` (`is_refused`), other pipelines are skipped once one fits that
/// differs from `now` in the same of these two: schedule, place of optimizer state.
pub(super) fn best_in_each(
    others: Vec<PipelineCosts<'_>>,
    (now, is_refused): (Pipeline, bool),
    progress: &Progress,
) -> Result<Vec<Candidate>, SearchError> {
    let mut found: Vec<Candidate> = Vec::new();
    let changed = |other: Pipeline| (other.state != now.state, other.schedule != now.schedule);
    for mut other in others {
        let mut fitting = found.iter().filter(|before| is_refused && before.fits);
        if fitting.any(|before| changed(before.pipeline) == changed(other.pipeline())) {
            continue;
        }
        found.extend(other.best(progress)?);
    }
    Ok(found)
}
