//! A request, with what the solver needs to know for it, and the solver's answer.

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
    /// For how many stages `costs` were computed, if there are as many positions.
    stages: usize,
    /// Bytes over a cut after each position but the last.
    pub cut_bytes: Vec<u64>,
    /// The cycles of stages in the pipeline, and what a step takes, when the profile has
    /// cycles.
    pub times: Option<StageTimes>,
}

/// Which ranges are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// The bytes that they may need.
    pub(super) limit: u64,
    /// How many stages a split has at most.
    pub(super) stages: usize,
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
        memory.cut_bytes_by_pass()?,
        request.step,
    );
    Ok(Some(match memory.is_training() {
        true => times.streaming(&memory.streamed_state()?),
        false => times,
    }))
}

impl CostedRequest {
    /// A question whose costs are still to be computed.
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

    /// The ranges that are computed first: all where the request needs them or tries other
    /// splits; for more stages than there are IPUs where a few tiles show that nothing fits.
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

    /// Does the first limit tell that nothing fits?
    pub(super) fn is_refused_at(&self, limit: u64) -> bool {
        limit > self.request.highest_limit() && !self.request.needs_all_costs()
    }

    /// For how many stages costs are known where more IPUs are sought.
    pub(super) fn more_stages(&self) -> usize {
        self.request.ipus.highest().max(MOST_STAGES)
    }

    /// Computes the ranges of `reach`, and in the same pass over the tiles those of `others`.
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

    /// Takes as many IPUs as the model needs, where that is the question.
    pub(super) fn count_ipus(&mut self, framework: Framework) -> Result<(), SearchError> {
        if let IpuCount::UpTo(most) = self.request.ipus {
            let fewest = self.fewest_ipus(framework)?;
            self.ipus = fewest.map_or(most, |fewest| fewest.min(most));
        }
        Ok(())
    }

    /// The fewest IPUs that are enough and that the framework takes; `None` where no number
    /// is enough.
    pub(super) fn fewest_ipus(&self, framework: Framework) -> Result<Option<usize>, SearchError> {
        let fewest = solve::fewest_stages(&self.problem())?;
        Ok(fewest.map(|stages| taken(stages, framework)))
    }

    /// The best split on the fewest IPUs that are enough, where the IPUs there are do not do.
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
            let reach = Reach {
                limit: self.costs_up_to.saturating_mul(2),
                stages: self.stages,
            };
            self.compute_costs(memory, reach, &mut [], progress)?;
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

    /// The single positions that are over the highest limit.
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
