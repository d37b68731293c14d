//! The peaks of every range of layers, as all threads know them.

use crate::memory::lanes;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges with the same start whose numbers are kept together, from when one of them
/// is looked at: most ranges of large models never are.
const AT_ONCE: usize = 16;

/// The highest bytes of any tile so far: by first and last layer a number that a
/// range needs at least, and in a pipeline one for each number of stages after it.
pub(super) struct RangePeakTable {
    layers: usize,
    columns: usize,
    /// By first layer, then last layer.
    parts: Vec<OnceLock<Box<[AtomicU64]>>>,
}

/// The numbers of one range.
#[derive(Clone, Copy)]
pub(super) struct RangePeaks<'a>(&'a [AtomicU64]);

impl RangePeakTable {
    /// Nothing is known of any range; each has `columns` numbers.
    pub(super) fn new(layers: usize, columns: usize) -> Self {
        let parts = layers * layers.div_ceil(AT_ONCE);
        Self {
            layers,
            columns,
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The range from `start` to `last`.
    pub(super) fn of(&self, start: usize, last: usize) -> RangePeaks<'_> {
        let part = start * self.layers.div_ceil(AT_ONCE) + last / AT_ONCE;
        let zeros = || (0..AT_ONCE * self.columns).map(|_| AtomicU64::new(0));
        let part = self.parts[part].get_or_init(|| zeros().collect());
        RangePeaks(&part[last % AT_ONCE * self.columns..][..self.columns])
    }
}

impl RangePeaks<'_> {
    /// A number of it, of which 0 is what it needs at least.
    pub(super) fn get(self, column: usize) -> u64 {
        self.0[column].load(Ordering::Relaxed)
    }

    /// By lane the bytes that a tile has at least, beside `least`, where it raises what the
    /// range needs at least.
    pub(super) fn beside<const N: usize>(self, least: &[u64; N]) -> [u64; N] {
        let first = self.get(0);
        least.map(|least| first.saturating_sub(least))
    }

    /// By lane the bytes that a tile has at least, beside `least` and what the columns
    /// add to that, where it raises any of these.
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

    /// By lane, a tile has `least` at least.
    pub(super) fn raise<const N: usize>(self, least: &[u64; N]) {
        raise(&self.0[0], least);
    }

    /// By lane, a tile has what the columns add to `least`.
    pub(super) fn raise_columns<const N: usize>(self, least: &[u64; N], columns: &[[u64; N]]) {
        for (peak, added) in self.0[1..].iter().zip(columns) {
            raise(peak, &lanes::plus(least, added));
        }
    }
}

fn raise<const N: usize>(peak: &AtomicU64, bytes: &[u64; N]) {
    let highest = lanes::highest(bytes);
    // Most tiles raise nothing, and to look is much cheaper than to write.
    if peak.load(Ordering::Relaxed) < highest {
        peak.fetch_max(highest, Ordering::Relaxed);
    }
}
