//! The best split of one pipeline on one number of IPUs, and how two of them compare.

use super::PipelineCosts;
use crate::memory::Pipeline;
use crate::solve::{Goal, Solution};
use crate::time::StepTime;
use std::cmp::Ordering;

/// The best split of one pipeline on one number of IPUs.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Number of IPUs.
    pub ipus: usize,
    /// Does the split fit? Otherwise it is the split with the lowest peak.
    pub fits: bool,
    /// The split.
    pub solution: Solution,
    /// Bytes on the fullest tile of each stage.
    pub peaks: Vec<u64>,
}

impl Candidate {
    /// The candidate with this solution, whose stages have costs.
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

    /// Orders candidates by number of IPUs; then those that fit come first, the best by `goal`, and
    /// then the others, the lowest peak first.
    pub(super) fn compare(&self, other: &Self, goal: Goal) -> Ordering {
        let goal = if self.fits { goal } else { Goal::Peak };
        let scores = [&self.solution.score, &other.solution.score];
        let by_ipus = self.ipus.cmp(&other.ipus);
        by_ipus
            .then(other.fits.cmp(&self.fits))
            .then_with(|| scores[0].compare(scores[1], goal))
    }
}

/// Orders steps by cycles for each micro-batch, the fastest first; without cycles all are equal.
pub(super) fn by_rate(one: Option<StepTime>, other: Option<StepTime>) -> Ordering {
    let both = one.zip(other);
    both.map_or(Ordering::Equal, |(one, other)| one.by_rate(&other))
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
