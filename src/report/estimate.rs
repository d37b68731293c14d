//! The micro-batch that the numbers of a report are estimated for.

use super::sentences::{Sentence, say};
use super::text::grouped;
use crate::search::Estimate;

impl Estimate {
    /// Adds to a heading that the numbers are an estimate.
    pub(in crate::report) fn of_heading(self, heading: &str) -> String {
        format!(
            "{heading}, by an estimate for micro-batches of {}",
            grouped(self.micro_batch)
        )
    }

    /// Says that the numbers are an estimate, and gives the largest micro-batch that fits.
    pub(in crate::report) fn sentences(&self) -> [Sentence; 2] {
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
