//! Finds the best split, or the reasons why none fits, and computes more costs of ranges until
//! these suffice for a certain answer.

use super::candidate::Candidate;
use super::error::SearchError;
use super::few_tiles::{has_all, peak_when_moved};
use super::pipeline_costs::{PipelineCosts, compute_costs};
use crate::progress::Progress;
use crate::solve::{self, Infeasible, Solution};

impl PipelineCosts<'_> {
    /// Doubles the limit `up_to`, and computes the costs of all ranges with at most that number of
    /// bytes.
    fn compute_more(&mut self, progress: &Progress) -> Result<(), SearchError> {
        self.up_to = self.up_to.saturating_mul(2);
        let stages = self.stages;
        compute_costs(&mut [self], stages, progress)
    }

    /// Finds the best split that fits or, if none fits, the split with the lowest peak; `None` if
    /// no split keeps the constraints. Doubles `up_to` until no range without computed costs could
    /// change the result.
    pub(super) fn best(&mut self, progress: &Progress) -> Result<Option<Candidate>, SearchError> {
        loop {
            let problem = self.problem();
            if let Some(best) = solve::unproven(&problem)? {
                return Ok(Some(Candidate::new(self, self.ipus, true, best)));
            }
            let lowest = solve::unproven(&problem.at_any_limit())?;
            let is_lowest = |best: &Solution| best.score.peak <= self.up_to;
            if lowest.as_ref().is_some_and(is_lowest) || has_all(&self.ranges) {
                return Ok(lowest.map(|lowest| Candidate::new(self, self.ipus, false, lowest)));
            }
            self.compute_more(progress)?;
        }
    }

    /// Explains why nothing fits; must only be called if nothing fits. Doubles `up_to` until the
    /// split with the lowest peak is certain.
    pub(super) fn explain(&mut self, progress: &Progress) -> Result<Infeasible, SearchError> {
        loop {
            let task = progress.begin("solving", 0);
            let infeasible = solve::explain(&self.problem())?;
            drop(task);
            if self.is_enough_for(infeasible.lowest_peak.as_ref()) {
                return Ok(infeasible);
            }
            self.compute_more(progress)?;
        }
    }

    /// Returns whether the computed costs suffice for [`explain`](Self::explain): they prove that
    /// `best` has the lowest peak of all splits, and include its stages with a layer moved over any
    /// cut; or all ranges are computed.
    fn is_enough_for(&self, best: Option<&Solution>) -> bool {
        let is_best = |best: &Solution| {
            best.score.peak <= self.up_to && peak_when_moved(&self.ranges, &best.plan).is_some()
        };
        has_all(&self.ranges) || best.is_some_and(is_best)
    }
}
