//! How much the best split needs, told from a few tiles: so that of a model that does
//! not fit no longer ranges of layers are computed than its best split can have.
//!
//! Nothing depends on how near this is. All tiles together need no less than a few, so
//! what does not fit on these does not fit; and a split is taken for the best only if
//! all ranges were computed that need no more.

use super::{CostedRequest, SearchError};
use crate::memory::{MemoryModel, RangeCosts};
use crate::solve::{self, Plan, Problem};

/// The bytes of the split that is the best on a few tiles.
pub(super) struct Rough {
    /// Bytes on the fullest of them.
    peak: u64,
    /// The least bytes of its stages when a layer is moved over a cut; `None` where it
    /// is not known.
    moved: Option<u64>,
}

impl Rough {
    /// May a split fit in `limit`?
    pub(super) fn fits(&self, limit: u64) -> bool {
        self.peak <= limit
    }

    /// `limit`, or if nothing can fit in that, the bytes that explain it.
    pub(super) fn limit(&self, limit: u64) -> u64 {
        if self.peak > limit {
            self.limit_beyond(limit)
        } else {
            limit
        }
    }

    /// The bytes that ranges may need which tell why nothing fits in `limit`.
    pub(super) fn limit_beyond(&self, limit: u64) -> u64 {
        let moved = self
            .moved
            .unwrap_or(self.peak.saturating_add(self.peak / 2));
        let both = with_margin(self.peak.max(moved));
        both.max(limit.saturating_add(1))
    }

    /// The bytes that ranges may need of which the best split consists, if they are
    /// more than `limit`.
    pub(super) fn limit_of_best(&self, limit: u64) -> u64 {
        with_margin(self.peak).max(limit)
    }
}

/// Some more bytes than on a few tiles.
fn with_margin(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 16)
}

/// Looks for the split that needs the least on a few tiles; `None` when there is
/// none, whatever stages may take.
pub(super) fn peak(
    memory: &MemoryModel<'_>,
    costed: &CostedRequest,
) -> Result<Option<Rough>, SearchError> {
    let mut limit = costed.request.highest_limit().max(1);
    loop {
        let costs = &memory.costs_on_few_tiles(limit, costed.ipus)?;
        let problem = Problem {
            costs,
            ..costed.problem()
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

/// The highest least bytes of the stages of a plan when the layer on either side of
/// a cut is moved over it; `None` where that was not computed.
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
