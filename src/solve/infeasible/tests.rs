//! Checks certificates (proofs that a split needs more stages) without the code that makes them.

use super::*;
use crate::{
    solve::testing::additive,
    solve::{Constraint, ProfileCosts, Rule},
};

/// A defect of a certificate, the proof that a split needs more stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("it is about another limit or other constraints than the problem")]
    OtherProblem,
    #[error("{0:?} is not a range of positions")]
    NoRange(Range<usize>),
    #[error("{0:?} is within the limit")]
    WithinLimit(Range<usize>),
    /// The proof that a split needs more stages counts one cut twice: the cut is inside two ranges
    /// over the limit, or is both inside such a range and required by a constraint.
    #[error("a cut before position {0} counts twice")]
    CountedTwice(usize),
    #[error("it proves {0:?}")]
    Proves(Option<usize>),
}

impl Certificate {
    /// Checks that this certificate, which proves how many stages a split needs, is right for the
    /// costs and constraints of `problem`. Returns the first defect of the proof as an error.
    pub(crate) fn check(&self, problem: &Problem<'_>) -> Result<(), CertificateError> {
        let cuts = cuts_before(problem.constraints, problem.layers());
        let is_required = |&position: &usize| cuts.get(position) == Some(&CutRule::Required);
        if self.limit != problem.highest_limit()
            || !self.cuts_before.iter().all(is_required)
            || !self.cuts_before.is_sorted_by(|a, b| a < b)
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

    /// Checks that each range of the certificate (a proof that a split needs more stages) is over
    /// the limit, and that no cut counts twice; returns an error if not. Otherwise returns the
    /// number of stages that a split needs by this proof, or `None` if no number is enough.
    fn proves(
        &self,
        problem: &Problem<'_>,
        cuts: &[CutRule],
    ) -> Result<Option<usize>, CertificateError> {
        let mut counted = vec![false; cuts.len()];
        for &position in &self.cuts_before {
            counted[position] = true;
        }
        let mut proven = Some(self.ranges.len() + self.cuts_before.len() + 1);
        for range in &self.ranges {
            check_over(problem, range, self.limit)?;
            let mut may_cut = range.start + 1..range.end;
            let is_forbidden = |position| cuts[position] == CutRule::Forbidden;
            if may_cut.clone().all(is_forbidden) {
                proven = None;
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

fn check_over(
    problem: &Problem<'_>,
    range: &Range<usize>,
    limit: u64,
) -> Result<(), CertificateError> {
    if range.is_empty() || range.end > problem.layers() {
        return Err(CertificateError::NoRange(range.clone()));
    }
    match problem.by_profile[0].ranges.least(range.clone()) {
        Some(peak) if peak <= limit => Err(CertificateError::WithinLimit(range.clone())),
        _ => Ok(()),
    }
}

fn together(first: usize, last: usize) -> Constraint {
    Constraint::option(Rule::Together { first, last }, "")
}

fn profile(weights: [u64; 5]) -> ProfileCosts {
    ProfileCosts::new(additive(&weights, u64::MAX), &[0; 4])
}

fn problem<'a>(profile: &'a ProfileCosts, constraints: &'a [Constraint]) -> Problem<'a> {
    Problem {
        constraints,
        ..Problem::new(profile, 2, &5)
    }
}

fn proof(problem: &Problem<'_>) -> (Vec<Range<usize>>, Vec<usize>, Option<usize>) {
    let certificate = certificate(problem).unwrap();
    assert_eq!(certificate.check(problem), Ok(()));
    let Certificate {
        ranges,
        cuts_before,
        ..
    } = certificate;
    (ranges, cuts_before, certificate.needed)
}

#[test]
fn ranges_over_the_limit_meet_only_at_their_end_positions() {
    let profile = profile([3, 2, 1, 5, 4]);
    let stages = Some(4);
    let expected = (vec![0..3, 2..4, 3..5], vec![], stages);
    assert_eq!(proof(&problem(&profile, &[])), expected);
}

#[test]
fn a_position_over_the_limit_is_enough_alone() {
    let profile = profile([3, 3, 6, 1, 1]);
    let expected = (std::iter::once(2..3).collect(), vec![], None);
    assert_eq!(proof(&problem(&profile, &[])), expected);
    let even = self::profile([3, 3, 2, 1, 1]);
    let constraints = [
        together(0, 1),
        Constraint::option(Rule::CutBefore { position: 4 }, ""),
    ];
    let expected = (std::iter::once(0..2).collect(), vec![], None);
    assert_eq!(proof(&problem(&even, &constraints)), expected);
}

#[test]
fn required_cuts_count_by_themselves() {
    let profile = profile([1, 1, 5, 1, 1]);
    let constraints = [
        Constraint::option(Rule::CutBefore { position: 1 }, ""),
        together(3, 4),
    ];
    // A stage may take 5 bytes on a tile, so a split needs three cuts, and hence four stages:
    //
    // - before position 1, by a constraint
    // - before position 2, since positions 1 and 2 take 6 bytes
    // - before position 3, since positions 2 to 4 take 7 bytes, and 3 and 4 must be in one stage
    let expected = (vec![1..3, 2..5], vec![1], Some(4));
    assert_eq!(proof(&problem(&profile, &constraints)), expected);
}

#[test]
fn what_proves_nothing_is_refused() {
    let profile = profile([3, 2, 1, 5, 4]);
    let problem = problem(&profile, &[]);
    let good = certificate(&problem).unwrap();
    let with = |ranges: &[Range<usize>], needed| {
        let changed = Certificate {
            ranges: ranges.to_vec(),
            needed,
            ..good.clone()
        };
        changed.check(&problem)
    };
    let stages = Some;
    assert_eq!(with(&[0..3, 2..4], stages(3)), Ok(()));
    let error = CertificateError::Proves(stages(3));
    assert_eq!(with(&[0..3, 2..4], stages(4)), Err(error));
    let error = CertificateError::CountedTwice(2);
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
    let cuts_before = vec![2];
    let other = Certificate {
        cuts_before,
        ..good
    };
    assert_eq!(other.check(&problem), Err(CertificateError::OtherProblem));
}
