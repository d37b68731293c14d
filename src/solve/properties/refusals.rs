//! Refusals and certificates against trying every split.

use proptest::prelude::*;

use super::{rank, solved};
use crate::solve::testing::{Case, brute_force, case};
use crate::solve::{Cause, Goal, Needed, Rule, certificate, refusal};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_refusal_is_proven_and_its_hints_are_true(case in case(10)) {
        let Some(solution) = solved(&case) else {
            return Ok(());
        };
        let problem = case.problem();
        let refusal = refusal(&problem).unwrap();
        prop_assert_eq!(refusal.is_some(), solution.is_none());
        let Some(refusal) = refusal else {
            return Ok(());
        };
        prop_assert_eq!(refusal.certificate.check(&problem), Ok(()));
        let mut tried = Case { goal: Goal::Fewest, ..case.clone() };
        if !case.limit_by_ipu {
            tried.ipus = case.costs.layers().max(case.ipus);
        }
        let fewest = brute_force(&tried).map(|(numbers, _)| numbers[0] as usize);
        prop_assert_eq!(refusal.fewest, fewest);
        let mut free = Case { orders: Vec::new(), ..case.clone() };
        let without = brute_force(&free).filter(|_| !case.orders.is_empty());
        let found = refusal.without_orders.and_then(|found| rank(&problem, &found.plan));
        prop_assert_eq!(found, without);
        free.orders = case.orders.clone();
        free.goal = Goal::Peak;
        (free.limits, free.limit_by_ipu) = (vec![u64::MAX], false);
        let lowest = refusal.lowest_peak.map(|found| u128::from(found.score.peak));
        prop_assert_eq!(lowest, brute_force(&free).map(|(numbers, _)| numbers[0]));
        let is_proven = match refusal.certificate.needed {
            Needed::Stages(needed) => needed > case.ipus,
            Needed::Unsplittable => true,
        };
        prop_assert_eq!(is_proven, refusal.cause != Cause::PinsOrLimits);
    }

    /// Just enough memory, or a little more: plans that send less over the cuts
    /// often need more stages than there are IPUs. And just too little.
    #[test]
    fn where_the_number_of_ipus_binds(mut case in case(10), slack in 0..4_u64) {
        (case.limits, case.limit_by_ipu) = (vec![u64::MAX], false);
        case.orders.retain(|order| !matches!(order.rule, Rule::Pin { .. }));
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
        let refusal = refusal(&case.problem()).unwrap().expect("less than the lowest peak");
        prop_assert!(refusal.cause != Cause::PinsOrLimits);
        prop_assert_eq!(refusal.lowest_peak.map(|lowest| lowest.score.peak), Some(peak));
        let fewest = match refusal.certificate.needed {
            Needed::Stages(needed) => Some(needed),
            Needed::Unsplittable => None,
        };
        prop_assert_eq!(refusal.fewest, fewest);
    }

    #[test]
    fn a_certificate_proves_exactly_the_fewest_stages(case in case(10)) {
        if solved(&case).is_none() {
            return Ok(());
        }
        let problem = case.problem();
        let certificate = certificate(&problem).unwrap();
        prop_assert_eq!(certificate.check(&problem), Ok(()));
        // The highest limit on every IPU, and no pins.
        let mut tried = case.clone();
        tried.limits = vec![problem.limit.highest(problem.ipus)];
        tried.limit_by_ipu = false;
        tried.orders.retain(|order| !matches!(order.rule, Rule::Pin { .. }));
        tried.goal = Goal::Fewest;
        tried.ipus = case.costs.layers();
        let fewest = brute_force(&tried).map(|(numbers, _)| numbers[0] as usize);
        let proven = match certificate.needed {
            Needed::Stages(needed) => Some(needed),
            Needed::Unsplittable => None,
        };
        prop_assert_eq!(proven, fewest);
        if case.orders.is_empty() {
            for pair in certificate.ranges.windows(2) {
                prop_assert_eq!(pair[0].end - 1, pair[1].start);
            }
        }
    }
}
