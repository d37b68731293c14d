//! The table of bytes for each range of layers, from which the solver chooses stages.

use std::ops::Range;

/// A table of all ranges of consecutive positions that can fit, with the bytes on the fullest tile
/// of a stage that consists of the range.
///
/// Positions are indices in the layer order; position 0 is In or, for operations without a layer,
/// None. Each range has a lower bound on its bytes, which never falls when a position is added to
/// the range. So the ranges in the table that begin at one position end before the first range
/// whose bound exceeds the limit. In a pipeline the bytes of a range also depend on the number of
/// stages after it (docs/model.md, "Pipelines"), so a longer range may need fewer bytes than a
/// shorter range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeCosts {
    /// `least[from][n]` is the lower bound on the bytes of the range `from..from + n + 1`.
    least: Vec<Vec<u64>>,
    /// The maximum number of stages of a split in a pipeline; `None` without a pipeline.
    stages: Option<usize>,
    /// In a pipeline, one list per start position: the bytes on the fullest tile of each range that
    /// begins at this position, the shortest range first. Each range has `stages` consecutive
    /// entries, for 0, 1, ... stages after it. An entry is at least the bound in `least`, and
    /// [`u64::MAX`] if the bytes exceed the limit.
    peaks: Vec<Vec<u64>>,
}

impl RangeCosts {
    /// Makes the table for stages without a pipeline. `peaks[from][n]` is the bytes on the fullest
    /// tile of the range of positions `from..from + n + 1`, whatever the number of stages after it.
    /// It must not fall as `n` grows.
    ///
    /// # Panics
    /// If a range reaches beyond the last position, `peaks.len() - 1`.
    pub fn new(peaks: Vec<Vec<u64>>) -> Self {
        let layers = peaks.len();
        for (from, row) in peaks.iter().enumerate() {
            assert!(from + row.len() <= layers, "a range beyond the last layer");
        }
        Self {
            least: peaks,
            ..Self::default()
        }
    }

    /// Makes the table for a pipeline of at most `stages` stages. `least[from][n]` is the lower
    /// bound on the bytes of the range of positions `from..from + n + 1`. `peaks(range, after)`
    /// returns the bytes on the fullest tile of a range with `after` stages after it, or `u64::MAX`
    /// if they are over the limit.
    ///
    /// # Panics
    /// If a range reaches beyond the last position, `least.len() - 1`.
    pub fn in_pipeline(
        least: Vec<Vec<u64>>,
        stages: usize,
        peaks: impl Fn(Range<usize>, usize) -> u64,
    ) -> Self {
        let from = |(start, least): (usize, &Vec<u64>)| {
            (0..least.len() * stages)
                .map(|index| peaks(start..start + index / stages + 1, index % stages))
                .collect()
        };
        Self {
            stages: Some(stages),
            peaks: least.iter().enumerate().map(from).collect(),
            ..Self::new(least)
        }
    }

    /// Returns the bytes of `range` (end exclusive) in a pipeline: one entry per number of stages
    /// after the range (0, 1, ...). Returns `None` without a pipeline, or if the table does not
    /// have the range.
    fn by_depth(&self, range: &Range<usize>) -> Option<&[u64]> {
        let stages = self.stages?;
        let first = range.len().checked_sub(1)? * stages;
        self.peaks.get(range.start)?.get(first..first + stages)
    }

    /// Raises the bytes of each range to the bytes of the same range in `other` if those are
    /// higher, and removes the ranges that `other` does not have. `other` must be a table of the
    /// same model in the same pipeline, computed on other tiles.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        raise_rows(&mut self.least, &other.least);
        raise_rows(&mut self.peaks, &other.peaks);
    }

    /// Returns a table without a pipeline that gives each range its lower bound as its bytes.
    pub fn at_least(&self) -> Self {
        Self::new(self.least.clone())
    }

    /// Returns the number of positions in the layer order. Besides the layers, In and Out count as
    /// positions, or None (the position of operations without a layer).
    pub fn layers(&self) -> usize {
        self.least.len()
    }

    /// Returns whether the bytes of a range depend on the number of stages after it. This is true
    /// only in a pipeline.
    pub fn is_by_depth(&self) -> bool {
        self.stages.is_some()
    }

    /// Returns the maximum number of stages of a split that the table can evaluate; `usize::MAX`
    /// without a pipeline.
    pub fn stages(&self) -> usize {
        self.stages.unwrap_or(usize::MAX)
    }

    /// Returns the bytes on the fullest tile of the stage that has the positions `range` (end
    /// exclusive) and is followed by `after` stages. Without a pipeline, `after` has no effect.
    /// Returns `None` if the bytes exceed the limit that the table was computed for. In a pipeline,
    /// also returns `None` if no split can have this stage: `after` must be 0 if `range` ends with
    /// the last position, and must not be 0 otherwise.
    pub fn peak(&self, range: Range<usize>, after: usize) -> Option<u64> {
        let least = self.least(range.clone())?;
        if !self.is_by_depth() {
            return Some(least);
        }
        let is_possible = (range.end == self.layers()) == (after == 0);
        let &peak = self.by_depth(&range)?.get(after)?;
        (is_possible && peak < u64::MAX).then_some(peak)
    }

    /// Returns a lower bound on the bytes of a stage with the positions `range` (end exclusive),
    /// whatever the number of stages after it. Returns `None` if the bound exceeds the limit. The
    /// bound never falls when the range grows.
    pub fn least(&self, range: Range<usize>) -> Option<u64> {
        self.least_from(range.start)
            .get(range.len().checked_sub(1)?)
            .copied()
    }

    /// Returns the end (exclusive) of the longest range in the table that begins at the position
    /// `from`. Returns `from` if the table has no range that begins there.
    pub fn reach(&self, from: usize) -> usize {
        from + self.least[from].len()
    }

    /// Returns the lower bounds on the bytes of the ranges that begin at the position `from`. The
    /// entry with the index `n` is the bound of the range `from..from + n + 1`; entries never fall
    /// as `n` grows. The result is empty if the table has no range that begins at `from`.
    pub fn least_from(&self, from: usize) -> &[u64] {
        self.least.get(from).map_or(&[], Vec::as_slice)
    }

    /// Iterates over all ranges in the table, each with the lower bound on its bytes, in the order
    /// of starts; ranges with the same start come shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        self.least.iter().enumerate().flat_map(|(from, row)| {
            (from + 1..)
                .zip(row)
                .map(move |(end, &peak)| (from..end, peak))
        })
    }

    /// Returns the range that has the most bytes in the table, and these bytes. Returns `None` if
    /// the table is empty. In a pipeline, the bytes of a range are the highest bytes within the
    /// limit for any number of stages after it.
    pub fn highest(&self) -> Option<(Range<usize>, u64)> {
        self.iter()
            .map(|(range, least)| {
                let highest = self
                    .by_depth(&range)
                    .unwrap_or_default()
                    .iter()
                    .filter(|&&peak| peak < u64::MAX)
                    .max();
                (range, least.max(highest.map_or(0, |&highest| highest)))
            })
            .max_by_key(|&(_, peak)| peak)
    }
}

/// Raises each entry of `rows` to the entry of `others` with the same indices if that is higher,
/// and removes the entries of `rows` that have no such entry in `others`.
fn raise_rows(rows: &mut [Vec<u64>], others: &[Vec<u64>]) {
    for (row, other) in rows.iter_mut().zip(others) {
        row.truncate(other.len());
        for (entry, &other) in row.iter_mut().zip(other) {
            *entry = other.max(*entry);
        }
    }
}
