//! Which layers of each stage are kept whole, so that the least is recomputed (docs/model.md,
//! "Recomputation").
//!
//! A stage is computed as if all others were recomputed, and first on a few tiles: where
//! what is chosen does not fit on others, these count too, and it is chosen again.

mod bounds;
mod branches;
mod chooser;
#[cfg(test)]
mod tests;
pub(super) mod together;

use super::{CostedRequest, SearchError, SearchResult, SweepAnswer, free_bytes};
use crate::memory::{MemoryModel, PlacedStage, Recompute};
use crate::progress::{self, Progress};
use crate::solve::{Problem, Solution};
use chooser::{Chooser, ChosenSplit, LimitedStage};
use together::{CostsByChoice, Together, none_and_open};

/// For so many stages it is chosen at most until a split is found.
const MAX_CHOSEN: usize = 1_000;
/// So many stages are tried at most for each split of a sweep.
const MAX_STAGES_TRIED: u64 = 100_000;

/// Which layers are kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// By position.
    pub kept: Vec<bool>,
    /// Does no other choice that fits recompute less, in any stage?
    pub is_optimal: bool,
}

/// Does `memory` have a pipeline in which layers are chosen?
pub(super) fn is_chosen(memory: &MemoryModel<'_>) -> bool {
    let pipeline = memory.pipeline();
    pipeline.is_on() && memory.is_training() && pipeline.recompute == Recompute::Chosen
}

/// Chooses for the stages of what was `found`: those layers that recompute the least in each
/// stage. Takes what is found of them into `found`, and gives the model that has them; `None`
/// where that does not fit.
pub(super) fn choose<'a>(
    memory: &MemoryModel<'a>,
    found: &mut SearchResult,
) -> Result<Option<MemoryModel<'a>>, SearchError> {
    let mut chooser = Chooser::new(memory, found.costed.times.as_ref());
    let stages = PlacedStage::of_split(&found.stages).into_iter().enumerate();
    let stages = stages.map(|(ipu, stage)| (stage, found.costed.limit_of(ipu)));
    let stages: Vec<LimitedStage> = stages.collect();
    let known = found.costed.chosen.take();
    let split = match known.filter(|_| found.costed.request.given.is_none()) {
        Some(chosen) => {
            let memory = chooser.keeping(&chosen.kept)?;
            ChosenSplit {
                stages: memory.split(&found.stages),
                memory,
                chosen,
            }
        }
        None => chooser.split(&stages)?,
    };
    let is_over = |(peak, (_, limit)): (u64, &LimitedStage)| peak > *limit;
    if split.peaks().zip(&stages).any(is_over) {
        return Ok(None);
    }
    let times = found.costed.times.as_ref();
    found.costed.times = times.map(|times| times.keeping(&split.chosen.kept));
    found.memory = split.stages;
    found.too_large.clear();
    found.chosen = Some(split.chosen);
    Ok(Some(split.memory))
}

/// The best split where it is found together with what is chosen for its stages: where the
/// goal is a time, and all IPUs have one limit. `None` for others, and where nothing fits.
pub(super) fn solve_together(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    progress: &Progress,
) -> Result<Option<(Solution, Chosen)>, SearchError> {
    if !is_together(costed, memory) {
        return Ok(None);
    }
    with_together(costed, memory, progress, |together| {
        together.solution(&costed.problem())
    })
}

/// Are splits found together with what is chosen for their stages?
fn is_together(costed: &CostedRequest, memory: &MemoryModel<'_>) -> bool {
    let has_one_limit = costed.request.limits.len() == 1;
    is_chosen(memory) && has_one_limit && costed.request.goal.needs_cycles()
}

/// Calls `search` with what is known of all ranges.
fn with_together<T>(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    progress: &Progress,
    search: impl FnOnce(&mut Together<'_, '_>) -> Result<Option<T>, SearchError>,
) -> Result<Option<T>, SearchError> {
    let Some(times) = &costed.times else {
        return Ok(None);
    };
    let limit = costed.request.highest_limit();
    let [of_none, of_open] = &none_and_open(memory)?;
    let wanted = [(of_none, limit), (of_open, limit)];
    let costs = MemoryModel::costs_in_all(&wanted, costed.ipus, progress)?;
    let _task = progress.begin("choosing what to recompute", progress::Unit::Rows, 0);
    let [none, open] = &costs[..] else {
        return Ok(None);
    };
    let costs = CostsByChoice {
        none,
        layer: &costed.costs,
        open,
    };
    search(&mut Together::new(
        (memory, of_none),
        times,
        costs,
        (limit, MAX_CHOSEN),
    )?)
}

/// Puts what is chosen into the answers of a sweep that fit.
pub(super) fn choose_in_sweep(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    answers: &mut [SweepAnswer],
    progress: &Progress,
) -> Result<(), SearchError> {
    let fitting = answers.iter_mut().filter(|answer| answer.fits);
    if is_together(costed, memory) {
        let found = with_together(costed, memory, progress, |together| {
            for answer in fitting {
                let problem = Problem {
                    ipus: answer.ipus,
                    ..costed.problem()
                };
                if let Some(found) = together.best(&problem, MAX_STAGES_TRIED, |_| true)? {
                    let limit = costed.request.highest_limit();
                    answer.free = free_bytes(limit, found.split.score.peak);
                    answer.solution.plan = found.split.plan;
                    answer.solution.score = found.split.score;
                }
            }
            Ok(Some(()))
        });
        return found.map(drop);
    }
    let mut chooser = Chooser::new(memory, costed.times.as_ref());
    for answer in fitting {
        let stages = PlacedStage::of_split(answer.solution.plan.stages());
        let stages = stages.into_iter().enumerate();
        let stages = stages.map(|(ipu, stage)| (stage, costed.limit_of(ipu)));
        let stages: Vec<LimitedStage> = stages.collect();
        let split = chooser.split(&stages)?;
        let peaks: Vec<u64> = split.peaks().collect();
        let free = peaks.iter().zip(&stages);
        let free = free.map(|(&peak, (_, limit))| free_bytes(*limit, peak));
        answer.free = free.min().unwrap_or(0);
        let times = costed.times.as_ref();
        let times = times.map(|times| times.keeping(&split.chosen.kept));
        answer.solution.score =
            answer
                .solution
                .score
                .with(times.as_ref(), &answer.solution.plan, &peaks);
    }
    Ok(())
}
