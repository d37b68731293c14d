//! The question: range costs, bytes over each boundary, and how many stages.

use std::ops::Range;

use super::error::SolveError;
use crate::memory::RangeCosts;

/// A choice of split points to be made.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Bytes on the fullest tile of every range that fits.
    pub costs: &'a RangeCosts,
    /// Bytes over each boundary: `cut_bytes[i]` for a cut between positions
    /// `i` and `i + 1`, so one fewer than there are positions.
    pub cut_bytes: &'a [u64],
    /// The highest number of stages, one for each IPU.
    pub max_stages: usize,
}

impl Problem<'_> {
    /// Positions in the layer order, the pseudo-layer included.
    pub(super) fn layers(&self) -> usize {
        self.costs.layers()
    }

    /// Bytes over a cut before position `boundary`; 0 at either end of the
    /// order, where nothing is cut.
    pub(super) fn bytes_over_cut(&self, boundary: usize) -> u64 {
        let before = boundary.checked_sub(1);
        before
            .and_then(|before| self.cut_bytes.get(before))
            .copied()
            .unwrap_or(0)
    }

    /// Refuses what the solvers rely on and the types do not hold.
    pub(super) fn check(&self) -> Result<(), SolveError> {
        let expected = self.layers().saturating_sub(1);
        if self.cut_bytes.len() != expected {
            let found = self.cut_bytes.len();
            return Err(SolveError::CutBytes { expected, found });
        }
        self.check_size()?;
        for from in 0..self.layers() {
            self.check_monotone(from)?;
        }
        Ok(())
    }

    /// Four times the largest sum of squares must fit, so that sums of
    /// several of them need no care.
    fn check_size(&self) -> Result<(), SolveError> {
        let Some((range, peak)) = self.costs.iter().max_by_key(|&(_, peak)| peak) else {
            return Ok(());
        };
        let square = u128::from(peak) * u128::from(peak);
        match square.checked_mul(4 * self.layers() as u128) {
            Some(_) => Ok(()),
            None => Err(SolveError::TooLarge { range, peak }),
        }
    }

    /// Every range from `from` costs at least as much as the same range
    /// without its last and without its first position.
    fn check_monotone(&self, from: usize) -> Result<(), SolveError> {
        let row = self.costs.peaks_from(from);
        let tail = self.costs.peaks_from(from + 1);
        for (n, &peak) in row.iter().enumerate().skip(1) {
            let end = from + n + 1;
            let without_last = row.get(n - 1).copied();
            let without_first = tail.get(n - 1).copied();
            if without_last.is_some_and(|inner| inner > peak) {
                return Err(not_monotone(from..end, peak, from..end - 1, without_last));
            }
            if without_first.is_none_or(|inner| inner > peak) {
                return Err(not_monotone(from..end, peak, from + 1..end, without_first));
            }
        }
        Ok(())
    }
}

fn not_monotone(
    range: Range<usize>,
    peak: u64,
    inner: Range<usize>,
    inner_peak: Option<u64>,
) -> SolveError {
    SolveError::NotMonotone {
        range,
        peak,
        inner,
        inner_peak,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peaks: Vec<Vec<u64>>, cut_bytes: &[u64]) -> Result<(), SolveError> {
        let costs = RangeCosts::new(peaks);
        let problem = Problem {
            costs: &costs,
            cut_bytes,
            max_stages: 2,
        };
        problem.check()
    }

    #[test]
    fn cut_bytes_of_another_layer_order_are_refused() {
        let error = check(vec![vec![1, 2], vec![1]], &[0, 0]).unwrap_err();
        let (expected, found) = (1, 2);
        assert_eq!(error, SolveError::CutBytes { expected, found });
    }

    #[test]
    fn a_range_cheaper_than_its_part_is_refused() {
        let shorter = check(vec![vec![5, 4], vec![1]], &[0]).unwrap_err();
        assert_eq!(shorter, not_monotone(0..2, 4, 0..1, Some(5)));
        let later = check(vec![vec![1, 4], vec![7]], &[0]).unwrap_err();
        assert_eq!(later, not_monotone(0..2, 4, 1..2, Some(7)));
        let missing = check(vec![vec![1, 4], vec![]], &[0]).unwrap_err();
        assert_eq!(missing, not_monotone(0..2, 4, 1..2, None));
    }

    #[test]
    fn peaks_whose_squares_overflow_are_refused() {
        let peak = u64::MAX;
        let error = check(vec![vec![1, peak], vec![1]], &[0]).unwrap_err();
        let range = 0..2;
        assert_eq!(error, SolveError::TooLarge { range, peak });
        check(vec![vec![1 << 50, 1 << 60], vec![1]], &[u64::MAX]).unwrap();
    }
}
