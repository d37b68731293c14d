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

/// What may be wrong with a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The limit or the required cuts are not the problem's.
    #[error("it is about another limit or other constraints than the problem")]
    OtherProblem,
    /// A range is empty or beyond the last position.
    #[error("{0:?} is not a range of positions")]
    NoRange(Range<usize>),
    /// A range is within the limit.
    #[error("{0:?} is within the limit")]
    WithinLimit(Range<usize>),
    /// One cut would be inside two ranges, or is already counted as required.
    #[error("a cut after position {0} counts twice")]
    CountedTwice(usize),
    /// The conclusion does not follow from the ranges and cuts.
    #[error("it proves {0:?}")]
    Proves(Needed),
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

impl Certificate {
    /// Checks the proof only from the costs and constraints of `problem`.
    ///
    /// # Errors
    /// The first defect.
    pub fn check(&self, problem: &Problem<'_>) -> Result<(), CertificateError> {
        let cuts = cuts_after(problem.constraints, problem.layers());
        let is_required = |&position: &usize| cuts.get(position) == Some(&CutRule::Required);
        if self.limit != problem.highest_limit()
            || !self.cuts_after.iter().all(is_required)
            || !self.cuts_after.is_sorted_by(|a, b| a < b)
        {
            return Err(CertificateError::OtherProblem);
        }
        let proven = self.proves(problem, &cuts)?;
        if self.needed == proven {
            Ok(())
        } else {
            Err(CertificateError::Proves(proven))
        }
    }

    /// Checks each range, and returns the conclusion. `cuts_after` must be checked already.
    fn proves(&self, problem: &Problem<'_>, cuts: &[CutRule]) -> Result<Needed, CertificateError> {
        let mut counted = vec![false; cuts.len()];
        for &position in &self.cuts_after {
            counted[position] = true;
        }
        let mut proven = Needed::Stages(self.ranges.len() + self.cuts_after.len() + 1);
        for range in &self.ranges {
            check_over(problem, range, self.limit)?;
            let mut may_cut = range.start..range.end - 1;
            let is_forbidden = |position| cuts[position] == CutRule::Forbidden;
            if may_cut.clone().all(is_forbidden) {
                proven = Needed::Unsplittable;
            }
            let twice = may_cut.find(|&position| {
                !is_forbidden(position) && std::mem::replace(&mut counted[position], true)
            });
            if let Some(position) = twice {
                return Err(CertificateError::CountedTwice(position));
            }
        }
        Ok(proven)
    }
}

/// Checks that `range` is a range of positions, and over `limit`.
fn check_over(
    problem: &Problem<'_>,
    range: &Range<usize>,
    limit: u64,
) -> Result<(), CertificateError> {
    if range.is_empty() || range.end > problem.layers() {
        return Err(CertificateError::NoRange(range.clone()));
    }
    match problem.costs.least(range.clone()) {
        Some(peak) if peak <= limit => Err(CertificateError::WithinLimit(range.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::testing::additive;
    use crate::solve::{Constraint, Rule};

    fn together(first: usize, last: usize) -> Constraint {
        Constraint::option(Rule::Together { first, last }, "")
    }

    fn problem<'a>(costs: &'a RangeCosts, constraints: &'a [Constraint]) -> Problem<'a> {
        Problem {
            constraints,
            ..Problem::new(costs, &[0; 4], 2, 5)
        }
    }

    fn proof(problem: &Problem<'_>) -> (Vec<Range<usize>>, Vec<usize>, Needed) {
        let certificate = certificate(problem).unwrap();
        assert_eq!(certificate.check(problem), Ok(()));
        let Certificate {
            ranges, cuts_after, ..
        } = certificate;
        (ranges, cuts_after, certificate.needed)
    }

    #[test]
    fn ranges_over_the_limit_meet_only_at_their_end_positions() {
        let costs = additive(&[3, 2, 1, 5, 4], u64::MAX);
        let stages = Needed::Stages(4);
        let expected = (vec![0..3, 2..4, 3..5], vec![], stages);
        assert_eq!(proof(&problem(&costs, &[])), expected);
    }

    #[test]
    fn a_position_over_the_limit_is_enough_alone() {
        let costs = additive(&[3, 3, 6, 1, 1], u64::MAX);
        let expected = (
            std::iter::once(2..3).collect(),
            vec![],
            Needed::Unsplittable,
        );
        assert_eq!(proof(&problem(&costs, &[])), expected);
        let even = additive(&[3, 3, 2, 1, 1], u64::MAX);
        let constraints = [
            together(0, 1),
            Constraint::option(Rule::CutAfter { position: 3 }, ""),
        ];
        let expected = (
            std::iter::once(0..2).collect(),
            vec![],
            Needed::Unsplittable,
        );
        assert_eq!(proof(&problem(&even, &constraints)), expected);
    }

    #[test]
    fn required_cuts_count_by_themselves() {
        let costs = additive(&[1, 1, 5, 1, 1], u64::MAX);
        let constraints = [
            Constraint::option(Rule::CutAfter { position: 0 }, ""),
            together(3, 4),
        ];
        // 0 | 1, 2, 3 and 4 | : cuts after 0, inside 1..3, inside 2..5.
        let expected = (vec![1..3, 2..5], vec![0], Needed::Stages(4));
        assert_eq!(proof(&problem(&costs, &constraints)), expected);
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let costs = additive(&[3, 2, 1, 5, 4], u64::MAX);
        let problem = problem(&costs, &[]);
        let good = certificate(&problem).unwrap();
        let with = |ranges: &[Range<usize>], needed| {
            let changed = Certificate {
                ranges: ranges.to_vec(),
                needed,
                ..good.clone()
            };
            changed.check(&problem)
        };
        let stages = Needed::Stages;
        assert_eq!(with(&[0..3, 2..4], stages(3)), Ok(()));
        let error = CertificateError::Proves(stages(3));
        assert_eq!(with(&[0..3, 2..4], stages(4)), Err(error));
        let error = CertificateError::CountedTwice(1);
        assert_eq!(with(&[0..3, 1..4], stages(3)), Err(error));
        let error = CertificateError::WithinLimit(0..2);
        assert_eq!(with(&[0..2, 1..4], stages(3)), Err(error));
        for range in [3..3, 3..6] {
            let error = CertificateError::NoRange(range.clone());
            assert_eq!(with(&[range], stages(2)), Err(error));
        }
        let other = Certificate {
            limit: 4,
            ..good.clone()
        };
        assert_eq!(other.check(&problem), Err(CertificateError::OtherProblem));
        let cuts_after = vec![2];
        let other = Certificate { cuts_after, ..good };
        assert_eq!(other.check(&problem), Err(CertificateError::OtherProblem));
    }
}
