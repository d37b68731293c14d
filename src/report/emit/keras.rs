//! Keras on IPUs: every call of a layer has a pipeline stage, stages count
//! from 0 without gaps, and `device_mapping` has the IPU of each stage. A model
//! lists its calls in the order in which they run.

use super::{Modules, Notes, Pipeline};
use crate::escape::quoted;
use crate::memory::{Recompute, Schedule, Storage};
use std::fmt::Write;

/// Gives each Keras layer of an existing model its stage.
const ASSIGN: &str = r#"
stage = 0
assignments = model.get_pipeline_stage_assignment()
for assignment in assignments:
    name = assignment.layer.name
    for layer, stage_of_layer in pipeline_stages.items():
        if name == layer or name.startswith((layer + "_", layer + "/")):
            stage = stage_of_layer
    assignment.pipeline_stage = stage
model.set_pipeline_stage_assignment(assignments)
"#;

pub(super) fn emit(pipeline: Pipeline<'_>, modules: &Modules<'_>, notes: &mut Notes) -> String {
    let mut text = String::from("pipeline_stages = {\n");
    let mut entry = |name: &str, stage: usize| {
        let _ = writeln!(text, "    {}: {stage},", quoted(name));
    };
    let first = pipeline.split.stages.first();
    let in_is_alone = first.is_some_and(|stage| stage.named_layers().next().is_none());
    match modules.before {
        Some(name) => entry(name.text(), 0),
        None if in_is_alone => {
            notes.add(placeholder(
                "<In>",
                "In, such as the embedding",
                "--module-in",
            ));
            entry("<In>", 0);
        }
        None => {}
    }
    for (stage, layer) in pipeline.layers() {
        match modules.layer {
            Some(template) => entry(&template.text(layer), stage),
            None => entry(layer, stage),
        }
    }
    let mut ipus: Vec<usize> = (0..pipeline.split.stages.len()).collect();
    let last = pipeline.split.stages.last();
    let out_is_alone = last.is_some_and(|stage| stage.named_layers().next().is_none());
    if pipeline.out_returns() {
        ipus.push(0);
    }
    match modules.after {
        Some(name) => entry(name.text(), ipus.len() - 1),
        None if pipeline.out_returns() || (out_is_alone && ipus.len() > 1) => {
            notes.add(placeholder(
                "<Out>",
                "Out, such as the head",
                "--module-out",
            ));
            entry("<Out>", ipus.len() - 1);
        }
        None => {}
    }
    let ipus: Vec<String> = ipus.iter().map(usize::to_string).collect();
    let _ = writeln!(text, "}}\ndevice_mapping = [{}]", ipus.join(", "));
    notes.add("Call each layer inside keras.ipu.PipelineStage(pipeline_stages[its name]).");
    match modules.layer {
        Some(_) => {
            notes.add("For a model that is there already, the loop below sets the stages:");
            notes.add("a Keras layer without an entry stays with the one that runs before it.");
            text.push_str(ASSIGN);
            text += &options(pipeline, notes);
        }
        None => notes.add(
            "Give --module with the names of Keras layers, such as 'block{}', for a loop that sets \
             the stages of a model that is there already.",
        ),
    }
    if modules.layer.is_none() {
        text.push('\n');
        text += &options(pipeline, notes);
    }
    text
}

/// The options of the pipeline that the memory of the stages was computed for.
fn options(pipeline: Pipeline<'_>, notes: &mut Notes) -> String {
    let Some(steps) = pipeline.accumulation() else {
        if !pipeline.is_inference() {
            notes
                .add("Training also needs gradient_accumulation_steps_per_replica in the options.");
        }
        return "model.set_pipelining_options(device_mapping=device_mapping)\n".to_string();
    };
    let mut text = format!(
        "model.set_pipelining_options(\n    device_mapping=device_mapping,\n    \
         gradient_accumulation_steps_per_replica={steps},  # or a multiple\n"
    );
    let Some(own) = pipeline.training() else {
        return text + ")\n";
    };
    notes.schedule(
        pipeline,
        "Keras",
        &[
            Schedule::TfGrouped,
            Schedule::TfInterleaved,
            Schedule::Sequential,
        ],
    );
    let schedule = match own.schedule {
        Schedule::TfGrouped => Some("Grouped"),
        Schedule::TfInterleaved => Some("Interleaved"),
        Schedule::Sequential => Some("Sequential"),
        Schedule::None | Schedule::Popart => None,
    };
    if let Some(schedule) = schedule {
        let _ = writeln!(
            text,
            "    pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.{schedule},"
        );
    }
    let elsewhere = [
        (own.state.is_off_chip(), "offload_weight_update_variables"),
        (
            own.state.is_sharded(),
            "replicated_optimizer_state_sharding",
        ),
        (
            own.accumulators == Storage::OffChip,
            "offload_gradient_accumulation_buffers",
        ),
        (own.stash == Storage::OffChip, "offload_activations"),
    ];
    for (_, option) in elsewhere.into_iter().filter(|&(is_so, _)| is_so) {
        let _ = writeln!(text, "    {option}=True,");
    }
    text.push_str(")\n");
    if own.state.is_sharded() {
        notes.add(format!(
            "State is shared out by {} replicas: select as many times the IPUs of one.",
            own.replicas
        ));
    }
    let recomputes = if own.recompute == Recompute::None {
        "False"
    } else {
        "True"
    };
    let _ = writeln!(text, "config.allow_recompute = {recomputes}");
    notes.add("model is the Keras model, config its IPUConfig, and ipu is tensorflow.python.ipu.");
    if own.recompute == Recompute::Layer {
        notes.add(
            "Pass the output of each layer through ipu.ops.pipelining_ops.recomputation_checkpoint\
             (...), so that each is recomputed by itself.",
        );
    }
    text
}

/// What to write where a name was not given.
fn placeholder(sign: &str, what: &str, option: &str) -> String {
    format!("In place of {sign} write the first Keras layer of {what} ({option}).")
}
