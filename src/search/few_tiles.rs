//! Finds the lowest peak of any split on a few tiles, before costs on all tiles are computed. If a
//! model does not fit, costs are then computed only for ranges up to about this peak.
//!
//! Results do not depend on the accuracy of this peak. A split needs at least as much on all tiles
//! as on a few of them, so if it does not fit on a few, it does not fit. And a split only counts as
//! the best if all ranges with no higher peak were computed (`enough_costs`).

use super::error::SearchError;
use crate::memory::{MemoryModel, RangeCosts};
use crate::solve::{self, Plan, Problem};

/// The lowest peak of any split, in bytes, if only a few tiles of an IPU are computed: a lower
/// bound of the peak on all tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeakOnFewTiles {
    /// Bytes on the fullest of the computed tiles, in the split with the lowest peak.
    peak: u64,
    /// The most bytes of any stage of the split with the lowest peak, after one layer beside a cut
    /// is moved to the other side of the cut; `None` if unknown.
    moved: Option<u64>,
}

impl PeakOnFewTiles {
    /// Finds the split of `problem` with the lowest peak on a few tiles of `memory`; `None` if no
    /// split keeps the constraints. Ignores the costs and limits of `problem`. `limit` is the
    /// number of bytes up to which ranges are computed at first; it is doubled until a split is
    /// found.
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
                    moved: peak_when_moved(costs, &lowest.plan),
                }));
            }
            if has_all(costs) {
                return Ok(None);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Returns whether a split may fit in `limit` bytes per tile; if not, none fits.
    pub(super) fn fits(&self, limit: u64) -> bool {
        self.peak <= limit
    }

    /// Returns the number of bytes up to which ranges should be computed on all tiles so that the
    /// split with the lowest peak is probably among them: `peak` and a margin.
    pub(super) fn limit_of_best(&self) -> u64 {
        with_margin(self.peak)
    }

    /// Returns the number of bytes up to which ranges should be computed to explain why nothing
    /// fits in `limit`: above `limit`, and enough to move any layer of the best split over a cut.
    pub(super) fn limit_beyond(&self, limit: u64) -> u64 {
        let moved = self
            .moved
            .unwrap_or(self.peak.saturating_add(self.peak / 2));
        let both = with_margin(self.peak.max(moved));
        both.max(limit.saturating_add(1))
    }
}

/// Adds 1/16 to `bytes`, since a stage may need more on other tiles than on the few that were
/// computed.
fn with_margin(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 16)
}

/// Returns whether `costs` has the bytes of all ranges of positions, however large.
pub(super) fn has_all(costs: &RangeCosts) -> bool {
    costs.least(0..costs.layers()).is_some() || costs.layers() == 0
}

/// Returns the most bytes of any stage of `plan` after one layer beside a cut is moved to the other
/// side of the cut; `None` if the costs of such a stage are missing, 0 if there is no such stage.
pub(super) fn peak_when_moved(costs: &RangeCosts, plan: &Plan) -> Option<u64> {
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
