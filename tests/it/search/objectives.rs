//! Answers of the command to objectives and constraints, against all splits of the fixtures tried
//! one by one. There is no schedule, so that a range needs the same bytes wherever it is.

use super::facts::Facts;
use crate::oracle::search::Split;
use crate::support::models::pairs;
use crate::support::{DEFAULT_REGEX, FIXTURES, Run, run_fixture};
use std::ops::Range;

/// Runs the command; the lowest peak is the objective if there is no other one.
fn run(fixture: &str, options: &str) -> Run {
    let objective = match options.contains("--objective") {
        true => "",
        false => "--objective=peak",
    };
    let options = format!("{options} {objective} -q --schedule=none {DEFAULT_REGEX}");
    run_fixture(fixture, &options)
}

/// Runs the command and compares it with the best of all splits.
fn compare(fixture: &str, facts: &Facts, options: &str, best: Option<Split>) {
    let run = run(fixture, &format!("--solve {options}"));
    run.exits(i32::from(best.is_none()));
    if let Some(best) = best {
        assert_eq!(facts.stages(&run.report()), best, "{fixture} {options}");
    }
}

/// Returns the stage of the layer with this number. In is before the layers.
fn stage_of(stages: &[Range<usize>], layer: usize) -> Option<usize> {
    stages.iter().position(|stage| stage.contains(&(layer + 1)))
}

/// Does a stage begin with this layer?
fn begins_with(stages: &[Range<usize>], layer: usize) -> bool {
    stages.iter().any(|stage| stage.start == layer + 1)
}

#[test]
fn every_objective_finds_the_best_of_all_splits() {
    let objectives = ["peak", "fewest", "communication", "cycles"];
    let questions: Vec<_> = pairs(&objectives, &[3, 4, 6], 1).collect();
    for (fixture, &(objective, &ipus)) in pairs(&FIXTURES, &questions, 5) {
        let facts = Facts::known(fixture);
        let options = format!("--objective={objective} --num-ipus={ipus}");
        if *objective == "cycles" && facts.numbers.cycles.is_none() {
            let run = run(fixture, &format!("--solve {options}"));
            run.exits(2).says("profiler.includeCycleEstimates");
            continue;
        }
        let best = facts.best(objective, &vec![facts.limit; ipus], |_| true);
        compare(fixture, &facts, &options, best);
    }
}

type Obeys = fn(&[Range<usize>]) -> bool;

const CONSTRAINTS: [(&str, &str, Obeys); 6] = [
    ("peak", "--pin=2=1", |split| stage_of(split, 2) == Some(1)),
    ("peak", "--together=1,3", |split| {
        stage_of(split, 1) == stage_of(split, 3)
    }),
    ("peak", "--cut-before=1", |split| begins_with(split, 1)),
    ("peak", "--together=0,1 --together=2,3", |split| {
        !begins_with(split, 1) && !begins_with(split, 3)
    }),
    ("fewest", "--pin=1=1 --cut-before=2", |split| {
        stage_of(split, 1) == Some(1) && begins_with(split, 2)
    }),
    ("communication", "--pin=3=3", |split| {
        stage_of(split, 3) == Some(3)
    }),
];

#[test]
fn orders_and_limits_by_ipu_are_obeyed_at_the_lowest_price() {
    for (fixture, (objective, options, obeys)) in pairs(&FIXTURES, &CONSTRAINTS, 5) {
        let facts = Facts::known(fixture);
        let best = facts.best(objective, &[facts.limit; 5], obeys);
        let options = format!("{options} --objective={objective} --num-ipus=5");
        compare(fixture, &facts, &options, best);
    }
    for fixture in FIXTURES {
        let facts = Facts::known(fixture);
        let limits = [facts.limit / 3, facts.limit * 2, facts.limit, facts.limit];
        let list = limits.map(|limit| limit.to_string()).join(",");
        let best = facts.best("peak", &limits, |_| true);
        compare(fixture, &facts, &format!("--mem-per-tile={list}"), best);
    }
}
