//! The micro-batch that the numbers of a report are estimated for.

use super::sentences::{Sentence, say};
use super::text::grouped;
use crate::search::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All bytes and cycles of stages are estimates for another micro-batch than the profile's. Only a
/// compilation can confirm them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EstimateFacts {
    /// The samples of a micro-batch of the profile.
    pub recorded_micro_batch: u64,
    /// The samples that the numbers are estimated for.
    pub micro_batch: u64,
    /// The most samples, up to 1,048,576, with which the given split, or any split on as many IPUs
    /// in this pipeline, fits by the same estimate; `null` if not even one sample fits.
    pub largest_micro_batch: Option<u64>,
}

impl From<Estimate> for EstimateFacts {
    fn from(estimate: Estimate) -> Self {
        Self {
            recorded_micro_batch: estimate.scale.recorded,
            micro_batch: estimate.scale.wanted,
            largest_micro_batch: estimate.largest,
        }
    }
}

impl EstimateFacts {
    /// Adds to a heading that the numbers are an estimate.
    pub(super) fn of_heading(self, heading: &str) -> String {
        format!(
            "{heading}, by an estimate for micro-batches of {}",
            grouped(self.micro_batch)
        )
    }

    /// Says that the numbers are an estimate, and gives the largest micro-batch that fits.
    pub(super) fn sentences(&self) -> [Sentence; 2] {
        let what = say("this is an estimate for micro-batches of ")
            .count(self.micro_batch)
            .text(", and the profile was recorded with ")
            .count(self.recorded_micro_batch)
            .text(": compile it to be sure");
        let largest = match self.largest_micro_batch {
            Some(largest) => {
                say("the largest micro-batch that fits, by the same estimate, is ").count(largest)
            }
            None => say("not even a micro-batch of 1 fits, by the same estimate"),
        };
        [what, largest]
    }
}
