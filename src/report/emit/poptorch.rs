//! `poptorch.BeginBlock`: the module and all that runs after it belong to the
//! block until the next begins. What runs before the first block is on IPU 0.
//! A module can begin one block only.

use super::lines::{Lines, STAGE};
use super::{Checkpoints, EmitError, ModuleName, Modules, Pipeline, notes as comments, printable};
use crate::memory::{Recompute, Schedule};

pub(super) fn write(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    options(pipeline, text);
    text.add("");
    blocks(pipeline, modules, text)?;
    notes.by_stages(|stages| {
        let after = if pipeline.out_returns(stages) {
            ""
        } else {
            ", after the last on the last IPU"
        };
        Some(format!(
            "What runs before the first block is on IPU 0{after}."
        ))
    });
    let schedules = [Schedule::Popart, Schedule::Sequential];
    comments::schedule(pipeline, notes, "PopTorch", &schedules);
    match pipeline.report.pipeline {
        Some(_) if pipeline.is_inference() => notes.add("Pass options to poptorch.inferenceModel."),
        Some(_) => notes.add("Pass options to poptorch.trainingModel."),
        None => comments::batches(pipeline, notes, "deviceIterations", "gradientAccumulation"),
    }
    checkpoints(pipeline, modules, notes, text)
}

/// The position that begins each block, in the order in which they run.
fn blocks(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    let mut begun: Vec<String> = Vec::new();
    let mut block = |module: Option<String>, what: &str, ipu: &str| {
        let Some(module) = module else {
            return Ok(format!(
                "poptorch.BeginBlock(..., ipu_id={ipu})  # in place of ... write {what}"
            ));
        };
        if begun.contains(&module) {
            return Err(EmitError::SameModule(module));
        }
        let line = format!("poptorch.BeginBlock({module}, ipu_id={ipu})");
        begun.push(module);
        Ok(line)
    };
    let named = |name: &ModuleName| name.text().to_string();
    if let Some(before) = modules.before.map(named) {
        text.add(block(Some(before), "", "0")?);
    }
    let mut of_layer = |layer: &str, ipu: &str| {
        let module = modules.layer.map(|template| template.python(layer));
        let what = format!("the module of layer {} (--module)", printable(layer));
        block(module.transpose()?, &what, ipu)
    };
    // Where In is alone, what runs before the first block is on IPU 0 anyway.
    if let (None, Some((position, first))) = (modules.before, pipeline.layers().next()) {
        text.begin((position, false), || of_layer(first, "0"))?;
    }
    for (position, layer) in pipeline.layers() {
        text.begin((position, true), || of_layer(layer, STAGE))?;
    }
    let what = "the first module of Out, such as the head (--module-out)";
    let after = modules.after.map(named);
    match pipeline.out() {
        Some(out) => text.begin((out, true), || block(after, what, STAGE)),
        None => text.if_out_returns(|| block(after, what, "0")),
    }
}

/// The options of the model, which the functions that compile it take.
fn options(pipeline: Pipeline<'_>, text: &mut Lines<'_>) {
    text.add("options = poptorch.Options()");
    text.by_stages(|stages| {
        let strategy = match pipeline.is_sequential() {
            true => "ShardedExecution",
            false => "PipelinedExecution",
        };
        let numbers = match pipeline.out_returns(stages) {
            true => "AutoIncrement",
            false => "SameAsIpu",
        };
        (stages > 1).then(|| {
            format!(
                "options.setExecutionStrategy(poptorch.{strategy}(poptorch.AutoStage.{numbers}))"
            )
        })
    });
    text.by_stages(|stages| match pipeline.accumulation(stages) {
        Some(steps) => Some(format!(
            "options.Training.gradientAccumulation({steps})  # or more"
        )),
        None if stages > 1 && pipeline.is_inference() => {
            let stages = pipeline.forward_stages(stages);
            Some(format!("options.deviceIterations({stages})  # or more"))
        }
        None => None,
    });
    of_training(pipeline, text);
    text.by_stages(|stages| {
        let text = "options.autoRoundNumIPUs(True)  # PopTorch takes 1, 2, 4, 8, ... IPUs";
        (!stages.is_power_of_two()).then(|| text.to_string())
    });
}

/// The settings of recomputation, state and accumulators.
fn of_training(pipeline: Pipeline<'_>, text: &mut Lines<'_>) {
    let Some(training) = pipeline.training() else {
        return;
    };
    // In a pipeline PopTorch recomputes stages by itself, elsewhere nothing. The numbers are
    // those of PopART's RecomputationType.
    let recompute = match (training.recompute, training.schedule) {
        (Recompute::None, Schedule::Sequential) => None,
        (Recompute::None, _) => Some(0),
        (_, Schedule::Sequential) => Some(4),
        (Recompute::Stage | Recompute::Layer, _) => None,
    };
    if let Some(kind) = recompute {
        text.add(format!(
            "options._Popart.set(\"autoRecomputation\", {kind})"
        ));
    }
    let mut settings = String::new();
    if training.state.is_off_chip() {
        settings += ".useOnChipStorage(False)";
    }
    if training.state.is_sharded() {
        settings += ".useReplicatedTensorSharding(True)";
        text.add(format!("options.replicationFactor({})", training.replicas));
    }
    if !settings.is_empty() {
        text.add(format!(
            "options.TensorLocations.setOptimizerLocation(poptorch.TensorLocationSettings(){settings})"
        ));
    }
}

/// Keeps the outputs of the layers that are not recomputed.
fn checkpoints(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    let layers: Vec<&str> = match pipeline.checkpoints() {
        Checkpoints::None => return Ok(()),
        Checkpoints::Layers => pipeline.layers().map(|(_, layer)| layer).collect(),
        Checkpoints::Stages => {
            let ends = pipeline.split.stages.iter().rev().skip(1).rev();
            let ends = ends.filter_map(|stage| stage.named_layers().last());
            ends.collect()
        }
    };
    let Some(template) = modules.layer else {
        notes.add(
            "Pass the output of each layer after which recomputation begins anew through \
             poptorch.recomputationCheckpoint(...); with --module, that is written below.",
        );
        return Ok(());
    };
    let layers = layers.iter().map(|layer| template.python(layer));
    let layers: Vec<String> = layers.collect::<Result<_, _>>()?;
    if !layers.is_empty() {
        text.add(format!(
            "\nfor layer in [{}]:\n    layer.register_forward_hook(\n        \
             lambda layer, inputs, output: poptorch.recomputationCheckpoint(output)\n    )",
            layers.join(", ")
        ));
    }
    Ok(())
}
