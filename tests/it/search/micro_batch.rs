//! Another micro-batch than in the profile: every form says that the numbers are an estimate.

use crate::support::{DEFAULT_REGEX, run_fixture};
use serde_json::Value;

const FIXTURES: [(&str, u64); 3] = [
    ("training-pipeline", 4),
    ("popart-bert-inference", 4),
    ("large-embedding", 4),
];

/// Returns the exit code and the report.
fn report(fixture: &str, more: &[String]) -> (i32, Value) {
    let fixed = [
        "--solve",
        "--export-json=-",
        "--micro-batch=8",
        DEFAULT_REGEX,
    ];
    let more = more.iter().map(String::as_str);
    let options: Vec<&str> = fixed.into_iter().chain(more).collect();
    let run = run_fixture(fixture, &options);
    let json = run.out.split_once("# export-json\n").expect("a report").1;
    (run.code, serde_json::from_str(json).expect("JSON"))
}

fn at(samples: u64, ipus: u64) -> Vec<String> {
    vec![
        format!("--at-micro-batch={samples}"),
        format!("--num-ipus={ipus}"),
    ]
}

fn peaks(report: &Value) -> Vec<u64> {
    let stages = report["split"]["stages"].as_array().expect("stages");
    let bytes = |stage: &Value| stage["fullest_tile"]["bytes"].as_u64().expect("bytes");
    stages.iter().map(bytes).collect()
}

#[test]
fn the_micro_batch_of_the_profile_changes_no_number() {
    for (fixture, ipus) in FIXTURES {
        let (_, recorded) = report(fixture, &[format!("--num-ipus={ipus}")]);
        let (_, same) = report(fixture, &at(8, ipus));
        assert_eq!(peaks(&recorded), peaks(&same), "{fixture}");
        for key in ["step", "cuts", "execution"] {
            assert_eq!(recorded[key], same[key], "{fixture} {key}");
        }
        assert_eq!(recorded["estimate"], Value::Null);
        assert_eq!(same["estimate"]["micro_batch"], 8);
    }
}

#[test]
fn the_largest_fits_and_one_more_does_not() {
    for (fixture, ipus) in FIXTURES {
        let (_, found) = report(fixture, &at(8, ipus));
        let largest = found["estimate"]["largest_micro_batch"]
            .as_u64()
            .expect("one that fits");
        let (code, fits) = report(fixture, &at(largest, ipus));
        assert_eq!(
            (code, &fits["split"]["fits"]),
            (0, &true.into()),
            "{fixture}"
        );
        assert_eq!(fits["step"]["micro_batch"], largest);
        assert_eq!(fits["estimate"]["largest_micro_batch"], largest);
        let (code, over) = report(fixture, &at(largest + 1, ipus));
        assert_eq!(
            (code, &over["split"]["fits"]),
            (1, &false.into()),
            "{fixture}"
        );
        assert_eq!(over["estimate"]["largest_micro_batch"], largest);
    }
}

#[test]
fn every_form_calls_it_an_estimate() {
    let options = [
        "--solve",
        "--num-ipus=4",
        "--micro-batch=8",
        "--at-micro-batch=9",
    ];
    let with = |form: &str| run_fixture("training-pipeline", &[&options[..], &[form]].concat());
    let run = with("--emit=layers-per-ipu");
    assert!(run.err.contains(", by an estimate\n"), "{run:?}");
    assert!(
        run.err
            .contains("This is an estimate for micro-batches of 9, "),
        "{run:?}"
    );
    assert!(
        run.out
            .contains("# This is an estimate for micro-batches of 9, "),
        "{run:?}"
    );
    let markdown = with("--export-markdown=-").out;
    assert!(
        markdown.contains(", by an estimate for micro-batches of 9\n"),
        "{markdown}"
    );
    let page = with("--export-html=-").out;
    assert!(
        page.contains("this is an estimate for micro-batches of "),
        "no word of it"
    );
    assert!(
        page.contains(", by an estimate for micro-batches of 9"),
        "no heading"
    );
    let alone = run_fixture("training-pipeline", &["--solve", "--at-micro-batch=9"]);
    assert_eq!(alone.code, 2);
    assert!(alone.err.contains("--micro-batch <B>"), "{alone:?}");
}
