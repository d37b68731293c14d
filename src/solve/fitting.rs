//! Splits into several numbers of stages, each with the shortest step for its memory.

use super::checked_problem::CheckedProblem;
use super::dynamic_program;
use super::error::SolveError;
use super::fastest::{Fastest, StepProof, fastest_of_number, fastest_within};
use super::objectives::Goal;
use super::plan::{Plan, Score};
use super::problem::{Limits, Problem};

/// How many splits of one number of stages are looked for.
const MAX_OF_NUMBER: usize = 8;
/// How many stages each search tries at most: there are many searches.
const MAX_TRIED: u64 = 20_000;

/// A split that fits, found by the dynamic program and by trying others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitting {
    /// The split.
    pub plan: Plan,
    /// Its numbers.
    pub score: Score,
    /// Bounds on the shortest step of as many stages, or fewer; `None` without
    /// cycles.
    pub step: Option<StepProof>,
}

/// For each of `numbers` of stages up to the IPUs of `problem` the splits that fit: first
/// the one with the shortest step, then, as long as there is one with a lower peak, the one
/// of these that has the shortest. Without cycles the one with the lowest peak.
///
/// # Errors
/// As those of [`solve`](super::solve).
pub fn fitting(problem: &Problem<'_>, numbers: &[usize]) -> Result<Vec<Fitting>, SolveError> {
    let mut found = Vec::new();
    for &stages in numbers.iter().filter(|&&stages| stages <= problem.ipus) {
        let mut limits: Vec<u64> = (0..stages)
            .map(|stage| problem.limits.of(stage).unwrap_or(0))
            .collect();
        for _ in 0..MAX_OF_NUMBER {
            let Some(split) = best(problem, stages, &limits)? else {
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

/// The best split into so many stages.
fn best(
    problem: &Problem<'_>,
    stages: usize,
    limits: &[u64],
) -> Result<Option<Fitting>, SolveError> {
    let same = limits.iter().min() == limits.iter().max();
    let problem = Problem {
        ipus: stages,
        limits: match limits {
            [first, ..] if same => Limits::Same(*first),
            _ => Limits::ByIpu(limits),
        },
        ..*problem
    };
    if problem.times.is_none() {
        let found = quickest(&problem, MAX_TRIED, None)?;
        return Ok(found.filter(|split| split.plan.stages().len() == stages));
    }
    let checked = checked(&problem)?;
    let found = checked.and_then(|checked| fastest_of_number(&checked, stages, MAX_TRIED));
    Ok(found.and_then(|Fastest { plan, proof }| scored(&problem, plan, Some(proof))))
}

/// A split with its numbers; `None` where it has none.
fn scored(problem: &Problem<'_>, plan: Plan, step: Option<StepProof>) -> Option<Fitting> {
    let score = Score::of(problem, &plan)?;
    Some(Fitting { plan, score, step })
}

/// The problem, if it can be solved; `None` where there is no IPU that something is pinned to.
fn checked<'p>(problem: &'p Problem<'p>) -> Result<Option<CheckedProblem<'p>>, SolveError> {
    match CheckedProblem::new(problem) {
        Err(SolveError::Contradiction(_)) => Ok(None),
        checked => checked.map(Some),
    }
}

/// The best split by the dynamic program alone and, if the shortest step is the goal, by
/// trying others of so many stages at most, near a `known` one first; `None` where nothing fits.
///
/// # Errors
/// As those of [`solve`](super::solve).
pub(crate) fn quickest(
    problem: &Problem<'_>,
    max_tried: u64,
    known: Option<&Plan>,
) -> Result<Option<Fitting>, SolveError> {
    let Some(checked) = checked(problem)? else {
        return Ok(None);
    };
    let Some(start) = dynamic_program::solve(&checked) else {
        return Ok(None);
    };
    let faster = match problem.goal {
        Goal::Time => {
            let starts: Vec<&Plan> = [&start].into_iter().chain(known).collect();
            fastest_within(&checked, &starts, max_tried)
        }
        _ => None,
    };
    let (plan, step) = match faster {
        Some(faster) => (faster.plan, Some(faster.proof)),
        None => (start, None),
    };
    Ok(scored(problem, plan, step))
}

/// The same split by the costs and times of another problem; `None` where these do not
/// have it.
pub(crate) fn rescored(problem: &Problem<'_>, split: Fitting) -> Option<Fitting> {
    scored(problem, split.plan, split.step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::fastest::tests::any_times;
    use crate::solve::testing::{any_case, obedient};
    use proptest::prelude::*;

    /// Is it no longer for each micro-batch, with no more memory?
    fn is_no_worse(a: &Score, b: &Score) -> bool {
        let (step, other) = (a.step.unwrap(), b.step.unwrap());
        !other.is_faster_than(&step) && a.peak <= b.peak
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            max_global_rejects: 100_000,
            ..ProptestConfig::with_cases(1_000)
        })]

        #[test]
        fn no_split_is_better_than_all_that_are_found(case in any_case(8), timed in any_times(8)) {
            let layers = case.costs.layers();
            let times = timed.times(layers, case.ipus);
            let problem = Problem {
                times: Some(&times),
                goal: Goal::Time,
                ..case.problem()
            };
            let Ok(checked) = CheckedProblem::new(&problem) else {
                return Ok(());
            };
            let numbers: Vec<usize> = (1..=case.ipus).collect();
            let found = fitting(&problem, &numbers).unwrap();
            for solution in &found {
                prop_assert!(checked.allows(&solution.plan));
                prop_assert_eq!(solution.score, Score::of(&problem, &solution.plan).unwrap());
            }
            let of_number = |stages: usize| {
                found.iter().filter(|solution| solution.plan.stages().len() == stages).count()
            };
            if numbers.iter().any(|&stages| of_number(stages) == MAX_OF_NUMBER) {
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
