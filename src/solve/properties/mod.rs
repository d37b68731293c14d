//! Compares both programs, and the code around them, with trying every split.

mod explanations;

use clap::ValueEnum;
use proptest::prelude::*;

use super::checked_problem::CheckedProblem;
use super::testing::{
    Case, Rank, any_case, brute_force, case, obedient, pipelined_case, plain_case,
};
use super::{
    BottleneckProof, Conflict, Goal, Limits, Objective, Plan, Problem, Score, Solution, SolveError,
    agree, broken, compare, dynamic_program, explain, greedy, integer_program, solve, sweep,
};
use crate::memory::RangeCosts;
use std::ops::Range;

fn rank(problem: &Problem<'_>, plan: &Plan) -> Option<Rank> {
    let score = Score::of(problem, plan)?;
    let numbers = score
        .rank(problem.goal)
        .into_iter()
        .collect::<Option<_>>()?;
    Some((numbers, plan.cuts().collect()))
}

/// Solves a case; the outer `None` means that its constraints contradict each other.
fn solved(case: &Case) -> Option<Option<Solution>> {
    match solve(&case.problem()) {
        Ok(solution) => Some(solution),
        Err(SolveError::Contradiction(conflict)) => {
            assert_conflicts(case, &conflict);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Checks that the constraints of a conflict are among those of the case, and that no split obeys
/// them.
fn assert_conflicts(case: &Case, conflict: &Conflict) {
    let named = conflict.constraints.clone();
    assert!(
        named
            .iter()
            .all(|constraint| case.constraints.contains(constraint))
    );
    let mut alone = case.clone();
    alone.constraints = named;
    assert_eq!(obedient(&alone).next(), None, "{conflict}");
}

/// Checks that every position is in exactly one stage, in order, and that there are few enough
/// stages.
fn assert_is_split(case: &Case, solution: &Solution) {
    let stages = solution.plan.stages();
    assert!(stages.len() <= case.ipus);
    let positions: Vec<usize> = stages.iter().cloned().flatten().collect();
    assert_eq!(positions, (0..case.costs.layers()).collect::<Vec<_>>());
}

/// Returns the case with stages of at most the number of `proof`.
fn capped(case: &Case, proof: &BottleneckProof) -> Case {
    let mut capped = case.clone();
    let cycles = case.cycles.clone().unwrap_or_default();
    let capped_peak = |range: Range<usize>, peak: u64| {
        let cycles = cycles[range].iter().map(|&cycles| u128::from(cycles)).sum();
        let value = match proof.objective {
            Objective::Cycles => cycles,
            _ => u128::from(peak),
        };
        if value > proof.below { u64::MAX } else { peak }
    };
    let least = super::testing::table(case.costs.layers(), u64::MAX - 1, |range| {
        let least = case.costs.least(range.clone()).unwrap_or(u64::MAX);
        capped_peak(range, least)
    });
    capped.costs = least.clone();
    if case.costs.is_by_depth() {
        let rows = (0..least.layers()).map(|from| least.least_from(from).to_vec());
        capped.costs =
            RangeCosts::in_pipeline(rows.collect(), case.costs.stages(), |range, after| {
                let peak = case.costs.peak(range.clone(), after).unwrap_or(u64::MAX);
                capped_peak(range, peak)
            });
    }
    capped
}

/// Checks that both programs find the result of trying all splits.
fn both_find_the_best(case: &Case, checked: &CheckedProblem<'_>) -> Result<(), TestCaseError> {
    let problem = case.problem();
    let best = brute_force(case);
    let integer = integer_program::solve(checked).unwrap();
    let integer = integer.and_then(|found| rank(&problem, &found.plan));
    prop_assert_eq!(integer, best.clone());
    let dynamic = dynamic_program::solve(checked);
    let dynamic = dynamic.and_then(|plan| rank(&problem, &plan));
    prop_assert_eq!(dynamic, best);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 100_000,
        ..crate::memory::testing::cases(2_000)
    })]

    /// Tests each case with each goal. Contradictory cases do not count.
    #[test]
    fn both_programs_find_what_trying_all_splits_finds(
        mut case in case(10),
        max_edges in prop_oneof![0..30_usize, Just(5_000)],
    ) {
        for &goal in Goal::value_variants() {
            case.goal = goal;
            let problem = case.problem();
            let mut checked = match CheckedProblem::new(&problem) {
                Ok(checked) => checked,
                Err(SolveError::Contradiction(conflict)) => {
                    assert_conflicts(&case, &conflict);
                    return Err(TestCaseError::reject("a contradiction"));
                }
                Err(error) => panic!("{error}"),
            };
            prop_assert!(obedient(&case).next().is_some(), "a contradiction");
            checked.max_edges = max_edges;
            both_find_the_best(&case, &checked)?;
        }
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(2_500))]

    #[test]
    fn in_a_pipeline_too(case in pipelined_case(9), max_edges in prop_oneof![0..30_usize, Just(5_000)]) {
        let problem = case.problem();
        let Ok(mut checked) = CheckedProblem::new(&problem) else {
            return Err(TestCaseError::reject("a contradiction"));
        };
        checked.max_edges = max_edges;
        both_find_the_best(&case, &checked)?;
    }

    #[test]
    fn without_constraints_too(case in plain_case(10)) {
        let solution = solved(&case).expect("there are no constraints");
        let found = solution.and_then(|solution| rank(&case.problem(), &solution.plan));
        prop_assert_eq!(found, brute_force(&case));
    }

    #[test]
    fn a_solution_is_an_allowed_split_with_its_proof(case in any_case(10)) {
        let Some(Some(solution)) = solved(&case) else {
            return Ok(());
        };
        let problem = case.problem();
        assert_is_split(&case, &solution);
        prop_assert_eq!(broken(&problem, &solution.plan), Ok(Vec::new()));
        prop_assert!(CheckedProblem::new(&problem).unwrap().allows(&solution.plan));
        prop_assert_eq!(Score::of(&problem, &solution.plan), Some(solution.score));
        for (proof, &objective) in solution.proofs.iter().zip(case.goal.order()) {
            prop_assert_eq!(proof.objective, objective);
            prop_assert_eq!(Some(proof.integer_program), solution.score.value(objective));
            prop_assert_eq!(proof.integer_program, proof.dynamic_program);
        }
        prop_assert_eq!(solution.proofs.len(), case.goal.order().len());
    }

    #[test]
    fn below_a_proven_bottleneck_there_is_no_split(case in any_case(10)) {
        let Some(Some(solution)) = solved(&case) else {
            return Ok(());
        };
        // The first bottleneck is proven among all splits; a later one only among splits that are
        // the best in the objectives before it.
        let main = case.goal.main();
        let first = solution.bottlenecks.iter().find(|proof| proof.objective == main);
        let Some(proof) = first else {
            return Ok(());
        };
        let mut capped = capped(&case, proof);
        prop_assert!(proof.below < solution.proofs[0].integer_program);
        prop_assert_eq!(brute_force(&capped), None);
        if let Some(needed) = proof.stages_needed {
            prop_assert!(needed > case.ipus);
            if !case.limit_by_ipu {
                capped.ipus = needed;
                prop_assert!(brute_force(&capped).is_some());
            }
        }
    }

    #[test]
    fn a_judged_split_is_what_trying_that_split_says(case in any_case(10), bits in any::<u32>()) {
        let layers = case.costs.layers();
        let cuts: Vec<usize> = (1..layers).filter(|cut| bits >> cut & 1 == 1).collect();
        let bounds = [&[0], cuts.as_slice(), &[layers]].concat();
        let stages = bounds.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let plan = Plan::new(stages, layers).unwrap();
        let problem = case.problem();
        let broken = broken(&problem, &plan).unwrap();
        let is_obedient = obedient(&case).any(|obedient| obedient == cuts);
        let has_ipus = plan.stages().len() <= case.ipus;
        prop_assert_eq!(broken.is_empty() && has_ipus, is_obedient);
        if is_obedient {
            let tried = super::testing::rank(&case, cuts);
            let checked = CheckedProblem::new(&problem).unwrap();
            prop_assert_eq!(checked.allows(&plan), tried.is_some());
            let found = tried.and(rank(&case.problem(), &plan));
            prop_assert_eq!(found, super::testing::rank(&case, plan.cuts().collect()));
        }
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(2_000))]

    #[test]
    fn a_sweep_is_one_solution_for_each_number_of_ipus(case in any_case(10)) {
        let problem = case.problem();
        let numbers: Vec<usize> = (1..=case.ipus).collect();
        let Ok(rows) = sweep(&problem, &numbers) else {
            assert!(solved(&case).is_none());
            return Ok(());
        };
        prop_assert_eq!(rows.len(), case.ipus);
        for (row, ipus) in rows.into_iter().zip(1..) {
            let mut alone = case.clone();
            alone.ipus = ipus;
            alone.limits.truncate(ipus);
            let solution = solved(&alone).flatten();
            let parts = |solution: Solution| (solution.plan, solution.score, solution.proofs);
            prop_assert_eq!(row.map(parts), solution.map(parts));
        }
    }

    #[test]
    fn greedy_is_never_below_the_integer_program(case in plain_case(10), share in 1..12_u64) {
        let highest = case.costs.iter().map(|(_, peak)| peak).max().unwrap_or(0);
        let mem_per_tile = highest / 8 * share;
        let found = greedy(&case.costs, mem_per_tile, case.ipus);
        let plan = Plan::new(found.stages.clone(), case.costs.layers());
        let too_many = found.stages.len() > case.ipus;
        prop_assert_eq!(found.fits, plan.is_some() && !too_many);
        let Some(plan) = plan else {
            return Ok(());
        };
        let problem = Problem {
            ipus: found.stages.len(),
            limits: Limits::Same(u64::MAX),
            ..case.problem()
        };
        let greedy = Score::of(&problem, &plan).expect("all costs are known");
        let best = solve(&problem).unwrap().expect("greedy found a split");
        prop_assert!(best.score.rank(case.goal) <= greedy.rank(case.goal));
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(300))]

    #[test]
    fn both_programs_agree_where_trying_all_splits_takes_too_long(case in any_case(40)) {
        match solve(&case.problem()) {
            Ok(Some(solution)) => assert_is_split(&case, &solution),
            Ok(None) | Err(SolveError::Contradiction(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_optimum_that_only_one_program_has_is_an_error() {
    let costs = super::testing::additive(&[1, 1, 1, 1], u64::MAX);
    let problem = Problem::new(&costs, &[0, 5, 0], 3, 9);
    let checked = CheckedProblem::new(&problem).unwrap();
    let plan = |cut: usize| Plan::new(vec![0..cut, cut..4], 4);
    let differ = |integer, dynamic| compare(&checked, integer, dynamic).unwrap_err();
    let error = |objective, integer, dynamic| agree(objective, integer, dynamic).unwrap_err();
    let peak = Objective::Peak;
    assert_eq!(differ(plan(2), plan(1)), error(peak, Some(2), Some(3)));
    assert_eq!(differ(None, plan(1)), error(peak, None, Some(3)));
    assert_eq!(differ(plan(1), None), error(peak, Some(3), None));
    let earliest = error(Objective::EarliestCuts, Some(3), Some(1));
    assert_eq!(differ(plan(3), plan(1)), earliest);
    let three = Plan::new(vec![0..1, 1..2, 2..4], 4);
    let stages = error(Objective::Stages, Some(2), Some(3));
    assert_eq!(differ(plan(2), three), stages);
    let error = compare(&checked, plan(3), plan(1)).unwrap_err().to_string();
    assert!(
        error.contains("found 3 as earliest cut, the dynamic program 1;"),
        "{error}"
    );
}

#[test]
fn a_plan_that_is_not_allowed_is_no_answer() {
    let costs = super::testing::additive(&[3, 3], u64::MAX);
    let problem = Problem::new(&costs, &[0], 2, 4);
    let checked = CheckedProblem::new(&problem).unwrap();
    let whole = Plan::new(std::iter::once(0..2).collect(), 2);
    let error = compare(&checked, whole.clone(), whole).unwrap_err();
    assert!(error.to_string().contains("over a limit"), "{error}");
}

#[test]
fn degenerate_problems_have_no_split_and_no_panic() {
    let empty = super::testing::additive(&[], 1);
    let one = super::testing::additive(&[7], 9);
    for ipus in [0, 1, usize::MAX] {
        for goal in [Goal::Peak, Goal::Fewest, Goal::Communication] {
            let mut problem = Problem {
                goal,
                ..Problem::new(&empty, &[], ipus, 9)
            };
            assert_eq!(solve(&problem), Ok(None));
            assert!(explain(&problem).unwrap().is_some());
            problem.costs = &one;
            let only = Plan::new(std::iter::once(0..1).collect(), 1).filter(|_| ipus > 0);
            assert_eq!(solve(&problem).unwrap().map(|found| found.plan), only);
        }
    }
}
