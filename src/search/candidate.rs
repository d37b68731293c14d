//! The best split in one pipeline on a number of IPUs (a candidate), and the comparison of two
//! candidates.

use super::PipelineCosts;
use crate::memory::Pipeline;
use crate::solve::Solution;
use std::cmp::Ordering;

/// The best split in one pipeline on a number of IPUs or, if no split fits, the split with the
/// lowest peak.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The pipeline of the split: its schedule, recomputation and place of optimizer state.
    pub pipeline: Pipeline,
    /// Number of IPUs of each replica; the framework supports this number. The split may have fewer
    /// stages.
    pub ipus: usize,
    /// Number of replicas of the pipeline, at least 1.
    pub replicas: usize,
    /// Number of samples in a micro-batch; 1 if unknown.
    pub samples: usize,
    /// Whether every stage of the split is within its memory limit.
    pub fits: bool,
    /// The stages of the split, with its score.
    pub solution: Solution,
    /// One entry per stage: the peak bytes on its fullest tile.
    pub peaks: Vec<u64>,
}

impl Candidate {
    /// Builds the candidate with the split `solution`, found in the pipeline of `costs` for `ipus`
    /// IPUs in each replica. The peaks of its stages are those in `costs`.
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        ipus: usize,
        fits: bool,
        solution: Solution,
    ) -> Self {
        Self {
            pipeline: costs.pipeline(),
            ipus,
            replicas: costs.replicas(),
            samples: costs.request().options.step.micro_batch.unwrap_or(1) as usize,
            fits,
            peaks: costs.problem().peaks(&solution.plan).unwrap_or_default(),
            solution,
        }
    }

    /// Returns the number of IPUs over all replicas.
    pub fn all_ipus(&self) -> usize {
        self.ipus * self.replicas
    }

    /// Returns the highest number of bytes on the fullest tile of any stage.
    pub fn peak_bytes(&self) -> u64 {
        self.solution.score.peak
    }

    /// Compares the cycles that all replicas together take per sample. Returns `Less` if `self` is
    /// faster, and `Equal` if the step time of either candidate is unknown.
    pub fn by_rate(&self, other: &Self) -> Ordering {
        let rate = |own: &Self| Some(own.solution.score.step?.rate(own.replicas * own.samples));
        rate(self)
            .zip(rate(other))
            .map_or(Ordering::Equal, |(mine, theirs)| mine.compare(theirs))
    }

    /// Returns whether part of the step time is unknown. This is so if optimizer state is gathered
    /// from replicas, or if it is off the chip and `streaming_bandwidth` (bytes per second) is
    /// `None`.
    pub fn lacks_time(&self, streaming_bandwidth: Option<u64>) -> bool {
        let state = self.pipeline.state;
        state.is_sharded() || state.is_off_chip() && streaming_bandwidth.is_none()
    }
}

/// Returns `limit - bytes`, the bytes that stay free on a tile, which is negative if the limit is
/// exceeded. Saturates at the bounds of `i64`.
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
