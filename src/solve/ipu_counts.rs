//! Splits for several numbers of IPUs: for `--sweep` the best one for each number, and for `--plan`
//! the splits that are fastest for their memory.

use super::checked_problem::CheckedProblem;
use super::fastest::fastest_of_number;
use super::plan::Score;
use super::problem::{Limits, Problem};
use super::{Solution, SolveError, dynamic_program, unproven_of};
use rayon::prelude::*;

/// Maximum number of IPU counts that are solved in parallel. With more, work would be wasted, since
/// the plan for one count is often also that for several smaller ones.
const AT_ONCE: usize = 4;

/// Returns the best plan for each of these numbers of IPUs, which ascend, by the same goal and
/// constraints, without proofs; `None` where there is no plan. If each IPU has a limit, the first n
/// limits hold for n IPUs.
///
/// If the best plan for a number of IPUs does not use all of them, it is also the best for smaller
/// numbers, down to the number of its stages. So the largest number is solved first. If it has no
/// plan, no smaller number has one. A pin to an IPU that a smaller number lacks leaves no plan
/// there; it is an error only for `problem.ipus`, the largest number.
///
/// # Errors
/// The errors of [`solve`](super::solve).
pub fn sweep(
    problem: &Problem<'_>,
    numbers: &[usize],
) -> Result<Vec<Option<Solution>>, SolveError> {
    let checked = CheckedProblem::new(problem)?;
    let mut best = vec![None; numbers.len()];
    let mut left = numbers;
    while !left.is_empty() {
        let at_once = rayon::current_num_threads().min(AT_ONCE);
        let highest = &left[left.len().saturating_sub(at_once)..];
        let of = |&ipus: &usize| unproven_of(&checked.with_ipus(ipus));
        let answers: Vec<_> = highest.par_iter().map(of).collect();
        for (ipus, found) in highest.iter().zip(answers).rev() {
            if left.last() != Some(ipus) {
                continue;
            }
            let Some(solution) = found? else {
                return Ok(best);
            };
            let stages = solution.score.stages;
            let fewer = left.partition_point(|&number| number < stages);
            best[fewer..left.len()].fill(Some(solution));
            left = &left[..fewer];
        }
    }
    Ok(best)
}

/// Limits on the work of [`fitting`]: the number of splits that it finds, and the work to find
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of splits that are found with one number of stages.
    pub splits: usize,
    /// Maximum number of pipeline slots that the search for one split evaluates. A slot is an
    /// interval of a step in which each IPU works on one forward or backward pass of its stage, or
    /// on both.
    pub slots: u64,
}

impl Effort {
    /// The highest [`Effort::splits`]: more splits with one number of stages are not worth their
    /// time.
    pub const MAX_SPLITS: usize = 8;
    /// Maximum number of searches of a whole run, each for one split. It is divided among all pairs
    /// of a pipeline and a number of stages.
    const MAX_SEARCHES: usize = 400;
    /// Maximum number of slots that all searches of a run evaluate together, which takes some
    /// tenths of a second.
    const MAX_SLOTS: u64 = 20_000_000;

    /// Returns the limits for one call of [`fitting`] with one number of stages, if there are
    /// `pairs` such calls: one for each pair of a pipeline and a number of stages. They shrink with
    /// the number of pairs, so that the total time does not grow.
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

/// Returns splits within the limits and constraints for each of `numbers` of stages, in this order;
/// numbers above that of the IPUs are skipped. For a number, the first is the split with the
/// shortest step, and each following one that with the shortest step among the splits with a lower
/// peak. If the problem has no cycles, it is only the split with the lowest peak. None has proofs.
///
/// # Errors
/// The errors of [`solve`](super::solve).
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

/// Returns the best split into exactly `stages` stages: by the time of a step or, if the problem
/// has no cycles, by its goal. `limits` has the limit in bytes for each stage; the search evaluates
/// at most `max_slots` slots. `None` if there is no such split.
///
/// # Errors
/// The errors of [`solve`](super::solve), except contradictory constraints.
fn best(
    problem: &Problem<'_>,
    stages: usize,
    limits: &[u64],
    max_slots: u64,
) -> Result<Option<Solution>, SolveError> {
    let problem = Problem {
        ipus: stages,
        limits: Limits::ByIpu(limits),
        ..*problem
    };
    let checked = match CheckedProblem::new(&problem) {
        // A constraint pins a position to an IPU that does not exist.
        Err(SolveError::Contradiction(_)) => return Ok(None),
        checked => checked?,
    };
    if problem.times.is_some() {
        return Ok(fastest_of_number(&checked, stages, max_slots));
    }
    let plan = dynamic_program::solve(&checked).filter(|plan| plan.stages().len() == stages);
    let scored = plan.and_then(|plan| Some((Score::of(&problem, &plan)?, plan)));
    Ok(scored.map(|(score, plan)| Solution::unproven(plan, score)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::fastest::tests::any_times;
    use crate::solve::testing::{additive, any_case, obedient};
    use crate::solve::{Constraint, Goal, Plan, Rule, unproven};
    use proptest::prelude::*;

    fn stages(problem: &Problem<'_>) -> Vec<Option<usize>> {
        let rows = sweep(problem, &(1..=problem.ipus).collect::<Vec<_>>()).unwrap();
        let stages = |row: Option<Solution>| row.map(|solution| solution.score.stages);
        rows.into_iter().map(stages).collect()
    }

    #[test]
    fn a_plan_answers_for_all_ipus_that_it_leaves_empty() {
        let costs = additive(&[2, 2, 2, 2], u64::MAX);
        let problem = Problem::new(&costs, &[0; 3], 6, 4);
        let expected = [None, Some(2), Some(2), Some(4), Some(4), Some(4)];
        assert_eq!(stages(&problem), expected);
        let some = sweep(&problem, &[1, 3, 6]).unwrap();
        let stages = some.iter().flatten().map(|best| best.score.stages);
        let of_some: Vec<_> = stages.collect();
        assert_eq!(of_some, [2, 4]);
        assert_eq!(some[2], unproven(&problem).unwrap());
    }

    #[test]
    fn a_pin_beyond_the_number_leaves_no_plan() {
        let costs = additive(&[1, 1, 1], u64::MAX);
        let pin = Rule::Pin {
            position: 2,
            ipu: 1,
        };
        let constraints = [Constraint::option(pin, "")];
        let problem = Problem {
            constraints: &constraints,
            ..Problem::new(&costs, &[0; 2], 3, 9)
        };
        assert_eq!(stages(&problem), [None, Some(2), Some(2)]);
        let alone = Problem { ipus: 1, ..problem };
        assert!(sweep(&alone, &[1]).is_err());
        assert_eq!(
            sweep(
                &Problem {
                    ipus: 0,
                    constraints: &[],
                    ..problem
                },
                &[]
            ),
            Ok(vec![])
        );
    }

    /// Does `a` take at most as much time for each micro-batch as `b`, and at most as much memory?
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
