//! Estimates how many samples a micro-batch may have.

use super::costed::Reach;
use super::{CostedRequest, IpuCount, SearchError, SearchRequest, SearchResult};
use crate::memory::{MemoryModel, MicroBatchScale, PlacedStage};
use crate::model::Placement;
use crate::progress::Progress;
use crate::solve::{self, Goal};

/// Upper bound on the samples of a micro-batch that are tried.
const MAX_SAMPLES: u64 = 1 << 20;

/// Micro-batch for which an answer was estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Ratio of the micro-batch of the answer to the one of the profile.
    pub scale: MicroBatchScale,
    /// Largest number of samples of a micro-batch with which the given split fits, or else any
    /// split on the same number of IPUs; at most 2^20. `None` if not even one sample fits.
    pub largest: Option<u64>,
}

impl Estimate {
    /// Estimate for the answer `found`. `memories` has the recorded micro-batch in each pipeline
    /// that the request leaves open.
    pub(super) fn new(
        scale: MicroBatchScale,
        memories: &[MemoryModel<'_>],
        placement: &Placement,
        found: &SearchResult,
    ) -> Result<Self, SearchError> {
        let fits = |samples: u64| -> Result<bool, SearchError> {
            let scale = MicroBatchScale {
                wanted: samples,
                ..scale
            };
            for memory in memories {
                if fits(&memory.at_micro_batch(scale), placement, found)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(Self {
            scale,
            largest: largest(scale.wanted, fits)?,
        })
    }
}

/// Largest number for which `fits` holds, found from `start` on. `fits` must hold for all smaller
/// numbers too.
fn largest<E>(start: u64, fits: impl Fn(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    // The largest known number that fits, and a larger one that does not.
    let (mut fitting, mut beyond) = (0, start.clamp(1, MAX_SAMPLES));
    while fits(beyond)? {
        fitting = beyond;
        if beyond == MAX_SAMPLES {
            return Ok(Some(fitting));
        }
        beyond = beyond.saturating_mul(2).min(MAX_SAMPLES);
    }
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        match fits(middle)? {
            true => fitting = middle,
            false => beyond = middle,
        }
    }
    Ok(Some(fitting).filter(|&count| count > 0))
}

/// Does the given split fit, or else any split on the IPUs of `found`?
pub(super) fn fits(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    found: &SearchResult,
) -> Result<bool, SearchError> {
    let request = &found.costed.request;
    if let Some(plan) = &request.given {
        let peaks = memory.peaks(&PlacedStage::of_split(plan.stages()));
        let mut peaks = peaks.into_iter().enumerate();
        return Ok(peaks.all(|(ipu, bytes)| bytes <= found.costed.limit_of(ipu)));
    }
    let question = SearchRequest {
        ipus: IpuCount::Exactly(found.costed.ipus),
        limits: request.limits.clone(),
        constraints: request.constraints.clone(),
        goal: Goal::Peak,
        ..SearchRequest::default()
    };
    let mut costed = CostedRequest::new(memory, placement, question)?;
    let reach = Reach {
        limit: costed.request.highest_limit(),
        stages: costed.ipus,
    };
    costed.compute_costs(memory, reach, &mut [], &Progress::new())?;
    Ok(solve::fits(&costed.problem())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_fits_is_found_from_anywhere() {
        for start in [1, 2, 3, 7, 50, u64::MAX] {
            for most in [0, 1, 2, 6, 7, 100, MAX_SAMPLES - 1, MAX_SAMPLES, u64::MAX] {
                let found = largest(start, |count| Ok::<_, ()>(count <= most));
                let expected = Some(most.min(MAX_SAMPLES)).filter(|&count| count > 0);
                assert_eq!(found, Ok(expected), "{start} {most}");
            }
        }
        assert_eq!(largest(4, |_| Err::<bool, _>("no")), Err("no"));
    }
}
