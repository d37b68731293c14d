//! The peak of the best split on a few tiles, before any costs are computed. If a model does not
//! fit, costs are then only computed for ranges as long as that split can have.
//!
//! Results do not depend on the accuracy of this peak. All tiles together need no less than a few
//! of them, so a split that does not fit on a few does not fit; and a split is only considered the
//! best if all ranges with no higher peak were computed (`enough_costs`).

use super::error::SearchError;
use crate::memory::{MemoryModel, RangeCosts};
use crate::solve::{self, Plan, Problem};

/// Bytes of the split with the lowest peak on a few tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeakOnFewTiles {
    /// Bytes on the fullest of these tiles.
    peak: u64,
    /// Smallest bytes of its stages if a layer is moved over a cut; `None` if unknown.
    moved: Option<u64>,
}

impl PeakOnFewTiles {
    /// The split of `problem` with the lowest peak on a few tiles of `memory`; `None` if there is no
    /// split whatever the limit. The costs and limits of `problem` do not count. `limit` bounds the
    /// ranges that are tried first, in bytes.
    pub(super) fn new(
        memory: &MemoryModel<'_>,
        problem: &Problem<'_>,
        limit: u64,
    ) -> Result<Option<Self>, SearchError> {
        let mut limit = limit.max(1);
        loop {
            let costs = &memory.costs_on_few_tiles(limit, problem.ipus)?;
            let problem = Problem { costs, ..*problem };
            if let Some(lowest) = solve::unproven(&problem.at_any_limit())? {
                return Ok(Some(Self {
                    peak: lowest.score.peak,
                    moved: least_when_moved(costs, &lowest.plan),
                }));
            }
            if has_all(costs) {
                return Ok(None);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Can a split fit in `limit`?
    pub(super) fn fits(&self, limit: u64) -> bool {
        self.peak <= limit
    }

    /// Limit for ranges that include those of the split with the lowest peak on all tiles.
    pub(super) fn limit_of_best(&self) -> u64 {
        with_margin(self.peak)
    }

    /// Limit for ranges whose costs explain why nothing fits in `limit`.
    pub(super) fn limit_beyond(&self, limit: u64) -> u64 {
        let moved = self
            .moved
            .unwrap_or(self.peak.saturating_add(self.peak / 2));
        let both = with_margin(self.peak.max(moved));
        both.max(limit.saturating_add(1))
    }
}

/// Adds a margin, since all tiles may need more than a few.
fn with_margin(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 16)
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
