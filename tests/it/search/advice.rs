//! Advice where nothing fits: each change frees the bytes that it is said to.

use crate::support::{DEFAULT_REGEX, run_fixture};
use serde_json::Value;

fn report(fixture: &str, more: &[&str]) -> Value {
    let options = [&["--solve", "--export-json=-", "-q", DEFAULT_REGEX], more].concat();
    let run = run_fixture(fixture, &options);
    let json = run.out.split_once("# export-json\n").expect("a report").1;
    serde_json::from_str(json).expect("JSON")
}

/// The bytes of the stage that the advice is for.
fn bytes_of_stage(report: &Value, layers: &Value) -> u64 {
    let stages = report["split"]["stages"].as_array().expect("stages");
    let stage = stages.iter().find(|stage| stage["layers"] == *layers);
    let stage = stage.expect("the same split");
    stage["fullest_tile"]["bytes"].as_u64().expect("bytes")
}

#[test]
fn options_free_what_is_said() {
    let mut checked = 0;
    let fixture = "training-pipeline";
    for question in [
        &["--mem-per-tile=150000", "--layers-per-ipu=3,3"][..],
        &["--mem-per-tile=150000", "--layers-per-ipu=2,2,2"],
        &["--mem-per-tile=150000", "--layers-per-ipu=1,3,2"],
    ] {
        let refused = report(fixture, question);
        let advice = &refused["refusal"]["advice"];
        let changes = advice["changes"].as_array().expect("advice");
        assert!(!changes.is_empty(), "{fixture}");
        let bytes = bytes_of_stage(&refused, &advice["layers"]);
        assert_eq!(advice["bytes"], bytes, "{fixture}");
        for change in changes {
            let options: &[&str] = match change["change"].as_str().expect("a name") {
                "state-off-chip" => &["--optimizer-state=off-chip"],
                "checkpoints" => &["--recompute=layer"],
                "interleaved" => &["--schedule=tf-interleaved"],
                "half-micro-batch" => &["--micro-batch=2", "--at-micro-batch=1"],
                _ => continue,
            };
            let changed = report(fixture, &[question, options].concat());
            let left = bytes_of_stage(&changed, &advice["layers"]);
            assert_eq!(change["frees"], bytes - left, "{fixture} {options:?}");
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn the_largest_variables_where_the_most_is_lacking_are_named() {
    let refused = report("impossible", &["--num-ipus=4"]);
    let advice = &refused["refusal"]["advice"];
    let stages = refused["split"]["stages"].as_array().expect("stages");
    let stage = stages
        .iter()
        .find(|stage| stage["layers"] == advice["layers"]);
    let of_stage = &stage.expect("a layer alone in a stage")["peak_variables"];
    assert_eq!(advice["tile"], of_stage["tile"]);
    let largest = advice["largest"].as_array().expect("variables");
    let expected = of_stage["largest"].as_array().expect("variables");
    assert_eq!(largest, &expected[..3]);
    let options = ["--solve", "--num-ipus=4", DEFAULT_REGEX];
    let run = run_fixture("impossible", &options);
    let hint =
        "In with 477,969 bytes on tile 1 (--explain with the profile names the variables), these";
    assert!(run.err.contains(hint), "{}", run.err);
    let run = run_fixture("impossible", &[&options[..], &["--explain"]].concat());
    let first = largest[0]["name"].as_str().expect("a name");
    assert!(
        run.err.contains(&format!("(the largest: {first} ")),
        "{}",
        run.err
    );
}

#[test]
fn nothing_is_advised_where_an_option_makes_it_fit() {
    for question in [
        ["--num-ipus=4", "--recompute=none"],
        ["--num-ipus=3", "--recompute=stage"],
    ] {
        let refused = report("training-pipeline", &question);
        assert_eq!(refused["split"]["fits"], false);
        assert_eq!(refused["refusal"]["advice"], Value::Null);
    }
    let run = run_fixture(
        "training-pipeline",
        &["--solve", "--num-ipus=2", "--mem-per-tile=150000"],
    );
    assert!(
        run.err
            .contains("these would free memory\n  State of the optimizer"),
        "{run:?}"
    );
}
