//! The split that reports show, with the memory of its stages computed in full.

use super::error::SearchError;
use super::pipeline_costs::PipelineCosts;
use crate::memory::StageMemory;
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
}

impl ShownSplit {
    /// Computes the memory of `stages`, the ranges of positions of the split to show, and checks
    /// its limits and constraints. `costs` are those of the pipeline of the answer.
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        stages: Vec<Range<usize>>,
    ) -> Result<Self, SearchError> {
        let request = costs.request();
        let broken = match &request.given {
            Some(plan) => solve::broken(&costs.problem(), plan)?,
            None => Vec::new(),
        };
        let memory = costs.memory.split(&stages);
        let mut by_ipu = memory.iter().enumerate();
        let fits = stages.last().map_or(0, |last| last.end) == costs.ranges.layers()
            && stages.len() <= costs.ipus
            && broken.is_empty()
            && by_ipu.all(|(ipu, stage)| stage.max_tile_bytes() <= costs.limit_of(ipu));
        let is_over = request.options.split && !fits;
        let single = is_over.then(|| costs.positions_over_limit());
        let single = single.unwrap_or_default();
        let positions = single.iter().map(|range| range.start);
        Ok(Self {
            too_large: positions.zip(costs.memory.stages(&single)).collect(),
            stages,
            memory,
            fits,
            broken,
        })
    }
}
