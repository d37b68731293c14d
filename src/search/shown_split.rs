//! The split that a report shows, with its stages computed in full.

use super::error::SearchError;
use super::pipeline_costs::PipelineCosts;
use crate::memory::StageMemory;
use crate::solve::{self, Constraint};
use std::ops::Range;

/// The split to show: the given one, or else the best, or the one with the lowest peak.
#[derive(Debug, Default)]
pub struct ShownSplit {
    /// Half-open ranges of positions; empty if there is no split, or none was requested.
    pub stages: Vec<Range<usize>>,
    /// Memory of these stages.
    pub memory: Vec<StageMemory>,
    /// Does the split keep to all limits and constraints, with every position in a stage?
    pub fits: bool,
    /// Constraints that a given split breaks.
    pub broken: Vec<Constraint>,
    /// Positions that exceed the limit as stages of their own, with their memory, if a split was
    /// requested and does not fit.
    pub too_large: Vec<(usize, StageMemory)>,
}

impl ShownSplit {
    /// Computes the memory of these stages, the split to show.
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
        let alone = match request.options.split && !fits {
            true => costs.positions_over_limit(),
            false => Vec::new(),
        };
        let positions = alone.iter().map(|range| range.start);
        Ok(Self {
            too_large: positions.zip(costs.memory.stages(&alone)).collect(),
            stages,
            memory,
            fits,
            broken,
        })
    }
}
