//! From a model and a question to a split, with its proof or the reason why
//! there is none.
//!
//! [`SearchRequest`] is the question in the field's words. [`search`] computes the
//! costs of the ranges of layers that can fit, asks the solver, and computes the stages
//! that it found in full: once, for everything that is shown of them.

mod alternatives;
mod front;
mod request;
mod rough;
mod states;
mod ties;

pub use alternatives::Alternative;
use alternatives::OtherPipeline;
pub use front::{Configuration, Front};
pub use request::{IpuCount, Reserve, SearchRequest, Solver};
pub(crate) use states::search_states;

use crate::memory::{MemoryModel, RangeCosts, StageMemory};
use crate::message::REPORT_THIS;
use crate::model::{Framework, Placement, TooManyPlaces};
use crate::progress::{Progress, Unit};
use crate::solve::{
    self, Constraint, Goal, Greedy, Infeasible, Limits, Problem, Solution, SolveError,
};
use crate::time::StageTimes;
use std::ops::Range;
use thiserror::Error;

/// How many stages of a pipeline are looked at when more IPUs are sought, unless
/// there are more IPUs than that.
const MOST_STAGES: usize = 64;

/// Up to how many IPUs, at least, the best split is known where other numbers of
/// them can be tried: those of a POD16.
const TRIED_IPUS: usize = 16;
/// Splits of more positions are not tried: computing all their ranges takes longer than
/// the answer that was wanted.
const MAX_TRIED_POSITIONS: usize = 400;

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

/// A request, and all that the solver needs to know for it.
#[derive(Debug)]
pub struct CostedRequest {
    /// The request.
    pub request: SearchRequest,
    /// How many IPUs the answer is for: with [`IpuCount::UpTo`], as many as the
    /// model needs.
    pub ipus: usize,
    /// The constraints of the request, and weights that several positions use.
    pub constraints: Vec<Constraint>,
    /// Bytes on the fullest tile of every range of positions that was computed.
    pub costs: RangeCosts,
    /// `costs` has the ranges that need at most this at least. Beyond the limits these
    /// are all where the request needs that; where nothing fits, those of the best
    /// split, and of it with a layer moved over a cut.
    pub costs_up_to: u64,
    /// Bytes over a cut after each position but the last.
    pub cut_bytes: Vec<u64>,
    /// The cycles of stages in the pipeline, and what a step takes, when the profile has
    /// cycles.
    pub times: Option<StageTimes>,
}

/// What a search found.
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
    /// The constraints that a given split breaks.
    pub broken: Vec<Constraint>,
    /// The best split for each number of IPUs, when that was requested; for some
    /// more than there are when other splits are to be tried.
    pub sweep: Option<Vec<SweepAnswer>>,
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
    /// What other pipelines would need, when nothing fits or moves were requested.
    pub alternatives: Vec<Alternative>,
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

/// The best split for one number of IPUs.
#[derive(Debug)]
pub struct SweepAnswer {
    /// How many IPUs there are.
    pub ipus: usize,
    /// Does it fit? Else it is the split that needs the least.
    pub fits: bool,
    /// The split.
    pub solution: Solution,
    /// What its stages leave free of their limits at least, in bytes; below 0
    /// when it does not fit.
    pub free: i64,
}

/// Answers `request` for the model of `memory`.
///
/// # Errors
/// A request that contradicts itself, and whatever makes an answer uncertain.
pub fn search(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    request: SearchRequest,
) -> Result<SearchResult, SearchError> {
    search_with(memory, placement, request, &Progress::new())
}

/// The same, telling `progress` how far it is.
pub(crate) fn search_with(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<SearchResult, SearchError> {
    let mut costed = CostedRequest::new(memory, placement, request)?;
    let limit = costed.first_limit(memory)?;
    let mut others = Vec::new();
    if costed.is_refused_at(limit) {
        others = alternatives::others(&costed, memory)?;
    }
    costed.compute_costs(memory, limit, &mut others, progress)?;
    costed.count_ipus(memory.framework())?;
    let outcome = costed.solve(memory, &mut others, progress)?;
    let is_wanted = costed.request.moves || matches!(outcome, Outcome::Infeasible(_));
    if is_wanted && others.is_empty() {
        others = alternatives::others(&costed, memory)?;
        alternatives::compute_costs(&mut others, &costed, progress)?;
    }
    let is_refused = matches!(outcome, Outcome::Infeasible(_));
    let own = (memory.pipeline(), is_refused);
    let alternatives = alternatives::find(others, &costed, own, progress)?;
    let plan = costed
        .request
        .plan
        .then(|| front::front(&costed, memory, progress));
    let plan = plan.transpose()?;
    let fewest_ipus = costed.fewest_beside(&outcome, memory.framework())?;
    let _task = progress.begin("computing stages", Unit::Rows, 0);
    let result = SearchResult::new(costed, outcome, memory)?;
    Ok(SearchResult {
        alternatives,
        fewest_ipus,
        plan,
        ..result
    })
}

/// The times of stages in the pipeline of `memory`.
fn stage_times(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    request: &SearchRequest,
) -> Result<Option<StageTimes>, SearchError> {
    let Some(cycles) = &request.cycles else {
        return Ok(None);
    };
    let times = StageTimes::new(
        cycles,
        &placement.positions,
        (memory.pipeline(), memory.is_training()),
        memory.cut_bytes_by_pass(),
        request.step,
    );
    Ok(Some(match memory.is_training() {
        true => times.streaming(&memory.streamed()?),
        false => times,
    }))
}

impl CostedRequest {
    /// A question whose costs are still to be computed.
    fn new(
        memory: &MemoryModel<'_>,
        placement: &Placement,
        mut request: SearchRequest,
    ) -> Result<Self, SearchError> {
        request.what_if &= memory.layers() <= MAX_TRIED_POSITIONS;
        let mut constraints = request.constraints.clone();
        if request.solver == Solver::Ilp {
            constraints.extend(ties::constraints(placement));
        }
        let ipus = request.ipus.highest();
        Ok(Self {
            ipus,
            constraints,
            costs: RangeCosts::default(),
            costs_up_to: 0,
            cut_bytes: memory.cut_bytes(),
            times: stage_times(memory, placement, &request)?.map(|own| own.for_stages(ipus)),
            request,
        })
    }

    /// How many bytes ranges of positions may need that are computed first: more than
    /// the limit where a few tiles show that nothing fits.
    fn first_limit(&self, memory: &MemoryModel<'_>) -> Result<u64, SearchError> {
        let limit = self.request.highest_limit();
        match self.request.solver {
            _ if self.request.needs_all_costs() => Ok(u64::MAX),
            Solver::Greedy => Ok(limit),
            Solver::Ilp => {
                let rough = rough::peak(memory, self)?;
                Ok(rough.map_or(u64::MAX, |rough| rough.limit(limit)))
            }
        }
    }

    /// Does this first limit tell that nothing fits?
    fn is_refused_at(&self, limit: u64) -> bool {
        limit > self.request.highest_limit() && !self.request.needs_all_costs()
    }

    /// For how many stages the costs are that go up to `limit`.
    fn stages_at(&self, limit: u64) -> usize {
        let ipus = self.request.ipus.highest();
        if limit > self.request.highest_limit() || self.request.needs_all_costs() {
            ipus.max(MOST_STAGES)
        } else {
            ipus
        }
    }

    /// Computes the ranges that need at most `limit` bytes, and in the same pass over
    /// the tiles those of `others`.
    fn compute_costs(
        &mut self,
        memory: &MemoryModel<'_>,
        limit: u64,
        others: &mut [OtherPipeline<'_>],
        progress: &Progress,
    ) -> Result<(), SearchError> {
        let beside = others.iter().map(OtherPipeline::wanted);
        let pipelines: Vec<_> = [(memory, limit)].into_iter().chain(beside).collect();
        let stages = self.stages_at(limit);
        let mut costs = MemoryModel::costs_in_all(&pipelines, stages, progress)?.into_iter();
        self.costs = costs.next().unwrap_or_default();
        self.costs_up_to = limit;
        for (other, costs) in others.iter_mut().zip(costs) {
            other.take(costs);
        }
        Ok(())
    }

    /// Takes as many IPUs as the model needs, where that is the question.
    fn count_ipus(&mut self, framework: Framework) -> Result<(), SearchError> {
        if let IpuCount::UpTo(most) = self.request.ipus {
            let fewest = self.fewest_ipus(framework)?;
            self.ipus = fewest.map_or(most, |fewest| fewest.min(most));
            self.times = self.times.take().map(|own| own.for_stages(self.ipus));
        }
        Ok(())
    }

    /// The fewest IPUs that are enough and that the framework takes; `None` where no number
    /// is enough.
    fn fewest_ipus(&self, framework: Framework) -> Result<Option<usize>, SearchError> {
        let fewest = solve::fewest_stages(&self.problem())?;
        Ok(fewest.map(|stages| match framework {
            Framework::Poptorch => stages.next_power_of_two(),
            _ => stages,
        }))
    }

    /// The fewest IPUs that are enough, beside the best split.
    fn fewest_beside(
        &self,
        outcome: &Outcome,
        framework: Framework,
    ) -> Result<Option<usize>, SearchError> {
        let Outcome::Best(best) = outcome else {
            return Ok(None);
        };
        match self.request.ipus {
            _ if !self.request.split || self.request.given.is_some() => Ok(None),
            IpuCount::UpTo(_) => Ok(Some(self.ipus)),
            IpuCount::Exactly(_) if best.score.stages == 1 => Ok(Some(1)),
            IpuCount::Exactly(_) => self.fewest_ipus(framework),
        }
    }

    /// The question to the solver.
    pub fn problem(&self) -> Problem<'_> {
        Problem {
            costs: &self.costs,
            cut_bytes: &self.cut_bytes,
            times: self.times.as_ref(),
            ipus: self.ipus,
            limits: Limits::new(&self.request.limits).first(self.ipus),
            constraints: &self.constraints,
            goal: self.request.goal,
        }
    }

    /// Were ranges computed that are over all limits?
    pub fn goes_beyond_limits(&self) -> bool {
        self.costs_up_to > self.request.highest_limit()
    }

    /// Bytes that a stage on this IPU may take on each tile.
    pub fn limit_of(&self, ipu: usize) -> u64 {
        let own = self.problem().limits.of(ipu);
        own.unwrap_or(self.request.highest_limit())
    }

    fn solve<'a>(
        &mut self,
        memory: &MemoryModel<'a>,
        others: &mut Vec<OtherPipeline<'a>>,
        progress: &Progress,
    ) -> Result<Outcome, SearchError> {
        if self.request.solver == Solver::Greedy {
            let limit = self.request.highest_limit();
            return Ok(Outcome::Greedy(solve::greedy(
                &self.costs,
                limit,
                self.ipus,
            )));
        }
        let task = progress.begin("solving", Unit::Rows, 0);
        if let Some(solution) = solve::solve(&self.problem())? {
            return Ok(Outcome::Best(Box::new(solution)));
        }
        drop(task);
        if !self.goes_beyond_limits() {
            let limit = self.request.highest_limit();
            let rough = rough::peak(memory, self)?;
            let beyond = rough.map_or(u64::MAX, |rough| rough.limit_beyond(limit));
            *others = alternatives::others(self, memory)?;
            self.compute_costs(memory, beyond, others, progress)?;
        }
        self.explain(memory, progress)
    }

    /// Why nothing fits. Computes longer ranges until they are enough for that.
    fn explain(
        &mut self,
        memory: &MemoryModel<'_>,
        progress: &Progress,
    ) -> Result<Outcome, SearchError> {
        loop {
            let task = progress.begin("solving", Unit::Rows, 0);
            // Both see the same costs, up to the limit.
            let infeasible = solve::explain(&self.problem())?.ok_or(SearchError::FoundLater)?;
            drop(task);
            if self.is_enough_for(infeasible.lowest_peak.as_ref()) {
                return Ok(Outcome::Infeasible(Box::new(infeasible)));
            }
            let limit = self.costs_up_to.saturating_mul(2);
            self.compute_costs(memory, limit, &mut [], progress)?;
        }
    }

    /// Is this the split that needs the least, whatever longer ranges need, and are all
    /// known that it has with a layer moved?
    fn is_enough_for(&self, best: Option<&Solution>) -> bool {
        let is_best = |best: &Solution| {
            best.score.peak <= self.costs_up_to
                && rough::least_when_moved(&self.costs, &best.plan).is_some()
        };
        rough::has_all(&self.costs) || best.is_some_and(is_best)
    }

    /// How many IPUs a sweep goes up to: with limits by IPU there are no more.
    fn swept_ipus(&self) -> usize {
        let is_open = self.request.what_if || matches!(self.request.ipus, IpuCount::UpTo(_));
        if !is_open || self.request.limits.len() > 1 {
            return self.ipus;
        }
        let most = self.costs.stages().min(self.costs.layers());
        self.ipus.max(TRIED_IPUS.min(most))
    }

    /// The best split for each number of IPUs; where none fits, the one that
    /// would need the least.
    fn sweep(&self) -> Result<Vec<SweepAnswer>, SearchError> {
        let problem = Problem {
            ipus: self.swept_ipus(),
            ..self.problem()
        };
        let fitting = solve::sweep(&problem)?;
        let mut others = vec![None; fitting.len()];
        if fitting.iter().any(Option::is_none) {
            others = solve::sweep(&Problem {
                limits: Limits::Same(u64::MAX),
                goal: Goal::Peak,
                ..problem
            })?;
        }
        let answers = fitting.into_iter().zip(others).enumerate();
        let answers = answers.filter_map(|(number, (fitting, other))| {
            let fits = fitting.is_some();
            let solution = fitting.or(other)?;
            Some(SweepAnswer {
                ipus: number + 1,
                fits,
                free: free(&problem, &solution),
                solution,
            })
        });
        Ok(answers.collect())
    }

    /// The single positions that are over the highest limit.
    fn positions_over_limit(&self) -> Vec<Range<usize>> {
        let highest = self.request.highest_limit();
        let alone = (0..self.costs.layers()).map(|position| position..position + 1);
        let is_over = |range: &Range<usize>| {
            let peak = self.costs.least(range.clone());
            peak.is_none_or(|peak| peak > highest)
        };
        alone.filter(is_over).collect()
    }
}

/// What the stages of a split leave free of their limits, at least.
fn free(problem: &Problem<'_>, solution: &Solution) -> i64 {
    let stages = solution.plan.with_after().enumerate();
    let free = stages.filter_map(|(stage, (range, after))| {
        let limit = problem.limits.of(stage)?;
        let peak = problem.costs.peak(range.clone(), after)?;
        Some(free_bytes(limit, peak))
    });
    free.min().unwrap_or(0)
}

/// What is free of `limit` with `bytes` bytes in use; below 0 when they are
/// more. Beyond what JSON readers take it stays at the last number that they do.
pub fn free_bytes(limit: u64, bytes: u64) -> i64 {
    let free = i128::from(limit) - i128::from(bytes);
    i64::try_from(free).unwrap_or(if free < 0 { i64::MIN } else { i64::MAX })
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
        let is_swept = request.sweep || request.what_if;
        let sweep = is_swept.then(|| costed.sweep()).transpose()?;
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
        let (of_stages, without_recomputation) = match &plain {
            Some(plain) => memory.split_beside(plain, &stages),
            None => (memory.split(&stages), None),
        };
        let mut result = Self {
            memory: of_stages,
            stages,
            fewest_ipus: None,
            over_limit: over_limit
                .iter()
                .cloned()
                .zip(memory.stages(&over_limit))
                .collect(),
            costed,
            outcome,
            broken,
            sweep,
            too_large: Vec::new(),
            without_recomputation,
            plan: None,
            alternatives: Vec::new(),
        };
        if result.costed.request.split && !result.fits() {
            let alone = result.costed.positions_over_limit();
            let positions = alone.iter().map(|range| range.start);
            result.too_large = positions.zip(memory.stages(&alone)).collect();
        }
        Ok(result)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_keep_their_sign() {
        assert_eq!(free_bytes(5, 7), -2);
        assert_eq!(free_bytes(u64::MAX, 0), i64::MAX);
        assert_eq!(free_bytes(0, u64::MAX), i64::MIN);
    }
}
