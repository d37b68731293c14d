//! Splits into several numbers of stages, each with the shortest step for its memory.

use super::Solution;
use super::checked_problem::CheckedProblem;
use super::dynamic_program;
use super::error::SolveError;
use super::fastest::{Fastest, fastest_of_number};
use super::plan::Score;
use super::problem::{Limits, Problem};

/// How many splits the search looks for, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of splits for one number of stages.
    pub splits: usize,
    /// Maximum number of slots of a step that the search for one split evaluates.
    pub slots: u64,
}

impl Effort {
    /// Number of splits for one number of stages beyond which more are not worth their time.
    pub const MAX_SPLITS: usize = 8;
    /// Maximum number of searches, each of which finds one split.
    const MAX_SEARCHES: usize = 400;
    /// Maximum number of slots that all searches together evaluate: some tenths of a second.
    const MAX_SLOTS: u64 = 20_000_000;

    /// The effort for each of `pairs` pairs of a pipeline and a number of stages: the more pairs,
    /// the less, so that the time of all does not grow with their number.
    pub fn for_each_of(pairs: usize) -> Self {
        let splits = Self::MAX_SEARCHES / pairs.max(1);
        let splits = splits.clamp(1, Self::MAX_SPLITS);
        let searches = (pairs.max(1) * splits) as u64;
        Self {
            splits,
            slots: (Self::MAX_SLOTS / searches).clamp(2_000, 400_000),
        }
    }
}

/// Splits that fit, for each of `numbers` of stages up to the IPUs of `problem`: first the one with
/// the shortest step, then repeatedly the one with the shortest step among those with a lower peak.
/// Without cycles, the one with the lowest peak. Only the length of steps is proven.
///
/// # Errors
/// As [`solve`](super::solve).
pub fn fitting(
    problem: &Problem<'_>,
    numbers: &[usize],
    effort: Effort,
) -> Result<Vec<Solution>, SolveError> {
    let mut found = Vec::new();
    for &stages in numbers.iter().filter(|&&stages| stages <= problem.ipus) {
        let mut limits: Vec<u64> = (0..stages)
            .map(|stage| problem.limits.of(stage).unwrap_or(0))
            .collect();
        for _ in 0..effort.splits {
            let Some(split) = best(problem, stages, &limits, effort.slots)? else {
                break;
            };
            let below = split.score.peak.checked_sub(1);
            found.push(split);
            let Some(below) = below.filter(|_| problem.times.is_some()) else {
                break;
            };
            limits
                .iter_mut()
                .for_each(|limit| *limit = (*limit).min(below));
        }
    }
    Ok(found)
}

/// The best split into exactly `stages` stages.
fn best(
    problem: &Problem<'_>,
    stages: usize,
    limits: &[u64],
    max_slots: u64,
) -> Result<Option<Solution>, SolveError> {
    let same = limits.iter().min() == limits.iter().max();
    let problem = Problem {
        ipus: stages,
        limits: match limits {
            [first, ..] if same => Limits::Same(*first),
            _ => Limits::ByIpu(limits),
        },
        ..*problem
    };
    let checked = match CheckedProblem::new(&problem) {
        // A constraint pins a position to an IPU that does not exist.
        Err(SolveError::Contradiction(_)) => return Ok(None),
        checked => checked?,
    };
    let (plan, step) = match problem.times {
        Some(_) => match fastest_of_number(&checked, stages, max_slots) {
            Some(Fastest { plan, proof }) => (plan, Some(proof)),
            None => return Ok(None),
        },
        None => match dynamic_program::solve(&checked) {
            Some(plan) if plan.stages().len() == stages => (plan, None),
            _ => return Ok(None),
        },
    };
    let score = Score::of(&problem, &plan);
    Ok(score.map(|score| Solution::unproven(plan, score, step)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::fastest::tests::any_times;
    use crate::solve::testing::{any_case, obedient};
    use crate::solve::{Goal, Plan};
    use proptest::prelude::*;

    /// Is the step no longer for each micro-batch, with no more memory?
    fn is_no_worse(a: &Score, b: &Score) -> bool {
        let (step, other) = (a.step.unwrap(), b.step.unwrap());
        step.by_rate(&other).is_le() && a.peak <= b.peak
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            max_global_rejects: 100_000,
            ..crate::memory::testing::cases(1_000)
        })]

        #[test]
        fn no_split_is_better_than_all_that_are_found(case in any_case(8), timed in any_times(8)) {
            let layers = case.costs.layers();
            let times = timed.times(layers);
            let problem = Problem {
                times: Some(&times),
                goal: Goal::Time,
                ..case.problem()
            };
            let Ok(checked) = CheckedProblem::new(&problem) else {
                return Ok(());
            };
            let numbers: Vec<usize> = (1..=case.ipus).collect();
            let found = fitting(&problem, &numbers, Effort::for_each_of(1)).unwrap();
            for solution in &found {
                prop_assert!(checked.allows(&solution.plan));
                prop_assert_eq!(solution.score, Score::of(&problem, &solution.plan).unwrap());
            }
            let of_number = |stages: usize| {
                found.iter().filter(|solution| solution.plan.stages().len() == stages).count()
            };
            if numbers.iter().any(|&stages| of_number(stages) == Effort::MAX_SPLITS) {
                return Ok(());
            }
            for cuts in obedient(&case) {
                let bounds = [&[0], cuts.as_slice(), &[layers]].concat();
                let stages = bounds.windows(2).map(|ends| ends[0]..ends[1]).collect();
                let plan = Plan::new(stages, layers).unwrap();
                if checked.allows(&plan) {
                    let score = Score::of(&problem, &plan).unwrap();
                    let mut found = found.iter();
                    prop_assert!(found.any(|solution| is_no_worse(&solution.score, &score)), "{:?}", plan);
                }
            }
        }
    }
}
