//! Searches for a split: from a model and a request to the best split with its proof, or to the
//! reason why there is none.
//!
//! [`SearchRequest`] is the request. [`PipelineCosts`] has the bytes of the ranges of layers that
//! can fit in one pipeline, from which the solver finds a [`Candidate`]: the best split of that
//! pipeline on one number of IPUs. A search chooses among the candidates of all pipelines that the
//! request leaves open (`candidates`), explains a refusal by other pipelines and changes of the
//! model (`advice`), and finds the splits that no other is better than (`plan`).
//! The stages of its split are computed in full, once for everything that is shown of them.

mod advice;
mod candidates;
mod pipeline_costs;
mod plan;
mod request;
mod result;
mod rough;
#[cfg(test)]
mod testing;

pub use advice::{Advice, AdviceFor, Change};
pub use candidates::{Candidate, free_bytes};
pub(crate) use pipeline_costs::near_cuts;
pub use pipeline_costs::{PipelineCosts, Question};
pub use plan::Front;
pub use request::{IpuCount, Reserve, SearchOptions, SearchRequest, Solver};
pub use result::{Answer, Estimate, Refused, SearchResult, ShownSplit};

use crate::memory::MemoryModel;
use crate::model::{Placement, TooManyPlaces};
use crate::progress::{Progress, Unit};
use crate::solve::{self, SolveError};
use candidates::{Candidates, Choice};
use thiserror::Error;

/// Reason why a search has no result.
#[derive(Debug, Error)]
pub enum SearchError {
    /// More ranges of layers than any real model has.
    #[error(transparent)]
    TooManyPlaces(#[from] TooManyPlaces),
    /// The request contradicts itself, or two ways of computing a number disagree.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

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
    let mut candidates = Candidates::new(usual)?;
    let choice = candidates.choose(progress)?;
    let mut costs = candidates.take(choice.place);
    let (mut answer, others) = costs.solve(choice, progress)?;
    let now = (costs.pipeline(), matches!(answer, Answer::Refused(_)));
    let alternatives = advice::best_of(others, now, progress)?;
    let (asks, is_one) = (costs.request(), candidates.is_one());
    let sweep = match costs.question.tries_all_ranges || asks.options.sweep && is_one {
        true => costs.sweep(&costs.swept(costs.ranges.stages()))?,
        false => Vec::new(),
    };
    let sweep_of_all = match asks.options.sweep && !is_one {
        true => Some(candidates.sweep(&costs.swept(usize::MAX), progress)?),
        false => None,
    };
    let task = progress.begin("computing stages", Unit::Rows, 0);
    let shown = ShownSplit::new(&costs, &answer)?;
    if let (Answer::Refused(refused), true) = (&mut answer, asks.options.split) {
        refused.advice = AdviceFor::new(&costs, &shown)?;
    }
    drop(task);
    let near = costs.near(&shown.stages, progress)?;
    let plan = match asks.options.plan {
        true => Some(plan::front(&candidates, (&costs, &answer), progress)?),
        false => None,
    };
    Ok(SearchResult {
        without_recomputation: costs.peak_without_recomputation(&shown.stages)?,
        answer,
        shown,
        near,
        alternatives,
        sweep,
        sweep_of_all,
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
        mut choice: Choice,
        progress: &Progress,
    ) -> Result<(Answer, Vec<Self>), SearchError> {
        let is_refused = choice.is_refused;
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
                let best = best.map(|best| Answer::of_best(self, best, choice.of_all.take()));
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
                Answer::refused(self, infeasible, choice.of_all)?
            }
        };
        Ok((answer, others))
    }
}
