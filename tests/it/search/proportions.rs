//! Profiles of one model with several available memory proportions: each stage has the one that is
//! best for it.

use super::number;
use super::sizes::{run, write};
use crate::support::FORMS;
use crate::support::models::share;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// The proportions that are recorded, the first one in the profile of the run.
const PROPORTIONS: [&str; 3] = ["0.6", "0.3", "0.05"];

const MODELS: [&str; 3] = [
    "--framework poptorch --mode training --layers 6 --tiles 8 --execution",
    "--framework tensorflow --mode training --layers 4 --tiles 6 --accumulation",
    "--framework popart --mode inference --layers 5 --tiles 4 --execution",
];

struct Recorded(TempDir);

impl Recorded {
    fn new(model: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        for own in PROPORTIONS {
            let options = format!("{model} --temporaries 40 --proportion {own}");
            write(&folder.path().join(own), &options);
        }
        Self(folder)
    }

    fn path(&self, own: &str) -> String {
        self.0.path().join(own).display().to_string()
    }

    fn alone(&self, own: &str, options: &[&str]) -> Value {
        run(&[self.path(own)], options).report()
    }

    fn together(&self, options: &[&str]) -> Value {
        let [first, others @ ..] = PROPORTIONS;
        let others = others
            .iter()
            .map(|own| format!("--amp={own}={}", self.path(own)));
        let own = [self.path(first), format!("--amp={first}")].into_iter();
        run(&own.chain(others).collect::<Vec<_>>(), options).report()
    }
}

fn cycles_of_micro_batch(report: &Value) -> f64 {
    let step = &report["step"];
    number(&step["cycles"]) as f64 / number(&step["micro_batches"]) as f64
}

/// Checks that each stage of `report` is the one that its profile has in the same split and pipeline.
/// Returns the proportions of the stages.
fn check_stages(recorded: &Recorded, report: &Value, of: &str) -> Vec<String> {
    let limit = format!("--mem-per-tile={}", report["split"]["limit"]);
    let starts = report["split"]["starts"].as_array().expect("starts");
    let starts: Vec<&str> = starts.iter().filter_map(Value::as_str).collect();
    let pipeline = &report["pipeline"];
    let splits = format!("--splits={}", starts.join(","));
    let own =
        ["schedule", "recompute", "state"].map(|key| pipeline[key].as_str().unwrap_or("none"));
    let options = [
        limit,
        splits,
        format!("--num-ipus={}", report["split"]["max_stages"]),
        format!("--schedule={}", own[0]),
        format!("--recompute={}", own[1]),
        format!("--optimizer-state={}", own[2]),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let alone: BTreeMap<_, _> = PROPORTIONS
        .iter()
        .map(|own| (own.to_string(), recorded.alone(own, &options)))
        .collect();
    let stages = report["split"]["stages"].as_array().expect("stages");
    let stages = stages.iter().enumerate().map(|(number, stage)| {
        let amp = stage["amp"].to_string();
        let mut stage = stage.clone();
        stage["amp"] = Value::Null;
        let own = &alone[&amp];
        for (key, value) in stage.as_object().expect("a stage") {
            let expected = &own["split"]["stages"][number][key];
            assert_eq!(value, expected, "{of}: {number} {key}");
        }
        let times = &report["execution"]["stages"][number];
        assert_eq!(*times, own["execution"]["stages"][number], "{of}: {number}");
        amp
    });
    stages.collect()
}

#[test]
fn each_stage_has_the_profile_that_is_best_for_it() {
    let mut mixed = 0;
    for model in MODELS {
        let recorded = Recorded::new(model);
        let wide = recorded.alone(
            "0.6",
            &["--solve", "--num-ipus=4", "--mem-per-tile=100000000"],
        );
        let stages = wide["split"]["stages"].as_array().expect("stages");
        let bytes = stages
            .iter()
            .map(|stage| number(&stage["fullest_tile"]["bytes"]));
        let widest = bytes.max().expect("a stage");
        for per_cent in [85, 75, 120, 95].into_iter().step_by(share(2)) {
            let limit = format!("--mem-per-tile={}", widest * per_cent / 100);
            let options = ["--solve", "--num-ipus=4", &limit];
            let of = format!("{model}: {limit}");
            let report = recorded.together(&options);
            if report["split"]["fits"] == true {
                let amps = check_stages(&recorded, &report, &of);
                mixed += usize::from(amps.iter().any(|amp| *amp != amps[0]));
            }
            for own in PROPORTIONS {
                let alone = recorded.alone(own, &options);
                if alone["split"]["fits"] == true {
                    assert_eq!(report["split"]["fits"], true, "{of}");
                    let slower = cycles_of_micro_batch(&report) > cycles_of_micro_batch(&alone);
                    let is_elsewhere = |own: &Value| own["pipeline"]["state"] != "on-chip";
                    assert!(!slower || is_elsewhere(&alone), "{of}: {own}");
                }
            }
        }
    }
    assert!(mixed > 1, "{mixed}");
}

#[test]
fn a_copy_under_another_value_changes_no_stage() {
    let recorded = Recorded::new(MODELS[0]);
    let own = recorded.path("0.6");
    let both = [
        own.clone(),
        "--amp=0.6".to_owned(),
        format!("--amp=0.2={own}"),
    ];
    for objective in ["time", "peak", "cycles", "communication", "fewest"] {
        let objective = format!("--objective={objective}");
        let options = ["--solve", "--num-ipus=4", &objective];
        let mut both = run(&both, &options).report();
        for stage in both["split"]["stages"].as_array_mut().expect("stages") {
            assert_eq!(stage["amp"], 0.6);
            stage["amp"] = Value::Null;
        }
        let alone = recorded.alone("0.6", &options);
        for key in ["/split/stages", "/step", "/cuts"] {
            let [both, alone] = [&both, &alone].map(|own| own.pointer(key));
            assert_eq!(both, alone, "{objective} {key}");
        }
    }
}

#[test]
fn forms_have_the_proportion_of_each_ipu() {
    let recorded = Recorded::new(MODELS[0]);
    let forms = FORMS.map(|form| format!("--emit={form}"));
    let limit = "--mem-per-tile=480000";
    let mut options = vec!["--solve", "--num-ipus=4", "--recompute=none", limit];
    options.extend(forms.iter().map(String::as_str));
    let report = recorded.together(&options);
    let stages = report["split"]["stages"].as_array().expect("stages");
    let amps: Vec<&Value> = stages.iter().map(|stage| &stage["amp"]).collect();
    assert_eq!(json!(amps), json!([0.3, 0.6, 0.6, 0.6]));
    let list = "[0.3, 0.6, 0.6, 0.6]";
    for (form, expected) in [
        ("examples", format!("matmul_proportion: {list}")),
        ("optimum", format!("\"matmul_proportion\": {list}")),
        ("poptorch", format!("for ipu, amp in enumerate({list})")),
        ("popart", "0.3, 0.6, 0.6, 0.6, from IPU 0 on".to_owned()),
        ("keras", format!("amps = {list}")),
        (
            "tf-stages",
            format!("\"matmul_available_memory_proportion_per_pipeline_stage\": {list}"),
        ),
        (
            "pipeline-splits",
            format!("available_memory_proportion: {list}"),
        ),
        ("mmcv", format!("availableMemoryProportion={list}")),
    ] {
        let all = report["configuration"].as_array().expect("forms");
        let text = all.iter().find(|own| own["form"] == form).expect(form);
        assert!(
            text["text"]
                .to_string()
                .replace("\\\"", "\"")
                .contains(&expected),
            "{text}"
        );
    }
}
