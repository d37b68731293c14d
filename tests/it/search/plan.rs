//! Whole configurations: each equals the answer of its own command, and none is better than another
//! in everything.

use crate::support::models::{pairs, share};
use crate::support::{Run, popliner, profile, run_fixture, run_once};
use serde_json::Value;

const FIXTURES: [&str; 6] = [
    "popart-bert-inference",
    "poplar-mlp",
    "training-pipeline",
    "tied-weights",
    "large-embedding",
    "tensorflow-cnn",
];

fn plan(fixture: &str, more: &[&str]) -> (Run, Value) {
    let ipus = ["--num-ipus=6"];
    let ipus = match more.iter().any(|option| option.starts_with("--num-ipus")) {
        true => &[][..],
        false => &ipus,
    };
    let options = [&["--plan", "--export-json=-", "-q"], ipus, more].concat();
    let run = run_once(fixture, &options);
    // The report follows the table.
    let json = run.out.split_once("# export-json\n").expect("a report").1;
    let report: Value = serde_json::from_str(json).expect("JSON");
    let plan = report["plan"].clone();
    (run, plan)
}

fn rows(plan: &Value) -> &[Value] {
    plan["rows"].as_array().expect("rows")
}

/// Returns the report of a row's command.
fn alone(row: &Value) -> Value {
    let command = row["command"].as_str().expect("a command");
    let words = command.split(' ').skip(1).map(String::from);
    let more = ["--export-json=-", "-q"].map(String::from);
    let run = popliner(words.chain(more));
    assert_eq!(run.code, 0, "{command}: {run:?}");
    let report = run.out.rsplit("# export-json\n").next().expect("a report");
    serde_json::from_str(report).expect("JSON")
}

#[test]
fn each_configuration_is_what_its_command_finds() {
    let mut checked = 0;
    let options: [&[&str]; 3] = [
        &[],
        &["--reserve=5%", "--mem-per-tile=700000"],
        &["--micro-batches=24"],
    ];
    for (fixture, more) in pairs(&FIXTURES, &options, 4) {
        let (run, plan) = plan(fixture, more);
        assert_eq!(run.code == 0, !rows(&plan).is_empty(), "{fixture} {more:?}");
        for row in rows(&plan).iter().step_by(share(6)) {
            let report = alone(row);
            let stages = report["split"]["stages"].as_array().expect("stages");
            let bytes = stages
                .iter()
                .map(|stage| stage["fullest_tile"]["bytes"].as_u64());
            assert_eq!(row["fullest_tile_bytes"].as_u64(), bytes.max().flatten());
            assert_eq!(row["cycles"], report["step"]["cycles"], "{row}");
            assert_eq!(row["micro_batches"], report["step"]["micro_batches"]);
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked} configurations");
}

#[test]
fn no_configuration_is_better_than_another_in_everything() {
    for fixture in FIXTURES {
        let (_, plan) = plan(fixture, &[]);
        let facts = |row: &Value| {
            let number = |name: &str| row[name].as_u64().expect("a number");
            let [ipus, bytes] = ["ipus", "fullest_tile_bytes"].map(number);
            let [cycles, batches] = ["cycles", "micro_batches"].map(number);
            (
                ipus,
                bytes,
                u128::from(cycles) * 1_000_000 / u128::from(batches),
                row["lacks_time"] == true,
            )
        };
        let facts: Vec<_> = rows(&plan).iter().map(facts).collect();
        for (place, fact) in facts.iter().enumerate() {
            for (_, other) in facts.iter().enumerate().filter(|(at, _)| *at != place) {
                let is_alike = fact.3 == other.3;
                let is_better = fact.0 <= other.0 && fact.1 <= other.1 && fact.2 < other.2;
                let is_better = is_better && is_alike;
                assert!(!is_better, "{fixture}: {fact:?} {other:?}");
            }
        }
    }
}

#[test]
fn rows_whose_time_is_known_in_full_come_first() {
    let state = |row: &Value| row["state"].as_str().expect("a place").to_string();
    for (more, is_known) in [(&[][..], false), (&["--streaming-bandwidth=10"], true)] {
        let (_, plan) = plan("training-pipeline", more);
        let lacks: Vec<bool> = rows(&plan)
            .iter()
            .map(|row| row["lacks_time"] == true)
            .collect();
        assert!(lacks.is_sorted() && lacks.contains(&true) && lacks.contains(&false));
        let off: Vec<_> = rows(&plan)
            .iter()
            .filter(|row| state(row) == "off-chip")
            .collect();
        assert!(
            !off.is_empty()
                && off
                    .iter()
                    .all(|row| row["streamed_bytes"].as_u64() > Some(0))
        );
        assert!(
            off.iter()
                .all(|row| (row["lacks_time"] == false) == is_known)
        );
    }
    let (_, on_chip) = plan("training-pipeline", &["--optimizer-state=on-chip"]);
    assert!(rows(&on_chip).iter().all(|row| state(row) == "on-chip"));
    let (_, sharded) = plan("training-pipeline", &["--optimizer-state=sharded"]);
    let rows = rows(&sharded).iter();
    assert!(rows.clone().count() > 0);
    assert!(
        rows.clone()
            .all(|row| state(row) == "sharded" && row["replicas"].as_u64() > Some(1))
    );
}

#[test]
fn poptorch_has_powers_of_two() {
    let (_, plan) = plan("poptorch-bert-training", &[]);
    assert_eq!(plan["ipus_tried"], serde_json::json!([1, 2, 4]));
}

/// The cuts allow no four stages here, and three stages leave one IPU idle.
#[test]
fn stages_may_be_fewer_than_the_ipus_that_poptorch_takes() {
    let cuts = ["--cut-after=0", "--cut-after=2", "--no-cut-after=In"];
    let more = ["--no-cut-after=1", "--no-cut-after=3", "--no-cut-after=4"];
    let options = [
        &cuts[..],
        &more,
        &["--num-ipus=4", "--mem-per-tile=1300000"],
    ]
    .concat();
    let (_, plan) = plan("poptorch-bert-training", &options);
    let row = &rows(&plan)[0];
    assert_eq!((&row["ipus"], &row["ends"]), (&4.into(), &[2, 4, 7].into()));
    let report = alone(row);
    assert_eq!(row["cycles"], report["step"]["cycles"]);
    assert_eq!(report["split"]["max_stages"], 4);
}

#[test]
fn a_step_that_takes_too_long_is_exit_1() {
    let fixture = "popart-bert-inference";
    let line = |limit: &str| {
        let limit = format!("--max-step-ms={limit}");
        let options = ["--solve", "--num-ipus=4", &limit];
        run_fixture(fixture, &options)
    };
    let (within, over) = (line("100000"), line("0.001"));
    assert_eq!((within.code, over.code), (0, 1));
    assert!(
        within
            .err
            .contains("A step is within the 100000 ms of --max-step-ms")
    );
    assert!(
        over.err
            .contains("A step is over the 0.001 ms of --max-step-ms")
    );
    let path = profile(fixture).display().to_string();
    let plan = popliner([path, "--plan".into(), "--max-step-ms=0.001".into()]);
    assert_eq!(plan.code, 1, "{plan:?}");
}
