//! The best split, and the reasons why none fits, with costs that are computed until they suffice.

use super::candidate::Candidate;
use super::error::SearchError;
use super::few_tiles::{has_all, least_when_moved};
use super::pipeline_costs::{PipelineCosts, compute_costs};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Infeasible, Solution, SolveError};

impl PipelineCosts<'_> {
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
