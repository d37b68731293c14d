//! Finds the best split of a model whose operations are assigned to layers. A [`Space`] keeps the
//! memory and time of ranges of layers, in each pipeline that the search tries ([`PipelineCosts`]),
//! so that all requests share them. For a [`SearchRequest`], it finds a [`Candidate`]: the best
//! split in one pipeline on a number of IPUs or, if no split fits, the split with the lowest peak.
//!
//! `analysis/answer.rs` decides which layers, places of optimizer state and numbers of IPUs are
//! tried. A [`SearchResult`] has the best split for the user's request, and [`Claims`]: the best
//! splits for changed requests, with which reports show the effect of other options, limits and
//! numbers of IPUs.

mod advice;
mod pipeline_costs;
mod profile_tables;
mod request;
mod result;
mod shown_split;
mod space;
#[cfg(test)]
mod testing;

pub use advice::{Advice, Change, OverLimit};
pub use pipeline_costs::PipelineCosts;
pub(crate) use pipeline_costs::near_cuts;
pub use profile_tables::{ProfileTables, Reach};
pub use request::{IpuCount, Question, Reserve, SearchOptions, SearchRequest, Solver};
pub use result::{
    Candidate, Claim, Claims, Front, Outcome, Refused, SearchResult, Word, free_bytes,
};
pub use shown_split::ShownSplit;
pub use space::Space;

use crate::solve;
use anyhow::Result;

impl PipelineCosts<'_> {
    /// Explains why no split fits, and which stage of `shown`, the split with the lowest peak,
    /// exceeds its limit most.
    ///
    /// # Errors
    /// If the problem for the solver contradicts itself.
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
                .map(|(range, memory)| OverLimit::new(self, range, limit, memory))
                .collect(),
            most_over,
            advice: advice.unwrap_or_default(),
            refusal,
        })
    }
}
