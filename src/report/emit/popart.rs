//! PopART's builder: every operation of a pipeline has a virtual graph (an
//! IPU) and a pipeline stage, and a session needs virtual graphs to be set by
//! hand. Pipelining on one IPU is an error there.

use super::lines::{LAST_STAGE, Lines, STAGE};
use super::pipeline::Pipeline;
use crate::escape::printable;
use crate::model::PseudoLayers;

/// Writes the virtual graph and the pipeline stage of each part of the model.
pub(super) fn parts(pipeline: Pipeline<'_>, text: &mut Lines<'_>) {
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

/// Describes the part to build, with the name of its first module.
fn named(what: &str, module: Option<&str>) -> String {
    match module {
        Some(module) => format!("{what}, starting with {module}"),
        None => what.to_string(),
    }
}
