//! Why there are not enough IPUs, in a form that can be checked by hand.
//!
//! A range of positions that is over the limit must be cut somewhere inside.
//! When ranges have no boundary inside in common that may be cut, each needs a
//! cut of its own: m of them prove that there are m + 1 stages at least.
//! Without orders such ranges meet only at their end positions: each starts
//! with the position that the one before ends with. Where cuts are forbidden,
//! the positions that stay together take the place of a position, and ranges
//! may share that many. Where a cut is required, it counts by itself; no range
//! reaches over it.
//!
//! A range over the limit without any boundary inside that may be cut, such as
//! a single position, is enough alone: no number of IPUs helps.
//!
//! Pins, and limits that differ from IPU to IPU, are left out: what a
//! certificate proves, it proves for the highest limit. Hence a problem may
//! have no split although its certificate says nothing against its number of
//! IPUs.

use std::ops::Range;

use super::error::SolveError;
use super::orders::{Cut, cuts_after};
use super::problem::Problem;

/// Ranges that prove how many stages are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The highest limit of any IPU in bytes.
    pub limit: u64,
    /// Ranges of positions (ends exclusive) in rising order. Each is over the
    /// limit by itself.
    pub ranges: Vec<Range<usize>>,
    /// Positions after which a cut is required by order, rising.
    pub cuts_after: Vec<usize>,
    /// What they prove.
    pub needed: Needed,
}

/// What a certificate proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// At least so many stages are needed, one for each range and each
    /// required cut and one more.
    Stages(usize),
    /// No number of stages is enough: the only range is a single position, or
    /// orders forbid every cut in it.
    Unsplittable,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It is about other limits or required cuts than the problem's.
    #[error("it is about another limit or other orders than the problem")]
    OtherProblem,
    /// A range is empty or beyond the last position.
    #[error("{0:?} is no range of positions")]
    NoRange(Range<usize>),
    /// A range is within the limit.
    #[error("{0:?} is within the limit")]
    WithinLimit(Range<usize>),
    /// One cut would be inside two ranges, or is counted already as required.
    #[error("a cut after position {0} counts twice")]
    CountedTwice(usize),
    /// It says that it proves something else than it does.
    #[error("it proves {0:?}")]
    Proves(Needed),
}

/// The tightest certificate: the number it proves is the fewest stages that
/// are within the highest limit and obey the orders on cuts.
///
/// # Errors
/// A problem that contradicts itself; contradictory orders are for
/// [`solve`](super::solve) to refuse.
pub fn certificate(problem: &Problem<'_>) -> Result<Certificate, SolveError> {
    problem.check()?;
    let limit = problem.limit.highest(problem.ipus);
    let cuts = cuts_after(problem.orders, problem.layers());
    let required = |&position: &usize| cuts[position] == Cut::Required;
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

/// The end of the longest stage from `start` that is within `limit`, up to the
/// next required cut, and the range one step longer when that is over it.
fn longest(
    problem: &Problem<'_>,
    limit: u64,
    cuts: &[Cut],
    start: usize,
) -> (usize, Option<Range<usize>>) {
    let layers = problem.layers();
    let mut fits = start;
    for last in start..layers {
        let end = last + 1;
        if end < layers && cuts[last] == Cut::Forbidden {
            continue;
        }
        let peak = problem.costs.peak(start..end);
        if peak.is_none_or(|peak| peak > limit) {
            return (fits, Some(start..end));
        }
        fits = end;
        if cuts[last] == Cut::Required {
            break;
        }
    }
    (fits, None)
}

impl Certificate {
    /// Checks the proof from the costs and orders of `problem` alone.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, problem: &Problem<'_>) -> Result<(), CertificateError> {
        let layers = problem.layers();
        let cuts = cuts_after(problem.orders, layers);
        let is_required = |&position: &usize| cuts.get(position) == Some(&Cut::Required);
        if self.limit != problem.limit.highest(problem.ipus)
            || !self.cuts_after.iter().all(is_required)
            || !self.cuts_after.is_sorted_by(|a, b| a < b)
        {
            return Err(CertificateError::OtherProblem);
        }
        let mut counted = vec![false; layers];
        for &position in &self.cuts_after {
            counted[position] = true;
        }
        let mut proven = Needed::Stages(self.ranges.len() + self.cuts_after.len() + 1);
        for range in &self.ranges {
            check_over(problem, range, self.limit)?;
            let inside = range.start..range.end - 1;
            let mut may_cut = inside
                .filter(|&position| cuts[position] != Cut::Forbidden)
                .peekable();
            if may_cut.peek().is_none() {
                proven = Needed::Unsplittable;
            }
            for position in may_cut {
                if std::mem::replace(&mut counted[position], true) {
                    return Err(CertificateError::CountedTwice(position));
                }
            }
        }
        match self.needed == proven {
            true => Ok(()),
            false => Err(CertificateError::Proves(proven)),
        }
    }
}

/// That `range` is a range of positions, over `limit`.
fn check_over(
    problem: &Problem<'_>,
    range: &Range<usize>,
    limit: u64,
) -> Result<(), CertificateError> {
    if range.is_empty() || range.end > problem.layers() {
        return Err(CertificateError::NoRange(range.clone()));
    }
    match problem.costs.peak(range.clone()) {
        Some(peak) if peak <= limit => Err(CertificateError::WithinLimit(range.clone())),
        _ => Ok(()),
    }
}
