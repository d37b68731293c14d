//! The warning about a profile that was recorded with recomputation.

use super::Recompute;
use crate::memory::MemoryModel;
use crate::message::Warning;
use crate::model::Framework;

impl MemoryModel<'_> {
    /// Warns if the stages of the pipeline keep activations that the profile lacks, because it was
    /// recorded with recomputation (docs/model.md, "Recomputation"). Where each layer is
    /// recomputed, little is missing.
    pub fn recording_warning(&self) -> Option<Warning> {
        let (flows, recording) = (self.flows.as_ref()?, self.model.recording);
        let recompute = flows.pipeline.recompute;
        let lacks = flows.is_training && recording.recomputes && recompute != Recompute::Layer;
        lacks.then(|| {
            Warning::new(format!(
                "the profile was recorded with recomputation, so it has only the activations that \
                 are kept for that, and a pipeline with --recompute {recompute} keeps more at \
                 once, so its stages will need more than is said here; record without recomputation \
                 ({}), or compute one that recomputes each layer with --recompute layer",
                without_recomputation(recording.framework)
            ))
        })
    }
}

/// How to compile without recomputation, with names from the sources of the frameworks.
fn without_recomputation(framework: Framework) -> &'static str {
    match framework {
        Framework::Popart => {
            "autoRecomputation = popart.RecomputationType.NoRecompute in popart.SessionOptions, \
             and no recomputeOutput in the model"
        }
        Framework::Poptorch => {
            "options._Popart.set(\"autoRecomputation\", \
             int(popart.RecomputationType.NoRecompute)), and no poptorch.recomputationCheckpoint \
             in the model"
        }
        Framework::Tensorflow => "allow_recompute = False in the IPUConfig",
        Framework::Popxl | Framework::Poplar => "without what the model computes again by itself",
    }
}
