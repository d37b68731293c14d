//! Advice if nothing fits: each change frees the bytes that the message says.

use crate::support::{DEFAULT_REGEX, popliner, run_fixture};
use serde_json::Value;

fn report(fixture: &str, more: &[&str]) -> Value {
    let options = [&["--solve", "--export-json=-", "-q", DEFAULT_REGEX], more].concat();
    let run = run_fixture(fixture, &options);
    let json = run.out.split_once("# export-json\n").expect("a report").1;
    serde_json::from_str(json).expect("JSON")
}

/// Returns the bytes of the stage that the advice is about.
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
    for split in ["3,3", "2,2,2", "1,3,2"] {
        let split = format!("--layers-per-ipu={split}");
        let question = &["--mem-per-tile=150000", "--schedule=popart", &*split][..];
        let refused = report(fixture, &[question, &["--recompute=stage"]].concat());
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
            let recompute: &[&str] = match options {
                ["--recompute=layer"] => &[],
                _ => &["--recompute=stage"],
            };
            let changed = report(fixture, &[question, options, recompute].concat());
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
    let first = largest[0]["name"].as_str().expect("a name");
    let says = format!(
        "missing in In: 477,969 bytes on tile 1 of 262,144; the largest variables are {first} "
    );
    assert!(run.err.contains(&says), "{}", run.err);
}

/// The commands after a refusal fit, and so does a smaller micro-batch that is said to be enough.
#[test]
fn what_is_called_enough_fits() {
    let mut kinds = [0; 3];
    for question in [
        &["--num-ipus=4", "--recompute=none"][..],
        &["--num-ipus=3", "--recompute=stage"],
        &["--num-ipus=2", "--mem-per-tile=150000"],
        &["--num-ipus=4", "--mem-per-tile=240000"],
    ] {
        let options = [&["--solve", DEFAULT_REGEX], question].concat();
        let refused = run_fixture("training-pipeline", &options);
        assert_eq!(refused.code, 1, "{refused:?}");
        let commands = refused.err.lines();
        let commands = commands.filter_map(|line| line.split_once("this fits:").map(|both| both.1));
        for command in commands {
            let words = command.split_whitespace().skip(1);
            let run = popliner(words.map(|word| word.trim_matches('\'')));
            assert_eq!(run.code, 0, "{command}: {run:?}");
            let options = ["--num-ipus=", "--optimizer-state=", "--at-micro-batch="];
            for (count, option) in kinds.iter_mut().zip(options) {
                *count += usize::from(command.contains(option));
            }
        }
    }
    assert!(kinds[0] > 3 && kinds[1] > 0, "{kinds:?}");
}
