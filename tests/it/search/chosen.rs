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
fn splits_are_found_with_what_is_chosen() {
    let fastest = |recompute: &str| {
        let recompute = format!("--recompute={recompute}");
        let found = report(&["--num-ipus=4", "--objective=time", &recompute]);
        found["step"]["cycles"].as_u64().expect("cycles")
    };
    let chosen = report(&["--num-ipus=4", "--objective=time", "--recompute=chosen"]);
    let cycles = chosen["step"]["cycles"].as_u64().expect("cycles");
    assert!(cycles <= fastest("layer") && cycles < fastest("stage"));
    assert_eq!(chosen["pipeline"]["choice_is_optimal"], true);
    assert_eq!(chosen["step"]["at_least_cycles"], chosen["step"]["cycles"]);
    // Its split by itself, and the same number of IPUs of a sweep, take as long.
    let is_number = |name: &&Value| {
        name.as_str()
            .is_some_and(|name| name.parse::<u32>().is_ok())
    };
    let count = |stage: &Value| {
        let layers = stage["layers"].as_array().expect("layers").iter();
        layers.filter(is_number).count().to_string()
    };
    let stages = chosen["split"]["stages"].as_array().expect("stages");
    let counts: Vec<String> = stages.iter().map(count).collect();
    let given = format!("--layers-per-ipu={}", counts.join(","));
    let given = report(&[&given, "--recompute=chosen"]);
    assert_eq!(given["step"]["cycles"], chosen["step"]["cycles"]);
    assert_eq!(
        (peaks(&given), kept(&given)),
        (peaks(&chosen), kept(&chosen))
    );
    let sweep = report(&[
        "--num-ipus=4",
        "--objective=time",
        "--recompute=chosen",
        "--sweep",
    ]);
    let rows = sweep["sweep"]["rows"].as_array().expect("rows");
    let last = rows.last().expect("a row");
    assert_eq!(last["step_cycles"], chosen["step"]["cycles"]);
    assert_eq!(
        last["fullest_tile_bytes"].as_u64(),
        peaks(&chosen).into_iter().max()
    );
}

#[test]
fn plans_have_what_is_chosen() {
    let plan = report(&["--plan", "--num-ipus=4"]);
    let rows = plan["plan"]["rows"].as_array().expect("rows");
    let chosen: Vec<&Value> = rows
        .iter()
        .filter(|row| row["recompute"] == "chosen")
        .collect();
    assert!(!chosen.is_empty());
    for row in chosen {
        assert!(
            row["kept"].as_array().is_some_and(|kept| !kept.is_empty()),
            "{row}"
        );
        let command = row["command"].as_str().expect("a command");
        assert!(command.contains("--recompute=chosen"), "{command}");
    }
}

#[test]
fn plans_say_that_lower_peaks_are_not_chosen_for() {
    for (more, is_said) in [(&["-v"][..], true), (&["-v", "--recompute=layer"], false)] {
        let options = [&["--plan", "--num-ipus=2"], more].concat();
        let run = run_fixture(FIXTURE, &options);
        let lower = run
            .err
            .contains("not tried: recompute chosen for lower peaks");
        assert_eq!(lower, is_said, "{run:?}");
    }
}

#[test]
fn what_cannot_be_chosen_is_refused() {
    for (fixture, more, why) in [
        (
            FIXTURE,
            &["--plan", "--mem-per-tile=200000,300000"][..],
            "--plan chooses where all IPUs have as much memory",
        ),
        (
            "tensorflow-cnn",
            &["--solve"],
            "TensorFlow recomputes all stages or none",
        ),
    ] {
        let run = run_fixture(fixture, &[&["--recompute=chosen"], more].concat());
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.err.contains(why), "{run:?}");
    }
}
