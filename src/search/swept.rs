//! The best split for each number of IPUs, and the smallest sufficient number.

use super::{CostedRequest, IpuCount, Outcome, SearchError};
use crate::memory::Pipeline;
use crate::model::Framework;
use crate::solve::{self, Goal, Limits, Plan, Problem, Solution};

/// Number of IPUs up to which the best split is computed at least, if other numbers can be tried:
/// the IPUs of a POD16.
pub(super) const TRIED_IPUS: usize = 16;

/// The best split for one number of IPUs.
#[derive(Debug)]
pub struct SweepAnswer {
    /// Number of IPUs.
    pub ipus: usize,
    /// The pipeline of the split.
    pub pipeline: Pipeline,
    /// Does the split fit? Otherwise it is the split with the lowest peak.
    pub fits: bool,
    /// The best split.
    pub solution: Solution,
    /// Bytes on the fullest tile of each stage.
    pub peaks: Vec<u64>,
    /// Smallest number of bytes that a stage leaves free of its limit; negative if the split does
    /// not fit.
    pub free: i64,
}

impl SweepAnswer {
    /// Is it better than another answer for the same number of IPUs? Answers that fit come first,
    /// then `goal` decides, or the peak if none fits.
    pub(super) fn is_better_than(&self, other: &Self, goal: Goal) -> bool {
        let goal = if self.fits { goal } else { Goal::Peak };
        let by_fit = other.fits.cmp(&self.fits);
        let scores = [&self.solution.score, &other.solution.score];
        by_fit
            .then_with(|| scores[0].compare(scores[1], goal))
            .is_lt()
    }
}

impl CostedRequest {
    /// Number of positions of the layer order, even if no costs are computed.
    pub(super) fn positions(&self) -> usize {
        self.cut_bytes.len() + 1
    }

    /// Numbers of IPUs for which a sweep has answers, ascending: all numbers if requested. If other
    /// splits are to be tried: all numbers up to a POD16, and beyond that powers of 2 and the
    /// neighbours of the given number, since each takes as long as the answer itself. With limits
    /// by IPU, no more than the given IPUs.
    pub(super) fn swept(&self) -> Vec<usize> {
        let is_open = self.request.what_if || matches!(self.request.ipus, IpuCount::UpTo(_));
        let most = match is_open && self.request.limits.len() <= 1 {
            true => TRIED_IPUS.min(self.costs.stages()).min(self.positions()),
            false => 0,
        };
        let is_wanted = |&ipus: &usize| {
            let is_near = ipus.is_power_of_two() || ipus.abs_diff(self.ipus) <= 1;
            self.request.sweep || ipus <= TRIED_IPUS || is_near
        };
        (1..=self.ipus.max(most)).filter(is_wanted).collect()
    }

    /// The best split for each number of IPUs if requested; if none fits, the split with the lowest
    /// peak.
    pub(super) fn sweep(
        &self,
        pipeline: Pipeline,
    ) -> Result<Option<Vec<SweepAnswer>>, SearchError> {
        let is_wanted = self.request.sweep || self.request.what_if;
        let answers = is_wanted.then(|| self.sweep_of(&self.problem(), pipeline));
        answers.transpose()
    }

    /// The best split for each number of IPUs in `pipeline`, whose costs are in `problem`.
    pub(super) fn sweep_of(
        &self,
        problem: &Problem<'_>,
        pipeline: Pipeline,
    ) -> Result<Vec<SweepAnswer>, SearchError> {
        let numbers = self.swept();
        let problem = Problem {
            ipus: numbers.last().copied().unwrap_or(0),
            ..*problem
        };
        let mut solutions = solve::sweep(&problem, &numbers)?;
        let refused = solutions.iter().take_while(|found| found.is_none()).count();
        let any = Problem {
            limits: Limits::Same(u64::MAX),
            goal: Goal::Peak,
            ..problem
        };
        let of_refused = solve::sweep(&any, &numbers[..refused])?;
        solutions.splice(..refused, of_refused);
        let answers = numbers.into_iter().zip(solutions).enumerate();
        let answers = answers.filter_map(|(place, (ipus, solution))| {
            let solution = solution?;
            Some(SweepAnswer {
                ipus,
                pipeline,
                fits: place >= refused,
                free: free(&problem, &solution),
                peaks: peaks(&problem, &solution.plan),
                solution,
            })
        });
        Ok(answers.collect())
    }

    /// Smallest sufficient number of IPUs if the outcome is a best split; taken from a sweep if
    /// there is one.
    pub(super) fn fewest_beside(
        &self,
        outcome: &Outcome,
        sweep: Option<&[SweepAnswer]>,
        framework: Framework,
    ) -> Result<Option<usize>, SearchError> {
        let Outcome::Best(best) = outcome else {
            return Ok(None);
        };
        let mut swept = sweep.into_iter().flatten();
        match (self.request.ipus, swept.find(|answer| answer.fits)) {
            _ if !self.request.split || self.request.given.is_some() => Ok(None),
            (IpuCount::UpTo(_), _) => Ok(Some(self.ipus)),
            (IpuCount::Exactly(_), _) if best.score.stages == 1 => Ok(Some(1)),
            (IpuCount::Exactly(_), Some(fewest)) if fewest.ipus <= TRIED_IPUS => {
                Ok(Some(taken(fewest.ipus, framework)))
            }
            _ => self.fewest_ipus(framework),
        }
    }
}

/// Smallest number of IPUs that the framework supports and that is at least `ipus`.
pub(super) fn taken(ipus: usize, framework: Framework) -> usize {
    match framework {
        Framework::Poptorch => ipus.next_power_of_two(),
        _ => ipus,
    }
}

/// Bytes on the fullest tile of each stage.
pub(super) fn peaks(problem: &Problem<'_>, plan: &Plan) -> Vec<u64> {
    let stages = plan.with_after();
    let peaks = stages.filter_map(|(range, after)| problem.costs.peak(range.clone(), after));
    peaks.collect()
}

/// Smallest number of bytes that a stage of the split leaves free of its limit.
fn free(problem: &Problem<'_>, solution: &Solution) -> i64 {
    let stages = solution.plan.with_after().enumerate();
    let free = stages.filter_map(|(stage, (range, after))| {
        let limit = problem.limits.of(stage)?;
        let peak = problem.costs.peak(range.clone(), after)?;
        Some(free_bytes(limit, peak))
    });
    free.min().unwrap_or(0)
}

/// Bytes that are free of `limit` if `bytes` are in use; negative if they exceed it. Saturates at
/// the bounds of `i64`.
pub fn free_bytes(limit: u64, bytes: u64) -> i64 {
    let free = i128::from(limit) - i128::from(bytes);
    i64::try_from(free).unwrap_or(if free < 0 { i64::MIN } else { i64::MAX })
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
