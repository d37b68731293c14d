//! The best split of one pipeline on one number of IPUs, and comparison of two of them.

use super::PipelineCosts;
use crate::memory::Pipeline;
use crate::solve::{Goal, Solution};
use crate::time::StepTime;
use std::cmp::Ordering;

/// A candidate for the answer: the best split of one pipeline on one number of IPUs.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The pipeline: its schedule, recomputation, place of optimizer state, and replicas.
    pub pipeline: Pipeline,
    /// Number of IPUs that the split may use, without replicas.
    pub ipus: usize,
    /// Whether the split fits. Otherwise it is the split with the lowest peak.
    pub fits: bool,
    /// The stages of the split, with its score.
    pub solution: Solution,
    /// By stage: bytes on its fullest tile at the peak.
    pub peaks: Vec<u64>,
}

impl Candidate {
    /// Builds the candidate of `solution`, found in the pipeline of `costs` for at most `ipus`
    /// IPUs. `fits` says whether it keeps the limits. `costs.ranges` must have the ranges of its
    /// stages.
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        ipus: usize,
        fits: bool,
        solution: Solution,
    ) -> Self {
        let stages = solution.plan.with_after();
        let peaks = stages.filter_map(|(range, after)| costs.ranges.peak(range.clone(), after));
        Self {
            pipeline: costs.pipeline(),
            ipus,
            fits,
            peaks: peaks.collect(),
            solution,
        }
    }

    /// Compares candidates; the better one is `Less`: first the one on fewer IPUs, then one that
    /// fits before one that does not. Of two that fit, `goal` decides, otherwise the lower peak.
    pub(super) fn compare(&self, other: &Self, goal: Goal) -> Ordering {
        let goal = if self.fits { goal } else { Goal::Peak };
        let scores = [&self.solution.score, &other.solution.score];
        let by_ipus = self.ipus.cmp(&other.ipus);
        by_ipus
            .then(other.fits.cmp(&self.fits))
            .then_with(|| scores[0].compare(scores[1], goal))
    }
}

/// Compares steps by cycles per micro-batch; `Less` if `one` is faster, `Equal` if any of them is
/// unknown.
pub(super) fn by_rate(one: Option<StepTime>, other: Option<StepTime>) -> Ordering {
    let both = one.zip(other);
    both.map_or(Ordering::Equal, |(one, other)| one.by_rate(&other))
}

/// Returns `limit - bytes`, the bytes that are left: negative if the limit is exceeded. Saturates
/// at the bounds of `i64`.
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
