//! `pipeline_splits` of Graphcore's vision examples: the modules at which the next IPU begins. IPU
//! 0 has no entry. The CNNs for PopTorch name modules without parts, with slashes; the CNNs for
//! TensorFlow name Keras layers.

use super::counts::{self, Keys};
use super::lines::Lines;
use super::pipeline::{Checkpoints, Pipeline};
use crate::escape::quoted;
use crate::model::{Framework, PseudoLayers};

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    if pipeline.report.pseudo_layers == PseudoLayers::OutWithIn {
        notes.if_out_returns(
            "There is nothing to paste: pipeline_splits cannot say that Out is on IPU 0. See \
             --out-on.",
        );
        text.by_stages(|stages| (stages < 2).then(|| NO_SPLITS.into()));
        return;
    }
    notes.add(
        "Each entry begins the next IPU; what runs before the first entry is on IPU 0. For YOLOv4, \
         write dots instead of slashes.",
    );
    text.by_stages(|stages| {
        let key = if stages > 1 {
            "pipeline_splits:"
        } else {
            NO_SPLITS
        };
        Some(key.into())
    });
    for (position, layer) in pipeline.layers() {
        let given = pipeline.modules.layer.map(|template| template.text(layer));
        let module = given.or_else(|| module(pipeline, position));
        text.begin((position, true), &entry(module, layer));
    }
    if let Some(out) = pipeline.out() {
        let given = pipeline.modules.after.map(str::to_string);
        let module = given.or_else(|| module(pipeline, out));
        text.begin((out, true), &entry(module, "Out"));
    }
    counts::write_settings(pipeline, KEYS, text, |key, value| format!("{key}: {value}"));
    counts::limits(pipeline, notes, "utils/ipu_settings.py");
    if pipeline.checkpoints() == Checkpoints::Layers {
        notes.add("Name the last module of each layer in recompute_checkpoints.");
    }
    if pipeline.is_keras() {
        notes.add(
            "The CNNs for TensorFlow call these keys gradient_accumulation_count, num_replicas, \
             recomputation and optimizer_state_offloading.",
        );
    }
}

/// One stage, in which no module begins another.
const NO_SPLITS: &str = "pipeline_splits: []";

/// The keys of the training settings in Graphcore's CNN examples for PopTorch.
const KEYS: Keys = [
    "gradient_accumulation",
    "replicas",
    "",
    "offload_optimizer",
    "enable_optimizer_rts",
];

/// Returns the first module without parts that a position calls, or its first Keras layer.
fn module(pipeline: Pipeline<'_>, position: u32) -> Option<String> {
    if pipeline.is_keras() {
        return pipeline.keras_begin(position).cloned();
    }
    let calls = pipeline.calls(position, Framework::Poptorch)?;
    Some(calls.leaf.as_ref()?.replace('.', "/"))
}

fn entry(module: Option<String>, name: &str) -> String {
    match module {
        Some(module) => format!("- {}", quoted(&module)),
        None => format!(
            "- {}  # write its first module (--module, --module-out)",
            quoted(&format!("<{name}>"))
        ),
    }
}
