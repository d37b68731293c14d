//! From range costs to a plan: which layers are in which pipeline stage.
//!
//! [`Problem`] is the input: for every range of consecutive positions of the layer order, the
//! memory on its fullest tile ([`RangeCosts`](crate::memory::RangeCosts)); the bytes that a cut at
//! each boundary sends; the number of IPUs; the bytes that a stage may take on each of them
//! ([`Limits`]); further conditions on a plan ([`Constraint`]); and the objective that comes first
//! ([`Goal`]). A [`Plan`] is a solution. Plans are compared by their [`Score`], in the order of the
//! goal ([`Goal::order`]); of plans with equal scores, the one with the earliest cuts is the best.
//!
//! [`solve`] finds and proves each optimum in three ways, which must agree:
//!
//! 1. *Exact sums* over a network of the ranges that may be stages (`network`): a bottleneck by
//!    bisection, counting the fewest stages at each value; the least sum over stages by the sums
//!    from each node to the end (`formulation`).
//! 2. *The integer program* has a binary for each range and conserves flow over the layer
//!    boundaries (`formulation`). Its costs are shifted by the exact sums, so that the numbers are
//!    small enough for floating point; it must find a path with exactly the least sum, and none
//!    with a bottleneck below the lowest (`integer_program`). Its chosen ranges are scored again in
//!    integers.
//! 3. *The dynamic program* uses neither network nor sums (`dynamic_program`). It is compared with
//!    the others objective by objective, and a difference is an [error](SolveError::Internal).
//!
//! The integer program is solved over one of two networks (`network`). The compact one has a binary
//! for each range. It is enough unless the IPU of a range matters: with pins, with limits that
//! differ between IPUs, and for the goal [`Goal::Communication`] if the splits that send the least
//! need more IPUs than there are. Then there is a binary for each range on each IPU.
//!
//! Beside [`solve`], [`sweep`] solves for each number of IPUs, [`explain`] says why there is no
//! plan and which changes would help, with a [`Certificate`] that can be checked by hand, and
//! [`broken`] lists the constraints that a plan breaks. [`greedy()`] is the original tool's search,
//! for comparison.

mod checked_problem;
mod conflict;
mod constraints;
mod dynamic_program;
mod fastest;
mod formulation;
mod greedy;
mod infeasible;
mod integer_program;
mod ipu_counts;
mod network;
mod objectives;
mod plan;
mod problem;
#[cfg(test)]
mod properties;
mod solution;
#[cfg(test)]
mod testing;

pub use conflict::Conflict;
pub use constraints::{Constraint, Origin, Rule, TiedWeight};
pub use greedy::{Greedy, greedy};
pub use infeasible::{
    Cause, Certificate, Infeasible, Needed, Relaxation, certificate, explain, fewest_stages,
};
pub use ipu_counts::{Effort, fitting, sweep};
pub use objectives::{Goal, Objective};
pub use plan::{Plan, Score, broken};
pub use problem::{Limits, Problem, SolveError};
pub use solution::{BottleneckProof, ObjectiveProof, Solution, StepProof};

use checked_problem::CheckedProblem;
use fastest::{MAX_SLOTS, fastest};

/// Finds the best split by the goal of `problem`, and proves that it is the best. Returns `None` if
/// no split is within the limits and obeys the constraints; the integer program and the dynamic
/// program must agree on this.
///
/// # Errors
/// If the problem contradicts itself, its constraints contradict each other
/// ([`SolveError::Contradiction`]), costs are too large for exact arithmetic, or a solver gives no
/// proof or contradicts the other.
pub fn solve(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    answer(&CheckedProblem::new(problem)?)
}

fn answer(checked: &CheckedProblem<'_>) -> Result<Option<Solution>, SolveError> {
    let by_order = answer_by_order(checked)?;
    let (Goal::Time, Some(start)) = (checked.problem.goal, &by_order) else {
        return Ok(by_order);
    };
    let Some(found) = fastest(checked, &start.plan, MAX_SLOTS) else {
        return Ok(by_order);
    };
    let solution = by_order.map(|start| start.with_step(found));
    solution.as_ref().map_or(Ok(()), Solution::check_step)?;
    Ok(solution)
}

/// Finds the best split like [`solve`], but only by the dynamic program, without proofs. This is
/// faster, and meant for comparing many problems before one of them is solved. Returns `None` if no
/// split is within the limits and obeys the constraints.
///
/// # Errors
/// If the problem or its constraints contradict themselves, or if costs are too large for exact
/// arithmetic.
pub fn unproven(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    let checked = CheckedProblem::new(problem)?;
    let Some(plan) = dynamic_program::solve(&checked) else {
        return Ok(None);
    };
    let fastest = match problem.goal {
        Goal::Time => fastest(&checked, &plan, MAX_SLOTS),
        _ => None,
    };
    if fastest.is_some() {
        return Ok(fastest);
    }
    let score = score(&checked, &plan)?;
    Ok(Some(Solution::unproven(plan, score, None)))
}

/// Solves with the integer program and with the dynamic program, by the objectives of the goal one
/// after the other, and compares both results. `None` if there is no split. The time of a step is
/// not considered.
///
/// # Errors
/// If a solver gives no proof, or both differ.
fn answer_by_order(checked: &CheckedProblem<'_>) -> Result<Option<Solution>, SolveError> {
    let integer = integer_program::solve(checked)?;
    let dynamic = dynamic_program::solve(checked);
    let (integer, proofs) = integer.map(|answer| (answer.plan, answer.proofs)).unzip();
    let bottlenecks = proofs.unwrap_or_default();
    let compared = compare(checked, integer, dynamic)?;
    Ok(compared.map(|solution| Solution {
        bottlenecks,
        ..solution
    }))
}

/// Returns the solution on which both programs agree; `None` if both found no plan. `integer` is
/// the plan of the integer program, `dynamic` that of the dynamic program.
///
/// # Errors
/// If the plans differ, with the first objective in which they do, or if one of them is not
/// allowed.
fn compare(
    checked: &CheckedProblem<'_>,
    integer: Option<Plan>,
    dynamic: Option<Plan>,
) -> Result<Option<Solution>, SolveError> {
    let scored = |plan: &Option<Plan>| plan.as_ref().map(|plan| score(checked, plan)).transpose();
    let (integer_score, dynamic_score) = (scored(&integer)?, scored(&dynamic)?);
    let mut proofs = Vec::new();
    for objective in checked.order() {
        let value = |score: Option<Score>| score.and_then(|score| score.value(objective));
        let both = (value(integer_score), value(dynamic_score));
        agree(objective, both.0, both.1)?;
        if let (Some(integer_program), Some(dynamic_program)) = both {
            proofs.push(ObjectiveProof {
                objective,
                integer_program,
                dynamic_program,
            });
        }
    }
    let cuts = |plan: &Option<Plan>| plan.iter().flat_map(Plan::cuts).collect::<Vec<_>>();
    for (integer, dynamic) in cuts(&integer).into_iter().zip(cuts(&dynamic)) {
        let number = |cut: usize| Some(cut as u128);
        agree(Objective::EarliestCuts, number(integer), number(dynamic))?;
    }
    Ok(integer.zip(integer_score).map(|(plan, score)| Solution {
        proofs,
        ..Solution::unproven(plan, score, None)
    }))
}

/// Returns the values of `plan` in all objectives.
///
/// # Errors
/// If the plan is over a limit or breaks a constraint.
fn score(checked: &CheckedProblem<'_>, plan: &Plan) -> Result<Score, SolveError> {
    let problem = &checked.problem;
    let is_allowed = checked.allows(plan);
    let score = Score::of(problem, plan).filter(|_| is_allowed);
    let reason = "a split was chosen that is over a limit or breaks a constraint";
    score.ok_or_else(|| SolveError::unproven(checked.problem.goal.main(), reason))
}

fn agree(
    objective: Objective,
    integer_program: Option<u128>,
    dynamic_program: Option<u128>,
) -> Result<(), SolveError> {
    if integer_program == dynamic_program {
        return Ok(());
    }
    let [integer, dynamic] = [integer_program, dynamic_program]
        .map(|value| value.map_or("no split".to_owned(), |value| value.to_string()));
    Err(SolveError::Internal(format!(
        "the integer program found {integer} as {objective}, the dynamic program {dynamic}"
    )))
}
