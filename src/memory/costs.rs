//! The table that the solver works on: bytes for each range of layers.

use std::ops::Range;

/// Bytes on the fullest tile for every contiguous range of layers that can fit.
///
/// Positions `0..layers` are indices in the layer order; position 0 is the pseudo-layer. The lower
/// bound on the bytes of a range never falls when a layer is added, so from each start the table
/// ends before the first range whose bound exceeds the limit. In a pipeline a range needs more the
/// more stages come after it (docs/model.md, "Pipelines"); a longer range may then need less than a
/// shorter one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeCosts {
    /// `least[from][n]` is the lower bound on the bytes of `from..from + n + 1`.
    least: Vec<Vec<u64>>,
    /// Bytes of ranges by the number of stages after them; `None` without a pipeline.
    pipeline: Option<ByDepth>,
}

/// Bytes of each range with 0, 1, ... stages after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByDepth {
    /// Maximum number of stages in a split.
    stages: usize,
    /// By start: for each range, by length, `stages` entries for 0, 1, ... stages after it.
    rows: Vec<Vec<u64>>,
}

impl ByDepth {
    /// Bytes of a range (end exclusive) with 0, 1, ... stages after it; `None` if the table lacks
    /// it.
    fn of_range(&self, range: &Range<usize>) -> Option<&[u64]> {
        let first = range.len().checked_sub(1)? * self.stages;
        self.rows.get(range.start)?.get(first..first + self.stages)
    }
}

impl RangeCosts {
    /// Takes peaks in bytes by start and length: `peaks[from][n]` is the peak of the range
    /// `from..from + n + 1`, however many stages come after it.
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

    /// Costs in a pipeline of at most `stages` stages: `peaks(range, after)` returns the bytes of a
    /// range with `after` stages after it; `u64::MAX` exceeds any limit.
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

    /// Costs without a pipeline: the lower bound on the bytes of each range.
    pub fn at_least(&self) -> Self {
        Self::new(self.least.clone())
    }

    /// Number of positions in the layer order, the pseudo-layer included.
    pub fn layers(&self) -> usize {
        self.least.len()
    }

    /// Do the bytes of a range depend on the number of stages after it?
    pub fn is_by_depth(&self) -> bool {
        self.pipeline.is_some()
    }

    /// Maximum number of stages that the costs cover; `usize::MAX` without a pipeline.
    pub fn stages(&self) -> usize {
        let known = self.pipeline.as_ref().map(|costs| costs.stages);
        known.unwrap_or(usize::MAX)
    }

    /// Bytes on the fullest tile of the stage with the positions `range` (end exclusive) and `after`
    /// stages after it. `None` if these bytes exceed the limit that the costs were computed for, or if
    /// no split has such a stage: only a range that ends with the last position has no stage after it.
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

    /// Lower bound on the bytes of `range` (end exclusive), wherever it is in a split; `None` if it
    /// exceeds the limit. It never falls when the range grows.
    pub fn least(&self, range: Range<usize>) -> Option<u64> {
        let length = range.end.checked_sub(range.start)?.checked_sub(1)?;
        self.least.get(range.start)?.get(length).copied()
    }

    /// End (exclusive) of the longest range from `from` that can fit; `from` itself when not even
    /// one layer can.
    pub fn reach(&self, from: usize) -> usize {
        from + self.least[from].len()
    }

    /// Lower bounds on the bytes of ranges that start at `from`, by length: index `n` belongs to
    /// `from..from + n + 1`. They never fall from one to the next.
    pub fn least_from(&self, from: usize) -> &[u64] {
        self.least.get(from).map_or(&[], Vec::as_slice)
    }

    /// All ranges that can fit, each with the lower bound on its bytes, by start, then by length.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        self.least.iter().enumerate().flat_map(|(from, row)| {
            row.iter()
                .enumerate()
                .map(move |(n, &peak)| (from..from + n + 1, peak))
        })
    }

    /// The range with the highest bytes in the table, and its bytes; `None` if the table is empty.
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
