//! The options that a pipeline needs, in each framework.

use super::{emitted, read_json};
use crate::support::python;
use serde_json::json;

/// Training and inference with their pipelines: options of the command, and the framework's options
/// in each form.
const PIPELINES: [(&str, &[&str], &str, &str, &str); 6] = [
    (
        "training-pipeline",
        &["--micro-batches=20"],
        r#"{"strategy": ["PipelinedExecution", "SameAsIpu"], "gradientAccumulation": 20}"#,
        r#"{"enableGradientAccumulation": true, "accumulationFactor": 20,
            "enablePipelining": true, "autoRecomputation": "pipeline"}"#,
        r#"{"steps": 20, "allow_recompute": true}"#,
    ),
    (
        "training-pipeline",
        &["--recompute=none"],
        r#"{"strategy": ["PipelinedExecution", "SameAsIpu"], "gradientAccumulation": 128,
            "autoRecomputation": 0}"#,
        r#"{"enableGradientAccumulation": true, "accumulationFactor": 128,
            "enablePipelining": true, "autoRecomputation": "none"}"#,
        r#"{"steps": 128, "allow_recompute": false}"#,
    ),
    (
        "training-pipeline",
        &["--schedule=sequential", "--recompute=stage"],
        r#"{"strategy": ["ShardedExecution", "SameAsIpu"], "gradientAccumulation": 128,
            "autoRecomputation": 4}"#,
        r#"{"enableGradientAccumulation": true, "accumulationFactor": 128,
            "enablePipelining": false, "autoRecomputation": "all"}"#,
        r#"{"steps": 128, "pipeline_schedule": "Sequential", "allow_recompute": true}"#,
    ),
    (
        "training-pipeline",
        &["--optimizer-state=sharded-off-chip", "--replicas=2"],
        r#"{"strategy": ["PipelinedExecution", "SameAsIpu"], "gradientAccumulation": 128,
            "replicationFactor": 2,
            "setOptimizerLocation":
                {"useOnChipStorage": false, "useReplicatedTensorSharding": true}}"#,
        r#"{"enableGradientAccumulation": true, "accumulationFactor": 128,
            "enablePipelining": true, "autoRecomputation": "pipeline",
            "enableReplicatedGraphs": true, "replicatedGraphCount": 2,
            "optimizerStateTensorLocationSettings":
                {"storage": "off-chip", "replicatedTensorSharding": "on"}}"#,
        r#"{"steps": 128, "allow_recompute": true, "offload_weight_update_variables": true,
            "replicated_optimizer_state_sharding": true}"#,
    ),
    (
        "training-pipeline",
        &["--schedule=none"],
        r#"{"strategy": ["PipelinedExecution", "SameAsIpu"], "gradientAccumulation": 128}"#,
        r#"{"enableGradientAccumulation": true, "accumulationFactor": 128,
            "enablePipelining": true}"#,
        r#"{"steps": 128}"#,
    ),
    (
        "popart-bert-inference",
        &[],
        r#"{"strategy": ["PipelinedExecution", "SameAsIpu"], "deviceIterations": 4}"#,
        r#"{"enablePipelining": true}"#,
        r#"{"steps": null}"#,
    ),
];

#[test]
fn the_options_are_those_of_the_pipeline_that_was_computed() {
    for (fixture, options, poptorch, popart, keras) in PIPELINES {
        let module = ["--num-ipus=4", "--module=model.layer[{}]"];
        let options = [options, &module].concat();
        let mut popart = read_json(popart);
        popart["virtualGraphMode"] = json!("manual");
        for (form, stub, expected) in [
            ("poptorch", include_str!("poptorch.py"), read_json(poptorch)),
            ("popart", include_str!("popart.py"), popart),
            ("keras", include_str!("keras.py"), read_json(keras)),
        ] {
            let (stages, text) = emitted(fixture, &options, form);
            assert_eq!(stages.len(), 4, "{text}");
            assert!(text.contains("\n# Pipeline: schedule "), "{text}");
            let is_inference = fixture == "popart-bert-inference";
            assert!(!is_inference || !text.contains("radient"), "{text}");
            let Some(found) = python(stub, &text) else {
                return;
            };
            assert_eq!(read_json(&found)["options"], expected, "{options:?} {text}");
        }
    }
}

/// In a pipeline, each recomputed layer keeps its output; without one, the last layer of a stage
/// does.
#[test]
fn poptorch_keeps_the_outputs_that_recomputation_begins_with() {
    let recompute = |more: &[&str]| {
        let module = ["--num-ipus=4", "--module=model.layer[{}]"];
        let (_, text) = emitted("training-pipeline", &[more, &module].concat(), "poptorch");
        let found = python(include_str!("poptorch.py"), &text)?;
        Some(read_json(&found)["checkpoints"].clone())
    };
    let layers = |numbers: &[usize]| {
        let names = numbers
            .iter()
            .map(|number| format!("model.layer[{number}]"));
        json!(names.collect::<Vec<String>>())
    };
    let Some(each) = recompute(&["--recompute=layer"]) else {
        return;
    };
    assert_eq!(each, layers(&[0, 1, 2, 3, 4, 5]));
    let split = ["--recompute=stage", "--check-splits=0,2,4"];
    assert_eq!(recompute(&split), Some(json!([])));
    let sequential = [&split[..], &["--schedule=sequential"]].concat();
    assert_eq!(recompute(&sequential), Some(layers(&[0, 2, 4])));
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
