//! Estimates the peak of the best split from a few tiles. If a model does not fit, costs are then
//! only computed for ranges as long as that split can have.
//!
//! Results do not depend on the accuracy of the estimate. All tiles together need no less than a
//! few of them, so a split that does not fit on a few does not fit; and a split is only considered
//! the best if all ranges with no higher peak were computed.

use super::{PipelineCosts, SearchError};
use crate::memory::RangeCosts;
use crate::solve::{self, Plan, Problem};

/// Bytes of the split that is best on a few tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rough {
    /// Bytes on the fullest of these tiles.
    peak: u64,
    /// Smallest bytes of its stages if a layer is moved over a cut; `None` if unknown.
    moved: Option<u64>,
}

impl Rough {
    /// Can a split fit in `limit`?
    pub(super) fn fits(&self, limit: u64) -> bool {
        self.peak <= limit
    }

    /// Limit for ranges whose costs explain why nothing fits in `limit`.
    pub(super) fn limit_beyond(&self, limit: u64) -> u64 {
        let moved = self
            .moved
            .unwrap_or(self.peak.saturating_add(self.peak / 2));
        let both = with_margin(self.peak.max(moved));
        both.max(limit.saturating_add(1))
    }

    /// Limit for ranges that include those of the best split, at least `limit`.
    pub(super) fn limit_of_best(&self, limit: u64) -> u64 {
        with_margin(self.peak).max(limit)
    }
}

/// Adds a margin, since all tiles may need more than a few.
fn with_margin(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 16)
}

/// Estimates the best split on a few tiles; `None` if there is no split whatever the limit.
pub(super) fn peak(pipeline: &PipelineCosts<'_>) -> Result<Option<Rough>, SearchError> {
    let mut limit = pipeline.request().highest_limit().max(1);
    loop {
        let costs = &pipeline.memory.costs_on_few_tiles(limit, pipeline.ipus)?;
        let problem = Problem {
            costs,
            ..pipeline.problem()
        };
        if let Some(plan) = solve::plan_of_lowest_peak(&problem)? {
            let stages = plan.with_after();
            let peaks = stages.filter_map(|(range, after)| costs.peak(range.clone(), after));
            return Ok(Some(Rough {
                peak: peaks.max().unwrap_or(0),
                moved: least_when_moved(costs, &plan),
            }));
        }
        if has_all(costs) {
            return Ok(None);
        }
        limit = limit.saturating_mul(2);
    }
}

/// Are these the costs of all ranges?
pub(super) fn has_all(costs: &RangeCosts) -> bool {
    costs.least(0..costs.layers()).is_some() || costs.layers() == 0
}

/// Highest bytes of a stage of `plan` to which the neighbouring layer is moved over a cut; `None`
/// if costs are missing.
pub(super) fn least_when_moved(costs: &RangeCosts, plan: &Plan) -> Option<u64> {
    let mut highest = 0;
    for sides in plan.stages().windows(2) {
        let (start, at, end) = (sides[0].start, sides[0].end, sides[1].end);
        let back = (at > start + 1).then(|| at - 1..end);
        let on = (at + 1 < end).then(|| start..at + 1);
        for range in back.into_iter().chain(on) {
            highest = highest.max(costs.least(range)?);
        }
    }
    Some(highest)
}
