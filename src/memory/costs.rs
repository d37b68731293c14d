//! The table of the bytes of each range of consecutive layers that may become a stage. The search
//! for the best split chooses stages from this table.

use std::ops::Range;

/// A table of all ranges of consecutive positions (In, layers, Out) that can fit in the memory of a
/// tile, with the bytes that a stage of the range takes on its fullest tile. In has the operations
/// before the first layer, and Out the operations after the last layer.
///
/// Each range has a lower bound on its bytes, which never falls when a position is added to the
/// range. If the bound exceeds the limit, the table has neither the range nor longer ranges from
/// the same start. In a pipeline, the bytes of a range also depend on the number of stages after it
/// (docs/model.md, "Pipelines"), and a longer range may need fewer bytes than a shorter range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeCosts {
    /// The maximum number of stages of a split. The bytes of a range are stored for each number of
    /// later stages below this maximum. 0 without a pipeline, where the number of later stages has
    /// no effect.
    stages: usize,
    /// One list per start position, with the bytes of all ranges of layers that begin there, the
    /// shortest range first. Each range has [`columns`](Self::columns) numbers in the list: first
    /// the lower bound on its bytes; then, in a pipeline, its bytes on the fullest tile with 0, 1,
    /// ... stages after it. [`u64::MAX`] stands for bytes above the limit, and for a number of
    /// later stages that is not possible.
    rows: Vec<Vec<u64>>,
}

impl RangeCosts {
    /// Makes the table of ranges for stages without a pipeline. `peaks[from][n]` is the bytes on
    /// the fullest tile of the range of positions `from..from + n + 1`; these bytes must not fall
    /// as `n` grows.
    ///
    /// # Panics
    /// If a range reaches beyond the last position, `peaks.len() - 1`.
    pub fn new(peaks: Vec<Vec<u64>>) -> Self {
        Self::in_pipeline(peaks, 0)
    }

    /// Makes the table of ranges for a pipeline of at most `stages` stages, or for stages without a
    /// pipeline if `stages` is 0. `rows[from]` has the numbers of all ranges that begin at the
    /// position `from`, the shortest range first. A range has `stages + 1` numbers: the lower bound
    /// on its bytes, then its bytes on the fullest tile with 0, 1, ... stages after it, or
    /// [`u64::MAX`] if these bytes exceed the limit, or if the pipeline has no room for the stages
    /// after it.
    ///
    /// # Panics
    /// If a range reaches beyond the last position, `rows.len() - 1`.
    pub fn in_pipeline(rows: Vec<Vec<u64>>, stages: usize) -> Self {
        let costs = Self { stages, rows };
        for from in 0..costs.layers() {
            let end = costs.reach(from);
            assert!(end <= costs.layers(), "a range beyond the last layer");
        }
        costs
    }

    fn columns(&self) -> usize {
        1 + self.stages
    }

    /// Returns the numbers that the table has for the range of positions `range` (end exclusive).
    /// The first is the lower bound on the bytes of a stage with these positions. In a pipeline,
    /// the bytes of the stage with 0, 1, ... stages after it follow. Returns `None` if the range is
    /// empty, or if it is not in the table because its lower bound exceeds the limit.
    fn entries(&self, range: &Range<usize>) -> Option<&[u64]> {
        let columns = self.columns();
        let first = range.len().checked_sub(1)? * columns;
        self.rows.get(range.start)?.get(first..first + columns)
    }

    /// Merges `other`, a table of the bytes of ranges on further tiles, into this table: each range
    /// gets the higher of its bytes in the two tables, and ranges that `other` lacks, since they
    /// exceed the limit, are removed. Both tables must be for the same model in the same pipeline.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        for (row, other) in self.rows.iter_mut().zip(&other.rows) {
            row.truncate(other.len());
            for (entry, &other) in row.iter_mut().zip(other) {
                *entry = other.max(*entry);
            }
        }
    }

    /// Returns a table of the same ranges of layers with one number for each range: a lower bound
    /// on the bytes of a stage with these layers, however many stages follow it. Bytes that depend
    /// on how many stages follow, such as the stash of a pipeline, are left out.
    pub fn at_least(&self) -> Self {
        let least = |from| self.least_from(from).collect();
        Self::new((0..self.layers()).map(least).collect())
    }

    /// Returns the number of positions: In (the operations before the first layer), the layers, and
    /// Out (the operations after the last layer). If In and Out are not separate, all operations
    /// without a layer share one position, which is named `None`.
    pub fn layers(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the bytes of a range of layers depend on the number of stages after it, as
    /// in a pipeline, whose stages stash more copies of tensors if more stages follow.
    pub fn is_by_depth(&self) -> bool {
        self.stages > 0
    }

    /// Returns the maximum number of stages of the splits for which this table has bytes.
    /// [`usize::MAX`] without a pipeline, where the bytes of a range of layers do not depend on the
    /// number of later stages.
    pub fn stages(&self) -> usize {
        match self.stages {
            0 => usize::MAX,
            stages => stages,
        }
    }

    /// Returns the bytes on the fullest tile of a stage with the positions `range` (end exclusive)
    /// that has `after` stages after it. Without a pipeline, `after` has no effect. Returns `None`
    /// if the bytes exceed the limit of the table. In a pipeline, also returns `None` if no split
    /// can have the stage: a last stage must end with the last position, and any other stage must
    /// end before it.
    pub fn peak(&self, range: Range<usize>, after: usize) -> Option<u64> {
        let (&least, by_depth) = self.entries(&range)?.split_first()?;
        if !self.is_by_depth() {
            return Some(least);
        }
        let is_possible = (range.end == self.layers()) == (after == 0);
        let &peak = by_depth.get(after)?;
        (is_possible && peak < u64::MAX).then_some(peak)
    }

    /// Returns a lower bound on the bytes of a stage with the positions `range` (end exclusive),
    /// whatever the number of stages after it. Returns `None` if the bound exceeds the limit. The
    /// bound of a range is never below the bound of a shorter range within it.
    pub fn least(&self, range: Range<usize>) -> Option<u64> {
        self.entries(&range)?.first().copied()
    }

    /// Returns the end (exclusive) of the longest range of layers in the table that begins at the
    /// position `from`. Returns `from` if no range begins there.
    pub fn reach(&self, from: usize) -> usize {
        from + self.rows[from].len() / self.columns()
    }

    /// Returns lower bounds on the bytes of stages that begin at the position `from`. The entry
    /// with the index `n` is the bound of the range `from..from + n + 1`; entries never fall as `n`
    /// grows. The result is empty if the table has no range that begins at `from`.
    pub fn least_from(&self, from: usize) -> impl Iterator<Item = u64> + '_ {
        self.rows
            .get(from)
            .into_iter()
            .flat_map(|row| row.iter().step_by(self.columns()))
            .copied()
    }

    /// Iterates over all ranges of layers in the table, each with the lower bound on its bytes, in
    /// the order of starts; ranges with the same start come shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        (0..self.layers()).flat_map(|from| {
            (from + 1..)
                .zip(self.least_from(from))
                .map(move |(end, least)| (from..end, least))
        })
    }

    /// Returns the range of layers that takes the most bytes of all ranges in the table, and these
    /// bytes. In a pipeline, the bytes of a range depend on the number of later stages; the highest
    /// bytes within the limit are used. Returns `None` if the table is empty.
    pub fn highest(&self) -> Option<(Range<usize>, u64)> {
        self.iter()
            .map(|(range, least)| {
                let entries = self.entries(&range).unwrap_or_default().iter().copied();
                let highest = entries.filter(|&bytes| bytes < u64::MAX).max();
                (range, highest.unwrap_or(least))
            })
            .max_by_key(|&(_, peak)| peak)
    }
}
