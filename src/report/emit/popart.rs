//! PopART's builder: every operation of a pipeline has a virtual graph (an
//! IPU) and a pipeline stage, and a session needs virtual graphs to be set by
//! hand. Pipelining on one IPU is an error there.

use super::lines::{LAST_STAGE, Lines, STAGE};
use super::pipeline::{self as comments, Checkpoints, Pipeline};
use crate::escape::printable;
use crate::memory::{Recompute, Schedule};
use crate::model::PseudoLayers;

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    notes.add("Replace each ... with the code that builds that part of the model.");
    if pipeline.report.pseudo_layers == PseudoLayers::NoneFirst {
        notes.add("Put what comes after the last layer, including the loss, with that layer.");
    }
    notes.add("The device needs one IPU for each stage.");
    comments::batches(pipeline, notes, "batchesPerStep", "accumulationFactor");
    let schedules = [Schedule::Popart, Schedule::Sequential];
    comments::schedule(pipeline, notes, "PopART", &schedules);
    text.add("session_options = popart.SessionOptions()");
    text.add("session_options.virtualGraphMode = popart.VirtualGraphMode.Manual");
    text.by_stages(|stages| {
        let is_pipelined = stages > 1 && !pipeline.is_sequential();
        let pipelined = if is_pipelined { "True" } else { "False" };
        Some(format!("session_options.enablePipelining = {pipelined}"))
    });
    training(pipeline, notes, text);
    text.add("");
    let with = |ipu: &str, stage: &str, what: &str| {
        format!(
            "with builder.virtualGraph({ipu}), builder.pipelineStage({stage}):\n    ...  # {what}"
        )
    };
    let before = named("what runs before the layers", pipeline.modules.before);
    text.add(with("0", "0", &before));
    for (position, layer) in pipeline.layers() {
        let what = format!("layer {}", printable(layer));
        text.at(position, &with(STAGE, STAGE, &what));
    }
    let after = named("what runs after the layers", pipeline.modules.after);
    match pipeline.report.pseudo_layers {
        PseudoLayers::NoneFirst => {}
        PseudoLayers::InAndOut => text.add(with(LAST_STAGE, LAST_STAGE, &after)),
        PseudoLayers::OutWithIn => text.by_stages(|stages| {
            let last = pipeline.forward_stages(stages) - 1;
            Some(with("0", &last.to_string(), &after))
        }),
    }
}

/// Writes the settings of gradient accumulation, recomputation and the place of optimizer state.
fn training(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    text.by_stages(|stages| {
        let steps = pipeline.accumulation(stages)?;
        Some(format!(
            "session_options.enableGradientAccumulation = True\n\
             session_options.accumulationFactor = {steps}  # or more"
        ))
    });
    let Some(training) = pipeline.training() else {
        return;
    };
    let recompute = match (training.recompute, training.schedule) {
        (Recompute::None, _) => "NoRecompute",
        (_, Schedule::Sequential) => "RecomputeAll",
        (Recompute::Stage | Recompute::Layer, _) => "Pipeline",
    };
    text.add(format!(
        "session_options.autoRecomputation = popart.RecomputationType.{recompute}"
    ));
    let location = "session_options.optimizerStateTensorLocationSettings.location";
    if training.state.is_off_chip() {
        text.add(format!("{location}.storage = popart.TensorStorage.OffChip"));
    }
    if training.state.is_sharded() {
        text.add(format!(
            "{location}.replicatedTensorSharding = popart.ReplicatedTensorSharding.On"
        ));
    }
    if pipeline.replicas() > 1 {
        text.add("session_options.enableReplicatedGraphs = True");
        text.add(format!(
            "session_options.replicatedGraphCount = {}",
            training.replicas
        ));
    }
    let whose = match pipeline.checkpoints() {
        Checkpoints::None => return,
        Checkpoints::Layers => "each layer",
        Checkpoints::Stages => "the last layer of each stage but the last",
    };
    notes.add(format!(
        "Pass the output of {whose} through builder.checkpointOutput([...]), so that recomputation \
         starts again there."
    ));
}

/// Describes the part to build, with the name of its first module.
fn named(what: &str, module: Option<&str>) -> String {
    match module {
        Some(module) => format!("{what}, starting with {module}"),
        None => what.to_string(),
    }
}
