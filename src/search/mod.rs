//! Searches for a split: from a model and a request to the best split with its proof, or to the
//! reason why there is none.
//!
//! [`SearchRequest`] is the request. The search computes the costs of the ranges of layers that can
//! fit, calls the solver, and computes the stages of its split in full, once for everything that is
//! shown of them.

mod advice;
mod alternatives;
mod configurations;
mod costed;
mod estimate;
mod open_pipelines;
mod request;
mod rough;
mod states;
mod swept;
#[cfg(test)]
mod testing;
mod ties;

pub use advice::{Advice, AdviceFor, Change};
pub use alternatives::Alternative;
pub use configurations::{Configuration, Front};
pub use costed::CostedRequest;
pub use estimate::Estimate;
pub use request::{IpuCount, Reserve, SearchRequest, Solver};
pub(crate) use states::search_states;
pub use swept::{SweepAnswer, free_bytes};

use crate::memory::{MemoryModel, PlacedStage, StageMemory};
use crate::message::REPORT_THIS;
use crate::model::{Placement, TooManyPlaces};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Constraint, Greedy, Infeasible, Solution, SolveError};
use std::ops::Range;
use thiserror::Error;

/// Number of stages that are considered if more IPUs are needed, unless there are more IPUs than
/// that.
const MOST_STAGES: usize = 64;

/// Other splits are not tried for more positions than this (400 layers with In and Out): computing
/// all their ranges takes longer than the answer itself.
const MAX_TRIED_POSITIONS: usize = 402;

/// Reason why a search has no result.
#[derive(Debug, Error)]
pub enum SearchError {
    /// More ranges of layers than any real model has.
    #[error(transparent)]
    TooManyPlaces(#[from] TooManyPlaces),
    /// The request contradicts itself, or two ways of computing a number disagree.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The costs up to the limit and all costs lead to different answers.
    #[error(
        "internal error: a second search found a split that the first one missed; \
             {REPORT_THIS}"
    )]
    FoundLater,
}

impl SearchError {
    /// Is this an error of the program, not of its input?
    pub fn is_internal(&self) -> bool {
        match self {
            SearchError::TooManyPlaces(_) => false,
            SearchError::Solve(error) => error.is_internal(),
            SearchError::FoundLater => true,
        }
    }
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchResult {
    /// The request, with its costs.
    pub costed: CostedRequest,
    /// The answer of the solver.
    pub outcome: Outcome,
    /// The split to show: the given one, or else the best. Empty if there is none, or none was
    /// requested.
    pub stages: Vec<Range<usize>>,
    /// Memory of these stages.
    pub memory: Vec<StageMemory>,
    /// Smallest sufficient number of IPUs that the framework supports; `None` if nothing fits, a
    /// split was given, or the solver proves nothing.
    pub fewest_ipus: Option<usize>,
    /// If more IPUs are needed: the smallest sufficient number that the framework supports, and the
    /// best split on them.
    pub on_more_ipus: Option<(usize, Box<Solution>)>,
    /// Constraints that a given split breaks.
    pub broken: Vec<Constraint>,
    /// The best split for each number of IPUs, if requested; for some more than there are if other
    /// splits are to be tried.
    pub sweep: Option<Vec<SweepAnswer>>,
    /// The best split of all pipelines for each number of IPUs, if the request leaves the pipeline
    /// open. `sweep` has the splits in the pipeline of this answer.
    pub sweep_of_all: Option<Vec<SweepAnswer>>,
    /// Ranges of the certificate if nothing fits, with their memory.
    pub over_limit: Vec<(Range<usize>, StageMemory)>,
    /// Positions that exceed the limit as stages of their own, with their memory, if the split does
    /// not fit.
    pub too_large: Vec<(usize, StageMemory)>,
    /// Bytes on the fullest tile of the split without recomputation; `None` if its pipeline has
    /// none.
    pub without_recomputation: Option<u64>,
    /// The best whole configurations, if requested.
    pub plan: Option<Front>,
    /// Best splits in other pipelines, if nothing fits or moves were requested.
    pub alternatives: Vec<Alternative>,
    /// Changes that would free memory, if nothing fits.
    pub advice: Option<AdviceFor>,
    /// The estimate that the answer rests on, if it is for another micro-batch than that of the
    /// profile.
    pub estimate: Option<Estimate>,
}

/// The answer of a solver.
#[derive(Debug)]
pub enum Outcome {
    /// The best split, which fits.
    Best(Box<Solution>),
    /// Nothing fits.
    Infeasible(Box<Infeasible>),
    /// The split of the original tool's search, which proves nothing.
    Greedy(Greedy),
}

impl Outcome {
    /// The best split, or the split with the lowest peak if none fits.
    pub fn best(&self) -> Option<&Solution> {
        match self {
            Outcome::Best(solution) => Some(solution),
            Outcome::Infeasible(infeasible) => infeasible.lowest_peak.as_ref(),
            Outcome::Greedy(_) => None,
        }
    }
}

/// Answers `request` in the pipeline of `memory`, and reports to `progress`.
///
/// # Errors
/// If the request contradicts itself, or the answer is uncertain.
fn search_with(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<SearchResult, SearchError> {
    let mut costed = CostedRequest::new(memory, placement, request)?;
    let reach = costed.first_reach(memory)?;
    let mut others = Vec::new();
    if costed.is_refused_at(reach.limit) {
        others = alternatives::others(&costed, memory)?;
    }
    costed.compute_costs(memory, reach, &mut others, progress)?;
    costed.count_ipus(memory.framework())?;
    let outcome = costed.solve(memory, &mut others, progress)?;
    let is_wanted = costed.request.moves || matches!(outcome, Outcome::Infeasible(_));
    if is_wanted && others.is_empty() {
        others = alternatives::others(&costed, memory)?;
        alternatives::compute_costs(&mut others, costed.more_stages(), progress)?;
    }
    let is_refused = matches!(outcome, Outcome::Infeasible(_));
    let refused = (memory.pipeline(), is_refused);
    let alternatives = alternatives::find(others, &costed, refused, progress)?;
    let sweep = costed.sweep(memory.pipeline())?;
    let on_more_ipus = costed.on_more_ipus(&outcome, memory.framework())?;
    let fewest_ipus = costed.fewest_beside(&outcome, sweep.as_deref(), memory.framework())?;
    let _task = progress.begin("computing stages", Unit::Rows, 0);
    let result = SearchResult::new(costed, outcome, memory)?;
    let advice = match is_refused && result.costed.request.split {
        true => AdviceFor::new(&result, memory, placement)?,
        false => None,
    };
    Ok(SearchResult {
        advice,
        alternatives,
        fewest_ipus,
        on_more_ipus,
        sweep,
        ..result
    })
}

impl SearchResult {
    /// Computes the memory of the stages to show.
    fn new(
        costed: CostedRequest,
        outcome: Outcome,
        memory: &MemoryModel<'_>,
    ) -> Result<Self, SearchError> {
        let request = &costed.request;
        let broken = match &request.given {
            Some(plan) => solve::evaluate(&costed.problem(), plan)?.broken,
            None => Vec::new(),
        };
        let over_limit = match &outcome {
            Outcome::Infeasible(infeasible) => infeasible.certificate.ranges.clone(),
            _ => Vec::new(),
        };
        let stages = if request.split {
            shown_stages(request, &outcome)
        } else {
            Vec::new()
        };
        let plain = alternatives::without_recomputation(memory)?;
        let peak = |plain: MemoryModel<'_>| {
            let peaks = plain.peaks(&PlacedStage::of_split(&stages));
            peaks.into_iter().max()
        };
        let mut result = Self {
            memory: memory.split(&stages),
            without_recomputation: plain.and_then(peak),
            stages,
            fewest_ipus: None,
            on_more_ipus: None,
            over_limit: over_limit
                .iter()
                .cloned()
                .zip(memory.stages(&over_limit))
                .collect(),
            costed,
            outcome,
            broken,
            sweep: None,
            sweep_of_all: None,
            too_large: Vec::new(),
            plan: None,
            alternatives: Vec::new(),
            advice: None,
            estimate: None,
        };
        if result.costed.request.split && !result.fits() {
            let alone = result.costed.positions_over_limit();
            let positions = alone.iter().map(|range| range.start);
            result.too_large = positions.zip(memory.stages(&alone)).collect();
        }
        Ok(result)
    }

    /// Positions for which other cuts do not help, ascending: they exceed the limit as stages of
    /// their own, or, if an IPU is left, are a stage of the best split that exceeds its limit.
    pub(crate) fn positions_over_limit(&self) -> Vec<usize> {
        let by_themselves = self.costed.positions_over_limit().into_iter();
        let stages = self.stages.iter().zip(&self.memory).enumerate();
        let is_over = |(ipu, (stage, memory)): &(usize, (&Range<usize>, &StageMemory))| {
            stage.len() == 1 && memory.max_tile_bytes() > self.costed.limit_of(*ipu)
        };
        let is_ipu_left = self.stages.len() < self.costed.ipus;
        let stages = stages.filter(|stage| is_ipu_left && is_over(stage));
        let stages = stages.map(|(_, (stage, _))| stage.clone());
        let mut positions: Vec<usize> = by_themselves
            .chain(stages)
            .map(|range| range.start)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Does the shown split keep to all limits and constraints, with every position in a stage?
    pub fn fits(&self) -> bool {
        let placed = self.stages.last().map_or(0, |last| last.end);
        let mut stages = self.memory.iter().enumerate();
        placed == self.costed.costs.layers()
            && self.stages.len() <= self.costed.ipus
            && self.broken.is_empty()
            && stages.all(|(ipu, stage)| stage.max_tile_bytes() <= self.costed.limit_of(ipu))
    }
}

/// Stages of the given split, or else of the best one.
fn shown_stages(request: &SearchRequest, outcome: &Outcome) -> Vec<Range<usize>> {
    match (&request.given, outcome) {
        (Some(plan), _) => plan.stages().to_vec(),
        (None, Outcome::Greedy(greedy)) => greedy.stages.clone(),
        (None, outcome) => {
            let best = outcome.best();
            best.map_or(Vec::new(), |best| best.plan.stages().to_vec())
        }
    }
}
