//! The options that a pipeline needs, in each framework.

use super::{emitted, filled, parsed};
use crate::support::read_json;
use serde_json::{Value, json};

/// Training and inference with their pipelines: options of the command, and the framework's options
/// in each form. Of PopTorch and PopART, options that all pipelines have are left out.
const PIPELINES: [(&str, &str, &str, &str); 6] = [
    (
        "--micro-batches=20",
        r#"{"gradientAccumulation": 20}"#,
        r#"{"accumulationFactor": 20, "autoRecomputation": "pipeline"}"#,
        r#"{"steps": 20, "allow_recompute": true}"#,
    ),
    (
        "--recompute=none",
        r#"{"autoRecomputation": 0}"#,
        r#"{"autoRecomputation": "none"}"#,
        r#"{"steps": 128, "allow_recompute": false}"#,
    ),
    (
        "--schedule=sequential",
        r#"{"strategy": ["ShardedExecution", "SameAsIpu"], "autoRecomputation": 4}"#,
        r#"{"enablePipelining": false, "autoRecomputation": "all"}"#,
        r#"{"steps": 128, "pipeline_schedule": "Sequential", "allow_recompute": true}"#,
    ),
    (
        "--optimizer-state=sharded-off-chip --replicas=2",
        r#"{"replicationFactor": 2, "setOptimizerLocation":
                {"useOnChipStorage": false, "useReplicatedTensorSharding": true}}"#,
        r#"{"autoRecomputation": "pipeline",
            "enableReplicatedGraphs": true, "replicatedGraphCount": 2,
            "optimizerStateTensorLocationSettings":
                {"storage": "off-chip", "replicatedTensorSharding": "on"}}"#,
        r#"{"steps": 128, "allow_recompute": true, "offload_weight_update_variables": true,
            "replicated_optimizer_state_sharding": true}"#,
    ),
    ("--schedule=none", "{}", "{}", r#"{"steps": 128}"#),
    ("", r#"{"deviceIterations": 4}"#, "{}", r#"{"steps": null}"#),
];

/// Adds the options that all pipelines of PopTorch or PopART have, unless they are given.
fn with_usual(form: &str, options: &str, is_training: bool) -> Value {
    let mut all = match (form, is_training) {
        ("poptorch", true) => json!({ "gradientAccumulation": 128 }),
        ("popart", true) => {
            json!({ "enableGradientAccumulation": true, "accumulationFactor": 128 })
        }
        _ => json!({}),
    };
    match form {
        "poptorch" => all["strategy"] = json!(["PipelinedExecution", "SameAsIpu"]),
        "popart" => {
            all["enablePipelining"] = json!(true);
            all["virtualGraphMode"] = json!("manual");
        }
        _ => {}
    }
    let options = read_json(options).as_object().expect("options").clone();
    all.as_object_mut().expect("options").extend(options);
    all
}

#[test]
fn the_options_are_those_of_the_pipeline_that_was_computed() {
    for (options, poptorch, popart, keras) in PIPELINES {
        let is_training = !options.is_empty();
        let fixture = match is_training {
            true => "training-pipeline",
            false => "popart-bert-inference",
        };
        let ipus = match options.contains("--replicas=2") {
            true => "--num-ipus=8",
            false => "--num-ipus=4",
        };
        let mut all = vec![ipus];
        let is_open = is_training && !options.contains("--optimizer-state");
        all.extend(is_open.then_some("--optimizer-state=on-chip"));
        all.extend(options.split_whitespace());
        for (form, expected) in [("poptorch", poptorch), ("popart", popart), ("keras", keras)] {
            let (stages, text) = emitted(fixture, &all, form);
            assert_eq!(stages.len(), 4, "{text}");
            assert!(text.contains("\n# Pipeline: schedule "), "{text}");
            assert!(is_training || !text.contains("radient"), "{text}");
            let found = or_skip!(parsed(form, &filled(&text)));
            let expected = with_usual(form, expected, is_training);
            assert_eq!(found["options"], expected, "{options} {text}");
        }
    }
}

/// In a pipeline, each recomputed layer keeps its output; without one, the last layer of a stage
/// does.
#[test]
fn poptorch_keeps_the_outputs_that_recomputation_begins_with() {
    let kept = |options: &[&str]| {
        let (_, text) = emitted("training-pipeline", options, "poptorch");
        let notes = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("# Pass the output of layer ")?;
            Some(rest.split_once(' ')?.0.to_owned())
        });
        notes.collect::<Vec<String>>()
    };
    let each = kept(&["--num-ipus=4", "--recompute=layer"]);
    assert_eq!(each, ["0", "1", "2", "3", "4", "5"]);
    let split = ["--num-ipus=4", "--recompute=stage", "--splits=1,3,5"];
    assert!(kept(&split).is_empty());
    let sequential = [&split[..], &["--schedule=sequential"]].concat();
    assert_eq!(kept(&sequential), ["0", "2", "4"]);
}

#[test]
fn a_framework_without_the_schedule_is_said_to_be_so() {
    for (form, schedule, instead) in [
        ("poptorch", "tf-grouped", "popart"),
        ("popart", "tf-interleaved", "popart"),
        ("keras", "popart", "tf-grouped"),
    ] {
        let schedule = format!("--schedule={schedule}");
        let (_, text) = emitted("training-pipeline", &["--num-ipus=4", &schedule], form);
        let warning = format!("Compute the split with --schedule {instead}.\n");
        assert!(text.contains(&warning), "{text}");
    }
}
