//! Warnings about data that the memory of a pipeline depends on and that the profile does not have.

use super::{Recompute, flows::UseInPipeline};
use crate::{
    memory::MemoryModel,
    message::Warning,
    model::Framework,
    wording::{grouped, listed},
};
use std::ops::Range;

/// Weights that no operation updates cause a warning only if they have more than a hundredth
/// (1/`MIN_SHARE`) of the bytes of all weights. Fewer do not change a split noticeably.
const MIN_SHARE: u64 = 100;

impl MemoryModel<'_> {
    /// Returns a warning if no operation updates any weights of a training model, or if none
    /// updates the weights of some stages. A pipeline adds accumulators of gradients only for
    /// updated weights, so predictions may then be too low. `stages` are ranges of positions (end
    /// exclusive); the index of a stage is the number of its IPU.
    pub fn update_warning(&self, stages: &[Range<usize>]) -> Option<Warning> {
        let [not_updated, updated] = self.weights(&(0..self.layers()));
        if updated == 0 && not_updated > 0 {
            return Some(Warning::new(format!(
                "no operation was found that updates weights, so no gradient accumulators are \
                 counted: up to {} bytes if all weights are trained; record with gradient \
                 accumulation over 2 or more micro-batches, so that the profile has the \
                 accumulators",
                grouped(not_updated)
            )));
        }
        let least = (updated + not_updated) / MIN_SHARE;
        let (numbers, bytes): (Vec<_>, Vec<_>) = stages
            .iter()
            .enumerate()
            .filter_map(|(number, stage)| match self.weights(stage) {
                [bytes, 0] if bytes > least => Some((number, bytes)),
                _ => None,
            })
            .unzip();
        (!numbers.is_empty()).then(|| {
            Warning::new(format!(
                "no operation was found that updates the weights of IPU {}, although other IPUs have \
                 some, so these weights count as frozen and get no gradient accumulators: up to {} \
                 bytes; record with gradient accumulation over 2 or more micro-batches if they are \
                 trained",
                listed(&numbers),
                grouped(bytes.iter().sum())
            ))
        })
    }

    /// Returns a warning if the profile was recorded with recomputation. Such a profile lacks
    /// activations that the stages of the pipeline keep (docs/model.md, "Recomputation"). There is
    /// no warning if the pipeline recomputes each layer, since few activations are missing then.
    pub fn recording_warning(&self) -> Option<Warning> {
        let (flows, recording) = (self.flows.as_ref()?, self.model.recording);
        let recompute = flows.pipeline.recompute;
        let lacks = flows.is_training && recording.recomputes && recompute != Recompute::Layer;
        lacks.then(|| {
            Warning::new(format!(
                "the profile was recorded with recomputation, so it has only the activations that \
                 are kept for that, and a pipeline with --recompute {recompute} keeps more at \
                 once, so its stages will need more than predicted; record without recomputation \
                 ({}), or compute one that recomputes each layer with --recompute layer",
                without_recomputation(recording.framework)
            ))
        })
    }

    /// Returns the bytes of the weights that a stage with the positions `range` (end exclusive)
    /// has: first of the weights that no operation updates, then of the weights that an operation
    /// updates. Both are 0 without a pipeline.
    fn weights(&self, range: &Range<usize>) -> [u64; 2] {
        let mut weights = [0; 2];
        let Some(flows) = &self.flows else {
            return weights;
        };
        for (number, variable) in (0u32..).zip(self.uses.all()) {
            let is_updated = match flows.of_use(number) {
                UseInPipeline::Accumulated(_) => 1,
                UseInPipeline::NotUpdated => 0,
                _ => continue,
            };
            if self.counts_in(self.counted(variable.set), range) {
                weights[is_updated] += variable.bytes;
            }
        }
        weights
    }
}

/// Returns a phrase for a warning: the settings that make `framework` compile without
/// recomputation, named as in the sources of the framework.
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
