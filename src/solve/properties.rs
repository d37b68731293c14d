//! Both programs and the greedy search against trying every split.

use proptest::prelude::*;

use super::testing::{Case, Rank, brute_force, case};
use super::{
    Objective, Plan, Problem, Score, Solution, SolveError, compare, dynamic_program, greedy,
    integer_program, solve,
};

fn problem(case: &Case) -> Problem<'_> {
    Problem {
        costs: &case.costs,
        cut_bytes: &case.cut_bytes,
        max_stages: case.max_stages,
    }
}

fn rank(problem: &Problem<'_>, plan: &Plan) -> Option<Rank> {
    let score = Score::of(problem, plan)?;
    let cuts = plan.cuts().collect();
    Some((
        score.peak,
        score.stages,
        score.squares,
        score.cut_bytes,
        cuts,
    ))
}

/// Every position in exactly one stage, in order, and few enough stages.
fn assert_is_split(case: &Case, solution: &Solution) {
    let stages = solution.plan.stages();
    assert!(stages.len() <= case.max_stages);
    let positions: Vec<usize> = stages.iter().cloned().flatten().collect();
    assert_eq!(positions, (0..case.costs.layers()).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn both_programs_find_what_trying_all_splits_finds(case in case(10)) {
        let problem = problem(&case);
        let best = brute_force(&case);
        let integer = integer_program::solve(&problem).unwrap();
        let dynamic = dynamic_program::solve(&problem);
        prop_assert_eq!(integer.as_ref().and_then(|found| rank(&problem, &found.plan)), best.clone());
        prop_assert_eq!(dynamic.as_ref().and_then(|plan| rank(&problem, plan)), best);
    }

    #[test]
    fn both_programs_agree_where_trying_all_splits_takes_too_long(case in case(40)) {
        let solution = solve(&problem(&case)).unwrap();
        if let Some(solution) = solution {
            assert_is_split(&case, &solution);
        }
    }

    #[test]
    fn a_solution_is_a_split_with_its_proof(case in case(10)) {
        let problem = problem(&case);
        let Some(solution) = solve(&problem).unwrap() else {
            return Ok(());
        };
        assert_is_split(&case, &solution);
        prop_assert_eq!(Score::of(&problem, &solution.plan), Some(solution.integer_program));
        prop_assert_eq!(solution.integer_program, solution.dynamic_program);
        let peak = solution.integer_program.peak;
        let below = case.costs.iter().map(|(_, own)| own).filter(|&own| own < peak).max();
        prop_assert_eq!(solution.proof.map(|proof| proof.threshold), below);
        let Some(proof) = solution.proof else {
            return Ok(());
        };
        // The number of stages that the proof says are needed is the fewest
        // that all splits below the peak have.
        let mut below = case.clone();
        below.costs = super::testing::table(case.costs.layers(), proof.threshold, |range| {
            case.costs.peak(range).unwrap_or(u64::MAX)
        });
        let needed = (1..=case.costs.layers()).find(|&stages| {
            below.max_stages = stages;
            brute_force(&below).is_some()
        });
        prop_assert_eq!(proof.stages_needed, needed);
        prop_assert!(needed.is_none_or(|needed| needed > case.max_stages));
    }

    #[test]
    fn greedy_is_never_below_the_integer_program(case in case(10), share in 1..12_u64) {
        let highest = case.costs.iter().map(|(_, peak)| peak).max().unwrap_or(0);
        let mem_per_tile = highest / 8 * share;
        let found = greedy(&case.costs, mem_per_tile, case.max_stages, 1);
        let plan = Plan::new(found.stages.clone(), case.costs.layers());
        let too_many = found.stages.len() > case.max_stages;
        prop_assert_eq!(found.fits, plan.is_some() && !too_many);
        let Some(plan) = plan else {
            return Ok(());
        };
        let mut problem = problem(&case);
        problem.max_stages = found.stages.len();
        let greedy = Score::of(&problem, &plan).expect("greedy takes ranges that fit");
        let best = solve(&problem).unwrap().expect("greedy found a split");
        prop_assert!(best.integer_program <= greedy);
    }
}

#[test]
fn an_optimum_that_only_one_program_has_is_an_error() {
    let costs = super::testing::additive(&[1, 1, 1, 1], u64::MAX);
    let problem = Problem {
        costs: &costs,
        cut_bytes: &[0, 5, 0],
        max_stages: 2,
    };
    let plan = |cut: usize| Plan::new(vec![0..cut, cut..4], 4);
    let differ = |integer, dynamic| match compare(&problem, integer, dynamic, None) {
        Err(SolveError::Disagreement {
            objective,
            integer_program,
            dynamic_program,
        }) => (objective, integer_program, dynamic_program),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        differ(plan(2), plan(1)),
        (Objective::Peak, Some(2), Some(3))
    );
    assert_eq!(differ(None, plan(1)), (Objective::Peak, None, Some(3)));
    assert_eq!(differ(plan(1), None), (Objective::Peak, Some(3), None));
    assert_eq!(
        differ(plan(3), plan(1)),
        (Objective::EarliestCuts, Some(3), Some(1))
    );
    let three = Plan::new(vec![0..1, 1..2, 2..4], 4);
    assert_eq!(
        differ(plan(2), three),
        (Objective::Stages, Some(2), Some(3))
    );
    let error = compare(&problem, plan(3), plan(1), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("found 3 as earliest cut, the dynamic program 1;"),
        "{error}"
    );
}

#[test]
fn degenerate_problems_have_no_split_and_no_panic() {
    let empty = super::testing::additive(&[], 1);
    for max_stages in [0, 1, usize::MAX] {
        let mut problem = Problem {
            costs: &empty,
            cut_bytes: &[],
            max_stages,
        };
        assert_eq!(solve(&problem), Ok(None));
        let one = super::testing::additive(&[7], 9);
        problem.costs = &one;
        let only = Plan::new(std::iter::once(0..1).collect(), 1).filter(|_| max_stages > 0);
        assert_eq!(solve(&problem).unwrap().map(|found| found.plan), only);
    }
}
