//! The table that the solver works on: numbers for each range of layers.

use std::ops::Range;

/// The memory on the fullest tile of every contiguous range of layers that
/// can fit, in bytes.
///
/// Positions 0..`layers` are those of the layer order (position 0 is the
/// pseudo-layer). What a range needs at least never gets less when a layer is
/// added, so from each start only the ranges up to the first that is over the
/// limit are kept. In a pipeline a range needs more the more stages come after it
/// (docs/model.md, "Pipelines"); a longer range may then need less than a shorter one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeCosts {
    /// `least[from][n]` is what the range `from..from + n + 1` needs at least.
    least: Vec<Vec<u64>>,
    /// The bytes of ranges by how many stages come after them.
    pipeline: Option<ByDepth>,
}

/// A number of bytes for each range with 0, 1, ... stages after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByDepth {
    /// How many stages a split has at most.
    stages: usize,
    /// By start: of each range in turn the bytes with 0, 1, ... stages after it.
    rows: Vec<Vec<u64>>,
}

impl ByDepth {
    /// The bytes of a range (end exclusive) with 0, 1, ... stages after it; `None` where they
    /// are not known.
    fn of_range(&self, range: &Range<usize>) -> Option<&[u64]> {
        let first = range.len().checked_sub(1)? * self.stages;
        self.rows.get(range.start)?.get(first..first + self.stages)
    }
}

impl RangeCosts {
    /// Takes the peaks by start and length: `peaks[from][n]` belongs to the
    /// range `from..from + n + 1`, however many stages come after it.
    ///
    /// # Panics
    /// When a range reaches beyond the last layer.
    pub fn new(peaks: Vec<Vec<u64>>) -> Self {
        let layers = peaks.len();
        for (from, row) in peaks.iter().enumerate() {
            assert!(from + row.len() <= layers, "a range beyond the last layer");
        }
        Self {
            least: peaks,
            pipeline: None,
        }
    }

    /// The costs in a pipeline of at most `stages` stages: `peaks(range, after)`
    /// belongs to a range with `after` stages after it; `u64::MAX` is more than any
    /// limit.
    ///
    /// # Panics
    /// As [`RangeCosts::new`].
    pub fn in_pipeline(
        least: Vec<Vec<u64>>,
        stages: usize,
        peaks: impl Fn(Range<usize>, usize) -> u64,
    ) -> Self {
        let row = |(start, least): (usize, &Vec<u64>)| {
            let ranges = (1..=least.len()).map(|length| start..start + length);
            let all = ranges.flat_map(|range| (0..stages).map(move |after| (range.clone(), after)));
            all.map(|(range, after)| peaks(range, after)).collect()
        };
        let rows = least.iter().enumerate().map(row).collect();
        Self {
            pipeline: Some(ByDepth { stages, rows }),
            ..Self::new(least)
        }
    }

    /// Bytes that ranges need at least, without a pipeline.
    pub fn at_least(&self) -> Self {
        Self::new(self.least.clone())
    }

    /// How many positions the layer order has, the pseudo-layer included.
    pub fn layers(&self) -> usize {
        self.least.len()
    }

    /// Does it matter how many stages come after a range?
    pub fn is_by_depth(&self) -> bool {
        self.pipeline.is_some()
    }

    /// How many stages a split may have for its costs to be known.
    pub fn stages(&self) -> usize {
        let known = self.pipeline.as_ref().map(|costs| costs.stages);
        known.unwrap_or(usize::MAX)
    }

    /// Bytes on the fullest tile of `range` (end exclusive) with `after` stages
    /// after it; `None` when it was over the limit that the costs were computed
    /// for, and where there cannot be as many.
    pub fn peak(&self, range: Range<usize>, after: usize) -> Option<u64> {
        let least = self.least(range.clone())?;
        let Some(by_depth) = &self.pipeline else {
            return Some(least);
        };
        let is_last = range.end == self.layers();
        let peak = by_depth.of_range(&range)?.get(after).copied();
        let peak = peak.filter(|_| is_last == (after == 0));
        peak.filter(|&peak| peak < u64::MAX)
    }

    /// The bytes that `range` (end exclusive) needs at least, wherever it is in a split;
    /// `None` when they were over the limit. They never fall when the range grows.
    pub fn least(&self, range: Range<usize>) -> Option<u64> {
        let length = range.end.checked_sub(range.start)?.checked_sub(1)?;
        self.least.get(range.start)?.get(length).copied()
    }

    /// The end (exclusive) of the longest range from `from` that fits;
    /// `from` itself when not even one layer does.
    pub fn reach(&self, from: usize) -> usize {
        from + self.least[from].len()
    }

    /// The bytes that ranges which start at `from` need at least, by length: index `n`
    /// belongs to `from..from + n + 1`. Never falls from one to the next.
    pub fn least_from(&self, from: usize) -> &[u64] {
        self.least.get(from).map_or(&[], Vec::as_slice)
    }

    /// Every range that fits with what it needs at least, by start, then by length.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        self.least.iter().enumerate().flat_map(|(from, row)| {
            row.iter()
                .enumerate()
                .map(move |(n, &peak)| (from..from + n + 1, peak))
        })
    }

    /// The highest number of all, with its range.
    pub fn highest(&self) -> Option<(Range<usize>, u64)> {
        let of_stage = |(range, least): (Range<usize>, u64)| {
            let by_depth = self.pipeline.as_ref();
            let row = by_depth.and_then(|costs| costs.of_range(&range));
            let known = row.map(|row| row.iter().filter(|&&peak| peak < u64::MAX));
            let highest = known.and_then(|known| known.copied().max());
            (range, highest.unwrap_or(0).max(least))
        };
        self.iter().map(of_stage).max_by_key(|&(_, peak)| peak)
    }
}
