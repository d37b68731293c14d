//! The best plan for each number of IPUs.

use super::checked_problem::CheckedProblem;
use super::error::SolveError;
use super::problem::Problem;
use super::{Solution, answer};
use rayon::prelude::*;

/// Maximum number of IPU counts that are solved in parallel: a plan for one may also answer for
/// smaller ones.
const AT_ONCE: usize = 4;

/// The best plan for each of these ascending `numbers` of IPUs, by the same goal and constraints;
/// `None` where there is no plan. With limits by IPU, the first n of them count for n IPUs.
///
/// If the best plan for a number of IPUs does not use all of them, it is also the best for smaller
/// numbers, down to that of its stages. So the largest number is solved first. If it has no plan,
/// no smaller number has one. Pins to an IPU beyond a smaller number leave no plan there; they are
/// an error only for `problem.ipus`, the largest number.
///
/// # Errors
/// As [`solve`](super::solve).
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
        let of = |&ipus: &usize| answer(&checked.with_ipus(ipus));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::additive;
    use crate::solve::{Constraint, Rule, solve};

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
        assert_eq!(some[2], solve(&problem).unwrap());
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
}
