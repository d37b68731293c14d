//! Makes a plan from the costs of ranges: decides which layers are in which pipeline stage.
//!
//! [`Problem`] is the input: for every range of consecutive positions of the layer order, the bytes
//! on its fullest tile ([`RangeCosts`](crate::memory::RangeCosts)); the bytes sent at a cut between
//! two positions; the number of IPUs; the bytes that a stage may take on each tile
//! ([`Problem::limits`]); further conditions ([`Constraint`]); and the most important objective
//! ([`Goal`]). A [`Plan`] is a solution. Plans are compared by their [`Score`], in the order of the
//! goal ([`Goal::order`]); of plans with equal scores, the plan with the earliest cuts is the best.
//!
//! [`solve`] finds the best plan with a dynamic program (`dynamic_program`), and proves it with an
//! integer program (`integer_program`). Both programs must agree: the integer program finds a plan
//! with the same values, and no better plan. A disagreement is an [error](SolveError::Internal).
//!
//! The integer program only minimizes objectives that are sums over stages. Other objectives
//! (bottlenecks) are the highest value of any stage. So the integer program is solved up to twice
//! for each bottleneck. First it finds the lowest sums of the objectives before the bottleneck.
//! Then it only uses stages below the optimum of the bottleneck, and must not find a plan with
//! equally low sums, since this plan would be better. In the end, it finds the lowest sums of all
//! objectives.
//!
//! For [`Goal::Time`], another search (`fastest`) then finds the plan with the shortest step.
//!
//! Beside [`solve`], [`explain`] finds the reason why there is no plan, with a [`Certificate`] that
//! can be checked by hand, and [`broken`] lists the constraints that a plan breaks. [`greedy()`] is
//! the original tool's search, for comparison.

mod checked_problem;
mod conflict;
mod constraints;
mod dynamic_program;
mod fastest;
mod greedy;
mod infeasible;
mod integer_program;
mod objectives;
mod plan;
mod problem;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

pub use conflict::Conflict;
pub use constraints::{Constraint, Origin, Rule, TiedWeight};
pub use greedy::{Greedy, greedy};
pub use infeasible::{Cause, Certificate, Refusal, certificate, explain, fewest_stages};
pub use objectives::{Goal, Objective};
pub use plan::{ObjectiveProof, Plan, Score, Solution, broken};
pub use problem::{CompiledStage, Problem, ProfileCosts, SolveError};

use checked_problem::CheckedProblem;
use dynamic_program::StagePass;
use fastest::{MAX_TRIES, fastest};

/// Finds the best split by the goal of `problem`, and proves that it is the best. Returns `None` if
/// no split is within the limits and obeys the constraints; the integer program and the dynamic
/// program must agree on this. With [`Goal::Time`] both programs agree on the fewest cycles of the
/// slowest stage; a search then finds the split with the shortest step.
///
/// # Errors
/// If the problem is faulty (for example, a constraint is about a position that does not exist), if
/// its constraints contradict each other ([`SolveError::Contradiction`]), if costs are too large
/// for exact arithmetic, or if the integer program gives no proof or contradicts the dynamic
/// program.
pub fn solve(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    best(problem, true)
}

/// Finds the best split like [`solve`], but only by the dynamic program, without proofs. This is
/// faster, and meant for comparing many problems before one of them is solved with a proof. Returns
/// `None` if no split is within the limits and obeys the constraints.
///
/// # Errors
/// If the problem is faulty (for example, a constraint is about a position that does not exist), if
/// its constraints contradict each other, or if costs are too large for exact arithmetic.
pub fn unproven(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    best(problem, false)
}

/// Finds the best split by the goal of `problem` with the dynamic program. If `is_proven`, proves
/// with the integer program that this split is the best.
fn best(problem: &Problem<'_>, is_proven: bool) -> Result<Option<Solution>, SolveError> {
    let checked = CheckedProblem::new(problem)?;
    let found = scored(&checked, dynamic_program::solve(&checked))?;
    let mut proofs = Vec::new();
    if is_proven {
        proofs = prove(&checked, found.as_ref())?;
    }
    let Some(mut found) = found else {
        return Ok(None);
    };
    if problem.goal == Goal::Time
        && let Some(shortest) = fastest(&checked, &found.plan, MAX_TRIES)
    {
        // The proofs are about the split whose slowest stage takes the fewest cycles, and the split
        // with the shortest step may be another one. So keep only the first proof, which is true
        // for any split: no split has a slowest stage with fewer cycles than this minimum.
        proofs.truncate(1);
        found = shortest;
    }
    Ok(Some(Solution { proofs, ..found }))
}

/// Proves with the integer program that no split is better than `found` in the objectives of the
/// goal, or that there is no split if `found` is `None`. Returns the optimum of each objective, on
/// which the integer program and the dynamic program agree. Returns an error if they disagree or if
/// the integer program gives no proof.
fn prove(
    checked: &CheckedProblem<'_>,
    found: Option<&Solution>,
) -> Result<Vec<ObjectiveProof>, SolveError> {
    let order: Vec<Objective> = checked.order().collect();
    let rank = |split: &Solution| split.score.rank(checked.problem.goal);
    let (mut sums, mut caps) = (Vec::new(), Vec::new());
    for (n, &objective) in order.iter().enumerate() {
        if !objective.is_bottleneck() {
            sums.push(objective);
            continue;
        }
        let Some(value) = found.and_then(|found| found.score.value(objective)) else {
            continue;
        };
        if !sums.is_empty() {
            let other = by_integer_program(checked, &sums, &caps)?;
            agree(&order[..n], other.as_ref(), found)?;
        }
        if let Some(below) = value.checked_sub(1) {
            let below = [&caps[..], &[(objective, below)]].concat();
            let other = by_integer_program(checked, &sums, &below)?;
            if other.is_some() && other.as_ref().map(rank) < found.map(rank) {
                agree(&order, other.as_ref(), found)?;
            }
        }
        caps.push((objective, value));
    }
    let other = by_integer_program(checked, &sums, &caps)?;
    agree(&order, other.as_ref(), found)
}

/// Solves the integer program for the lowest sums over stages in the objectives `sums`, the most
/// important first. Each of `caps` is an objective, and the highest value in it that a stage may
/// have. Returns `None` if no split obeys the caps; an error if the integer program contradicts the
/// dynamic program.
fn by_integer_program(
    checked: &CheckedProblem<'_>,
    sums: &[Objective],
    caps: &[(Objective, u128)],
) -> Result<Option<Solution>, SolveError> {
    let plan = integer_program::solve(&StagePass::new(checked, sums, caps))
        .map_err(|reason| checked.unproven(&reason))?;
    scored(checked, plan)
}

/// Returns the split `plan` as a solution with its score, but without proofs; `None` if `plan` is
/// `None`. A plan that is over a limit or breaks a constraint is an internal error, since no solver
/// may return it.
fn scored(
    checked: &CheckedProblem<'_>,
    plan: Option<Plan>,
) -> Result<Option<Solution>, SolveError> {
    let Some(plan) = plan else { return Ok(None) };
    match checked.score(&plan) {
        Some(score) => Ok(Some(Solution::unproven(plan, score))),
        None => {
            Err(checked.unproven("a split was chosen that is over a limit or breaks a constraint"))
        }
    }
}

/// Compares the splits of the integer program and of the dynamic program in each of `objectives`.
/// Returns the common values (none if neither found a split), or an error that names the first
/// objective in which the values differ.
fn agree(
    objectives: &[Objective],
    integer: Option<&Solution>,
    dynamic: Option<&Solution>,
) -> Result<Vec<ObjectiveProof>, SolveError> {
    let mut proofs = Vec::new();
    for &objective in objectives {
        let values = [integer, dynamic].map(|found| found?.score.value(objective));
        if values[0] != values[1] {
            let [integer, dynamic] =
                values.map(|value| value.map_or("no split".to_owned(), |value| value.to_string()));
            return Err(SolveError::Internal(format!(
                "the integer program found {integer} as {objective}, the dynamic program {dynamic}"
            )));
        }
        proofs.extend(values[0].map(|value| ObjectiveProof {
            objective,
            integer_program: value,
            dynamic_program: value,
        }));
    }
    Ok(proofs)
}
