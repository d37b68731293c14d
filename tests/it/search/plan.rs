//! Whole configurations: each equals the answer of its own command. `src/search/plan/tests.rs`
//! tries all configurations of random models.

use super::{TRAINING, number, peaks, report};
use crate::support::models::{pairs, share};
use crate::support::{Run, popliner, run_once};
use serde_json::Value;

const FIXTURES: [&str; 6] = [
    "popart-bert-inference",
    "poplar-mlp",
    TRAINING,
    "tied-weights",
    "large-embedding",
    "tensorflow-cnn",
];

/// Returns the run of a plan, and its rows.
fn plan(fixture: &str, more: &str) -> (Run, Vec<Value>) {
    let run = run_once(
        fixture,
        &format!("--plan --export-json=- -q --num-ipus=6 {more}"),
    );
    let rows = run.report()["plan"]["rows"]
        .as_array()
        .expect("rows")
        .clone();
    (run, rows)
}

/// Returns the report of a row's command.
fn alone(row: &Value) -> Value {
    let command = row["command"].as_str().expect("a command");
    let words = command.split(' ').skip(1).chain(["--export-json=-", "-q"]);
    popliner(words).exits(0).report()
}

#[test]
fn each_configuration_is_what_its_command_finds() {
    let mut checked = 0;
    let options = [
        "",
        "--reserve=5% --mem-per-tile=700000",
        "--micro-batches=24",
    ];
    for (fixture, more) in pairs(&FIXTURES, &options, 4) {
        let (run, rows) = plan(fixture, more);
        assert_eq!(run.code == 0, !rows.is_empty(), "{fixture} {more}");
        for row in rows.iter().step_by(share(6)) {
            let report = alone(row);
            let peak = peaks(&report).into_iter().max();
            assert_eq!(row["fullest_tile_bytes"].as_u64(), peak);
            for name in ["cycles", "micro_batches"] {
                assert_eq!(row["step"][name], report["step"][name], "{row}");
            }
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked} configurations");
}

#[test]
fn rows_whose_time_is_known_in_full_come_first() {
    for (more, is_known) in [("", false), ("--streaming-bandwidth=10", true)] {
        let (_, rows) = plan(TRAINING, more);
        let lacks: Vec<bool> = rows.iter().map(|row| row["lacks_time"] == true).collect();
        assert!(lacks.is_sorted() && lacks.contains(&true) && lacks.contains(&false));
        let off: Vec<_> = rows
            .iter()
            .filter(|row| row["state"] == "off-chip")
            .collect();
        assert!(!off.is_empty());
        for row in off {
            assert!(number(&row["step"]["streamed_bytes"]) > 0, "{row}");
            assert_eq!(row["lacks_time"] == false, is_known, "{row}");
        }
    }
    for state in ["on-chip", "sharded"] {
        let (_, rows) = plan(TRAINING, &format!("--optimizer-state={state}"));
        assert!(!rows.is_empty());
        for row in rows {
            let is_shared = row["replicas"].as_u64() > Some(1);
            assert!(
                row["state"] == state && (is_shared || state == "on-chip"),
                "{row}"
            );
        }
    }
}

/// The cuts allow no four stages here, and three stages leave one IPU idle.
#[test]
fn stages_may_be_fewer_than_the_ipus_that_poptorch_takes() {
    let options = "--plan --num-ipus=4 --mem-per-tile=1300000 --cut-before=1 --cut-before=3 \
                   --together=In,0 --together=1,2 --together=3,Out";
    let (_, report) = report("poptorch-bert-training", options);
    let row = &report["plan"]["rows"][0];
    assert_eq!((&row["ipus"], &row["cuts"]), (&4.into(), &[2, 4].into()));
    let report = alone(row);
    assert_eq!(row["step"]["cycles"], report["step"]["cycles"]);
    assert_eq!(report["split"]["max_stages"], 4);
}
