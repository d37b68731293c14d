//! What makes one split better than another, and in which order.

use std::fmt;
use std::ops::Range;

use super::problem::Problem;

/// One thing that a split is judged by. Less is better in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Bytes on the fullest tile of any stage.
    Peak,
    /// Number of stages.
    Stages,
    /// Sum of the squared peaks of all stages (bytes squared): the evenness.
    Squares,
    /// Bytes over the cuts between stages.
    CutBytes,
    /// The list of cuts, compared from the first on.
    EarliestCuts,
}

/// The objectives that are sums over stages, in the order they are compared
/// once the peak is settled.
pub(super) const SUMS: [Objective; 3] =
    [Objective::Stages, Objective::Squares, Objective::CutBytes];

impl Objective {
    /// All that are numbers, in the order they are compared.
    pub const ORDER: [Self; 4] = [Self::Peak, Self::Stages, Self::Squares, Self::CutBytes];

    /// What a stage `range` with the peak `peak` (bytes) adds to the sum of
    /// this objective. A stage pays for the cut at its end, the last stage
    /// for none. The peak and the cuts themselves are no sums: they add 0.
    pub(super) fn cost(self, problem: &Problem<'_>, range: &Range<usize>, peak: u64) -> u128 {
        match self {
            Self::Stages => 1,
            Self::Squares => u128::from(peak) * u128::from(peak),
            Self::CutBytes => u128::from(problem.bytes_over_cut(range.end)),
            Self::Peak | Self::EarliestCuts => 0,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peak => "lowest memory on the fullest tile",
            Self::Stages => "fewest stages",
            Self::Squares => "least sum of squared stage peaks",
            Self::CutBytes => "fewest bytes over the cuts",
            Self::EarliestCuts => "earliest cut",
        })
    }
}
