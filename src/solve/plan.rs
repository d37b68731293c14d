//! The answer: which positions stand in which stage, and what that costs.

use std::ops::Range;

use super::objectives::Objective;
use super::problem::Problem;

/// Stages in order, without a gap, from position 0 to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    stages: Vec<Range<usize>>,
}

impl Plan {
    /// Takes stages (ends exclusive) that cover positions `0..layers` one
    /// after the other; `None` when they do not, or when one is empty.
    pub fn new(stages: Vec<Range<usize>>, layers: usize) -> Option<Self> {
        let mut end = 0;
        for stage in &stages {
            if stage.start != end || stage.is_empty() {
                return None;
            }
            end = stage.end;
        }
        (end == layers && layers > 0).then_some(Self { stages })
    }

    /// The stages, one range of positions (end exclusive) each.
    pub fn stages(&self) -> &[Range<usize>] {
        &self.stages
    }

    /// The positions before which the plan cuts: the start of every stage
    /// but the first.
    pub fn cuts(&self) -> impl Iterator<Item = usize> + '_ {
        self.stages.iter().skip(1).map(|stage| stage.start)
    }
}

/// What a plan is judged by, in exact integers. Compared in the order of the
/// fields: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score {
    /// Bytes on the fullest tile of any stage.
    pub peak: u64,
    /// Number of stages.
    pub stages: usize,
    /// Sum of the squared peaks of all stages, in bytes squared.
    pub squares: u128,
    /// Bytes over all cuts. Each boundary may have a full 64 bits of them.
    pub cut_bytes: u128,
}

impl Score {
    /// Scores `plan` from the range costs; `None` when a stage has none,
    /// because it is over the limit.
    pub fn of(problem: &Problem<'_>, plan: &Plan) -> Option<Self> {
        let mut score = Self {
            peak: 0,
            stages: plan.stages.len(),
            squares: 0,
            cut_bytes: 0,
        };
        for stage in &plan.stages {
            let peak = problem.costs.peak(stage.clone())?;
            let square = u128::from(peak) * u128::from(peak);
            score.peak = score.peak.max(peak);
            score.squares = score.squares.checked_add(square)?;
            score.cut_bytes += u128::from(problem.bytes_over_cut(stage.end));
        }
        Some(score)
    }

    /// The number that stands for `objective`; `None` for the tie-break,
    /// which is no number.
    pub fn value(&self, objective: Objective) -> Option<u128> {
        match objective {
            Objective::Peak => Some(u128::from(self.peak)),
            Objective::Stages => Some(self.stages as u128),
            Objective::Squares => Some(self.squares),
            Objective::CutBytes => Some(self.cut_bytes),
            Objective::EarliestCuts => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;

    #[test]
    fn a_plan_covers_every_position_once() {
        assert!(Plan::new(vec![0..1, 1..3], 3).is_some());
        for stages in [
            vec![0..1, 2..3],
            vec![0..2, 1..3],
            vec![0..1, 1..2],
            vec![0..3, 3..3],
        ] {
            assert_eq!(Plan::new(stages.clone(), 3), None, "{stages:?}");
        }
        assert_eq!(Plan::new(vec![], 0), None);
    }

    #[test]
    fn scores_count_the_cut_at_the_end_of_each_stage_but_the_last() {
        let costs = RangeCosts::new(vec![vec![3, 5, 9], vec![4, 6], vec![2]]);
        let problem = Problem {
            costs: &costs,
            cut_bytes: &[10, u64::MAX],
            max_stages: 3,
        };
        let plan = Plan::new(vec![0..1, 1..2, 2..3], 3).unwrap();
        let expected = Score {
            peak: 4,
            stages: 3,
            squares: 9 + 16 + 4,
            cut_bytes: 10 + u128::from(u64::MAX),
        };
        assert_eq!(Score::of(&problem, &plan), Some(expected));
        assert_eq!(plan.cuts().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn earlier_fields_of_a_score_weigh_more() {
        let score = |peak, stages, squares, cut_bytes| Score {
            peak,
            stages,
            squares,
            cut_bytes,
        };
        let ordered = [
            score(1, 2, 2, 9),
            score(1, 2, 3, 0),
            score(1, 3, 0, 0),
            score(2, 0, 0, 0),
        ];
        assert!(ordered.is_sorted());
    }
}
