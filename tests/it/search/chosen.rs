//! Layers that are kept whole where there is room: between recomputing each and none.

use crate::support::run_fixture;
use serde_json::Value;

const FIXTURE: &str = "training-pipeline";
const SPLIT: &str = "--layers-per-ipu=1,2,2,1";

fn report(more: &[&str]) -> Value {
    let options = [&["--solve", "--export-json=-", "-q"], more].concat();
    let run = run_fixture(FIXTURE, &options);
    let json = run.out.split_once("# export-json\n").expect("a report").1;
    serde_json::from_str(json).expect("JSON")
}

/// Bytes on the fullest tile of each stage.
fn peaks(report: &Value) -> Vec<u64> {
    let stages = report["split"]["stages"].as_array().expect("stages");
    let bytes = |own: &Value| own["fullest_tile"]["bytes"].as_u64().expect("bytes");
    stages.iter().map(bytes).collect()
}

fn kept(report: &Value) -> Vec<Value> {
    let stages = report["split"]["stages"].as_array().expect("stages");
    stages
        .iter()
        .map(|own| own["pipeline"]["kept"].clone())
        .collect()
}

#[test]
fn there_is_more_time_the_more_room_there_is() {
    let with = |what: &str, memory: u64| {
        let options = [
            format!("--recompute={what}"),
            format!("--mem-per-tile={memory}"),
        ];
        report(&[SPLIT, &options[0], &options[1]])
    };
    let cycles = |report: &Value| report["step"]["cycles"].as_u64().expect("cycles");
    let most = 10_000_000;
    let (layer, none) = (with("layer", most), with("none", most));
    let highest = |report: &Value| peaks(report).into_iter().max().expect("stages");
    let (least, all) = (highest(&layer), highest(&none));
    let mut before = cycles(&layer);
    let mut between = 0;
    for part in 0..=8 {
        let memory = least + (all - least) * part / 8;
        let chosen = with("chosen", memory);
        assert_eq!(chosen["split"]["fits"], true, "{memory}");
        assert!(highest(&chosen) <= memory, "{memory}");
        assert_eq!(chosen["pipeline"]["choice_is_optimal"], true);
        assert!(cycles(&chosen) <= before, "{memory}");
        before = cycles(&chosen);
        between += u64::from(before < cycles(&layer) && before > cycles(&none));
    }
    assert!(between > 0);
    let chosen = with("chosen", most);
    assert_eq!(peaks(&chosen), peaks(&none));
    assert_eq!(chosen["step"]["cycles"], none["step"]["cycles"]);
    assert_eq!(kept(&chosen)[1], serde_json::json!(["1", "2"]));
}

#[test]
fn the_configuration_names_what_is_kept() {
    let own = [SPLIT, "--recompute=chosen", "--mem-per-tile=1000000"];
    let emit = |form: &str| {
        run_fixture(
            FIXTURE,
            &[&own[..], &[form, "--module=m.layer[{}]"]].concat(),
        )
    };
    let run = emit("--emit=popart");
    assert!(run.out.contains("RecomputationType.Pipeline"), "{run:?}");
    assert!(
        run.out.contains("Kept whole are the layers 0, 1, 2, "),
        "{run:?}"
    );
    assert!(run.err.contains("Kept whole are In 0 1 2 "), "{run:?}");
    let run = emit("--emit=poptorch");
    assert!(
        run.out
            .contains("for layer in [m.layer[0], m.layer[1], m.layer[2]"),
        "{run:?}"
    );
}

#[test]
fn what_looks_at_many_splits_does_not_choose() {
    for (fixture, more, why) in [
        (FIXTURE, "--plan", "--plan looks at many splits"),
        (FIXTURE, "--sweep", "--sweep looks at many splits"),
        (
            "tensorflow-cnn",
            "--solve",
            "TensorFlow recomputes all stages or none",
        ),
    ] {
        let run = run_fixture(fixture, &["--recompute=chosen", more]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.err.contains(why), "{run:?}");
    }
}
