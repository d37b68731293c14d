//! Checks the reasons that the solver gives if no split fits, and their certificates (proofs), by
//! trying every split.

use proptest::prelude::*;

use super::{rank, solved};
use crate::{
    solve::testing::{Case, any_case, brute_force, case, obedient},
    solve::{
        Cause, Constraint, Goal, Refusal, Rule, certificate, explain, fewest_stages, unproven,
    },
};

/// Checks `kept_together`, the constraints because of which a range over the limit cannot be cut.
/// Together they must forbid every cut inside the range, and none can be left out. If there is no
/// such range, the list must be empty.
fn check_kept_together(case: &Case, found: &Refusal) -> Result<(), TestCaseError> {
    let kept = &found.kept_together;
    prop_assert!(kept.iter().all(|one| case.constraints.contains(one)));
    if found.cause != Cause::TooLarge {
        prop_assert!(kept.is_empty());
        return Ok(());
    }
    let range = &found.certificate.ranges[0];
    let is_kept = |kept: &[Constraint]| {
        let named = Case {
            constraints: kept.to_vec(),
            ipus: case.costs().layers(),
            ..case.clone()
        };
        let mut splits = obedient(&named);
        splits.all(|cuts| {
            !cuts
                .iter()
                .any(|cut| (range.start + 1..range.end).contains(cut))
        })
    };
    prop_assert!(is_kept(kept));
    for left_out in 0..kept.len() {
        let mut others = kept.clone();
        others.remove(left_out);
        prop_assert!(!is_kept(&others));
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(2_000))]

    #[test]
    fn an_explanation_is_proven(case in any_case(10)) {
        let Some(solution) = solved(&case) else {
            return Ok(());
        };
        let problem = case.problem();
        if solution.is_some() {
            return Ok(());
        }
        let found = explain(&problem).unwrap();
        prop_assert_eq!(found.certificate.check(&problem), Ok(()));
        let mut tried = Case { goal: Goal::Fewest, ..case.clone() };
        if problem.limits.len() == 1 {
            tried.ipus = case.costs().layers().max(case.ipus);
            tried.limit_by_ipu = false;
        }
        let fewest = brute_force(&tried).map(|(numbers, _)| numbers[0] as usize);
        prop_assert_eq!(fewest_stages(&problem).unwrap(), fewest);
        let free = Case {
            goal: Goal::Peak,
            limits: vec![u64::MAX],
            limit_by_ipu: false,
            ..case.clone()
        };
        let lowest = unproven(&problem.at_any_limit()).unwrap();
        let lowest = lowest.map(|found| u128::from(found.score.peak));
        prop_assert_eq!(lowest, brute_force(&free).map(|(numbers, _)| numbers[0]));
        let is_proven = match found.certificate.needed {
            Some(needed) => needed > case.ipus,
            None => true,
        };
        let needs_no_proof = [Cause::PinsOrLimits, Cause::Pipeline].contains(&found.cause);
        prop_assert_eq!(is_proven, !needs_no_proof);
        let at_least = case.clone().with_costs(case.costs().at_least());
        let fits_at_least = brute_force(&at_least).is_some();
        prop_assert_eq!(found.cause == Cause::Pipeline, fits_at_least);
        check_kept_together(&case, &found)?;
    }

    /// Compares the best split with the one found by trying all splits, under a memory limit from
    /// the lowest peak of any split to three tenths more. Under a limit of one byte less than the
    /// lowest peak, no split fits; then checks the reason that the solver gives and the number of
    /// stages that would be enough.
    #[test]
    fn where_the_number_of_ipus_binds(mut case in case(10), slack in 0..4_u64) {
        (case.limits, case.limit_by_ipu) = (vec![u64::MAX], false);
        case.constraints.retain(|constraint| !matches!(constraint.rule, Rule::Pin { .. }));
        let Some(Some(lowest)) = solved(&Case { goal: Goal::Peak, ..case.clone() }) else {
            return Ok(());
        };
        let peak = lowest.score.peak;
        case.limits = vec![peak + peak / 10 * slack];
        let solution = solved(&case).flatten();
        let found = solution.and_then(|solution| rank(&case.problem(), &solution.plan));
        prop_assert_eq!(found, brute_force(&case));
        let Some(below) = peak.checked_sub(1) else {
            return Ok(());
        };
        case.limits = vec![below];
        let problem = case.problem();
        let found = explain(&problem).unwrap();
        prop_assert!(found.cause != Cause::PinsOrLimits);
        let lowest = unproven(&problem.at_any_limit()).unwrap();
        prop_assert_eq!(lowest.map(|lowest| lowest.score.peak), Some(peak));
        let fewest = found.certificate.needed;
        prop_assert_eq!(fewest_stages(&problem).unwrap(), fewest);
    }

    #[test]
    fn a_certificate_proves_exactly_the_fewest_stages(case in case(10)) {
        if solved(&case).is_none() {
            return Ok(());
        }
        let problem = case.problem();
        let certificate = certificate(&problem).unwrap();
        prop_assert_eq!(certificate.check(&problem), Ok(()));
        // A certificate proves how many stages a split needs if pins (layers fixed to IPUs) are
        // ignored and every IPU has the highest limit. So try all splits without pins and with this
        // limit.
        let mut tried = case.clone();
        tried.limits = vec![problem.highest_limit()];
        tried.limit_by_ipu = false;
        tried.constraints.retain(|constraint| !matches!(constraint.rule, Rule::Pin { .. }));
        tried.goal = Goal::Fewest;
        tried.ipus = case.costs().layers();
        let fewest = brute_force(&tried).map(|(numbers, _)| numbers[0] as usize);
        prop_assert_eq!(certificate.needed, fewest);
        if case.constraints.is_empty() {
            for pair in certificate.ranges.windows(2) {
                prop_assert_eq!(pair[0].end - 1, pair[1].start);
            }
        }
    }
}
