//! Why there is no plan, and what would help.
//!
//! A [`Certificate`] proves that there are too few IPUs, in a form that can be checked by hand. A
//! range of positions that is over the limit must be cut somewhere inside. If ranges have no common
//! boundary inside that may be cut, each needs a separate cut: m ranges prove that at least m + 1
//! stages are needed. Without constraints such ranges meet only at their end positions: each starts
//! with the last position of the one before. If cuts are forbidden, positions that stay together
//! act as one position, and ranges may share that many. A required cut counts by itself; no range
//! reaches over it.
//!
//! A range over the limit without any boundary inside that may be cut, such as a single position,
//! is enough by itself: no number of IPUs helps.
//!
//! Pins, and limits that differ between IPUs, are ignored: a certificate proves its number for the
//! highest limit. Hence a problem may have no split although its certificate needs no more stages
//! than there are IPUs.

use super::checked_problem::CheckedProblem;
use super::constraints::{Constraint, CutRule, cuts_after, forbidding};
use super::objectives::Goal;
use super::problem::{Limits, Problem};
use super::{Solution, SolveError, dynamic_program, solve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[cfg(test)]
mod tests;

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
    /// The IPUs would be enough if each had the highest of all limits and only the constraints on
    /// cuts applied. Layers pinned to an IPU, or the lower limits of some IPUs, prevent a split.
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
        lowest_peak: solve(&problem.at_any_limit())?,
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
    fits(&Problem { costs, ..*problem })
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
    if candidates.is_empty() || !fits(&with(problem, &kept))? {
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
        if fits(&with(problem, &kept))? {
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
    let checked = CheckedProblem::new(problem)?;
    Ok(dynamic_program::solve(&checked).is_some())
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

/// Ranges that prove how many stages are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The highest limit of any IPU in bytes.
    pub limit: u64,
    /// Ranges of positions (ends exclusive), ascending. Each by itself is over the limit.
    pub ranges: Vec<Range<usize>>,
    /// Positions after which a constraint requires a cut, ascending.
    pub cuts_after: Vec<usize>,
    /// The number of stages that ranges and required cuts prove.
    pub needed: Needed,
}

/// The conclusion of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// At least this number of stages is needed: one for each range, one for
    /// each required cut, and one more.
    Stages(usize),
    /// No number of stages is enough: the only range is a single position, or
    /// constraints forbid every cut in it.
    Unsplittable,
}

/// The tightest certificate: it proves the fewest stages that are within the highest limit and obey
/// the constraints on cuts.
///
/// # Errors
/// When the problem contradicts itself. Contradictory constraints are not an error here, but in
/// [`solve`](super::solve).
pub fn certificate(problem: &Problem<'_>) -> Result<Certificate, SolveError> {
    problem.check()?;
    let limit = problem.highest_limit();
    let cuts = cuts_after(problem.constraints, problem.layers());
    let required = |&position: &usize| cuts[position] == CutRule::Required;
    let mut certificate = Certificate {
        limit,
        ranges: Vec::new(),
        cuts_after: (0..problem.layers()).filter(required).collect(),
        needed: Needed::Unsplittable,
    };
    let mut start = 0;
    while start < problem.layers() {
        let (end, over) = longest(problem, limit, &cuts, start);
        if let Some(over) = over {
            if end == start {
                certificate.ranges = std::iter::once(over).collect();
                certificate.cuts_after.clear();
                return Ok(certificate);
            }
            certificate.ranges.push(over);
        }
        start = end;
    }
    let stages = certificate.ranges.len() + certificate.cuts_after.len() + 1;
    certificate.needed = Needed::Stages(stages);
    Ok(certificate)
}

/// The end of the longest stage from `start` that is within `limit` and has no required cut inside,
/// and the range one step longer if it is over the limit.
fn longest(
    problem: &Problem<'_>,
    limit: u64,
    cuts: &[CutRule],
    start: usize,
) -> (usize, Option<Range<usize>>) {
    let layers = problem.layers();
    let mut fits = start;
    for (last, &cut) in cuts.iter().enumerate().skip(start) {
        let end = last + 1;
        if end < layers && cut == CutRule::Forbidden {
            continue;
        }
        let peak = problem.costs.least(start..end);
        if peak.is_none_or(|peak| peak > limit) {
            return (fits, Some(start..end));
        }
        fits = end;
        if cut == CutRule::Required {
            break;
        }
    }
    (fits, None)
}
