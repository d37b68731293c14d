//! Estimates the peak of the best split from a few tiles. If a model does not fit, costs are then
//! only computed for ranges as long as that split can have.
//!
//! Results do not depend on the accuracy of the estimate. All tiles together need no less than a
//! few of them, so a split that does not fit on a few does not fit; and a split is only considered
//! the best if all ranges with no higher peak were computed.

use super::pipeline_costs::compute_costs;
use super::{Candidate, PipelineCosts, SearchError, Solver};
use crate::memory::RangeCosts;
use crate::progress::{Progress, Unit};
use crate::solve::{self, Infeasible, Plan, Problem, Solution, SolveError};

/// Bytes of the split that is best on a few tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rough {
    /// Bytes on the fullest of these tiles.
    peak: u64,
    /// Smallest bytes of its stages if a layer is moved over a cut; `None` if unknown.
    moved: Option<u64>,
}

impl Rough {
    /// Can a split fit in `limit`?
    pub(super) fn fits(&self, limit: u64) -> bool {
        self.peak <= limit
    }

    /// Limit for ranges whose costs explain why nothing fits in `limit`.
    pub(super) fn limit_beyond(&self, limit: u64) -> u64 {
        let moved = self
            .moved
            .unwrap_or(self.peak.saturating_add(self.peak / 2));
        let both = with_margin(self.peak.max(moved));
        both.max(limit.saturating_add(1))
    }
}

/// Adds a margin, since all tiles may need more than a few.
fn with_margin(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 16)
}

/// Estimates the best split on a few tiles; `None` if there is no split whatever the limit.
fn peak(pipeline: &PipelineCosts<'_>) -> Result<Option<Rough>, SearchError> {
    let mut limit = pipeline.request().highest_limit().max(1);
    loop {
        let costs = &pipeline.memory.costs_on_few_tiles(limit, pipeline.ipus)?;
        let problem = Problem {
            costs,
            ..pipeline.problem()
        };
        if let Some(lowest) = solve::unproven(&problem.at_any_limit())? {
            return Ok(Some(Rough {
                peak: lowest.score.peak,
                moved: least_when_moved(costs, &lowest.plan),
            }));
        }
        if has_all(costs) {
            return Ok(None);
        }
        limit = limit.saturating_mul(2);
    }
}

/// Are these the costs of all ranges?
fn has_all(costs: &RangeCosts) -> bool {
    costs.least(0..costs.layers()).is_some() || costs.layers() == 0
}

/// Highest bytes of a stage of `plan` to which the neighbouring layer is moved over a cut; `None`
/// if costs are missing.
fn least_when_moved(costs: &RangeCosts, plan: &Plan) -> Option<u64> {
    let mut highest = 0;
    for sides in plan.stages().windows(2) {
        let (start, at, end) = (sides[0].start, sides[0].end, sides[1].end);
        let back = (at > start + 1).then(|| at - 1..end);
        let on = (at + 1 < end).then(|| start..at + 1);
        for range in back.into_iter().chain(on) {
            highest = highest.max(costs.least(range)?);
        }
    }
    Some(highest)
}

impl PipelineCosts<'_> {
    /// Estimates the best split from a few tiles.
    pub(super) fn estimate(&mut self) -> Result<(), SearchError> {
        self.rough = peak(self)?;
        Ok(())
    }

    /// Does the estimate from a few tiles show that nothing fits?
    pub(super) fn cannot_fit(&self) -> bool {
        let request = self.request();
        let fits = |rough: Rough| rough.fits(request.highest_limit());
        request.options.solver == Solver::Ilp && !self.rough.is_some_and(fits)
    }

    /// Limit for ranges that include those of the best split.
    pub(super) fn limit_of_best(&self) -> u64 {
        let limit = self.request().highest_limit();
        let rough = self.rough.as_ref();
        rough.map_or(u64::MAX, |rough| with_margin(rough.peak).max(limit))
    }

    /// Doubles the limit of the computed ranges.
    fn compute_more(&mut self, progress: &Progress) -> Result<(), SearchError> {
        self.up_to = self.up_to.saturating_mul(2);
        let stages = self.stages;
        compute_costs(&mut [self], stages, progress)
    }

    /// The best split, or if none fits the one with the lowest peak. Computes more costs until they
    /// suffice.
    pub(super) fn best(&mut self, progress: &Progress) -> Result<Option<Candidate>, SearchError> {
        loop {
            let problem = self.problem();
            if let Some(best) = solve::solve(&problem)? {
                return Ok(Some(Candidate::new(self, self.ipus, true, best)));
            }
            let lowest = solve::solve(&problem.at_any_limit())?;
            let is_lowest = |best: &Solution| best.score.peak <= self.up_to;
            if lowest.as_ref().is_some_and(is_lowest) || has_all(&self.ranges) {
                return Ok(lowest.map(|lowest| Candidate::new(self, self.ipus, false, lowest)));
            }
            self.compute_more(progress)?;
        }
    }

    /// Explains why nothing fits. Computes more costs until they suffice.
    pub(super) fn explain(&mut self, progress: &Progress) -> Result<Infeasible, SearchError> {
        loop {
            let task = progress.begin("solving", Unit::Rows, 0);
            // Both calls see the same costs up to the limit.
            let found = "a second search found a split that the first one missed";
            let missed = || SolveError::Internal(found.to_owned());
            let infeasible = solve::explain(&self.problem())?.ok_or_else(missed)?;
            drop(task);
            if self.is_enough_for(infeasible.lowest_peak.as_ref()) {
                return Ok(infeasible);
            }
            self.compute_more(progress)?;
        }
    }

    /// Is `best` certain to have the lowest peak, even if longer ranges were computed, and are the
    /// costs of moving its layers over a cut computed?
    fn is_enough_for(&self, best: Option<&Solution>) -> bool {
        let is_best = |best: &Solution| {
            best.score.peak <= self.up_to && least_when_moved(&self.ranges, &best.plan).is_some()
        };
        has_all(&self.ranges) || best.is_some_and(is_best)
    }
}
