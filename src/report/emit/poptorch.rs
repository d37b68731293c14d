//! `poptorch.BeginBlock`: the module and all that runs after it belong to the
//! block until the next begins. What runs before the first block is on IPU 0.
//! A module can begin one block only.

use super::{EmitError, Modules, Notes, Pipeline, Start, printable};
use crate::memory::{Recompute, Storage};
use std::fmt::Write;

pub(super) fn emit(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Notes,
) -> Result<String, EmitError> {
    let layer = |layer| {
        let module = modules.layer.map(|template| template.python(layer));
        module.transpose()
    };
    let mut begun: Vec<String> = Vec::new();
    let mut text = String::new();
    for (ipu, start) in pipeline.starts() {
        let module = match start {
            Start::In(first) => match (modules.before, first) {
                (Some(name), _) => Some(name.text().to_string()),
                (None, Some(first)) => layer(first)?,
                // What runs before the first block is on IPU 0 anyway.
                (None, None) => continue,
            },
            Start::Layer(first) => layer(first)?,
            Start::Out => modules.after.map(|name| name.text().to_string()),
        };
        let Some(module) = module else {
            let what = match start {
                Start::In(Some(first)) | Start::Layer(first) => {
                    format!("the module of layer {} (--module)", printable(first))
                }
                _ => "the first module of Out, such as the head (--module-out)".to_string(),
            };
            let _ = writeln!(
                text,
                "poptorch.BeginBlock(..., ipu_id={ipu})  # in place of ... write {what}"
            );
            continue;
        };
        if begun.contains(&module) {
            return Err(EmitError::SameModule(module));
        }
        let _ = writeln!(text, "poptorch.BeginBlock({module}, ipu_id={ipu})");
        begun.push(module);
    }
    let stages = pipeline.split.stages.len();
    let after = if pipeline.out_returns() {
        ""
    } else {
        ", after the last on the last IPU"
    };
    notes.add(format!(
        "What runs before the first block is on IPU 0{after}."
    ));
    if pipeline.out_returns() {
        notes.add(
            "Out is a pipeline stage of its own: pass \
             poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement) to \
             setExecutionStrategy.",
        );
    }
    notes.batches(pipeline, "deviceIterations", "gradientAccumulation");
    recompute(pipeline, notes);
    locations(pipeline, notes);
    if !stages.is_power_of_two() {
        notes.add(format!(
            "PopTorch takes 1, 2, 4, 8, ... IPUs: for {stages} set autoRoundNumIPUs(True) in the \
             options."
        ));
    }
    Ok(text)
}

/// Where state of the optimizer and accumulators were weighed to be.
fn locations(pipeline: Pipeline<'_>, notes: &mut Notes) {
    let Some(own) = pipeline.training() else {
        return;
    };
    let mut settings = String::new();
    if own.state.is_off_chip() {
        settings += ".useOnChipStorage(False)";
    }
    if own.state.is_sharded() {
        settings += ".useReplicatedTensorSharding(True)";
    }
    if !settings.is_empty() {
        notes.add(format!(
            "Weighed with optimizer state {}: set \
             options.TensorLocations.setOptimizerLocation(poptorch.TensorLocationSettings(){settings}).",
            own.state
        ));
    }
    if own.state.is_sharded() {
        notes.add(format!(
            "State is shared out by {} replicas: options.replicationFactor({}).",
            own.replicas, own.replicas
        ));
    }
    if own.accumulators == Storage::OffChip {
        notes.add(
            "Weighed with accumulators off-chip: set options.TensorLocations.setAccumulatorLocation(\
             poptorch.TensorLocationSettings().useOnChipStorage(False)).",
        );
    }
}

/// What recomputation the stages were weighed for.
fn recompute(pipeline: Pipeline<'_>, notes: &mut Notes) {
    match pipeline.training().map(|own| own.recompute) {
        Some(Recompute::None) => notes.add(
            "Weighed without recomputation, which PopTorch turns on by itself: set \
             options._Popart.set(\"autoRecomputation\", 0).",
        ),
        Some(Recompute::Layer) => notes.add(
            "Each layer was weighed as recomputed by itself: pass its output through \
             poptorch.recomputationCheckpoint(...).",
        ),
        Some(Recompute::Stage) | None => {}
    }
}
