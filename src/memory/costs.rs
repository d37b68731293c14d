//! The table that the solver works on: one number for each range of layers.

use std::ops::Range;

/// The memory on the fullest tile of every contiguous range of layers that
/// can fit, in bytes.
///
/// Positions 0..`layers` are those of the layer order (position 0 is the
/// pseudo-layer). A range never gets cheaper when a layer is added, so from
/// each start only the ranges up to the first that is over the limit are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeCosts {
    /// `peaks[from][n]` is the peak of the range `from..from + n + 1`.
    peaks: Vec<Vec<u64>>,
}

impl RangeCosts {
    /// Takes the peaks by start and length: `peaks[from][n]` belongs to the
    /// range `from..from + n + 1`.
    ///
    /// # Panics
    /// When a range reaches beyond the last layer.
    pub fn new(peaks: Vec<Vec<u64>>) -> Self {
        let layers = peaks.len();
        for (from, row) in peaks.iter().enumerate() {
            assert!(from + row.len() <= layers, "a range beyond the last layer");
        }
        Self { peaks }
    }

    /// How many positions the layer order has, the pseudo-layer included.
    pub fn layers(&self) -> usize {
        self.peaks.len()
    }

    /// Bytes on the fullest tile of `range` (end exclusive); `None` when it
    /// was over the limit that the costs were computed for.
    pub fn peak(&self, range: Range<usize>) -> Option<u64> {
        let length = range.end.checked_sub(range.start)?.checked_sub(1)?;
        self.peaks.get(range.start)?.get(length).copied()
    }

    /// The end (exclusive) of the longest range from `from` that fits;
    /// `from` itself when not even one layer does.
    pub fn reach(&self, from: usize) -> usize {
        from + self.peaks[from].len()
    }

    /// Peaks of the ranges that start at `from`, by length: index `n` belongs
    /// to `from..from + n + 1`. Never falls from one to the next.
    pub fn peaks_from(&self, from: usize) -> &[u64] {
        self.peaks.get(from).map_or(&[], Vec::as_slice)
    }

    /// Every range that fits with its peak, by start, then by length.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        self.peaks.iter().enumerate().flat_map(|(from, row)| {
            row.iter()
                .enumerate()
                .map(move |(n, &peak)| (from..from + n + 1, peak))
        })
    }
}
