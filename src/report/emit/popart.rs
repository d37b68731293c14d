//! PopART's builder: every operation of a pipeline has a virtual graph (an
//! IPU) and a pipeline stage, and a session needs virtual graphs to be set by
//! hand. Pipelining on one IPU is an error there.

use super::{Notes, Split, layers, printable};
use std::fmt::Write;

pub(super) fn emit(split: &Split, notes: &mut Notes) -> String {
    let stages = split.stages.len();
    notes.add("In place of each ... goes what builds that layer.");
    notes.add("What comes before the first layer goes with it, the loss with the last.");
    notes.add("The device needs as many IPUs as there are stages.");
    notes.batches(stages, "batchesPerStep", "accumulationFactor");
    let pipelined = if stages > 1 { "True" } else { "False" };
    let mut text = format!(
        "session_options = popart.SessionOptions()\n\
         session_options.virtualGraphMode = popart.VirtualGraphMode.Manual\n\
         session_options.enablePipelining = {pipelined}\n\n"
    );
    for (stage, layer) in layers(split) {
        let _ = writeln!(
            text,
            "with builder.virtualGraph({stage}), builder.pipelineStage({stage}):\n    \
             ...  # layer {}",
            printable(layer)
        );
    }
    text
}
