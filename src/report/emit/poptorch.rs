//! `poptorch.BeginBlock`: the module and all that runs after it belong to the
//! block until the next begins. What runs before the first block is on IPU 0.
//! A module can begin one block only.

use super::{EmitError, Modules, Notes, Pipeline, Start, printable};
use crate::memory::{Recompute, Schedule, Storage};
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
    let after = if pipeline.out_returns() {
        ""
    } else {
        ", after the last on the last IPU"
    };
    notes.add(format!(
        "What runs before the first block is on IPU 0{after}."
    ));
    notes.schedule(
        pipeline,
        "PopTorch",
        &[Schedule::Popart, Schedule::Sequential],
    );
    match pipeline.report.pipeline {
        Some(_) if pipeline.is_inference() => notes.add("Pass options to poptorch.inferenceModel."),
        Some(_) => notes.add("Pass options to poptorch.trainingModel."),
        None => notes.batches(pipeline, "deviceIterations", "gradientAccumulation"),
    }
    let checkpoints = checkpoints(pipeline, modules, notes)?;
    Ok(format!("{}\n{text}{checkpoints}", options(pipeline)))
}

/// The options of the model, which the functions that compile it take.
fn options(pipeline: Pipeline<'_>) -> String {
    let stages = pipeline.split.stages.len();
    let mut calls = Vec::new();
    if stages > 1 {
        let strategy = match pipeline.is_sequential() {
            true => "ShardedExecution",
            false => "PipelinedExecution",
        };
        let numbers = match pipeline.out_returns() {
            true => "AutoIncrement",
            false => "SameAsIpu",
        };
        calls.push(format!(
            "setExecutionStrategy(poptorch.{strategy}(poptorch.AutoStage.{numbers}))"
        ));
    }
    match pipeline.accumulation() {
        Some(steps) => calls.push(format!("Training.gradientAccumulation({steps})  # or more")),
        None if stages > 1 && pipeline.is_inference() => {
            let stages = pipeline.forward_stages();
            calls.push(format!("deviceIterations({stages})  # or more"));
        }
        None => {}
    }
    calls.extend(of_training(pipeline));
    if !stages.is_power_of_two() {
        calls.push("autoRoundNumIPUs(True)  # PopTorch takes 1, 2, 4, 8, ... IPUs".to_string());
    }
    let calls = calls.iter().map(|call| format!("options.{call}\n"));
    format!(
        "options = poptorch.Options()\n{}",
        calls.collect::<String>()
    )
}

/// What is recomputed, and where state and accumulators are.
fn of_training(pipeline: Pipeline<'_>) -> Vec<String> {
    let Some(own) = pipeline.training() else {
        return Vec::new();
    };
    let mut calls = Vec::new();
    // In a pipeline PopTorch recomputes stages by itself, elsewhere nothing. The numbers are
    // those of PopART's RecomputationType.
    match (own.recompute, own.schedule) {
        (Recompute::None, Schedule::Sequential) => {}
        (Recompute::None, _) => calls.push("_Popart.set(\"autoRecomputation\", 0)".to_string()),
        (_, Schedule::Sequential) => {
            calls.push("_Popart.set(\"autoRecomputation\", 4)".to_string());
        }
        (Recompute::Stage | Recompute::Layer, _) => {}
    }
    let mut settings = String::new();
    if own.state.is_off_chip() {
        settings += ".useOnChipStorage(False)";
    }
    if own.state.is_sharded() {
        settings += ".useReplicatedTensorSharding(True)";
        calls.push(format!("replicationFactor({})", own.replicas));
    }
    let location = |what: &str, settings: &str| {
        format!("TensorLocations.set{what}Location(poptorch.TensorLocationSettings(){settings})")
    };
    if !settings.is_empty() {
        calls.push(location("Optimizer", &settings));
    }
    if own.accumulators == Storage::OffChip {
        calls.push(location("Accumulator", ".useOnChipStorage(False)"));
    }
    calls
}

/// Keeps the outputs of the layers that are not recomputed.
fn checkpoints(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Notes,
) -> Result<String, EmitError> {
    let layers = pipeline.checkpoints();
    let template = match modules.layer {
        _ if layers.is_empty() => return Ok(String::new()),
        Some(template) => template,
        None => {
            notes.add(
                "Pass the output of each layer after which recomputation begins anew through \
                 poptorch.recomputationCheckpoint(...); with --module, that is written below.",
            );
            return Ok(String::new());
        }
    };
    let layers = layers.iter().map(|layer| template.python(layer));
    let layers: Vec<String> = layers.collect::<Result<_, _>>()?;
    Ok(format!(
        "\nfor layer in [{}]:\n    layer.register_forward_hook(\n        \
         lambda layer, inputs, output: poptorch.recomputationCheckpoint(output)\n    )\n",
        layers.join(", ")
    ))
}
