//! Finds the best split of one layering (a choice of layers).
//!
//! [`SearchRequest`] is a request about one layering of one model. A [`Space`] has a layering, with
//! the memory and time of its ranges of layers in each pipeline ([`PipelineCosts`]), which are
//! computed once for all requests. It finds a [`Candidate`]: the best split in a pipeline on a
//! number of IPUs, or the split with the lowest peak if none fits.
//!
//! `analysis/answer.rs` decides which layerings, places of optimizer state and numbers of IPUs are
//! tried, in which order. A [`SearchResult`] has the answer to the user's request, the memory of
//! its stages in full, and [`Claims`]: the answers to changed requests, for reports on other
//! options, limits and numbers of IPUs.

mod advice;
mod candidate;
mod cost_tables;
mod pipeline_costs;
mod profile_tables;
mod request;
mod result;
mod shown_split;
mod space;
#[cfg(test)]
mod testing;

pub use advice::{Advice, Change, OverLimit};
pub use candidate::{Candidate, free_bytes};
pub(crate) use pipeline_costs::near_cuts;
pub use pipeline_costs::{PipelineCosts, Question};
pub use profile_tables::{ProfileTables, Reach};
pub use request::{IpuCount, Reserve, SearchOptions, SearchRequest, Solver};
pub use result::{Claim, Claims, Front, OfSize, Outcome, Refused, Relaxed, SearchResult, Word};
pub use shown_split::ShownSplit;
pub use space::Space;

use crate::solve;
use anyhow::Result;

impl PipelineCosts<'_> {
    /// Explains why no split fits, and which stage of `shown`, the split with the lowest peak,
    /// takes too much memory.
    ///
    /// # Errors
    /// If the problem contradicts itself.
    pub fn refused(&self, shown: &ShownSplit) -> Result<Refused> {
        let refusal = solve::explain(&self.problem())?;
        let ranges = refusal.certificate.ranges.clone();
        let memory = shown_split::least_of(self, &ranges);
        let limit = self.request().highest_limit();
        let (most_over, advice) = advice::most_over(self, shown).unzip();
        Ok(Refused {
            over_limit: ranges
                .into_iter()
                .zip(&memory)
                .map(|(range, memory)| OverLimit::new(self, (range, limit), memory))
                .collect(),
            most_over,
            advice: advice.unwrap_or_default(),
            refusal,
        })
    }
}
