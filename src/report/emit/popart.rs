//! PopART's builder: every operation of a pipeline has a virtual graph (an
//! IPU) and a pipeline stage, and a session needs virtual graphs to be set by
//! hand. Pipelining on one IPU is an error there.

use super::{ModuleName, Modules, Notes, Pipeline, printable};
use crate::memory::{Recompute, Schedule, Storage};
use crate::model::PseudoLayers;
use crate::wording::listed;
use std::fmt::Write;

pub(super) fn emit(pipeline: Pipeline<'_>, modules: &Modules<'_>, notes: &mut Notes) -> String {
    let stages = pipeline.split.stages.len();
    notes.add("In place of each ... goes what builds that part of the model.");
    if pipeline.report.pseudo_layers == PseudoLayers::NoneFirst {
        notes.add("What comes after the last layer, the loss too, goes with it.");
    }
    notes.add("The device needs as many IPUs as there are stages.");
    notes.batches(pipeline, "batchesPerStep", "accumulationFactor");
    notes.schedule(
        pipeline,
        "PopART",
        &[Schedule::Popart, Schedule::Sequential],
    );
    let is_pipelined = stages > 1 && !pipeline.is_sequential();
    let pipelined = if is_pipelined { "True" } else { "False" };
    let mut text = format!(
        "session_options = popart.SessionOptions()\n\
         session_options.virtualGraphMode = popart.VirtualGraphMode.Manual\n\
         session_options.enablePipelining = {pipelined}\n"
    );
    text += &training(pipeline, notes);
    text.push('\n');
    let mut with = |ipu: usize, stage: usize, what: &str| {
        let _ = writeln!(
            text,
            "with builder.virtualGraph({ipu}), builder.pipelineStage({stage}):\n    ...  # {what}"
        );
    };
    with(0, 0, &named("what runs before the layers", modules.before));
    for (stage, layer) in pipeline.layers() {
        with(stage, stage, &format!("layer {}", printable(layer)));
    }
    let out = named("what runs after the layers", modules.after);
    match pipeline.report.pseudo_layers {
        PseudoLayers::NoneFirst => {}
        PseudoLayers::OutWithIn if pipeline.out_returns() => with(0, stages, &out),
        _ => with(stages - 1, stages - 1, &out),
    }
    text
}

/// Gradient accumulation, recomputation, and where state is.
fn training(pipeline: Pipeline<'_>, notes: &mut Notes) -> String {
    let mut text = String::new();
    if let Some(steps) = pipeline.accumulation() {
        let _ = writeln!(
            text,
            "session_options.enableGradientAccumulation = True\n\
             session_options.accumulationFactor = {steps}  # or more"
        );
    }
    let Some(own) = pipeline.training() else {
        return text;
    };
    let recompute = match (own.recompute, own.schedule) {
        (Recompute::None, _) => "NoRecompute",
        (_, Schedule::Sequential) => "RecomputeAll",
        (Recompute::Stage | Recompute::Layer, _) => "Pipeline",
    };
    let _ = writeln!(
        text,
        "session_options.autoRecomputation = popart.RecomputationType.{recompute}"
    );
    for (settings, is_off, is_shared) in [
        (
            "optimizerState",
            own.state.is_off_chip(),
            own.state.is_sharded(),
        ),
        ("accumulator", own.accumulators == Storage::OffChip, false),
    ] {
        let location = format!("session_options.{settings}TensorLocationSettings.location");
        if is_off {
            let _ = writeln!(text, "{location}.storage = popart.TensorStorage.OffChip");
        }
        if is_shared {
            let _ = writeln!(
                text,
                "{location}.replicatedTensorSharding = popart.ReplicatedTensorSharding.On"
            );
        }
    }
    if own.state.is_sharded() {
        let _ = writeln!(
            text,
            "session_options.enableReplicatedGraphs = True\n\
             session_options.replicatedGraphCount = {}",
            own.replicas
        );
    }
    let checkpoints = pipeline.checkpoints();
    if !checkpoints.is_empty() {
        let layers: Vec<String> = checkpoints.iter().map(|own| own.to_string()).collect();
        notes.add(format!(
            "Pass the outputs of layers {} through builder.checkpointOutput([...]), so that \
             recomputation begins there anew.",
            listed(&layers)
        ));
    }
    text
}

/// What to build, with the name of its first module.
fn named(what: &str, module: Option<&ModuleName>) -> String {
    match module {
        Some(module) => format!("{what}, from {} on", module.text()),
        None => what.to_string(),
    }
}
