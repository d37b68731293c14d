//! Estimates how many samples a micro-batch may have.

use super::{PipelineCosts, SearchError};
use crate::memory::{MemoryModel, MicroBatchScale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper bound on the samples of a micro-batch that are tried.
const MAX_SAMPLES: u64 = 1 << 20;

/// All bytes and cycles of stages are estimates for another micro-batch than the profile's. Only a
/// compilation can confirm them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EstimateFacts")]
pub struct Estimate {
    /// The samples of a micro-batch of the profile.
    pub recorded_micro_batch: u64,
    /// The samples that the numbers are estimated for.
    pub micro_batch: u64,
    /// The most samples, up to 1,048,576, with which the given split, or any split on as many IPUs
    /// in this pipeline, fits by the same estimate; `null` if not even one sample fits.
    pub largest_micro_batch: Option<u64>,
}

impl Estimate {
    /// Estimate for an answer that was computed with `costs`; `memory` has the recorded micro-batch.
    pub(super) fn new<'a>(
        scale: MicroBatchScale,
        memory: &MemoryModel<'a>,
        costs: &PipelineCosts<'a>,
    ) -> Result<Self, SearchError> {
        let answered = costs.pipeline();
        let usual = memory.pipeline();
        let usual = usual.with_state(answered.state, answered.replicas);
        let open = usual.open(costs.request().pipeline, memory.is_training());
        let open = open.into_iter().map(|other| memory.in_pipeline(other));
        let open = open.collect::<Result<Vec<_>, _>>()?;
        let fits = |samples: u64| -> Result<bool, SearchError> {
            let scale = MicroBatchScale {
                wanted: samples,
                ..scale
            };
            for memory in &open {
                if costs.fits_in(memory.at_micro_batch(scale))? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(Self {
            recorded_micro_batch: scale.recorded,
            micro_batch: scale.wanted,
            largest_micro_batch: largest(scale.wanted, fits)?,
        })
    }

    /// Ratio of the micro-batch of the answer to the one of the profile.
    pub fn scale(self) -> MicroBatchScale {
        MicroBatchScale {
            recorded: self.recorded_micro_batch,
            wanted: self.micro_batch,
        }
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
