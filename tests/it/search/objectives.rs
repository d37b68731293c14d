//! Answers of the command to objectives and constraints, against all splits of the fixtures tried
//! one by one. There is no schedule, so that a range needs the same bytes wherever it is.

use crate::search::facts::{Facts, printed};
use crate::support::models::pairs;
use crate::support::{self, DEFAULT_REGEX, FIXTURES, run_fixture};
use serde_json::Value;

/// Runs the command and compares it with all splits.
fn compare(fixture: &str, facts: &Facts, options: &[&str], best: Option<Vec<usize>>) {
    let fixed = ["--solve", "-q", "--schedule=none", DEFAULT_REGEX];
    let objective = options
        .iter()
        .any(|option| option.starts_with("--objective"));
    let peak: &[&str] = if objective {
        &[]
    } else {
        &["--objective=peak"]
    };
    let options: Vec<&str> = [&fixed, options, peak].concat();
    let run = run_fixture(fixture, &options);
    match best {
        Some(best) => {
            assert_eq!(run.code, 0, "{fixture} {options:?}: {run:?}");
            assert_eq!(printed(facts, &run.out), best, "{fixture} {options:?}");
        }
        None => assert_eq!(run.code, 1, "{fixture} {options:?}: {run:?}"),
    }
}

/// Returns the stage of the layer with this number. In is before the layers.
fn stage_of(ends: &[usize], layer: usize) -> usize {
    ends.iter().filter(|&&end| end <= layer + 1).count()
}

/// Does a stage end with this layer?
fn ends_with(ends: &[usize], layer: usize) -> bool {
    ends.contains(&(layer + 2))
}

#[test]
fn every_objective_finds_the_best_of_all_splits() {
    let objectives = ["peak", "fewest", "communication", "cycles"];
    let questions: Vec<_> = pairs(&objectives, &[3, 4, 6], 1).collect();
    for (fixture, (objective, ipus)) in pairs(&FIXTURES, &questions, 5) {
        let facts = Facts::known(fixture);
        if **objective == "cycles" && facts.cycles.is_none() {
            let run = run_fixture(fixture, &["--solve", "--objective=cycles"]);
            assert_eq!(run.code, 2, "{fixture}: {run:?}");
            assert!(
                run.err.contains("profiler.includeCycleEstimates"),
                "{run:?}"
            );
            continue;
        }
        let options = [
            format!("--objective={objective}"),
            format!("--num-ipus={ipus}"),
        ];
        let options = options.each_ref().map(String::as_str);
        let best = facts.best(objective, &vec![facts.limit; **ipus], |_| true);
        compare(fixture, &facts, &options, best);
    }
}

#[test]
fn orders_and_limits_by_ipu_are_obeyed_at_the_lowest_price() {
    type Obeys = fn(&[usize]) -> bool;
    let constraints: [(&[&str], Obeys); 6] = [
        (&["--pin=2=1"], |ends| stage_of(ends, 2) == 1),
        (&["--together=1,3"], |ends| {
            stage_of(ends, 1) == stage_of(ends, 3)
        }),
        (&["--cut-after=0"], |ends| ends_with(ends, 0)),
        (&["--no-cut-after=0", "--no-cut-after=2"], |ends| {
            !ends_with(ends, 0) && !ends_with(ends, 2)
        }),
        (
            &["--pin=1=1", "--cut-after=1", "--objective=fewest"],
            |ends| stage_of(ends, 1) == 1 && ends_with(ends, 1),
        ),
        (&["--pin=3=3", "--objective=communication"], |ends| {
            stage_of(ends, 3) == 3
        }),
    ];
    for (fixture, (options, obeys)) in pairs(&FIXTURES, &constraints, 5) {
        let facts = Facts::known(fixture);
        let mut named = options.iter();
        let objective = named.find_map(|option| option.strip_prefix("--objective="));
        let best = facts.best(objective.unwrap_or("peak"), &[facts.limit; 5], obeys);
        let options = [options, &["--num-ipus=5"][..]].concat();
        compare(fixture, &facts, &options, best);
    }
    for fixture in FIXTURES {
        let facts = Facts::known(fixture);
        let limits = [facts.limit / 3, facts.limit * 2, facts.limit, facts.limit];
        let list = limits.map(|limit| limit.to_string()).join(",");
        let option = format!("--mem-per-tile={list}");
        compare(
            fixture,
            &facts,
            &[&option],
            facts.best("peak", &limits, |_| true),
        );
    }
}

#[test]
fn a_sweep_has_the_best_split_for_each_number_of_ipus() {
    for fixture in FIXTURES {
        let facts = Facts::known(fixture);
        let run = run_fixture(
            fixture,
            &[
                "--sweep",
                "--objective=peak",
                "--num-ipus=7",
                "-q",
                "--schedule=none",
                DEFAULT_REGEX,
            ],
        );
        assert_eq!(run.code, 0, "{run:?}");
        let rows = support::cells(&run.out, '\t');
        assert_eq!(rows.len(), 8, "{fixture}");
        for (ipus, row) in (1usize..).zip(&rows[1..]) {
            let fitting = facts.best("peak", &vec![facts.limit; ipus], |_| true);
            assert_eq!(
                row[1],
                if fitting.is_some() { "yes" } else { "no" },
                "{row:?}"
            );
            let least = || facts.best("peak", &vec![u64::MAX; ipus], |_| true);
            let best = fitting.or_else(least).unwrap();
            let (numbers, _) = facts.rank("peak", &best);
            assert_eq!(row[2], numbers[0].to_string(), "{fixture} {row:?}");
            assert_eq!(row[4], numbers[4].to_string(), "{fixture} {row:?}");
            assert_eq!(row[6], numbers[1].to_string(), "{fixture} {row:?}");
        }
    }
}

/// Each range is over the limit, no cut is inside two ranges, and there are as many ranges as
/// needed.
#[test]
fn a_refusal_proves_what_it_says() {
    let mut proven = 0;
    for fixture in FIXTURES {
        let facts = Facts::known(fixture);
        for (ipus, memory) in [
            (1, facts.limit),
            (2, facts.limit),
            (3, facts.limit * 9 / 10),
        ] {
            let options = [
                format!("--num-ipus={ipus}"),
                format!("--mem-per-tile={memory}"),
                "--solve".into(),
                "--export-json=-".into(),
                "--schedule=none".into(),
                "-q".into(),
                DEFAULT_REGEX.into(),
            ];
            let run = run_fixture(fixture, &options.each_ref().map(String::as_str));
            let json = run.out.split("# export-json\n").nth(1).expect("a report");
            let report: Value = serde_json::from_str(json).expect("JSON");
            let layers = facts.positions.len();
            let fewest = (1..=layers)
                .find(|&ipus| facts.best("peak", &vec![memory; ipus], |_| true).is_some());
            if fewest.is_some_and(|fewest| fewest <= ipus) {
                assert_eq!(run.code, 0, "{fixture} {ipus}");
                assert!(report.get("refusal").is_none());
                continue;
            }
            assert_eq!(run.code, 1, "{fixture} {ipus}");
            check_refusal(&facts, &report["refusal"], ipus, memory, fewest);
            proven += 1;
        }
    }
    assert!(proven >= 10, "{proven}");
}

fn check_refusal(facts: &Facts, refusal: &Value, ipus: usize, memory: u64, fewest: Option<usize>) {
    let mut counted = 0;
    let ranges = refusal["ranges"].as_array().unwrap();
    for range in ranges {
        let first = facts.position(&range["layers"][0]);
        let last = facts.last(&range["layers"]);
        assert_eq!(range["bytes"], facts.peaks[&(first, last + 1)], "{refusal}");
        assert!(facts.peaks[&(first, last + 1)] > memory, "{refusal}");
        // No cut is inside two ranges.
        let mut cuts = (first + 1..=last).filter(|&cut| facts.may_cut(cut));
        assert!(cuts.all(|cut| cut > counted), "{refusal}");
        counted = last;
    }
    match fewest {
        Some(fewest) => {
            assert_eq!(refusal["stages_needed"], fewest, "{refusal}");
            assert_eq!(ranges.len() + 1, fewest, "{refusal}");
            assert_eq!(refusal["fewest_ipus"], fewest, "{refusal}");
        }
        None => {
            assert!(refusal["stages_needed"].is_null(), "{refusal}");
            assert_eq!(ranges.len(), 1, "{refusal}");
        }
    }
    let lowest = facts.best("peak", &vec![u64::MAX; ipus], |_| true).unwrap();
    let (numbers, _) = facts.rank("peak", &lowest);
    assert_eq!(
        refusal["smallest_tile_memory"], numbers[0] as u64,
        "{refusal}"
    );
}

#[test]
fn a_given_split_is_judged_without_a_search() {
    let facts = Facts::known("poplar-mlp");
    let given = ["--check-splits=1,2", "--num-ipus=3", "--solve", "-q"];
    let run = run_fixture("poplar-mlp", &given);
    assert_eq!(printed(&facts, &run.out), [3, 4, 7]);
    let fits = facts
        .stages(&[3, 4, 7])
        .iter()
        .all(|stage| facts.peaks[stage] <= facts.limit);
    assert_eq!(run.code, if fits { 0 } else { 1 });
    let counts = [
        "--layers-per-ipu=[2, 1, 2]",
        "--num-ipus=3",
        "--solve",
        "-q",
    ];
    assert_eq!(run_fixture("poplar-mlp", &counts).out, run.out);
    let broken = run_fixture("poplar-mlp", &["--check-splits=1,2", "--cut-after=0"]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert!(broken.err.contains("breaks --cut-after 0"), "{broken:?}");
}

#[test]
fn auto_takes_the_fewest_ipus() {
    for fixture in FIXTURES {
        let facts = Facts::known(fixture);
        let fewest = (1..=facts.positions.len()).find(|&ipus| {
            facts
                .best("peak", &vec![facts.limit; ipus], |_| true)
                .is_some()
        });
        let run = run_fixture(
            fixture,
            &["--solve", "--num-ipus=auto", "-q", "--schedule=none"],
        );
        match fewest {
            Some(fewest) => assert_eq!(printed(&facts, &run.out).len(), fewest, "{fixture}"),
            None => assert_eq!(run.code, 1, "{fixture}"),
        }
    }
}

#[test]
fn what_cannot_be_asked_is_wrong_usage() {
    let cases: [(&[&str], &str); 12] = [
        (&["--pin=9=0"], "there is no layer 9"),
        (&["--pin=3"], "LAYER=IPU"),
        (&["--pin=0=7", "--num-ipus=4"], "--pin 0=7"),
        (
            &["--pin=2=0", "--cut-after=1"],
            "--pin 2=0 clashes with --cut-after 1",
        ),
        (&["--together=0,2", "--cut-after=1"], "clashes with"),
        (&["--cut-after=Out"], "no cut after the last"),
        (&["--check-splits=2,1"], "in the order of the model"),
        (
            &["--layers-per-ipu=1,1"],
            "add up to 2, but the model has 5 layers",
        ),
        (
            &["--layers-per-ipu=5", "--check-splits=1"],
            "cannot be used with",
        ),
        (&["--mem-per-tile=1,2", "--num-ipus=3"], "has 2 amounts"),
        (
            &["--solver=greedy", "--pin=0=0"],
            "does not support constraints",
        ),
        (&["--solver=greedy", "--sweep"], "does not support --sweep"),
    ];
    for (options, text) in cases {
        let run = run_fixture("poplar-mlp", &[&["--solve"], options].concat());
        assert_eq!(run.code, 2, "{options:?}: {run:?}");
        assert!(run.err.contains(text), "{options:?}: {}", run.err);
        assert_eq!(run.out, "", "{options:?}");
    }
}
