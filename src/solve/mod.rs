//! From range costs to a plan: which layers are in which pipeline stage.
//!
//! [`Problem`] is the question: the memory of every range of the layer order
//! on its fullest tile ([`RangeCosts`](crate::memory::RangeCosts)), the bytes
//! that a cut at each boundary would send, how many IPUs there are, what a
//! stage may take on each of them ([`Limits`]), what a plan must do besides
//! ([`Constraint`]), and what is wanted first ([`Goal`]). A [`Plan`] is an answer,
//! and [`Score`] what it is compared by, in the order that the goal says
//! ([`Goal::order`]); equal scores go to the earliest cuts.
//!
//! [`solve`] finds and proves each optimum in three ways, which must agree:
//!
//! 1. *Exact sums* over a network of the ranges that may be stages (`network`):
//!    a bottleneck by bisection, counting the fewest stages at each number; the
//!    least sum over stages by the sums from each node to the end (`potentials`).
//! 2. *The integer program* has a binary for each range and conserves flow over
//!    the layer boundaries (`formulation`). Its costs are shifted by those sums,
//!    so that the numbers are small enough for floating point; it must find a
//!    path with exactly the least sum, and none with a bottleneck below the
//!    lowest (`integer_program`). What it chooses is counted again in integers.
//! 3. *The dynamic program* knows neither network nor sums (`dynamic_program`).
//!    It is compared with the others objective by objective, and a difference is
//!    [`SolveError::Disagreement`], never an answer.
//!
//! The integer program is solved over one of two networks (`network`). The
//! compact one has a binary for each range. It is enough unless the IPU that a
//! range is on matters: with pins, with limits that differ from IPU to IPU, and
//! for the goal [`Goal::Communication`] when the splits that send the least
//! need more IPUs than there are. Then there is a binary for each range on each
//! IPU.
//!
//! Around that: [`sweep`] answers for each number of IPUs, [`explain`] says why
//! there is no plan and what would help, with a [`Certificate`] that can be
//! checked by hand, and [`evaluate`] judges a given plan. [`greedy`] is the
//! original tool's search, for comparison.

mod certificate;
mod checked_problem;
mod conflict;
mod constraints;
mod dynamic_program;
mod error;
mod fastest;
mod fitting;
mod formulation;
mod greedy;
mod infeasible;
mod integer_program;
mod network;
mod objectives;
mod plan;
mod potentials;
mod problem;
#[cfg(test)]
mod properties;
mod sweep;
#[cfg(test)]
mod testing;

pub use certificate::{Certificate, CertificateError, Needed, certificate};
pub use conflict::{Conflict, ConflictKind};
pub use constraints::{Constraint, Origin, Rule, TiedWeight};
pub use error::SolveError;
pub use fastest::StepProof;
pub use fitting::{Effort, Fitting, fitting};
pub use greedy::{Greedy, greedy};
pub use infeasible::{
    Cause, Infeasible, Relaxation, best_effort, explain, fewest_stages, fits, plan_of_lowest_peak,
};
pub use integer_program::{BottleneckProof, Infeasibility};
pub use objectives::{Goal, Objective};
pub use plan::{Judgement, Plan, Score, evaluate};
pub use problem::{Limits, Problem};
pub use sweep::sweep;

use checked_problem::CheckedProblem;

/// The best plan, and what shows that it is the best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The stages. Both programs chose these.
    pub plan: Plan,
    /// All numbers of the plan, recomputed from its ranges in integers.
    pub score: Score,
    /// The optimum of both programs for each objective, in the order of the
    /// goal.
    pub proofs: Vec<ObjectiveProof>,
    /// Proofs that no bottleneck can be lower, in the order of the goal. A
    /// bottleneck below which no range counts anything has no entry.
    pub bottlenecks: Vec<BottleneckProof>,
    /// Bounds on the shortest step, if that is the goal. The other proofs are then of the
    /// least cycles of the slowest stage alone, which no split can beat.
    pub step: Option<StepProof>,
}

/// The optimum of one objective by both programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectiveProof {
    /// The objective.
    pub objective: Objective,
    /// Its number in the plan that the integer program chose.
    pub integer_program: u128,
    /// Its number in the plan that the dynamic program chose. Equal to the
    /// other: it is kept so that both can be shown.
    pub dynamic_program: u128,
}

/// Finds the best split; `None` when the integer and the dynamic program agree
/// that there is none.
///
/// # Errors
/// A problem that contradicts itself, constraints that do
/// ([`SolveError::Contradiction`]), costs too large for exact arithmetic, a
/// solver that gives no proof, and two programs that do not agree.
pub fn solve(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    answer(&CheckedProblem::new(problem)?)
}

/// The best plan by the goal.
fn answer(checked: &CheckedProblem<'_>) -> Result<Option<Solution>, SolveError> {
    let by_order = answer_by_order(checked)?;
    let (Goal::Time, Some(start)) = (checked.goal, &by_order) else {
        return Ok(by_order);
    };
    let Some(found) = fastest::fastest(checked, &start.plan) else {
        return Ok(by_order);
    };
    let score = score(checked, &found.plan)?;
    let solution = by_order.map(|start| start.with_step(found, score));
    solution.as_ref().map_or(Ok(()), Solution::check_step)?;
    Ok(solution)
}

impl Solution {
    /// The fastest split, found from this one, whose slowest stage no other beats.
    fn with_step(mut self, found: fastest::Fastest, score: Score) -> Self {
        self.proofs.truncate(1);
        self.bottlenecks
            .retain(|proof| proof.objective == Objective::Cycles);
        Self {
            plan: found.plan,
            score,
            step: Some(found.proof),
            ..self
        }
    }

    /// Refuses a split that is faster than what was proven of all splits, or is called the
    /// fastest and is not.
    fn check_step(&self) -> Result<(), SolveError> {
        let (Some(step), Some(proof)) = (self.score.step, self.step) else {
            return Ok(());
        };
        let slowest = self.proofs.iter().map(|proof| proof.integer_program);
        let is_beaten = slowest.max() > self.score.slowest_cycles;
        let is_as_proven = match proof.is_optimal {
            true => proof.at_least == step.cycles,
            false => proof.at_least <= step.cycles,
        };
        if is_as_proven && !is_beaten {
            return Ok(());
        }
        Err(SolveError::Unproven {
            objective: Objective::Cycles,
            reason: format!(
                "a step takes {} cycles, and {} were proven",
                step.cycles, proof.at_least
            ),
        })
    }
}

/// The best plan as [`solve`] finds it, without the proof of the integer program: to compare
/// problems of which one is then solved.
///
/// # Errors
/// A problem or constraints that contradict themselves, and costs too large for exact
/// arithmetic.
pub fn unproven(problem: &Problem<'_>) -> Result<Option<(Plan, Score)>, SolveError> {
    let checked = CheckedProblem::new(problem)?;
    let Some(plan) = dynamic_program::solve(&checked) else {
        return Ok(None);
    };
    let fastest = match checked.goal {
        Goal::Time => fastest::fastest(&checked, &plan),
        _ => None,
    };
    let plan = fastest.map_or(plan, |found| found.plan);
    let score = score(&checked, &plan)?;
    Ok(Some((plan, score)))
}

/// Both programs' answer by the objectives of the goal, one after the other.
fn answer_by_order(checked: &CheckedProblem<'_>) -> Result<Option<Solution>, SolveError> {
    let integer = integer_program::solve(checked)?;
    let dynamic = dynamic_program::solve(checked);
    let (integer, bottlenecks) = match integer {
        Some(answer) => (Some(answer.plan), answer.proofs),
        None => (None, Vec::new()),
    };
    let compared = compare(checked, integer, dynamic)?;
    Ok(compared.map(|solution| Solution {
        bottlenecks,
        ..solution
    }))
}

/// The common answer, or the first objective in which the plans differ.
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
        plan,
        score,
        proofs,
        bottlenecks: Vec::new(),
        step: None,
    }))
}

/// The numbers of a plan that a program chose.
fn score(checked: &CheckedProblem<'_>, plan: &Plan) -> Result<Score, SolveError> {
    let problem = &checked.problem;
    let is_allowed = checked.allows(plan);
    let score = Score::of(problem, plan).filter(|_| is_allowed);
    score.ok_or_else(|| SolveError::Unproven {
        objective: checked.goal.main(),
        reason: "a split was chosen that is over a limit or breaks a constraint".to_owned(),
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
