//! Why there is no plan, and what would help.

use super::certificate::{Certificate, Needed, certificate};
use super::checked_problem::CheckedProblem;
use super::constraints::{Constraint, CutRule, cuts_after, forbidding};
use super::error::SolveError;
use super::objectives::Goal;
use super::plan::Plan;
use super::problem::{Limits, Problem};
use super::{Solution, dynamic_program, solve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reasons why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Infeasible {
    /// Why there is no plan.
    pub cause: Cause,
    /// The proof. It ignores pins and limits that differ; see [`Cause::PinsOrLimits`].
    pub certificate: Certificate,
    /// The constraints that keep positions together that are too large together; empty if a single
    /// position is too large, and for other causes.
    pub kept_together: Vec<Constraint>,
    /// The plan with the lowest peak if every stage may take any number of bytes, with the same
    /// constraints on the same IPUs: its peak is the least tile memory that is enough. `None`
    /// without IPUs or positions, and if the range costs were computed for a limit.
    pub lowest_peak: Option<Solution>,
    /// The fewest IPUs that would be enough, at most one for each position; `None` if no number is.
    /// With limits by IPU, only IPUs with a limit are considered.
    pub fewest: Option<usize>,
    /// Sets of constraints without which there is a plan: only options, only weights, or, if
    /// neither is enough, some of both.
    pub relaxations: Vec<Relaxation>,
}

/// Constraints that prevent a plan, and the best plan without them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relaxation {
    /// The constraints. None of them can be kept unless another one goes; if there are very many,
    /// this is not checked for all.
    pub without: Vec<Constraint>,
    /// The best plan by the same goal and limits that obeys all other constraints.
    pub solution: Solution,
}

/// The reason why there is no split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "RefusalReason")]
pub enum Cause {
    /// A layer, or several that constraints or tied weights keep together, is over every limit by
    /// itself, so no number of IPUs helps. It is the only range of the proof.
    TooLarge,
    /// More IPUs are needed than are available, as the proof shows.
    #[default]
    TooFewIpus,
    /// There are enough IPUs for the highest limit and the constraints on cuts, but not with these
    /// pins and the limits of single IPUs.
    PinsOrLimits,
    /// The layers fit, but not with the copies and buffers of the pipeline.
    Pipeline,
}

/// Explains why `problem` has no plan; `None` if it has one.
///
/// # Errors
/// As [`solve`].
pub fn explain(problem: &Problem<'_>) -> Result<Option<Infeasible>, SolveError> {
    if solve(problem)?.is_some() {
        return Ok(None);
    }
    let certificate = certificate(problem)?;
    let cause = match certificate.needed {
        Needed::Unsplittable => Cause::TooLarge,
        Needed::Stages(needed) if needed > problem.ipus => Cause::TooFewIpus,
        Needed::Stages(_) if fits_at_least(problem)? => Cause::Pipeline,
        Needed::Stages(_) => Cause::PinsOrLimits,
    };
    let unsplittable = certificate.ranges.first();
    let unsplittable = unsplittable.filter(|_| cause == Cause::TooLarge);
    let inside = unsplittable.map_or(0..0, |range| range.start..range.end - 1);
    let kept_together = forbidding(problem.constraints, inside);
    Ok(Some(Infeasible {
        cause,
        kept_together: kept_together.into_iter().cloned().collect(),
        certificate,
        lowest_peak: best_effort(problem)?,
        fewest: fewest_stages(problem)?,
        relaxations: relaxations(problem)?,
    }))
}

/// Is there a plan if every range takes only the lower bound on its bytes?
fn fits_at_least(problem: &Problem<'_>) -> Result<bool, SolveError> {
    if !problem.costs.is_by_depth() {
        return Ok(false);
    }
    let costs = &problem.costs.at_least();
    has_plan(&Problem { costs, ..*problem }, problem.constraints)
}

fn relaxations(problem: &Problem<'_>) -> Result<Vec<Relaxation>, SolveError> {
    let is_order = |constraint: &Constraint| constraint.weight().is_none();
    let without_orders = relaxed(problem, is_order)?;
    let without_weights = relaxed(problem, |constraint| !is_order(constraint))?;
    let mut found: Vec<Relaxation> = without_orders.into_iter().chain(without_weights).collect();
    if found.is_empty() {
        found.extend(relaxed(problem, |_| true)?);
    }
    Ok(found)
}

/// Maximum number of constraints that are tested for being kept, each by a search.
const MAX_TRIED: usize = 100;

/// A plan without as few as possible of the constraints that `may_go`.
fn relaxed(
    problem: &Problem<'_>,
    may_go: impl Fn(&Constraint) -> bool,
) -> Result<Option<Relaxation>, SolveError> {
    let all = problem.constraints.iter().cloned();
    let (candidates, mut kept): (Vec<_>, Vec<_>) = all.partition(may_go);
    if candidates.is_empty() || !has_plan(problem, &kept)? {
        return Ok(None);
    }
    let mut cuts = cuts_after(&kept, problem.layers());
    let mut without: Vec<Constraint> = Vec::new();
    let mut tried = 0;
    for candidate in candidates {
        let mut forbidden = candidate.forbidden();
        let is_forbidden = |position| cuts[position] == CutRule::Forbidden;
        let is_implied = forbidden
            .as_mut()
            .is_some_and(|cuts| cuts.all(is_forbidden));
        if is_implied {
            kept.push(candidate);
            continue;
        }
        let is_like_another = without.iter().any(|other| other.rule == candidate.rule);
        if is_like_another || tried == MAX_TRIED {
            without.push(candidate);
            continue;
        }
        tried += 1;
        kept.push(candidate);
        if has_plan(problem, &kept)? {
            cuts = cuts_after(&kept, problem.layers());
        } else {
            without.extend(kept.pop());
        }
    }
    let solution = solve(&with(problem, &kept))?;
    Ok(solution.map(|solution| Relaxation { without, solution }))
}

/// The problem with other constraints.
fn with<'a>(problem: &Problem<'a>, constraints: &'a [Constraint]) -> Problem<'a> {
    Problem {
        constraints,
        ..*problem
    }
}

/// Is there a plan? The dynamic program decides, without a proof.
///
/// # Errors
/// When the problem or its constraints contradict themselves.
pub fn fits(problem: &Problem<'_>) -> Result<bool, SolveError> {
    has_plan(problem, problem.constraints)
}

fn has_plan(problem: &Problem<'_>, constraints: &[Constraint]) -> Result<bool, SolveError> {
    let checked = CheckedProblem::new(&with(problem, constraints))?;
    Ok(dynamic_program::solve(&checked).is_some())
}

/// The plan with the lowest peak if every stage may take any number of bytes, with the same
/// constraints. The range costs must have every range; a missing one stays excluded.
///
/// # Errors
/// As [`solve`].
pub fn best_effort(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    solve(&at_any_limit(problem))
}

/// The plan of [`best_effort`], from the dynamic program only: without a proof.
///
/// # Errors
/// When the problem or its constraints contradict themselves.
pub fn plan_of_lowest_peak(problem: &Problem<'_>) -> Result<Option<Plan>, SolveError> {
    let checked = CheckedProblem::new(&at_any_limit(problem))?;
    Ok(dynamic_program::solve(&checked))
}

/// The problem with stages that may take any number of bytes, lowest peak first.
fn at_any_limit<'a>(problem: &Problem<'a>) -> Problem<'a> {
    Problem {
        limits: Limits::Same(u64::MAX),
        goal: Goal::Peak,
        ..*problem
    }
}

/// The fewest IPUs that are enough with the same limit and constraints, at most one for each
/// position; `None` if no number is. With limits by IPU, only IPUs with a limit are considered.
///
/// # Errors
/// As [`solve`].
pub fn fewest_stages(problem: &Problem<'_>) -> Result<Option<usize>, SolveError> {
    let ipus = match problem.limits {
        Limits::Same(_) => problem.layers().max(problem.ipus),
        Limits::ByIpu(_) => problem.ipus,
    };
    let solution = solve(&Problem {
        ipus,
        goal: Goal::Fewest,
        ..*problem
    })?;
    Ok(solution.map(|solution| solution.score.stages))
}
