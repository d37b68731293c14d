//! The question: range costs, bytes over cuts, limits, constraints and the goal.

use std::ops::Range;

use super::SolveError;
use super::constraints::Constraint;
use super::objectives::Goal;
use crate::memory::RangeCosts;
use crate::time::StageTimes;

/// Bytes that a stage may take on each tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits<'a> {
    /// One limit for every IPU.
    Same(u64),
    /// By IPU, one for each.
    ByIpu(&'a [u64]),
}

/// The problem of where to split.
///
/// Stage n is on IPU n. If there are fewer stages than IPUs, the last IPUs are empty.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Bytes on the fullest tile of every range of positions, in a pipeline by the number of stages
    /// after it. A missing range exceeds every limit.
    pub costs: &'a RangeCosts,
    /// Bytes over each boundary: `cut_bytes[i]` for a cut between positions `i` and `i + 1`, so one
    /// entry fewer than there are positions.
    pub cut_bytes: &'a [u64],
    /// The cycles of ranges of positions as stages; `None` if the profile has none.
    pub times: Option<&'a StageTimes>,
    /// Number of IPUs, which is the maximum number of stages.
    pub ipus: usize,
    /// Bytes that a stage may take.
    pub limits: Limits<'a>,
    /// Further conditions on a plan.
    pub constraints: &'a [Constraint],
    /// The order in which plans are compared.
    pub goal: Goal,
}

impl<'a> Limits<'a> {
    /// One number of bytes for all IPUs, or one for each.
    pub fn new(bytes: &'a [u64]) -> Self {
        match bytes {
            [same] => Self::Same(*same),
            _ => Self::ByIpu(bytes),
        }
    }

    /// The limits of the first `ipus` IPUs.
    pub fn first(self, ipus: usize) -> Self {
        match self {
            Self::Same(_) => self,
            Self::ByIpu(bytes) => Self::ByIpu(&bytes[..ipus.min(bytes.len())]),
        }
    }

    /// Bytes that stage `stage` may take; `None` beyond the last IPU, with limits by IPU.
    pub fn of(self, stage: usize) -> Option<u64> {
        match self {
            Self::Same(bytes) => Some(bytes),
            Self::ByIpu(bytes) => bytes.get(stage).copied(),
        }
    }

    /// The maximum that a stage may take on any IPU; 0 without any.
    pub fn highest(self) -> u64 {
        match self {
            Self::Same(bytes) => bytes,
            Self::ByIpu(bytes) => bytes.iter().copied().max().unwrap_or(0),
        }
    }

    /// The limits by IPU; `None` if it is the same for all.
    pub fn by_ipu(self) -> Option<&'a [u64]> {
        match self {
            Self::Same(_) => None,
            Self::ByIpu(bytes) => Some(bytes),
        }
    }

    /// Does it matter which IPU a stage is on?
    pub(super) fn differs(self) -> bool {
        let bytes = self.by_ipu().unwrap_or_default();
        bytes.windows(2).any(|pair| pair[0] != pair[1])
    }
}

impl<'a> Problem<'a> {
    /// The problem with stages that may take any number of bytes, lowest peak first.
    pub fn at_any_limit(self) -> Self {
        Self {
            limits: Limits::Same(u64::MAX),
            goal: Goal::Peak,
            ..self
        }
    }

    /// The maximum that a stage may take on any of the IPUs.
    pub(super) fn highest_limit(&self) -> u64 {
        self.limits.first(self.ipus).highest()
    }

    /// Positions in the layer order, the pseudo-layer included.
    pub(super) fn layers(&self) -> usize {
        self.costs.layers()
    }

    /// Bytes over a cut before position `boundary`; 0 at either end of the layer order, where
    /// nothing is cut.
    pub(super) fn bytes_over_cut(&self, boundary: usize) -> u64 {
        let before = boundary.checked_sub(1);
        before
            .and_then(|before| self.cut_bytes.get(before))
            .copied()
            .unwrap_or(0)
    }

    /// Checks what the solvers rely on and the types do not ensure.
    pub(super) fn check(&self) -> Result<(), SolveError> {
        self.check_lengths()?;
        self.check_size()?;
        for from in 0..self.layers() {
            self.check_monotone(from)?;
        }
        let layers = self.layers();
        let beyond = |constraint: &&Constraint| constraint.last_position() >= layers;
        match self.constraints.iter().find(beyond) {
            Some(found) => Err(SolveError::NoSuchPosition(found.origin.clone(), layers)),
            None => Ok(()),
        }
    }

    fn check_lengths(&self) -> Result<(), SolveError> {
        let (layers, ipus) = (self.layers(), self.ipus);
        let (cuts, expected) = (self.cut_bytes.len(), layers.saturating_sub(1));
        let positions = self.times.map_or(layers, StageTimes::positions);
        let limits = self.limits.by_ipu().map_or(ipus, <[u64]>::len);
        let problem = if cuts != expected {
            format!("{cuts} boundaries have bytes over a cut, but the layer order has {expected}")
        } else if positions != layers {
            format!("{positions} layers have cycles, but the layer order has {layers}")
        } else if limits != ipus {
            format!("{limits} limits for {ipus} IPUs")
        } else if self.times.is_none() && self.goal.needs_cycles() {
            return Err(SolveError::NoCycles);
        } else {
            return Ok(());
        };
        Err(SolveError::Internal(problem))
    }

    /// Checks that four times the largest sum of squares fits, so that sums of several sums of
    /// squares cannot overflow.
    fn check_size(&self) -> Result<(), SolveError> {
        let Some((range, peak)) = self.costs.highest() else {
            return Ok(());
        };
        let square = u128::from(peak) * u128::from(peak);
        match square.checked_mul(4 * self.layers() as u128) {
            Some(_) => Ok(()),
            None => Err(SolveError::TooLarge(range, peak)),
        }
    }

    /// Checks that every range from `from` costs at least as much as the same range without its
    /// last and without its first position.
    fn check_monotone(&self, from: usize) -> Result<(), SolveError> {
        let row = self.costs.least_from(from);
        let tail = self.costs.least_from(from + 1);
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

/// The error about a range that costs less than a range inside it, which is impossible for memory
/// of a stage (docs/model.md, "The memory of a stage"). An inner range without a peak is over the
/// limit.
fn not_monotone(
    range: Range<usize>,
    peak: u64,
    inner: Range<usize>,
    inner_peak: Option<u64>,
) -> SolveError {
    let inner_peak = match inner_peak {
        Some(peak) => format!("need {peak}"),
        None => "are over the limit".to_owned(),
    };
    SolveError::Internal(format!(
        "the layers at positions {range:?} need {peak} bytes, but those at {inner:?} inside them \
         {inner_peak}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Rule;

    fn check(peaks: Vec<Vec<u64>>, cut_bytes: &[u64]) -> Result<(), SolveError> {
        Problem::new(&RangeCosts::new(peaks), cut_bytes, 2, u64::MAX).check()
    }

    #[test]
    fn what_belongs_to_another_layer_order_is_refused() {
        let is_internal = |checked: Result<(), SolveError>, begin: &str| matches!(checked, Err(SolveError::Internal(text)) if text.starts_with(begin));
        let checked = check(vec![vec![1, 2], vec![1]], &[0, 0]);
        assert!(is_internal(checked, "2 boundaries have bytes over a cut"));

        let costs = RangeCosts::new(vec![vec![1, 2], vec![1]]);
        let problem = Problem::new(&costs, &[0], 3, 5);
        let times = crate::time::tests::forward_times(&[1, 2, 3]);
        let cycles = Problem {
            times: Some(&times),
            ..problem
        };
        assert!(is_internal(cycles.check(), "3 layers have cycles"));
        let limits = Limits::ByIpu(&[1, 2]);
        let checked = Problem { limits, ..problem }.check();
        assert!(is_internal(checked, "2 limits for 3 IPUs"));
        let goal = Goal::Cycles;
        assert_eq!(
            Problem { goal, ..problem }.check(),
            Err(SolveError::NoCycles)
        );
    }

    #[test]
    fn orders_for_positions_that_are_not_there_are_refused() {
        let costs = RangeCosts::new(vec![vec![1, 2], vec![1]]);
        let check = |rule| {
            let constraints = [Constraint::option(rule, "--constraint")];
            let problem = Problem::new(&costs, &[0], 2, 5);
            let constraints = &constraints;
            Problem {
                constraints,
                ..problem
            }
            .check()
        };
        let (first, last) = (1, 2);
        for (beyond, fine) in [
            (
                Rule::CutAfter { position: 1 },
                Rule::CutAfter { position: 0 },
            ),
            (
                Rule::NoCutAfter {
                    position: usize::MAX,
                },
                Rule::NoCutAfter { position: 0 },
            ),
            (
                Rule::Together { first, last },
                Rule::Together { first, last: 0 },
            ),
        ] {
            let origin = Constraint::option(beyond, "--constraint").origin;
            let error = SolveError::NoSuchPosition(origin, 2);
            assert_eq!(check(beyond), Err(error));
            assert_eq!(check(fine), Ok(()));
        }
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
        assert_eq!(error, SolveError::TooLarge(0..2, peak));
        check(vec![vec![1 << 50, 1 << 60], vec![1]], &[u64::MAX]).unwrap();
    }
}
