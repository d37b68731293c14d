//! Plans (`--plan`), whose rows are whole configurations. `claims` runs the command of each row.

use super::{TRAINING, number, report};
use crate::support::models::generate;
use crate::support::{graph_file, popliner, run_fixture, run_on};
use serde_json::Value;

fn rows(more: &str) -> Vec<Value> {
    let (_, report) = report(TRAINING, &format!("--plan --num-ipus=6 {more}"));
    report["plan"]["rows"].as_array().expect("rows").clone()
}

#[test]
fn rows_whose_time_is_known_in_full_come_first() {
    for (more, is_known) in [("", false), ("--streaming-bandwidth=10", true)] {
        let rows = rows(more);
        let lacks: Vec<bool> = rows.iter().map(|row| row["lacks_time"] == true).collect();
        assert!(lacks.is_sorted() && lacks.contains(&false));
        assert_eq!(lacks.contains(&true), !is_known, "{lacks:?}");
        let is_off = |row: &&Value| row["state"] == "off-chip";
        let off: Vec<_> = rows.iter().filter(is_off).collect();
        assert!(!off.is_empty());
        for row in off {
            assert!(number(&row["step"]["streamed_bytes"]) > 0, "{row}");
            assert_eq!(row["lacks_time"] == false, is_known, "{row}");
        }
    }
    for state in ["on-chip", "sharded"] {
        let rows = rows(&format!("--optimizer-state={state}"));
        assert!(!rows.is_empty());
        for row in rows {
            let is_shared = row["replicas"].as_u64() > Some(1);
            let is_right = row["state"] == state && (is_shared || state == "on-chip");
            assert!(is_right, "{row}");
        }
    }
}

/// Stages of blocks that run twice never run at the same time, on fewer IPUs too.
#[test]
fn pipelines_that_take_turns_have_rows_on_fewer_ipus() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = graph_file("bert").display().to_string();
    let options = format!("--graph {graph} --framework poptorch --calls 2 --chained --tiles 4");
    let [profile, _] = generate(folder.path(), &options);
    let options = "--plan --num-ipus=4 --mem-per-tile=150000 --export-json=- -q";
    let report = run_on(&profile, options).exits(0).report();
    let rows = report["plan"]["rows"].as_array().expect("rows").iter();
    let ipus: Vec<u64> = rows.map(|row| number(&row["ipus"])).collect();
    assert_eq!(ipus, [4, 2]);
}

/// The cuts allow no four stages here, and three stages leave one IPU idle.
#[test]
fn stages_may_be_fewer_than_the_ipus_that_poptorch_takes() {
    let options = "--plan --num-ipus=4 --mem-per-tile=1300000 --cut-before=1 --cut-before=3 \
                   --together=In,0 --together=1,2 --together=3,Out";
    let (_, report) = report("poptorch-bert-training", options);
    let row = &report["plan"]["rows"][0];
    let stages = row["stages"].as_array().expect("stages");
    assert_eq!((&row["ipus"], stages.len()), (&4.into(), 3), "{row}");
    let command = row["command"].as_str().expect("a command");
    let words = command.split(' ').skip(1).chain(["--export-json=-", "-q"]);
    let report = popliner(words).exits(0).report();
    assert_eq!(row["step"]["cycles"], report["step"]["cycles"]);
    assert_eq!(report["split"]["max_stages"], 4);
}

#[test]
fn micro_batches_that_are_too_few_are_raised_and_it_is_said() {
    run_fixture(TRAINING, "--solve --num-ipus=4 --micro-batches=4")
        .says("\nA step of 7 micro-batches (raised from 4 to what the pipeline needs) takes ");
}
