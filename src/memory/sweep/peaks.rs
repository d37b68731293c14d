//! The peak of every range of layers, shared by all threads.

use crate::memory::lanes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of ranges with the same start that are allocated together, on first access: most ranges
/// of large models are never accessed.
const AT_ONCE: usize = 16;

/// The highest bytes of any tile so far, by first and last layer: the first column is the lower
/// bound of the range; in a pipeline, more columns follow, one for each number of stages after it.
pub(super) struct RangePeakTable {
    layers: usize,
    columns: usize,
    /// By first layer, then last layer.
    parts: Vec<OnceLock<Box<[AtomicU64]>>>,
}

/// The columns of one range.
#[derive(Clone, Copy)]
pub(super) struct RangePeaks<'a>(&'a [AtomicU64]);

impl RangePeakTable {
    /// A table of zeros with `columns` columns for each range.
    pub(super) fn new(layers: usize, columns: usize) -> Self {
        let parts = layers * layers.div_ceil(AT_ONCE);
        Self {
            layers,
            columns,
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The columns of the range from `start` to `last` (inclusive).
    pub(super) fn of(&self, start: usize, last: usize) -> RangePeaks<'_> {
        let part = start * self.layers.div_ceil(AT_ONCE) + last / AT_ONCE;
        let zeros = || (0..AT_ONCE * self.columns).map(|_| AtomicU64::new(0));
        let part = self.parts[part].get_or_init(|| zeros().collect());
        RangePeaks(&part[last % AT_ONCE * self.columns..][..self.columns])
    }
}

impl RangePeaks<'_> {
    /// The highest bytes so far in a column; column 0 is the lower bound of the range.
    pub(super) fn get(self, column: usize) -> u64 {
        self.0[column].load(Ordering::Relaxed)
    }

    /// By lane, bytes besides `least` above which a tile raises the lower bound of the range.
    pub(super) fn beside<const N: usize>(self, least: &[u64; N]) -> [u64; N] {
        let first = self.get(0);
        least.map(|least| first.saturating_sub(least))
    }

    /// By lane, bytes besides `least` and the additions in `columns` above which a tile raises any
    /// of these columns.
    pub(super) fn lowest_column<const N: usize>(
        self,
        least: &[u64; N],
        columns: &[[u64; N]],
    ) -> [u64; N] {
        let mut lowest = [u64::MAX; N];
        for (peak, added) in self.0[1..].iter().zip(columns) {
            let peak = peak.load(Ordering::Relaxed);
            for lane in 0..N {
                let beside = peak.saturating_sub(least[lane] + added[lane]);
                lowest[lane] = lowest[lane].min(beside);
            }
        }
        lowest
    }

    /// Raises the lower bound of the range to the highest lane of `least`.
    pub(super) fn raise<const N: usize>(self, least: &[u64; N]) {
        raise(&self.0[0], least);
    }

    /// Raises each further column to the highest lane of `least` plus its additions in `columns`.
    pub(super) fn raise_columns<const N: usize>(self, least: &[u64; N], columns: &[[u64; N]]) {
        for (peak, added) in self.0[1..].iter().zip(columns) {
            raise(peak, &lanes::plus(least, added));
        }
    }
}

fn raise<const N: usize>(peak: &AtomicU64, bytes: &[u64; N]) {
    let highest = lanes::highest(bytes);
    // Most tiles raise nothing, and a read is much cheaper than a write.
    if peak.load(Ordering::Relaxed) < highest {
        peak.fetch_max(highest, Ordering::Relaxed);
    }
}
