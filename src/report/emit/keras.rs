//! Keras on IPUs: every call of a layer has a pipeline stage, stages count
//! from 0 without gaps, and `device_mapping` has the IPU of each stage. A model
//! lists its calls in the order in which they run.

use super::lines::{LAST_STAGE, Lines, STAGE};
use super::{EmitError, Modules, Pipeline, notes as comments};
use crate::escape::quoted;
use crate::memory::{Recompute, Schedule};

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
model.set_pipeline_stage_assignment(assignments)"#;

pub(super) fn write(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    stages(pipeline, modules, notes, text)?;
    notes.add("Call each layer inside keras.ipu.PipelineStage(pipeline_stages[its name]).");
    match modules.layer {
        Some(_) => {
            notes.add("For a model that is there already, the loop below sets the stages:");
            notes.add("a Keras layer without an entry stays with the one that runs before it.");
            text.add(ASSIGN);
        }
        None => {
            notes.add(
                "Give --module with the names of Keras layers, such as 'block{}', for a loop that \
                 sets the stages of a model that is there already.",
            );
            text.add("");
        }
    }
    options(pipeline, notes, text);
    Ok(())
}

/// The stage of each layer, and the IPU of each stage.
fn stages(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    let entry = |name: &str, stage: &str| format!("    {}: {stage},", quoted(name));
    text.add("pipeline_stages = {");
    let first = pipeline.layers().next().map(|(position, _)| position);
    match (modules.before, first) {
        (Some(name), _) => text.add(entry(name.text(), "0")),
        // In is alone where a stage begins at the first layer.
        (None, Some(first)) => {
            let note = || {
                Ok(placeholder(
                    "<In>",
                    "In, such as the embedding",
                    "--module-in",
                ))
            };
            notes.begin((first, true), note)?;
            text.begin((first, true), || Ok(entry("<In>", "0")))?;
        }
        (None, None) => {}
    }
    for (position, layer) in pipeline.layers() {
        let name = modules.layer.map(|template| template.text(layer));
        text.at(position, &entry(name.as_deref().unwrap_or(layer), STAGE));
    }
    let note = || {
        Ok(placeholder(
            "<Out>",
            "Out, such as the head",
            "--module-out",
        ))
    };
    let last = |name: &str, stages: usize| {
        let last = pipeline.forward_stages(stages).saturating_sub(1);
        entry(name, &last.to_string())
    };
    match (modules.after, pipeline.out()) {
        (Some(name), Some(_)) => text.add(entry(name.text(), LAST_STAGE)),
        (Some(name), None) => text.by_stages(|stages| Some(last(name.text(), stages))),
        (None, Some(out)) => {
            notes.begin((out, true), note)?;
            text.begin((out, true), || Ok(entry("<Out>", STAGE)))?;
        }
        (None, None) => {
            notes.if_out_returns(note)?;
            let entry = |stages| pipeline.out_returns(stages).then(|| last("<Out>", stages));
            text.by_stages(entry);
        }
    }
    text.add("}");
    text.by_stages(|stages| {
        let mut ipus: Vec<String> = (0..stages).map(|ipu| ipu.to_string()).collect();
        if pipeline.out_returns(stages) {
            ipus.push("0".into());
        }
        Some(format!("device_mapping = [{}]", ipus.join(", ")))
    });
    Ok(())
}

/// The options of the pipeline that the memory of the stages was computed for.
fn options(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    if pipeline.accumulation(1).is_none() {
        if !pipeline.is_inference() {
            notes
                .add("Training also needs gradient_accumulation_steps_per_replica in the options.");
        }
        text.add("model.set_pipelining_options(device_mapping=device_mapping)");
        return;
    }
    text.add("model.set_pipelining_options(\n    device_mapping=device_mapping,");
    text.by_stages(|stages| {
        let steps = pipeline.accumulation(stages)?;
        Some(format!(
            "    gradient_accumulation_steps_per_replica={steps},  # or a multiple"
        ))
    });
    let Some(training) = pipeline.training() else {
        text.add(")");
        return;
    };
    let schedules = [
        Schedule::TfGrouped,
        Schedule::TfInterleaved,
        Schedule::Sequential,
    ];
    comments::schedule(pipeline, notes, "Keras", &schedules);
    let schedule = match training.schedule {
        Schedule::TfGrouped => Some("Grouped"),
        Schedule::TfInterleaved => Some("Interleaved"),
        Schedule::Sequential => Some("Sequential"),
        Schedule::None | Schedule::Popart => None,
    };
    if let Some(schedule) = schedule {
        text.add(format!(
            "    pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.{schedule},"
        ));
    }
    let elsewhere = [
        (
            training.state.is_off_chip(),
            "offload_weight_update_variables",
        ),
        (
            training.state.is_sharded(),
            "replicated_optimizer_state_sharding",
        ),
    ];
    for (_, option) in elsewhere.into_iter().filter(|&(is_so, _)| is_so) {
        text.add(format!("    {option}=True,"));
    }
    text.add(")");
    if training.state.is_sharded() {
        notes.add(format!(
            "State is shared out by {} replicas: select as many times the IPUs of one.",
            training.replicas
        ));
    }
    let recomputes = if training.recompute == Recompute::None {
        "False"
    } else {
        "True"
    };
    text.add(format!("config.allow_recompute = {recomputes}"));
    notes.add("model is the Keras model, config its IPUConfig, and ipu is tensorflow.python.ipu.");
    if training.recompute == Recompute::Layer {
        notes.add(
            "Pass the output of each layer through ipu.ops.pipelining_ops.recomputation_checkpoint\
             (...), so that each is recomputed by itself.",
        );
    }
}

/// The placeholder where a name was not given.
fn placeholder(sign: &str, what: &str, option: &str) -> String {
    format!("In place of {sign} write the first Keras layer of {what} ({option}).")
}
