//! From a model and a question to a split, with its proof or the reason why
//! there is none.
//!
//! [`SearchRequest`] is the question in the field's words. The search computes the
//! costs of the ranges of layers that can fit, asks the solver, and computes the stages
//! that it found in full: once, for everything that is shown of them.

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

/// How many stages of a pipeline are looked at when more IPUs are sought, unless
/// there are more IPUs than that.
const MOST_STAGES: usize = 64;

/// Splits of more positions, 400 layers with In and Out, are not tried: computing all their ranges takes longer than
/// the answer that was wanted.
const MAX_TRIED_POSITIONS: usize = 402;

/// Why a search has no result.
#[derive(Debug, Error)]
pub enum SearchError {
    /// More ranges than any real model has.
    #[error(transparent)]
    TooManyPlaces(#[from] TooManyPlaces),
    /// The request contradicts itself, or two ways to the same number do.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// Costs up to the limit and all costs lead to different answers.
    #[error("internal error: a split was found that was not found at first; {REPORT_THIS}")]
    FoundLater,
}

impl SearchError {
    /// Is this an error of the program, and not of what it was given?
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
    /// The question.
    pub costed: CostedRequest,
    /// The answer of the solver.
    pub outcome: Outcome,
    /// The split to show: the one that was given, or else the best. Empty when
    /// there is none, or none was requested.
    pub stages: Vec<Range<usize>>,
    /// The memory of these stages.
    pub memory: Vec<StageMemory>,
    /// The fewest IPUs that are enough, of those that the framework takes; `None` where
    /// nothing fits or a split was given, and of a search that proves nothing.
    pub fewest_ipus: Option<usize>,
    /// Where more IPUs are needed: the fewest that are enough and that the framework takes,
    /// and the best split on them.
    pub on_more_ipus: Option<(usize, Box<Solution>)>,
    /// The constraints that a given split breaks.
    pub broken: Vec<Constraint>,
    /// The best split for each number of IPUs, when that was requested; for some
    /// more than there are when other splits are to be tried.
    pub sweep: Option<Vec<SweepAnswer>>,
    /// The best split of all pipelines for each number of IPUs, where the request leaves the
    /// pipeline open; `sweep` has those of the pipeline of this answer.
    pub sweep_of_all: Option<Vec<SweepAnswer>>,
    /// The ranges of the certificate when nothing fits, and their memory.
    pub over_limit: Vec<(Range<usize>, StageMemory)>,
    /// Positions that are over the limit by themselves, when the split does not
    /// fit, and their memory.
    pub too_large: Vec<(usize, StageMemory)>,
    /// Bytes on the fullest tile of the split if its pipeline computed nothing
    /// again; `None` where it does not.
    pub without_recomputation: Option<u64>,
    /// The best whole configurations, when these were requested.
    pub plan: Option<Front>,
    /// The bytes of other pipelines, when nothing fits or moves were requested.
    pub alternatives: Vec<Alternative>,
    /// The changes that would free memory, where nothing fits.
    pub advice: Option<AdviceFor>,
    /// The estimate of all this, if it is not for the micro-batch of the profile.
    pub estimate: Option<Estimate>,
}

/// The answer of a solver.
#[derive(Debug)]
pub enum Outcome {
    /// The best split, which fits.
    Best(Box<Solution>),
    /// Nothing fits.
    Infeasible(Box<Infeasible>),
    /// The search of the original tool, which proves nothing.
    Greedy(Greedy),
}

impl Outcome {
    /// The best split, or the one that needs the least when none fits.
    pub fn best(&self) -> Option<&Solution> {
        match self {
            Outcome::Best(solution) => Some(solution),
            Outcome::Infeasible(infeasible) => infeasible.lowest_peak.as_ref(),
            Outcome::Greedy(_) => None,
        }
    }
}

/// Answers `request` in the pipeline of `memory`, telling `progress` how far it is.
///
/// # Errors
/// A request that contradicts itself, and whatever makes an answer uncertain.
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
    /// Computes the memory of what was found.
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

    /// Positions that cutting elsewhere does not help, ascending: by themselves they are over the
    /// limit, or where another IPU is left they are a stage of the best split that is over it.
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

    /// Does the split that is shown keep to all limits and constraints, with
    /// every position in a stage?
    pub fn fits(&self) -> bool {
        let placed = self.stages.last().map_or(0, |last| last.end);
        let mut stages = self.memory.iter().enumerate();
        placed == self.costed.costs.layers()
            && self.stages.len() <= self.costed.ipus
            && self.broken.is_empty()
            && stages.all(|(ipu, stage)| stage.max_tile_bytes() <= self.costed.limit_of(ipu))
    }
}

/// The stages of the split that was given, or else of the best one.
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
