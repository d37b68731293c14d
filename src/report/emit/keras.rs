//! Keras on IPUs: every call of a layer has a pipeline stage, stages count
//! from 0 without gaps, and `device_mapping` has the IPU of each stage. A model
//! lists its calls in the order in which they run.

use super::lines::{Lines, STAGE};
use super::pipeline::{self as comments, Pipeline};
use crate::escape::{printable, quoted};
use crate::memory::{Recompute, Schedule};
use crate::model::{Framework, PseudoLayers};

/// Gives each Keras layer of an existing model its stage. One of the next two goes in the middle.
const ASSIGN: [&str; 2] = [
    "\nstage = 0\nassignments = model.get_pipeline_stage_assignment()\nfor assignment in assignments:",
    "    assignment.pipeline_stage = stage\nmodel.set_pipeline_stage_assignment(assignments)",
];
const BY_NAME: &str = "    stage = pipeline_stages.get(assignment.layer.name, stage)";
const BY_BEGINNING: &str = r#"    name = assignment.layer.name
    for layer, stage_of_layer in pipeline_stages.items():
        if name == layer or name.startswith((layer + "_", layer + "/")):
            stage = stage_of_layer"#;

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let has_names = pipeline.has_keras_names();
    stages(pipeline, has_names, notes, text);
    text.add("}");
    text.by_stages(|stages| {
        let ipus = pipeline.ipus_of_stages(stages);
        Some(format!("device_mapping = [{ipus}]"))
    });
    if has_names || pipeline.modules.layer.is_some() {
        notes.add("The loop sets the stages of an existing functional or Sequential model:");
        notes.add("a Keras layer without an entry goes into the stage of the one before it.");
        let find = if has_names { BY_NAME } else { BY_BEGINNING };
        text.add([ASSIGN[0], find, ASSIGN[1]].join("\n"));
    } else {
        notes.add("Call each layer inside keras.ipu.PipelineStage(pipeline_stages[its name]).");
        notes.add(
            "Give --module with the names of Keras layers, such as 'block{}', for a loop that sets \
             the stages of an existing model.",
        );
        text.add("");
    }
    options(pipeline, notes, text);
}

impl<'a> Pipeline<'a> {
    /// Returns the names of the Keras layers that a position calls.
    fn keras_layers(self, position: u32) -> &'a [String] {
        let calls = self.calls(position, Framework::Tensorflow);
        calls.map_or(&[], |calls| &calls.top)
    }

    /// Was the profile recorded with TensorFlow?
    pub(super) fn is_keras(self) -> bool {
        let facts = self.report.pipeline.as_ref();
        facts.is_some_and(|facts| facts.framework == Framework::Tensorflow)
    }

    /// Returns the first Keras layer that a position calls and no earlier position calls.
    pub(super) fn keras_begin(self, position: u32) -> Option<&'a String> {
        let mut layers = self.keras_layers(position).iter();
        let is_new =
            |layer: &&String| !(0..position).any(|at| self.keras_layers(at).contains(layer));
        layers.find(is_new)
    }

    /// Does each layer begin with a new Keras layer? False if one Keras layer spans several layers.
    fn has_keras_names(self) -> bool {
        let is_free = self.is_keras() && self.modules.layer.is_none();
        is_free
            && self
                .layers()
                .all(|(position, _)| self.keras_begin(position).is_some())
    }
}

/// Returns the names to write for a position: `given` by the user, or else Keras layers `known`
/// from the profile, or else the layer.
fn names(known: &[String], given: Option<String>, layer: Option<&str>) -> Vec<String> {
    match (given, known) {
        (Some(given), _) => vec![given],
        (None, []) => layer.map(str::to_string).into_iter().collect(),
        (None, known) => known.to_vec(),
    }
}

/// Writes an entry for each Keras layer.
fn stages(pipeline: Pipeline<'_>, has_names: bool, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let modules = pipeline.modules;
    let known = |place| {
        if has_names {
            pipeline.keras_layers(place)
        } else {
            &[]
        }
    };
    let entry = |name: &str, stage: &str| format!("    {}: {stage},", quoted(name));
    let unknown = |place: &str, option: &str| {
        format!(
            "WARNING: the Keras layers of {place} are unknown. Name the first one with {option}."
        )
    };
    let before = names(known(0), modules.before.map(str::to_string), None);
    if let (Some((first, _)), []) = (pipeline.layers().next(), before.as_slice()) {
        notes.begin((first, true), &unknown("In", "--module-in"));
    }
    let mut places = vec![(0, before)];
    for (position, layer) in pipeline.layers() {
        let given = modules.layer.map(|template| template.text(layer));
        places.push((position, names(known(position), given, Some(layer))));
    }
    let place_of_out = pipeline.place_of_out();
    let after = names(known(place_of_out), modules.after.map(str::to_string), None);
    match (pipeline.out(), after.is_empty()) {
        (Some(out), true) => notes.begin((out, true), &unknown("Out", "--module-out")),
        (Some(out), false) => places.push((out, after.clone())),
        (None, true) => notes.if_out_returns(&unknown("Out", "--module-out")),
        (None, false) => {}
    }
    text.add("pipeline_stages = {");
    let mut seen: Vec<String> = Vec::new();
    for (position, names) in places {
        for name in names {
            if seen.contains(&name) {
                let name = printable(&name);
                notes.begin(
                    (position, true),
                    &format!(
                        "WARNING: Keras layer {name} also runs in stages before {STAGE}, but can \
                         have only one stage. Call its parts inside keras.ipu.PipelineStage(...)."
                    ),
                );
                continue;
            }
            text.at(position, &entry(&name, STAGE));
            seen.push(name);
        }
    }
    let is_apart = pipeline.report.pseudo_layers == PseudoLayers::OutWithIn;
    for name in after.iter().filter(|name| is_apart && !seen.contains(name)) {
        text.by_stages(|stages| {
            let last = pipeline.forward_stages(stages).saturating_sub(1);
            Some(entry(name, &last.to_string()))
        });
    }
}

/// Writes the options of the pipeline that the memory of the stages was computed for.
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
    if pipeline.replicas() > 1 {
        notes.add(format!(
            "There are {0} replicas: select {0} times as many IPUs as one replica needs.",
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
