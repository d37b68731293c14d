//! The configuration of Graphcore's BERT for TensorFlow 2: the parts of the model in each pipeline
//! stage, and the IPU of each stage.

use super::counts;
use super::lines::{LISTS, Lines};
use super::pipeline::{self as comments, Pipeline};
use crate::memory::{Recompute, Schedule};
use crate::model::PseudoLayers;

/// Names that BERT's configuration gives to the parts before and after the blocks.
const IN: &str = "\"emb\"";
const OUT: &str = "\"enc_out\", \"pool\", \"heads\"";

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let mut items = counts::items(pipeline, "\"hid\"", notes);
    items[0] = IN.to_string();
    match pipeline.report.pseudo_layers {
        // Operations after the layers run in the stage of the last layer.
        PseudoLayers::NoneFirst => {
            if let Some(last) = items.last_mut() {
                let before = if last.is_empty() { "" } else { ", " };
                last.push_str(&format!("{before}{OUT}"));
            }
        }
        PseudoLayers::InAndOut | PseudoLayers::OutWithIn => items.push(OUT.to_string()),
    }
    notes.add("The names are from BERT; other models have other names for hid.");
    notes.add(
        "matmul_available_memory_proportion_per_pipeline_stage has one entry for each stage: keep \
         the values of the profile.",
    );
    comments::schedule(
        pipeline,
        notes,
        "BERT for TensorFlow",
        &[Schedule::TfGrouped],
    );
    text.add("{");
    text.by_stages(|stages| {
        let steps = pipeline.accumulation(stages)?;
        Some(format!(
            "  \"global_batch\": {{\"replicas\": {}, \"grad_acc_steps_per_replica\": {steps}}},",
            pipeline.replicas()
        ))
    });
    let training = pipeline.training();
    if let Some(training) = training {
        let recomputes = training.recompute != Recompute::None;
        let is_off_chip = training.state.is_off_chip();
        text.add(format!("  \"enable_recomputation\": {recomputes},"));
        text.add(format!("  \"optimizer_state_offchip\": {is_off_chip},"));
        if is_off_chip && training.state.is_sharded() {
            notes.add(
                "WARNING: this code supports optimizer state in replicas or off the chip, \
                       not both.",
            );
        }
    }
    text.add("  \"ipu_config\": {");
    text.listed(&items, |text| {
        text.add(format!("    \"pipeline_stages\": [{LISTS}],"))
    });
    let sharded = training.is_some_and(|training| training.state.is_sharded());
    text.add(format!("    \"replicated_tensor_sharding\": {sharded},"));
    text.by_stages(|stages| {
        let ipus = pipeline.ipus_of_stages(stages);
        Some(format!("    \"pipeline_device_mapping\": [{ipus}]"))
    });
    text.add("  }\n}");
}
