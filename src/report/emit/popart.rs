//! PopART's builder: every operation of a pipeline has a virtual graph (an
//! IPU) and a pipeline stage, and a session needs virtual graphs to be set by
//! hand. Pipelining on one IPU is an error there.

use super::form_source::FormSource;
use super::lines::{Lines, STAGE};
use crate::escape::printable;

/// Adds to `text` the Python contexts of PopART's builder that set the virtual graph and the
/// pipeline stage of each layer.
pub fn layers(source: FormSource<'_>, text: &mut Lines<'_>) {
    for (position, layer) in source.layers() {
        let line = format!(
            "with builder.virtualGraph({STAGE}), builder.pipelineStage({STAGE}):\n    \
             ...  # layer {}",
            printable(layer)
        );
        text.at(position, &line);
    }
}
