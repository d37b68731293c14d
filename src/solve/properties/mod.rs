//! Compares the results of the dynamic program, of the integer program and of the code around them
//! with the best split found by trying every split.

mod explanations;

use clap::ValueEnum;
use proptest::prelude::*;

use super::{
    Conflict, Goal, Plan, Problem, ProfileCosts, Score, Solution, SolveError, agree, broken,
    checked_problem::CheckedProblem,
    dynamic_program, explain, fewest_stages, greedy, prove, scored, solve,
    testing::{Case, Rank, any_case, brute_force, case, obedient, pipelined_case, plain_case},
    unproven,
};

fn rank(problem: &Problem<'_>, plan: &Plan) -> Option<Rank> {
    let score = Score::of(problem, plan)?;
    let numbers = score
        .rank(problem.goal)
        .into_iter()
        .collect::<Option<_>>()?;
    Some((numbers, plan.cuts().collect()))
}

/// Solves a random problem. Returns `None` if its constraints contradict each other, and
/// `Some(None)` if no split fits.
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

/// Checks that the constraints of `conflict` come from the problem, and that no split obeys them.
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

fn assert_is_split(case: &Case, solution: &Solution) {
    let stages = solution.plan.stages();
    assert!(stages.len() <= case.ipus);
    let positions: Vec<usize> = stages.iter().cloned().flatten().collect();
    assert_eq!(positions, (0..case.costs().layers()).collect::<Vec<_>>());
}

fn both_find_the_best(case: &Case, checked: &CheckedProblem<'_>) -> Result<(), TestCaseError> {
    let best = brute_force(case);
    let found = scored(checked, dynamic_program::solve(checked)).unwrap();
    let dynamic = found
        .as_ref()
        .and_then(|found| rank(&checked.problem, &found.plan));
    prop_assert_eq!(&dynamic, &best);
    let proofs = prove(checked, found.as_ref()).unwrap();
    let proven: Vec<u128> = proofs.iter().map(|proof| proof.integer_program).collect();
    prop_assert_eq!(proven, best.map_or(Vec::new(), |(numbers, _)| numbers));
    nothing_else_is_proven(case, checked, found.as_ref())
}

/// Checks that the integer program detects mistakes of the dynamic program. It is given a worse
/// split than the best one, or no split, and must return an error.
fn nothing_else_is_proven(
    case: &Case,
    checked: &CheckedProblem<'_>,
    best: Option<&Solution>,
) -> Result<(), TestCaseError> {
    let Some(best) = best else {
        return Ok(());
    };
    prop_assert!(prove(checked, None).is_err());
    let goal = case.goal;
    for cuts in obedient(case).take(16) {
        let bounds = [&[0], cuts.as_slice(), &[case.costs().layers()]].concat();
        let stages = bounds.windows(2).map(|ends| ends[0]..ends[1]);
        let other = scored(checked, Plan::new(stages, case.costs().layers()));
        let Ok(Some(other)) = other else { continue };
        let is_best = other.score.rank(goal) == best.score.rank(goal);
        prop_assert_eq!(prove(checked, Some(&other)).is_ok(), is_best);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 100_000,
        ..crate::memory::testing::cases(2_000)
    })]

    /// Tests each random problem with each goal. Problems with contradictory constraints are drawn
    /// again.
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
        prop_assert!(CheckedProblem::new(&problem).unwrap().score(&solution.plan).is_some());
        prop_assert_eq!(Score::of(&problem, &solution.plan), Some(solution.score));
        for (proof, &objective) in solution.proofs.iter().zip(case.goal.order()) {
            prop_assert_eq!(proof.objective, objective);
            prop_assert_eq!(Some(proof.integer_program), solution.score.value(objective));
            prop_assert_eq!(proof.integer_program, proof.dynamic_program);
        }
        prop_assert_eq!(solution.proofs.len(), case.goal.order().len());
    }

    #[test]
    fn a_judged_split_is_what_trying_that_split_says(case in any_case(10), bits in any::<u32>()) {
        let layers = case.costs().layers();
        let cuts: Vec<usize> = (1..layers).filter(|cut| bits >> cut & 1 == 1).collect();
        let bounds = [&[0], cuts.as_slice(), &[layers]].concat();
        let stages = bounds.windows(2).map(|ends| ends[0]..ends[1]);
        let plan = Plan::new(stages, layers).unwrap();
        let problem = case.problem();
        let broken = broken(&problem, &plan).unwrap();
        let is_obedient = obedient(&case).any(|obedient| obedient == cuts);
        let has_ipus = plan.stages().len() <= case.ipus;
        prop_assert_eq!(broken.is_empty() && has_ipus, is_obedient);
        if is_obedient {
            let tried = super::testing::rank(&case, cuts);
            let checked = CheckedProblem::new(&problem).unwrap();
            prop_assert_eq!(checked.score(&plan).is_some(), tried.is_some());
            let found = tried.and(rank(&case.problem(), &plan));
            prop_assert_eq!(found, super::testing::rank(&case, plan.cuts().collect()));
        }
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(2_000))]

    #[test]
    fn greedy_is_never_below_the_integer_program(case in plain_case(10), share in 1..12_u64) {
        let highest = case.costs().iter().map(|(_, peak)| peak).max().unwrap_or(0);
        let mem_per_tile = highest / 8 * share;
        let found = greedy(case.costs(), mem_per_tile, case.ipus);
        let plan = Plan::new(found.stages.clone(), case.costs().layers());
        let too_many = found.stages.len() > case.ipus;
        prop_assert_eq!(found.fits, plan.is_some() && !too_many);
        let Some(plan) = plan else {
            return Ok(());
        };
        let problem = Problem {
            ipus: found.stages.len(),
            limits: &[u64::MAX],
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
    let profile = ProfileCosts::new(costs, &[0, 5, 0]);
    let problem = Problem::new(&profile, 3, &9);
    let checked = CheckedProblem::new(&problem).unwrap();
    let order: Vec<_> = checked.order().collect();
    let solution = |stages: Vec<_>| scored(&checked, Plan::new(stages, 4)).unwrap().unwrap();
    let differ = |integer: Option<&Solution>, dynamic: Option<&Solution>| {
        agree(&order, integer, dynamic).unwrap_err().to_string()
    };
    let (even, uneven) = (solution(vec![0..2, 2..4]), solution(vec![0..1, 1..4]));
    let three = solution(vec![0..1, 1..2, 2..4]);
    let assert_says = |error: String, says: &str| assert!(error.contains(says), "{error}");
    let says = "found 2 as lowest memory on the fullest tile, the dynamic program 3";
    assert_says(differ(Some(&even), Some(&uneven)), says);
    assert_says(
        differ(None, Some(&uneven)),
        "found no split as lowest memory",
    );
    assert_says(differ(Some(&uneven), None), "the dynamic program no split");
    let says = "found 2 as fewest stages, the dynamic program 3";
    assert_says(differ(Some(&even), Some(&three)), says);
}

#[test]
fn a_plan_that_is_not_allowed_is_no_answer() {
    let profile = ProfileCosts::new(super::testing::additive(&[3, 3], u64::MAX), &[0]);
    let problem = Problem::new(&profile, 2, &4);
    let checked = CheckedProblem::new(&problem).unwrap();
    let whole = Plan::new(std::iter::once(0..2), 2);
    let error = scored(&checked, whole).unwrap_err();
    assert!(error.to_string().contains("over a limit"), "{error}");
}

#[test]
fn degenerate_problems_have_no_split_and_no_panic() {
    let empty = ProfileCosts::new(super::testing::additive(&[], 1), &[]);
    let one = [ProfileCosts::new(super::testing::additive(&[7], 9), &[])];
    for ipus in [0, 1, usize::MAX] {
        for goal in [Goal::Peak, Goal::Fewest, Goal::Communication] {
            let mut problem = Problem {
                goal,
                ..Problem::new(&empty, ipus, &9)
            };
            assert_eq!(solve(&problem), Ok(None));
            assert!(explain(&problem).is_ok());
            assert_eq!(unproven(&problem.at_any_limit()), Ok(None));
            assert_eq!(fewest_stages(&problem), Ok(None));
            problem.by_profile = &one;
            let only = Plan::new(std::iter::once(0..1), 1).filter(|_| ipus > 0);
            assert_eq!(solve(&problem).unwrap().map(|found| found.plan), only);
        }
    }
}
