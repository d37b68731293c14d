//! The split that reports show, with the memory of its stages computed in full.

use super::candidate::Candidate;
use super::error::SearchError;
use super::pipeline_costs::PipelineCosts;
use crate::memory::{Pipeline, PlacedStage, Recompute, StageMemory};
use crate::solve::{self, Constraint};
use std::ops::Range;

/// The split that reports show: the one that the user gave, or else the best one, or the one with
/// the lowest peak if none fits.
#[derive(Debug, Default)]
pub struct ShownSplit {
    /// The range of positions of each stage, ends exclusive; empty if there is no split, or if none
    /// was requested.
    pub stages: Vec<Range<usize>>,
    /// By stage: its memory on each tile.
    pub memory: Vec<StageMemory>,
    /// Whether the split keeps all limits and constraints, and includes every position.
    pub fits: bool,
    /// The constraints that a split of the user breaks; empty for any other split.
    pub broken: Vec<Constraint>,
    /// If a split was requested and does not fit: the positions that exceed the highest limit as
    /// stages of their own, ascending, each with the memory of that stage. Otherwise empty.
    pub too_large: Vec<(usize, StageMemory)>,
    /// Bytes on the fullest tile of the split if its pipeline did not recompute; `None` if the
    /// pipeline does not recompute anyway.
    pub without_recomputation: Option<u64>,
}

impl ShownSplit {
    /// Computes the memory of `stages`, the ranges of positions of the split to show, and checks
    /// its limits and constraints. `costs` are those of the pipeline of the answer.
    pub fn new(costs: &PipelineCosts<'_>, stages: Vec<Range<usize>>) -> Result<Self, SearchError> {
        let request = costs.request();
        let broken = match &request.given {
            Some(plan) => solve::broken(&costs.problem(), plan)?,
            None => Vec::new(),
        };
        let memory = costs.memory.split(&stages);
        let peaks: Vec<u64> = memory.iter().map(StageMemory::max_tile_bytes).collect();
        let fits = stages.last().map_or(0, |last| last.end) == costs.positions()
            && stages.len() <= costs.ipus
            && broken.is_empty()
            && costs.are_within_limits(&peaks);
        let is_over = request.options.split && !fits;
        let single = if is_over {
            costs.positions_over_limit()
        } else {
            Vec::new()
        };
        Ok(Self {
            too_large: single
                .iter()
                .map(|range| range.start)
                .zip(costs.memory.stages(&single))
                .collect(),
            without_recomputation: without_recomputation(costs, &stages)?,
            stages,
            memory,
            fits,
            broken,
        })
    }

    /// Computes the memory of the stages of `best`.
    pub fn of(costs: &PipelineCosts<'_>, best: Option<&Candidate>) -> Result<Self, SearchError> {
        let is_wanted = costs.request().options.split;
        let best = best.filter(|_| is_wanted);
        Self::new(
            costs,
            best.map_or(Vec::new(), |best| best.solution.plan.stages().to_vec()),
        )
    }
}

/// Returns the bytes on the fullest tile of `stages` without recomputation; `None` if the pipeline
/// does not recompute.
fn without_recomputation(
    costs: &PipelineCosts<'_>,
    stages: &[Range<usize>],
) -> Result<Option<u64>, SearchError> {
    let plain = Pipeline {
        recompute: Recompute::None,
        ..costs.pipeline()
    };
    if plain == costs.pipeline() {
        return Ok(None);
    }
    Ok(costs
        .memory
        .in_pipeline(plain)?
        .peaks(&PlacedStage::of_split(stages))
        .into_iter()
        .max())
}
