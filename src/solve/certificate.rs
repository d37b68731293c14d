//! Proofs that there are too few IPUs, in a form that can be checked by hand.
//!
//! A range of positions that is over the limit must be cut somewhere inside. If ranges have no
//! common boundary inside that may be cut, each needs a separate cut: m ranges prove that at least
//! m + 1 stages are needed. Without constraints such ranges meet only at their end positions: each
//! starts with the last position of the one before. If cuts are forbidden, positions that stay
//! together act as one position, and ranges may share that many. A required cut counts by itself;
//! no range reaches over it.
//!
//! A range over the limit without any boundary inside that may be cut, such as a single position,
//! is enough by itself: no number of IPUs helps.
//!
//! Pins, and limits that differ between IPUs, are ignored: a certificate proves its number for the
//! highest limit. Hence a problem may have no split although its certificate needs no more stages
//! than there are IPUs.

use std::ops::Range;

use super::constraints::{CutRule, cuts_after};
use super::error::SolveError;
use super::problem::Problem;

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

#[cfg(test)]
mod tests;
