//! A request with all data for the solver, and the call of the solver.

use super::alternatives::{self, OtherPipeline};
use super::swept::taken;
use super::{
    IpuCount, MAX_TRIED_POSITIONS, MOST_STAGES, Outcome, SearchError, SearchRequest, Solver, rough,
    ties,
};
use crate::memory::{MemoryModel, RangeCosts};
use crate::model::{Framework, Placement};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Constraint, Limits, Problem, Solution};
use crate::time::StageTimes;
use std::ops::Range;

/// A request with all data for the solver.
#[derive(Debug)]
pub struct CostedRequest {
    /// The request.
    pub request: SearchRequest,
    /// Number of IPUs of the answer; with [`IpuCount::UpTo`], the number that the model needs.
    pub ipus: usize,
    /// Constraints of the request and of weights that several positions use.
    pub constraints: Vec<Constraint>,
    /// Bytes on the fullest tile of every range of positions that was computed.
    pub costs: RangeCosts,
    /// `costs` has at least the ranges that need no more bytes than this. It exceeds the limits if
    /// the request needs all ranges, or if nothing fits: then `costs` has the ranges of the best
    /// split, and of that split with a layer moved over a cut.
    pub costs_up_to: u64,
    /// Number of stages for which `costs` were computed.
    stages: usize,
    /// Bytes over a cut after each position but the last.
    pub cut_bytes: Vec<u64>,
    /// Times of stages and steps in the pipeline; `None` if the profile has no cycles.
    pub times: Option<StageTimes>,
}

/// Bounds on the ranges whose costs are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Maximum bytes of a range.
    pub(super) limit: u64,
    /// Maximum number of stages of a split.
    pub(super) stages: usize,
}

/// Times of stages in the pipeline of `memory`; `None` if the profile has no cycles.
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
        memory.cut_bytes_by_pass()?,
        request.step,
    );
    Ok(Some(match memory.is_training() {
        true => times.streaming(&memory.streamed_state()?),
        false => times,
    }))
}

impl CostedRequest {
    /// A request whose costs are still to be computed.
    pub(super) fn new(
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
            stages: 0,
            cut_bytes: memory.cut_bytes(),
            times: stage_times(memory, placement, &request)?,
            request,
        })
    }

    /// Bounds on the ranges that are computed first: all ranges if the request needs them or tries
    /// other splits, and more stages than IPUs if a few tiles show that nothing fits.
    pub(super) fn first_reach(&self, memory: &MemoryModel<'_>) -> Result<Reach, SearchError> {
        let request = &self.request;
        let limit = request.highest_limit();
        let stages = request.ipus.highest();
        let needed = match request.solver {
            _ if request.sweep || request.moves || request.given.is_some() => u64::MAX,
            Solver::Greedy => limit,
            Solver::Ilp => {
                let rough = rough::peak(memory, self)?;
                rough.map_or(u64::MAX, |rough| rough.limit(limit))
            }
        };
        Ok(match request.what_if {
            _ if needed > limit => Reach {
                limit: if request.what_if { u64::MAX } else { needed },
                stages: self.more_stages(),
            },
            true => Reach {
                limit: u64::MAX,
                stages: self.swept().last().copied().unwrap_or(stages),
            },
            false => Reach { limit, stages },
        })
    }

    /// Does the limit of the first ranges show that nothing fits?
    pub(super) fn is_refused_at(&self, limit: u64) -> bool {
        limit > self.request.highest_limit() && !self.request.needs_all_costs()
    }

    /// Number of stages for which costs are computed if more IPUs are considered.
    pub(super) fn more_stages(&self) -> usize {
        self.request.ipus.highest().max(MOST_STAGES)
    }

    /// Computes the costs within `reach`, and the costs of `others` in the same pass over the
    /// tiles.
    pub(super) fn compute_costs(
        &mut self,
        memory: &MemoryModel<'_>,
        reach: Reach,
        others: &mut [OtherPipeline<'_>],
        progress: &Progress,
    ) -> Result<(), SearchError> {
        let beside = others.iter().map(OtherPipeline::wanted);
        let pipelines = [(memory, reach.limit)].into_iter().chain(beside);
        let pipelines: Vec<_> = pipelines.collect();
        let costs = MemoryModel::costs_in_all(&pipelines, reach.stages, progress)?;
        let mut costs = costs.into_iter();
        self.costs = costs.next().unwrap_or_default();
        (self.costs_up_to, self.stages) = (reach.limit, reach.stages);
        for (other, costs) in others.iter_mut().zip(costs) {
            other.take(costs);
        }
        Ok(())
    }

    /// Sets the number of IPUs to what the model needs, if the request asks for that.
    pub(super) fn count_ipus(&mut self, framework: Framework) -> Result<(), SearchError> {
        if let IpuCount::UpTo(most) = self.request.ipus {
            let fewest = self.fewest_ipus(framework)?;
            self.ipus = fewest.map_or(most, |fewest| fewest.min(most));
        }
        Ok(())
    }

    /// Smallest sufficient number of IPUs that the framework supports; `None` if no number is
    /// sufficient.
    pub(super) fn fewest_ipus(&self, framework: Framework) -> Result<Option<usize>, SearchError> {
        let fewest = solve::fewest_stages(&self.problem())?;
        Ok(fewest.map(|stages| taken(stages, framework)))
    }

    /// If nothing fits on the given IPUs: the smallest sufficient number of IPUs, and the best
    /// split on them.
    pub(super) fn on_more_ipus(
        &self,
        outcome: &Outcome,
        framework: Framework,
    ) -> Result<Option<(usize, Box<Solution>)>, SearchError> {
        let Outcome::Infeasible(infeasible) = outcome else {
            return Ok(None);
        };
        let Some(fewest) = infeasible.fewest else {
            return Ok(None);
        };
        let ipus = taken(fewest, framework);
        let problem = Problem {
            ipus,
            ..self.problem()
        };
        let best = solve::solve(&problem)?;
        Ok(best.map(|best| (ipus, Box::new(best))))
    }

    /// Problem for the solver.
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

    /// Were costs computed beyond all limits?
    pub fn goes_beyond_limits(&self) -> bool {
        self.costs_up_to > self.request.highest_limit()
    }

    /// Maximum bytes on each tile of the stage on this IPU.
    pub fn limit_of(&self, ipu: usize) -> u64 {
        let limit = self.problem().limits.of(ipu);
        limit.unwrap_or(self.request.highest_limit())
    }

    pub(super) fn solve<'a>(
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
        let stages = self.more_stages();
        if !self.goes_beyond_limits() || self.stages < stages {
            let limit = self.request.highest_limit();
            let rough = rough::peak(memory, self)?;
            let beyond = rough.map_or(u64::MAX, |rough| rough.limit_beyond(limit));
            let limit = beyond.max(self.costs_up_to);
            *others = alternatives::others(self, memory)?;
            self.compute_costs(memory, Reach { limit, stages }, others, progress)?;
        }
        self.explain(memory, progress)
    }

    /// Explains why nothing fits. Raises the limit and computes more costs until they suffice.
    fn explain(
        &mut self,
        memory: &MemoryModel<'_>,
        progress: &Progress,
    ) -> Result<Outcome, SearchError> {
        loop {
            let task = progress.begin("solving", Unit::Rows, 0);
            // Both calls see the same costs up to the limit.
            let infeasible = solve::explain(&self.problem())?.ok_or(SearchError::FoundLater)?;
            drop(task);
            if self.is_enough_for(infeasible.lowest_peak.as_ref()) {
                return Ok(Outcome::Infeasible(Box::new(infeasible)));
            }
            let reach = Reach {
                limit: self.costs_up_to.saturating_mul(2),
                stages: self.stages,
            };
            self.compute_costs(memory, reach, &mut [], progress)?;
        }
    }

    /// Is `best` certain to have the lowest peak, even if longer ranges were computed, and are the
    /// costs known for moving its layers over a cut?
    fn is_enough_for(&self, best: Option<&Solution>) -> bool {
        let is_best = |best: &Solution| {
            best.score.peak <= self.costs_up_to
                && rough::least_when_moved(&self.costs, &best.plan).is_some()
        };
        rough::has_all(&self.costs) || best.is_some_and(is_best)
    }

    /// Single positions that exceed the highest limit.
    pub(super) fn positions_over_limit(&self) -> Vec<Range<usize>> {
        let highest = self.request.highest_limit();
        let alone = (0..self.costs.layers()).map(|position| position..position + 1);
        let is_over = |range: &Range<usize>| {
            let peak = self.costs.least(range.clone());
            peak.is_none_or(|peak| peak > highest)
        };
        alone.filter(is_over).collect()
    }
}
