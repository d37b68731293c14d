//! Predictions and calibrations beside `--fit` that are not what they should be.

use std::fs;

use serde_json::{Value, json};

use super::compiled::case;
use crate::hostile::cases::Case;
use crate::support::Run;

/// Changes a document.
type Change<'a> = &'a dyn Fn(&mut Value);

/// A prediction of the fixture's own split.
fn prediction(case: &Case) -> Value {
    let one_ipu = Case::of("training-pipeline");
    let path = case.folder.path().join("prediction.json");
    let path = path.to_str().expect("a plain path");
    let run = one_ipu.run(&["--layers-per-ipu=1,2,2,1", "--quiet", "--export-json", path]);
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_slice(&fs::read(path).expect("a report")).expect("JSON")
}

fn against(case: &Case, prediction: &Value) -> Run {
    let path = case.folder.path().join("prediction.json");
    fs::write(&path, prediction.to_string()).expect("a file");
    case.run(&["--fit", "--against", path.to_str().expect("a plain path")])
}

#[test]
fn predictions_that_are_not_what_they_should_be() {
    let whole = {
        let case = case();
        prediction(&case)
    };
    let changed = |change: Change<'_>| {
        let mut changed = whole.clone();
        change(&mut changed);
        against(&case(), &changed)
    };
    assert_eq!(changed(&|_| {}).code, 0);
    let refused: [(&str, Change<'_>, &str); 4] = [
        (
            "no split",
            &|report| report["split"] = Value::Null,
            "it has no split to compare with",
        ),
        (
            "no stages",
            &|report| report["split"]["stages"] = json!([]),
            "its split has no stages",
        ),
        (
            "another format",
            &|report| report["format"] = json!("other"),
            "its format is \"other\"",
        ),
        (
            "half of it",
            &|report| report["split"] = json!({"fits": true}),
            "but not a whole one",
        ),
    ];
    for (what, change, part) in refused {
        let run = changed(change);
        assert_eq!(run.code, 3, "{what}: {run:?}");
        assert!(
            run.err.contains(part) && run.err.contains("--against "),
            "{what}: {run:?}"
        );
    }
    // Numbers beyond all measure are compared as far as they go.
    let maximum = json!(u64::MAX);
    for part in ["variables", "stash", "overhead", "gaps"] {
        let run = changed(&|report| {
            let tile = &mut report["split"]["stages"][1]["fullest_tile"];
            tile["bytes"] = maximum.clone();
            tile["parts"][part] = maximum.clone();
            tile["overhead_code"]["vertex_code"] = maximum.clone();
            tile["learnt"] = json!(i64::MIN);
            report["split"]["stages"][1]["total"] = maximum.clone();
        });
        assert_eq!(run.code, 0, "{part}: {run:?}");
    }
    let run = changed(&|report| {
        let stages = report["split"]["stages"].as_array_mut().expect("stages");
        stages.truncate(2);
    });
    assert!(
        run.err.contains("was cut elsewhere than predicted"),
        "{run:?}"
    );
    assert!(
        run.err.contains("4 IPUs and the prediction 2 stages"),
        "{run:?}"
    );
}

#[test]
fn calibrations_that_are_not_what_they_should_be() {
    let compiled = case();
    let _ = prediction(&compiled);
    let [prediction, file] = ["prediction.json", "calibration.json"].map(|name| {
        let path = compiled.folder.path().join(name);
        path.to_str().expect("a plain path").to_string()
    });
    let arguments = ["--fit", "--against", &prediction, "--calibrate", &file];
    let written = {
        let files = [&compiled.profile, &compiled.debug];
        let files = files.map(|path| path.to_str().expect("a plain path"));
        crate::support::popliner(files.iter().chain(&arguments))
    };
    assert_eq!(written.code, 0, "{written:?}");
    let whole: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    let solve = |text: &str| {
        let one_ipu = Case::of("training-pipeline");
        let path = one_ipu.folder.path().join("calibration.json");
        fs::write(&path, text).expect("a file");
        let path = path.to_str().expect("a plain path");
        one_ipu.run(&["--solve", "--num-ipus=4", "--calibration", path])
    };
    let changed = |change: Change<'_>| {
        let mut changed = whole.clone();
        change(&mut changed);
        solve(&changed.to_string())
    };
    assert_eq!(changed(&|_| {}).code, 0);
    let maximum = || json!(i64::MAX);
    let refused: [(Change<'_>, &str); 7] = [
        (
            &|file| file["format"] = json!("other"),
            "it is no calibration",
        ),
        (
            &|file| file["version"] = json!(7),
            "it is a calibration of version 7",
        ),
        (&|file| file["ipus"] = json!([]), "it has no IPUs"),
        (
            &|file| file["ipus"][0]["layers"][1] = json!("x"),
            "a model with a layer x",
        ),
        (
            &|file| file["ipus"][0]["learnt"] = maximum(),
            "more than any tile has",
        ),
        (
            &|file| file["ipus"][3]["learnt"] = json!(i64::MIN),
            "more than any tile has",
        ),
        (
            &|file| file["ipus"][3]["learnt"] = json!(1.5),
            "it is no calibration",
        ),
    ];
    for (change, part) in refused {
        let run = changed(change);
        assert_eq!(run.code, 3, "{part}: {run:?}");
        assert!(
            run.err.contains(part) && run.err.contains("--calibration "),
            "{part}: {run:?}"
        );
    }
    for text in ["", "[]", "{\"format\":", "\u{0}"] {
        let run = solve(text);
        assert_eq!(run.code, 3, "{text:?}: {run:?}");
        assert!(run.err.contains("it is no calibration"), "{run:?}");
    }
    // As much as a tile can have is no reason to give up.
    let run = changed(&|file| {
        let predicted = file["ipus"][1]["predicted"].as_i64().expect("bytes");
        file["ipus"][1]["recorded"] = json!(predicted + (1 << 31));
        file["ipus"][1]["learnt"] = json!(1i64 << 31);
    });
    assert_eq!(run.code, 1, "{run:?}");
    calibrations_belong_to_one_model(&changed);
}

/// Numbers that do not add up make no stage of 0 bytes, and those of another model none of
/// this one. `changed` solves with a calibration that was changed.
fn calibrations_belong_to_one_model(changed: &dyn Fn(Change<'_>) -> Run) {
    let others: [(Change<'_>, &str); 8] = [
        (
            &|file| file["ipus"][1]["learnt"] = json!(-1_000_000),
            "stage 1 was predicted to need",
        ),
        (
            &|file| file["ipus"][1]["carried"] = json!(-1_000_000),
            "stage 1 was predicted to need",
        ),
        (
            &|file| {
                file["ipus"][1]["learnt"] =
                    json!(-file["ipus"][1]["predicted"].as_i64().expect("bytes"));
                file["ipus"][1]["recorded"] = json!(0);
            },
            "stage 1 was predicted to need",
        ),
        (
            &|file| file["model"]["layers"][0] = json!("x"),
            "it was calibrated on another model",
        ),
        (
            &|doc| drop(doc["model"]["layers"].as_array_mut().expect("layers").pop()),
            "one of 5 layers (0 to 4)",
        ),
        (
            &|file| file["model"]["bytes"] = json!(1_000_000),
            "with 1,000,000 bytes on 8 tiles",
        ),
        (&|file| file["model"]["tiles"] = json!(9), "on 9 tiles"),
        (
            &|file| file["model"]["bytes_per_tile"] = json!(7),
            "of 7 bytes each",
        ),
    ];
    for (change, part) in others {
        let run = changed(change);
        assert_eq!((run.code, &*run.out), (3, ""), "{part}: {run:?}");
        assert!(run.err.contains(part), "{part}: {run:?}");
    }
    // Before version 2 none said what it belongs to.
    let run = changed(&|file| {
        file["version"] = json!(1);
        file.as_object_mut().expect("an object").remove("model");
    });
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.err
            .contains("does not say which model it was calibrated on"),
        "{run:?}"
    );
}
