//! The configurations of Graphcore's examples for PopTorch. BERT and ViT read them as YAML, GPT-2
//! as options of its command.

use super::counts;
use super::lines::{COUNTS, Lines, NUMBERS, STAGES};
use super::pipeline::Pipeline;
use crate::model::PseudoLayers;

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let items = counts::items(pipeline, "1", notes);
    notes.listed(&items, |notes| {
        notes.add(format!(
            "BERT and ViT take these keys in a configuration, GPT-2 as options, such as \
             --layers-per-ipu {NUMBERS}. ViT calls replicated_tensor_sharding enable_rts."
        ));
    });
    if pipeline.report.pseudo_layers == PseudoLayers::InAndOut {
        notes.add(
            "BERT and GPT-2 run Out on IPU 0: compute that with --out-on first. ViT runs it on IPU \
             3.",
        );
    }
    counts::limits(pipeline, notes, "ipu_options.py");
    text.listed(&items, |text| {
        text.add(format!("layers_per_ipu: [{COUNTS}]"))
    });
    text.add(format!("ipus_per_replica: {STAGES}"));
    if pipeline.is_inference() {
        text.by_stages(|stages| {
            let stages = pipeline.forward_stages(stages);
            Some(format!("device_iterations: {stages}  # or more"))
        });
    }
    let is_vit = |module: &str| module.split(['.', '/']).any(|part| part == "vit");
    let mut modules = pipeline.split.modules.iter();
    let is_vit = modules.any(|calls| calls.begin.as_deref().is_some_and(is_vit));
    let keys = [
        "gradient_accumulation",
        "replication_factor",
        "recompute_checkpoint_every_layer",
        "optimizer_state_offchip",
        if is_vit {
            "enable_rts"
        } else {
            "replicated_tensor_sharding"
        },
    ];
    counts::write_settings(pipeline, keys, text, |key, value| format!("{key}: {value}"));
}
