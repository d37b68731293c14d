//! Searches for a split: from a model and a request to the best split with its proof, or to the
//! reason why there is none.
//!
//! [`SearchRequest`] is the request. [`PipelineCosts`] has the bytes of the ranges of layers that
//! can fit in one pipeline, from which the solver finds a [`Candidate`]: the best split of that
//! pipeline on one number of IPUs. `open_pipelines` makes the table of all candidates, chooses the
//! pipeline of the answer, and says what other questions the table answers: `--sweep`, and `--plan`
//! (`plan`). If nothing fits, `advice` tries other pipelines and changes of the model.
//! The stages of the split are computed in full, once for everything that is shown of them.

mod advice;
mod candidate;
mod enough_costs;
mod error;
mod few_tiles;
mod open_pipelines;
mod pipeline_costs;
mod plan;
mod request;
mod result;
mod shown_split;
#[cfg(test)]
mod testing;

pub use advice::{Advice, AdviceFor, Change};
pub use candidate::{Candidate, free_bytes};
pub use error::SearchError;
pub(crate) use pipeline_costs::near_cuts;
pub use pipeline_costs::{PipelineCosts, Question};
pub use plan::Front;
pub use request::{IpuCount, Reserve, SearchOptions, SearchRequest, Solver};
pub use result::{Answer, Estimate, Refused, SearchResult};
pub use shown_split::ShownSplit;

use crate::memory::MemoryModel;
use crate::model::Placement;
use crate::progress::{Progress, Unit};
use crate::solve;
use open_pipelines::{ChosenPipeline, OpenPipelines};

/// Answers `request` for the micro-batch that it asks for; `memory` is in the usual pipeline. The
/// answer is in the best of the pipelines that the request leaves open.
///
/// # Errors
/// If the request contradicts itself, or the answer is uncertain.
pub(crate) fn search<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<SearchResult<'a>, SearchError> {
    let Some(scale) = request.scale() else {
        return in_states(memory, placement, request, progress);
    };
    let estimated = memory.at_micro_batch(scale);
    let found = in_states(&estimated, placement, request.at(scale), progress)?;
    Ok(SearchResult {
        estimate: Some(Estimate::new(scale, memory, &found.costs)?),
        ..found
    })
}

/// Answers `request` with the optimizer state in the first of the places that it leaves open in
/// which the split fits, or else in the first place.
fn in_states<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<SearchResult<'a>, SearchError> {
    let search = |memory: &MemoryModel<'a>| {
        let usual = PipelineCosts::new(memory, placement, request.clone())?;
        in_pipelines(usual, progress)
    };
    let first = search(memory)?;
    if first.shown.fits || !request.options.split {
        return Ok(first);
    }
    for &state in request.options.pipeline.states().iter().skip(1) {
        let pipeline = memory.pipeline();
        let other = pipeline.with_state(state, request.options.pipeline.replicas);
        let found = search(&memory.in_pipeline(other)?)?;
        if found.shown.fits {
            return Ok(found);
        }
    }
    Ok(first)
}

/// Answers a request in the best of the pipelines that it leaves open.
fn in_pipelines<'a>(
    usual: PipelineCosts<'a>,
    progress: &Progress,
) -> Result<SearchResult<'a>, SearchError> {
    let mut open = OpenPipelines::new(usual)?;
    let chosen = open.choose(progress)?;
    let mut costs = open.take(chosen.index);
    let (mut answer, others) = costs.solve(chosen, progress)?;
    let now = (costs.pipeline(), matches!(answer, Answer::Refused(_)));
    let alternatives = advice::best_of(others, now, progress)?;
    let asks = &costs.request().options;
    let sweep = if asks.sweep && open.len() > 1 {
        open.sweep(&costs.swept(), progress)?
    } else if asks.sweep || costs.question.tries_all_ranges {
        costs.sweep(&costs.swept())?
    } else {
        Vec::new()
    };
    let task = progress.begin("computing stages", Unit::Rows, 0);
    let shown = ShownSplit::new(&costs, answer.shown(costs.request()))?;
    if let (Answer::Refused(refused), true) = (&mut answer, asks.split) {
        refused.advice = AdviceFor::new(&costs, &shown)?;
    }
    drop(task);
    let near = costs.near(&shown.stages, progress)?;
    let best = answer
        .best()
        .filter(|_| matches!(answer, Answer::Best { .. }));
    let plan = match asks.plan {
        true => Some(plan::front(&open, (&costs, best), progress)?),
        false => None,
    };
    Ok(SearchResult {
        without_recomputation: costs.peak_without_recomputation(&shown.stages)?,
        answer,
        shown,
        near,
        alternatives,
        sweep,
        open_pipelines: open.len(),
        plan,
        estimate: None,
        costs,
    })
}

impl PipelineCosts<'_> {
    /// Solves the request for one pipeline. Also returns the costs (bytes of every range of layers) of
    /// other schedules and recomputations, if nothing fits or the report shows how cuts can be moved.
    fn solve(
        &mut self,
        mut chosen: ChosenPipeline,
        progress: &Progress,
    ) -> Result<(Answer, Vec<Self>), SearchError> {
        let is_refused = chosen.is_refused;
        let mut others = match is_refused {
            true => self.others()?,
            false => Vec::new(),
        };
        self.compute_with(is_refused, &mut others, progress)?;
        self.count_ipus()?;
        let limit = self.request().highest_limit();
        let solved = match self.request().options.solver {
            Solver::Greedy => {
                let greedy = solve::greedy(&self.ranges, limit, self.ipus);
                Some(Answer::Greedy(greedy))
            }
            Solver::Ilp => {
                let _task = progress.begin("solving", Unit::Rows, 0);
                let best = solve::solve(&self.problem())?;
                let best = best.map(|best| Answer::of_best(self, best, chosen.of_all.take()));
                best.transpose()?
            }
        };
        if !is_refused && (solved.is_none() || self.request().options.moves) {
            others = self.others()?;
            self.compute_with(solved.is_none(), &mut others, progress)?;
        }
        let answer = match solved {
            Some(answer) => answer,
            None => {
                let infeasible = self.explain(progress)?;
                Answer::refused(self, infeasible, chosen.of_all)?
            }
        };
        Ok((answer, others))
    }
}
