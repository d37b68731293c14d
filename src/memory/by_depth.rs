//! Numbers of ranges of positions by how many stages come after them.

use std::ops::Range;

/// A number for each range up to some length, by start, with 0, 1, ... stages after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ByDepth<T> {
    /// How many stages a split has at most.
    stages: usize,
    /// By start: for each range in turn the numbers with 0, 1, ... stages after it.
    rows: Vec<Vec<T>>,
}

impl<T: Copy> ByDepth<T> {
    /// The numbers of the ranges up to these lengths, by start, in splits of at most `stages`
    /// stages.
    pub(crate) fn new(
        lengths: impl Iterator<Item = usize>,
        stages: usize,
        number: impl Fn(Range<usize>, usize) -> T,
    ) -> Self {
        let row = |(start, length): (usize, usize)| {
            let ranges = (1..=length).map(|length| start..start + length);
            let all = ranges.flat_map(|range| (0..stages).map(move |after| (range.clone(), after)));
            all.map(|(range, after)| number(range, after)).collect()
        };
        let rows = lengths.enumerate().map(row).collect();
        Self { stages, rows }
    }

    /// How many stages a split has at most.
    pub(crate) fn stages(&self) -> usize {
        self.stages
    }

    /// The number of a range (end exclusive) with `after` stages after it; `None` where it is
    /// not known.
    pub(crate) fn get(&self, range: &Range<usize>, after: usize) -> Option<T> {
        self.of_range(range)?.get(after).copied()
    }

    /// The numbers of a range with 0, 1, ... stages after it.
    pub(crate) fn of_range(&self, range: &Range<usize>) -> Option<&[T]> {
        let first = range.len().checked_sub(1)? * self.stages;
        self.rows.get(range.start)?.get(first..first + self.stages)
    }

    /// Puts another number in place of one that is known.
    pub(crate) fn put(&mut self, range: &Range<usize>, after: usize, number: T) {
        let Some(shorter) = range.len().checked_sub(1) else {
            return;
        };
        let place = (after < self.stages).then_some(shorter * self.stages + after);
        let row = self.rows.get_mut(range.start);
        if let Some(known) = place.and_then(|place| row?.get_mut(place)) {
            *known = number;
        }
    }
}
