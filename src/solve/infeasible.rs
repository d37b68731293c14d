//! Explains why no split is within the limits and obeys the constraints, and which changes would
//! help.
//!
//! A [`Certificate`] proves that there are too few IPUs, in a form that can be checked by hand. A
//! range of positions that is over the limit as one stage must be cut somewhere inside. If no
//! possible cut is inside two of these ranges, each range needs a separate cut. So m ranges prove
//! that at least m + 1 stages are needed. Each cut that a constraint requires adds one more stage;
//! the ranges do not reach over it. Positions that constraints keep in one stage act as one
//! position.
//!
//! If no cut inside a range over the limit is possible, as in a single position, this range is a
//! proof by itself: no number of IPUs helps.
//!
//! Certificates ignore pins (layers fixed to IPUs), and use the highest limit if limits differ
//! between IPUs. Hence a problem may have no split although its certificate needs no more stages
//! than there are IPUs.

use super::{
    SolveError,
    checked_problem::CheckedProblem,
    constraints::{Constraint, CutRule, cuts_before, forbidding},
    dynamic_program,
    objectives::Goal,
    problem::Problem,
    unproven,
};
use crate::memory::RangeCosts;
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// The reason why a problem has no plan (no split within the limits that obeys the constraints).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The main reason why no split fits, such as too few IPUs.
    pub cause: Cause,
    /// For [`Cause::TooLarge`] and [`Cause::TooFewIpus`]: the proof that no split fits. For other
    /// causes, it only proves that a split needs some number of stages, for which there are enough
    /// IPUs. It ignores pins (layers fixed to IPUs), gives each IPU the highest limit, and uses
    /// lower bounds on bytes.
    pub certificate: Certificate,
    /// For [`Cause::TooLarge`]: the constraints that keep a range of positions in one stage,
    /// although the range is over the limit. Empty if this range is a single position, and for all
    /// other causes.
    pub kept_together: Vec<Constraint>,
}

/// The reason why no split is within the limits and obeys the constraints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "RefusalReason"))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A single position, or several that constraints or tied weights keep in one stage, is over
    /// every limit by itself, so no number of IPUs helps. The proof that there is no split has only
    /// this range.
    TooLarge,
    /// There are fewer IPUs than a split needs; the proof has the number that is needed.
    #[default]
    TooFewIpus,
    /// The IPUs would be enough if each had the highest limit of all and there were only
    /// constraints on cuts. Pins of layers to IPUs, or lower limits of some IPUs, rule out every
    /// split.
    PinsOrLimits,
    /// There would be a plan if each range took only its lower bound on bytes, but not with the
    /// copies and buffers that the pipeline adds, which depend on the number of stages.
    Pipeline,
}

/// Returns the reason why `problem` has no plan, that is, no split within the limits that obeys the
/// constraints. The problem must not have a plan.
///
/// # Errors
/// The errors of [`solve`](super::solve).
pub fn explain(problem: &Problem<'_>) -> Result<Refusal, SolveError> {
    let certificate = certificate(problem)?;
    let cause = match certificate.needed {
        None => Cause::TooLarge,
        Some(needed) if needed > problem.ipus => Cause::TooFewIpus,
        Some(_) if fits_at_least(problem)? => Cause::Pipeline,
        Some(_) => Cause::PinsOrLimits,
    };
    let inside = match &certificate.ranges[..] {
        [range] if cause == Cause::TooLarge => range.start + 1..range.end,
        _ => 0..0,
    };
    Ok(Refusal {
        cause,
        kept_together: forbidding(problem.constraints, inside)
            .into_iter()
            .cloned()
            .collect(),
        certificate,
    })
}

/// Returns whether a split would fit if each range took only its lower bound on bytes, whatever the
/// number of later stages. If so, the only reason why no split fits is the bytes that the pipeline
/// adds for later stages. Returns false if bytes do not depend on the number of later stages.
fn fits_at_least(problem: &Problem<'_>) -> Result<bool, SolveError> {
    if !problem.all_ranges().any(RangeCosts::is_by_depth) {
        return Ok(false);
    }
    let mut at_least = problem.by_profile.to_vec();
    for own in &mut at_least {
        own.ranges = own.ranges.at_least().into();
    }
    let checked = CheckedProblem::new(&Problem {
        by_profile: &at_least,
        ..*problem
    })?;
    Ok(dynamic_program::solve(&checked).is_some())
}

/// Returns the smallest number of IPUs with which there is a plan under the limits and constraints
/// of `problem`; `None` if no number is enough. If each IPU has a separate limit, no more IPUs than
/// those of the problem are considered.
///
/// # Errors
/// The errors of [`solve`](super::solve()).
pub fn fewest_stages(problem: &Problem<'_>) -> Result<Option<usize>, SolveError> {
    let ipus = match problem.limits {
        [_] => problem.layers().max(problem.ipus),
        _ => problem.ipus,
    };
    let solution = unproven(&Problem {
        ipus,
        goal: Goal::Fewest,
        ..*problem
    })?;
    Ok(solution.map(|solution| solution.score.stages))
}

/// A proof that a split needs at least some number of stages. It lists cuts that constraints
/// require, and ranges of positions that each need a cut inside, since they are over the limit as
/// one stage. These cuts are all different: no possible cut is inside two of the ranges, and no
/// required cut is inside any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The highest memory limit of any IPU, in bytes on one tile. Each of `ranges` takes more bytes
    /// than that if it is one stage.
    pub limit: u64,
    /// Ranges of positions (ends exclusive) that are over the limit as one stage, in ascending
    /// order. Neighbouring ranges may share positions, but no possible cut is inside both.
    pub ranges: Vec<Range<usize>>,
    /// Positions before which a constraint requires a cut, in ascending order; each adds a stage.
    pub cuts_before: Vec<usize>,
    /// The number of stages that a split needs at least. It is the number of `ranges`, each of
    /// which needs a cut inside, plus that of `cuts_before`, plus 1. `None` if no number of stages
    /// is enough: then `ranges` has only one range, inside which no cut is possible.
    pub needed: Option<usize>,
}

/// Returns the certificate that proves how many stages a split needs at least, or that no number of
/// stages is enough. It ignores pins (layers fixed to IPUs), and compares lower bounds on bytes
/// with the highest limit of any IPU. No certificate can prove a higher number, since by these
/// bounds there is a split into this number of stages that obeys the constraints on cuts.
///
/// # Errors
/// If the problem is faulty: for example, a constraint is about a position that does not exist.
/// Constraints that contradict each other are no error here.
pub fn certificate(problem: &Problem<'_>) -> Result<Certificate, SolveError> {
    problem.check()?;
    let (limit, layers) = (problem.highest_limit(), problem.layers());
    let cuts = cuts_before(problem.constraints, layers);
    let mut certificate = Certificate {
        limit,
        ranges: Vec::new(),
        cuts_before: (0..layers)
            .filter(|&position| cuts[position] == CutRule::Required)
            .collect(),
        needed: None,
    };
    // Make each stage as long as possible. `start` is the start of the current stage, and `longest`
    // the furthest end within the limit at which a cut is allowed, or `start` if there is none yet.
    let (mut start, mut longest) = (0, 0);
    for end in (1..=layers).filter(|&end| cuts[end] != CutRule::Forbidden) {
        let is_over = |start| problem.least(&(start..end)).is_none_or(|peak| peak > limit);
        if is_over(start) && longest > start {
            certificate.ranges.push(start..end);
            start = longest;
        }
        if is_over(start) {
            certificate.ranges.clear();
            certificate.ranges.push(start..end);
            certificate.cuts_before.clear();
            return Ok(certificate);
        }
        longest = end;
        if cuts[end] == CutRule::Required {
            start = end;
        }
    }
    certificate.needed = Some(certificate.ranges.len() + certificate.cuts_before.len() + 1);
    Ok(certificate)
}
