//! A plan, which assigns positions to stages, its score, and the proof that no other plan is
//! better.

use std::{cmp::Ordering, ops::Range};

use super::{
    constraints::Constraint,
    objectives::{Goal, Objective, decimal},
    problem::{CompiledStage, Problem, SolveError},
};
use crate::time::StepTime;
use serde::{Deserialize, Serialize};

/// A split of all positions into stages, in order and without a gap from position 0 to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    stages: Vec<Range<usize>>,
    profiles: Vec<usize>,
}

impl Plan {
    /// Makes a plan of `stages`. Returns `None` unless each stage has a position, and the stages
    /// cover the positions `0..layers` in order, without a gap.
    pub fn new<S: Into<CompiledStage>>(
        stages: impl IntoIterator<Item = S>,
        layers: usize,
    ) -> Option<Self> {
        let (stages, profiles): (Vec<_>, Vec<_>) = stages
            .into_iter()
            .map(Into::into)
            .map(|stage: CompiledStage| (stage.positions, stage.profile))
            .unzip();
        let mut end = 0;
        for stage in &stages {
            if stage.start != end || stage.is_empty() {
                return None;
            }
            end = stage.end;
        }
        (end == layers && layers > 0).then_some(Self { stages, profiles })
    }

    /// Returns one entry per stage: the index into [`Problem::by_profile`] of the profile of the
    /// stage.
    pub fn profiles(&self) -> &[usize] {
        &self.profiles
    }

    pub(super) fn compiled(&self) -> impl Iterator<Item = CompiledStage> {
        let stages = self.stages.iter().zip(&self.profiles);
        stages.map(|(positions, &profile)| CompiledStage {
            positions: positions.clone(),
            profile,
        })
    }

    /// Returns the stages as ranges of positions (ends exclusive), from the first stage on.
    pub fn stages(&self) -> &[Range<usize>] {
        &self.stages
    }

    /// Returns the positions before which the plan cuts: the first position of every stage except
    /// the first stage.
    pub fn cuts(&self) -> impl Iterator<Item = usize> + '_ {
        self.stages.iter().skip(1).map(|stage| stage.start)
    }

    /// Returns each stage with the number of stages after it, on which its bytes and cycles depend.
    pub(super) fn with_after(&self) -> impl Iterator<Item = (CompiledStage, usize)> {
        self.compiled().zip((0..self.stages.len()).rev())
    }
}

/// The values of a plan in all objectives, as exact integers. [`Goal::order`] states which
/// objective counts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// The peak of the split: the bytes on the fullest tile of any of its stages.
    pub peak: u64,
    /// The number of stages of the split, which is the number of IPUs that it uses.
    pub stages: usize,
    /// The sum of the squared peaks of all stages, in bytes squared. Of splits into equally many
    /// stages, those that divide memory more evenly tend to have lower sums.
    pub squares: u128,
    /// The bytes of the variables that cross cuts, over all tiles and summed over all cuts. The sum
    /// may need more than 64 bits, since a single cut has up to 2^64 - 1 bytes.
    pub cut_bytes: u128,
    /// The cycles that the slowest stage takes for one micro-batch, including recomputation; `None`
    /// if the profile has no cycle counts.
    pub slowest_cycles: Option<u128>,
    /// The time of a pipeline step, by which [`Goal::Time`] compares splits; `None` if the profile
    /// has no cycle counts.
    pub step: Option<StepTime>,
}

impl Score {
    /// Computes the score (the values in all objectives) of `plan`, even if the plan is over the
    /// limits. `peaks` has one entry per stage: the bytes on its fullest tile. The bytes over cuts
    /// and the cycles are taken from `problem`. Returns `None` if `problem` has cycle counts but
    /// lacks those of a stage, or if a sum overflows.
    pub fn of_peaks(problem: &Problem<'_>, plan: &Plan, peaks: &[u64]) -> Option<Self> {
        let mut squares = peaks.iter().map(|&peak| u128::from(peak).pow(2));
        let over_cut = |stage| u128::from(problem.bytes_over_cut_after(&stage));
        let slowest_cycles = if problem.has_cycles() {
            Some(problem.cycles(plan).into_iter().max()?)
        } else {
            None
        };
        Some(Self {
            peak: peaks.iter().copied().max()?,
            stages: plan.stages.len(),
            squares: squares.try_fold(0, u128::checked_add)?,
            cut_bytes: plan.compiled().map(over_cut).sum(),
            slowest_cycles,
            step: problem.step(plan),
        })
    }

    /// Returns the value of the plan in `objective`; `None` for [`Objective::Cycles`] if the
    /// profile has no cycle counts.
    pub fn value(&self, objective: Objective) -> Option<u128> {
        match objective {
            Objective::Peak => Some(u128::from(self.peak)),
            Objective::Stages => Some(self.stages as u128),
            Objective::Squares => Some(self.squares),
            Objective::CutBytes => Some(self.cut_bytes),
            Objective::Cycles => self.slowest_cycles,
        }
    }

    /// Orders the scores of two splits, possibly of different pipelines: `Less` if `self` is
    /// better. Compares the objectives of `goal` in their order ([`Goal::order`]). For
    /// [`Goal::Time`], compares the cycles of a step divided by its number of micro-batches, then
    /// the numbers of stages, then the peaks.
    pub fn compare(&self, other: &Self, goal: Goal) -> Ordering {
        match (goal, self.step, other.step) {
            (Goal::Time, Some(step), Some(theirs)) => step
                .rate(1)
                .compare(theirs.rate(1))
                .then((self.stages, self.peak).cmp(&(other.stages, other.peak))),
            _ => self.rank(goal).cmp(&other.rank(goal)),
        }
    }

    /// Returns the values of the split in the objectives of `goal`, the most important objective
    /// first; lower is better. The value in [`Objective::Cycles`] is `None` if the profile has no
    /// cycle counts.
    pub fn rank(&self, goal: Goal) -> Vec<Option<u128>> {
        goal.order()
            .iter()
            .map(|&objective| self.value(objective))
            .collect()
    }
}

/// The best plan, with its score and, if both solvers were run, the proof that no other plan is
/// better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The split of the model into stages that is the best one by the objectives of the goal.
    pub plan: Plan,
    /// The values of the plan in all objectives, computed again from its stages, independently of
    /// the solvers.
    pub score: Score,
    /// One entry per objective, in the order of the goal: the optimum of the integer program and
    /// the optimum of the dynamic program. Empty if the integer program was not run.
    pub proofs: Vec<ObjectiveProof>,
    /// For [`Goal::Time`]: whether no other split can have a shorter step than `plan`; false if the
    /// search could not rule this out. True for any other goal.
    pub is_shortest: bool,
}

impl Solution {
    /// Makes a solution with the split `plan`, without a proof by the integer program that this
    /// split is the best.
    pub fn unproven(plan: Plan, score: Score) -> Self {
        Self {
            plan,
            score,
            proofs: Vec::new(),
            is_shortest: true,
        }
    }
}

/// The optimum of one objective, computed by the integer program and by the dynamic program.
/// Numbers are decimal text, since they can exceed 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "ProvenObjective")
)]
pub struct ObjectiveProof {
    /// The objective, such as the peak, whose optimum the integer program and the dynamic program
    /// computed.
    pub objective: Objective,
    /// The optimum of `objective` that the integer program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub integer_program: u128,
    /// The optimum of `objective` that the dynamic program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub dynamic_program: u128,
}

/// Returns the constraints of `problem` that `plan` breaks, in the order of `problem`. If
/// constraints contradict each other, the plan breaks some of them, which is not an error.
///
/// # Errors
/// If the plan has another number of positions than the problem, or if `problem` is faulty: for
/// example, a range takes fewer bytes than a part of it, or a constraint is about a position that
/// does not exist.
pub fn broken(problem: &Problem<'_>, plan: &Plan) -> Result<Vec<Constraint>, SolveError> {
    problem.check()?;
    let end = plan.stages.last().map_or(0, |stage| stage.end);
    let layers = problem.layers();
    if end != layers {
        return Err(SolveError::Internal(format!(
            "the split has {end} layers, but the model has {layers}"
        )));
    }
    Ok(problem.broken_by(plan).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::{ProfileCosts, Rule};

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
        assert_eq!(Plan::new(Vec::<Range<usize>>::new(), 0), None);
    }

    #[test]
    fn scores_count_the_cut_at_the_end_of_each_stage_but_the_last() {
        let costs = RangeCosts::new(vec![vec![3, 5, 9], vec![4, 6], vec![2]]);
        let mut profile = ProfileCosts::new(costs, &[10, u64::MAX]);
        let problem = Problem::new(&profile, 3, &9);
        let plan = Plan::new(vec![0..1, 1..2, 2..3], 3).unwrap();
        let mut expected = Score {
            peak: 4,
            stages: 3,
            squares: 9 + 16 + 4,
            cut_bytes: 10 + u128::from(u64::MAX),
            slowest_cycles: None,
            step: None,
        };
        assert_eq!(Score::of(&problem, &plan), Some(expected));
        assert_eq!(plan.cuts().collect::<Vec<_>>(), [1, 2]);
        let times = crate::time::tests::forward_times(&[u64::MAX, 5, 7]);
        profile.times = Some(times.clone().into());
        let problem = Problem::new(&profile, 3, &9);
        expected.slowest_cycles = Some(u128::from(u64::MAX));
        expected.step = times.step_alone(plan.stages());
        assert_eq!(Score::of(&problem, &plan), Some(expected));
        let goal = Goal::Communication;
        let first = u128::from(u64::MAX) + 10;
        let slowest = u128::from(u64::MAX);
        assert_eq!(expected.rank(goal), [first, 4, 3, slowest, 29].map(Some));
        let without = ProfileCosts {
            times: None,
            ..profile.clone()
        };
        let problem = Problem {
            by_profile: &[profile.clone(), without],
            ..problem
        };
        // If one of the profiles has no cycle counts, stages cannot be compared by cycles, so the
        // score lacks the cycles of the slowest stage.
        let score = Score::of(&problem, &plan).unwrap();
        assert_eq!(score.slowest_cycles, None);
    }

    #[test]
    fn a_plan_breaks_constraints() {
        let costs = RangeCosts::new(vec![vec![3, 5, 9], vec![4, 6], vec![2]]);
        let constraints = [
            Constraint::option(Rule::CutBefore { position: 2 }, "--cut-before c"),
            Constraint::option(Rule::Together { first: 0, last: 1 }, "--together a,b"),
        ];
        let profile = ProfileCosts::new(costs, &[0, 0]);
        let problem = Problem {
            constraints: &constraints,
            ..Problem::new(&profile, 2, &0)
        };
        let plan = Plan::new(vec![0..1, 1..2, 2..3], 3).unwrap();
        let expected = vec![constraints[1].clone()];
        assert_eq!(broken(&problem, &plan), Ok(expected));
        let other = Plan::new(vec![0..1, 1..2], 2).unwrap();
        let error = broken(&problem, &other).unwrap_err().to_string();
        assert!(error.contains("the split has 2 layers, but the model has 3"));
    }
}
