//! What ranges recompute, where that is chosen for each of them.

use super::{StageTimes, narrow};
use std::ops::Range;
use std::sync::Arc;

/// The cycles that ranges of positions recompute in a micro-batch, by how many stages come
/// after them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecomputedByRange {
    /// How many stages a split has at most.
    stages: usize,
    /// By start, then by length and number of stages after it.
    rows: Vec<Vec<u64>>,
}

impl RecomputedByRange {
    fn place(&self, range: &Range<usize>, after: usize) -> Option<usize> {
        let shorter = range.len().checked_sub(1)?;
        (after < self.stages).then_some(shorter * self.stages + after)
    }

    /// `None` for a range that is not known.
    pub(super) fn of(&self, range: &Range<usize>, after: usize) -> Option<u128> {
        let row = self.rows.get(range.start)?;
        row.get(self.place(range, after)?)
            .map(|&cycles| cycles.into())
    }
}

impl StageTimes {
    /// The same where the ranges up to these lengths, by start, recompute so many cycles with
    /// 0, 1, ... of at most `stages` stages after them.
    pub(crate) fn recomputing(
        &self,
        lengths: impl Iterator<Item = usize>,
        stages: usize,
        cycles: impl Fn(Range<usize>, usize) -> u128,
    ) -> Self {
        let row = |(start, length): (usize, usize)| {
            let ranges = (1..=length).map(|length| start..start + length);
            let all = ranges.flat_map(|range| (0..stages).map(move |after| (range.clone(), after)));
            all.map(|(range, after)| narrow(cycles(range, after)))
                .collect()
        };
        let rows = lengths.enumerate().map(row).collect();
        Self {
            by_range: Some(RecomputedByRange { stages, rows }.into()),
            ..self.clone()
        }
    }

    /// Puts other cycles in place of those that such a range recomputes.
    pub(crate) fn recompute(&mut self, range: &Range<usize>, after: usize, cycles: u128) {
        let Some(known) = self.by_range.as_mut().map(Arc::make_mut) else {
            return;
        };
        let place = known.place(range, after);
        let row = known.rows.get_mut(range.start);
        if let Some(known) = place.and_then(|place| row?.get_mut(place)) {
            *known = narrow(cycles);
        }
    }
}
