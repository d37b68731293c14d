//! The split that reports show, with the memory of its stages computed in full.

use super::{pipeline_costs::PipelineCosts, result::Candidate};
use crate::{
    memory::{MemoryModel, Pipeline, PlacedStage, Recompute, StageMemory},
    solve::{self, Constraint},
};
use anyhow::Result;
use std::ops::Range;

/// The split that reports show: the split that the user gave; without one, the best split; if no
/// split fits, the split with the lowest peak.
#[derive(Debug, Clone, Default)]
pub struct ShownSplit {
    /// One entry per stage: its range of positions (In, layers, Out; end exclusive). The list is
    /// empty if there is no split, or if no split was requested.
    pub stages: Vec<Range<usize>>,
    /// One entry per stage: the index of the profile from which the stage takes its memory and
    /// time.
    pub profiles: Vec<usize>,
    /// One entry per stage: the bytes on the fullest tile of the stage.
    pub peaks: Vec<u64>,
    /// One entry per stage: the memory of the stage on each tile.
    pub memory: Vec<StageMemory>,
    /// Whether the split is within all limits, obeys all constraints, and includes every position.
    pub fits: bool,
    /// The constraints that the split breaks. Only a split that the user gave can break any; for
    /// other splits, the list is empty.
    pub broken: Vec<Constraint>,
    /// The positions (In, layers, Out) that exceed the highest limit even as the only position of a
    /// stage, in ascending order, each with the memory of this stage. The list is empty if the
    /// split fits or no split was requested.
    pub too_large: Vec<(usize, StageMemory)>,
    /// Bytes that the fullest tile of the split would have without recomputation; `None` if the
    /// pipeline does not recompute.
    pub without_recomputation: Option<u64>,
}

impl ShownSplit {
    /// Computes the memory of each stage of the split that reports show, and checks the split
    /// against limits and constraints. `profiles` has one entry per stage: the index of the profile
    /// from which the stage takes its memory and time. `costs` has the memory and time of ranges of
    /// layers in the pipeline of the split.
    pub fn new(
        costs: &PipelineCosts<'_>,
        stages: Vec<Range<usize>>,
        profiles: Vec<usize>,
    ) -> Result<Self> {
        let (request, problem) = (costs.request(), costs.problem());
        let (highest, positions) = (request.highest_limit(), costs.memory().layers());
        let broken = match &request.given {
            Some(plan) => solve::broken(&problem, plan)?,
            None => Vec::new(),
        };
        let memory = costs.in_own_profiles(&profiles, |memory| Ok(memory.split(&stages)))?;
        let peaks: Vec<u64> = memory.iter().map(StageMemory::max_tile_bytes).collect();
        let fits = stages.last().map_or(0, |last| last.end) == positions
            && stages.len() <= costs.ipus
            && broken.is_empty()
            && costs.are_within_limits(&peaks);
        let is_over = |range: &Range<usize>| problem.least(range).is_none_or(|peak| peak > highest);
        let single: Vec<Range<usize>> = (0..positions)
            .filter(|_| request.options.split && !fits)
            .map(|position| position..position + 1)
            .filter(is_over)
            .collect();
        Ok(Self {
            too_large: single
                .iter()
                .map(|range| range.start)
                .zip(least_of(costs, &single))
                .collect(),
            without_recomputation: without_recomputation(costs, &stages, &profiles)?,
            stages,
            profiles,
            peaks,
            memory,
            fits,
            broken,
        })
    }

    /// Computes the memory of each stage of `best`, the split that reports show. If the user
    /// requested no split, the result has no stages.
    pub fn of(costs: &PipelineCosts<'_>, best: &Candidate) -> Result<Self> {
        if !costs.request().options.split {
            return Self::new(costs, Vec::new(), Vec::new());
        }
        let plan = &best.solution.plan;
        Self::new(costs, plan.stages().to_vec(), plan.profiles().to_vec())
    }
}

/// Returns the memory of each of `ranges` as a stage. If the model has several profiles, compiled
/// with different options, the memory of a range comes from the profile in which its fullest tile
/// has the fewest bytes.
pub fn least_of(costs: &PipelineCosts<'_>, ranges: &[Range<usize>]) -> Vec<StageMemory> {
    let mut least = costs.memory().stages(ranges);
    for memory in &costs.memory_by_profile[1..] {
        for (least, other) in least.iter_mut().zip(memory.stages(ranges)) {
            if other.max_tile_bytes() < least.max_tile_bytes() {
                *least = other;
            }
        }
    }
    least
}

/// Returns the bytes that the fullest tile of a split into `stages` would have without
/// recomputation; `None` if the pipeline does not recompute.
fn without_recomputation(
    costs: &PipelineCosts<'_>,
    stages: &[Range<usize>],
    profiles: &[usize],
) -> Result<Option<u64>> {
    let plain = Pipeline {
        recompute: Recompute::None,
        ..costs.pipeline()
    };
    if plain == costs.pipeline() {
        return Ok(None);
    }
    let placed = PlacedStage::of_split(stages);
    let peaks = |memory: &MemoryModel<'_>| Ok(memory.in_pipeline(plain)?.peaks(&placed));
    Ok(costs.in_own_profiles(profiles, peaks)?.into_iter().max())
}
