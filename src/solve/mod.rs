//! Range costs to a plan: which layers stand in which pipeline stage.
//!
//! [`Problem`] is the question: the memory of every range of the layer order
//! on its fullest tile ([`RangeCosts`](crate::memory::RangeCosts)), the bytes
//! that a cut at each boundary would send, and how many stages there may be.
//! A [`Plan`] is an answer, and [`Score`] what it is judged by, in the order
//! of its fields; equal scores go to the earliest cuts ([`Objective`]).
//!
//! [`solve`] answers twice. The *integer program* has a binary for each range
//! that fits and conserves flow over the layer boundaries (`model`). It takes
//! one objective after the other (`integer_program`): the peak by bisection,
//! proven from both sides; then each sum over stages, among the ranges that
//! can still be in a best plan. Floating point only ever picks ranges:
//! bounds, costs and scores are exact integers (`columns`). The *dynamic
//! program* (`dynamic_program`) answers the same question without the model.
//! What the two say is compared objective by objective, and a difference is
//! [`SolveError::Disagreement`], never an answer.
//!
//! [`greedy`] is the original tool's search, for comparison.
//!
//! Objectives know nothing of models, and models nothing of objectives: a new
//! order, or ranges that are ruled out, change `objectives` and the columns
//! that the models are given.

mod columns;
mod dynamic_program;
mod error;
mod greedy;
mod integer_program;
mod model;
mod objectives;
mod plan;
mod problem;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

pub use error::SolveError;
pub use greedy::{Greedy, greedy};
pub use integer_program::PeakProof;
pub use objectives::Objective;
pub use plan::{Plan, Score};
pub use problem::Problem;

/// The best plan, and what shows that it is the best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The stages. Both programs chose these.
    pub plan: Plan,
    /// Score of the plan that the integer program chose, recomputed from its
    /// ranges in integers.
    pub integer_program: Score,
    /// Score of the plan that the dynamic program chose. Equal to the other:
    /// it is kept so that both can be shown.
    pub dynamic_program: Score,
    /// What shows that no lower peak is possible; `None` when no range at
    /// all costs less than the peak.
    pub proof: Option<PeakProof>,
}

/// Finds the best split into at most `max_stages` stages; `None` when the
/// integer and the dynamic program agree that there is none.
///
/// # Errors
/// A problem that contradicts itself or is too large for exact arithmetic,
/// a solver that gives no proof, and two programs that do not agree.
pub fn solve(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    problem.check()?;
    let integer = integer_program::solve(problem)?;
    let dynamic = dynamic_program::solve(problem);
    let (integer, proof) = match integer {
        Some(answer) => (Some(answer.plan), answer.proof),
        None => (None, None),
    };
    compare(problem, integer, dynamic, proof)
}

/// The common answer, or the first objective in which the plans differ.
fn compare(
    problem: &Problem<'_>,
    integer: Option<Plan>,
    dynamic: Option<Plan>,
    proof: Option<PeakProof>,
) -> Result<Option<Solution>, SolveError> {
    let integer_score = integer
        .as_ref()
        .map(|plan| score(problem, plan))
        .transpose()?;
    let dynamic_score = dynamic
        .as_ref()
        .map(|plan| score(problem, plan))
        .transpose()?;
    for objective in Objective::ORDER {
        let value = |score: Option<Score>| score.and_then(|score| score.value(objective));
        agree(objective, value(integer_score), value(dynamic_score))?;
    }
    let cuts = |plan: &Option<Plan>| plan.iter().flat_map(Plan::cuts).collect::<Vec<_>>();
    for (integer, dynamic) in cuts(&integer).into_iter().zip(cuts(&dynamic)) {
        agree(
            Objective::EarliestCuts,
            Some(integer as u128),
            Some(dynamic as u128),
        )?;
    }
    let solution = integer.zip(integer_score).zip(dynamic_score);
    Ok(
        solution.map(|((plan, integer_program), dynamic_program)| Solution {
            plan,
            integer_program,
            dynamic_program,
            proof,
        }),
    )
}

fn score(problem: &Problem<'_>, plan: &Plan) -> Result<Score, SolveError> {
    Score::of(problem, plan).ok_or_else(|| SolveError::Unproven {
        objective: Objective::Peak,
        reason: "a stage that was chosen is over the limit".to_owned(),
    })
}

fn agree(
    objective: Objective,
    integer_program: Option<u128>,
    dynamic_program: Option<u128>,
) -> Result<(), SolveError> {
    if integer_program == dynamic_program {
        return Ok(());
    }
    Err(SolveError::Disagreement {
        objective,
        integer_program,
        dynamic_program,
    })
}
