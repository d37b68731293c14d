//! Searches for a split: takes a model and a request, and returns the best split with a proof, or
//! the reason why there is none.
//!
//! [`SearchRequest`] is the request. [`PipelineCosts`] has the bytes of the ranges of layers in one
//! pipeline, from which the solver finds a [`Candidate`]: the best split of that pipeline on one
//! number of IPUs. `open_pipelines` makes the table of all candidates, chooses the pipeline of the
//! answer, and also serves `--sweep` and `--plan` (`plan`). If nothing fits, `advice` tries other
//! pipelines and changes of the model. The memory of the stages of the shown split is computed in
//! full, once for all that reports show of it.

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

pub use advice::{Advice, AdviceFor, Change, OverLimit};
pub use candidate::{Candidate, free_bytes};
pub use error::SearchError;
pub(crate) use pipeline_costs::near_cuts;
pub use pipeline_costs::{PipelineCosts, Question};
pub use plan::Front;
pub use request::{IpuCount, Reserve, SearchOptions, SearchRequest, Solver};
pub use result::{Answer, Refused, SearchResult};
pub use shown_split::ShownSplit;

use crate::memory::MemoryModel;
use crate::model::Placement;
use crate::progress::Progress;
use crate::solve;
use open_pipelines::{ChosenPipeline, OpenPipelines};

/// Searches for the best split by the goal of `request`, in the best of the pipelines that the
/// request leaves open. The optimizer state is in one place after the other, among the places that
/// the request leaves open, until a split fits; if none fits in any place, the answer is that of
/// the first place. `memory` is the model in the usual pipeline of its framework. That no split
/// fits is a result, not an error.
///
/// # Errors
/// If the request contradicts itself, two ways of computing a number disagree, or layers share
/// variables in more combinations than in any real model.
pub(crate) fn search<'a>(
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

/// Answers the request of `usual`, which is in the usual pipeline, in the best of the pipelines
/// that the request leaves open.
fn in_pipelines<'a>(
    usual: PipelineCosts<'a>,
    progress: &Progress,
) -> Result<SearchResult<'a>, SearchError> {
    let mut open = OpenPipelines::new(usual)?;
    let chosen = open.choose(progress)?;
    let mut costs = open.take(chosen.index);
    let (mut answer, others) = costs.solve(chosen, progress)?;
    let now = (costs.pipeline(), matches!(answer, Answer::Refused(_)));
    let alternatives = advice::best_in_each(others, now, progress)?;
    let asks = &costs.request().options;
    let sweep = if asks.sweep && open.len() > 1 {
        open.sweep(&costs.swept_ipus(), progress)?
    } else if asks.sweep || costs.question.tries_all_ranges {
        costs.sweep(&costs.swept_ipus())?
    } else {
        Vec::new()
    };
    let task = progress.begin("computing stages", 0);
    let shown = ShownSplit::new(&costs, answer.shown(costs.request()))?;
    if let (Answer::Refused(refused), true) = (&mut answer, asks.split) {
        refused.advice = AdviceFor::new(&costs, &shown)?;
    }
    drop(task);
    let near = costs.near(&shown.stages, progress)?;
    let best = answer
        .best()
        .filter(|_| matches!(answer, Answer::Best { .. }));
    let plan = asks
        .plan
        .then(|| plan::front(&open, (&costs, best), progress));
    Ok(SearchResult {
        without_recomputation: costs.peak_without_recomputation(&shown.stages)?,
        answer,
        shown,
        near,
        alternatives,
        sweep,
        open_pipelines: open.len(),
        plan: plan.transpose()?,
        costs,
    })
}

impl PipelineCosts<'_> {
    /// Solves the request in this pipeline, which is the `chosen` one. Also returns the request in
    /// other pipelines, with their costs, if nothing fits or the report shows how cuts can be
    /// moved; otherwise an empty list.
    fn solve(
        &mut self,
        mut chosen: ChosenPipeline,
        progress: &Progress,
    ) -> Result<(Answer, Vec<Self>), SearchError> {
        let is_refused = chosen.is_refused;
        let mut others = Vec::new();
        if is_refused {
            others = self.alternatives()?;
        }
        self.compute_with(is_refused, &mut others, progress)?;
        self.count_ipus()?;
        let limit = self.request().highest_limit();
        let solved = match self.request().options.solver {
            Solver::Greedy => {
                let greedy = solve::greedy(&self.ranges, limit, self.ipus);
                Some(Answer::Greedy(greedy))
            }
            Solver::Ilp => {
                let _task = progress.begin("solving", 0);
                let best = solve::solve(&self.problem())?;
                let best = best.map(|best| Answer::of_best(self, best, chosen.of_all.take()));
                best.transpose()?
            }
        };
        if !is_refused && (solved.is_none() || self.request().options.moves) {
            others = self.alternatives()?;
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
