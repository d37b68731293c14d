//! Divides the bytes of the variables of a stage into kinds such as weights, gradients and
//! activations (docs/model.md, "Kinds of variables").

use super::{MemoryModel, StageMemory, steps::has_step};
use crate::model::{EVERYWHERE, Framework, Model, NO_USERS, TensorKind};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of the variables of a stage on one tile, by kind (docs/model.md, "Kinds of variables").
/// Their sum is [`Parts::variables`](super::Parts::variables).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VariableKinds {
    /// Bytes of weights: parameters that the forward pass uses.
    pub weights: u64,
    /// Bytes of gradients of weights and, if the model was compiled with gradient accumulation, of
    /// the accumulators in which they are summed.
    pub gradients: u64,
    /// Bytes of optimizer state: parameters that only updates use.
    pub optimizer_state: u64,
    /// Bytes of the tensors that the forward and the backward pass make, except gradients of
    /// weights: activations, their gradients, and temporaries.
    pub activations: u64,
    /// Bytes of all variables that are none of the other kinds: constants, tensors that exist only
    /// during a weight update, and variables of unknown purpose.
    pub other: u64,
}

impl VariableKinds {
    /// Returns the bytes of the stage's variables of each of the five kinds (weights, gradients,
    /// optimizer state, activations, other), with the name that is shown to users.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer state", self.optimizer_state),
            ("activations", self.activations),
            ("other", self.other),
        ]
    }
}

/// Rules that determine the kind of a variable, such as weight or activation, from the operations
/// that use the variable.
struct KindRules<'a> {
    model: &'a Model,
    /// Whether a parameter needs a label from the debug contexts to count as a weight, a gradient
    /// or optimizer state; without one, its kind is `other`. True if the model has such labels and
    /// its framework is not TensorFlow.
    has_labels: bool,
    /// One entry per use set (the operations that use a variable): whether the forward pass uses
    /// the variables.
    forward: Vec<bool>,
    /// One entry per use set (the operations that use a variable): whether any of these operations,
    /// apart from copies from and to the host, updates weights or runs after the forward and the
    /// backward pass, such as a norm of all gradients.
    late: Vec<bool>,
    /// One entry per use set (the operations that use a variable): whether only updates, and copies
    /// from and to the host, use the variables.
    only_updates: Vec<bool>,
}

impl<'a> KindRules<'a> {
    /// Finds out in which passes the variables of `model` are used. `end` is the first liveness
    /// step after the forward and the backward pass.
    fn new(model: &'a Model, end: u32) -> Self {
        let is_update = model.groups_with(|_, operation| operation.is_update);
        let is_after = model.groups_from(end);
        let streams = |group: usize| model.operation_groups[group].only_streams();
        Self {
            model,
            has_labels: model.recording.framework != Framework::Tensorflow
                && model.has_weight_labels(),
            forward: model.sets_of_forward(),
            late: model
                .sets_of_any(|group| (is_update[group] || is_after[group]) && !streams(group)),
            only_updates: model.sets_of_only(|group| is_update[group] || streams(group)),
        }
    }

    /// Returns the field of `kinds`, such as weights or activations, to which the bytes of
    /// variables belong. `class` is their equivalence class (variables that are live at the same
    /// steps), and `set` their use set (the operations that use them).
    fn of<'k>(&self, kinds: &'k mut VariableKinds, class: u32, set: u32) -> &'k mut u64 {
        let (model, index) = (self.model, set as usize);
        let label = model.label_of(set);
        let is_parameter = model.is_parameter(class, set);
        let is_known = if is_parameter && self.has_labels {
            label.kind == TensorKind::Variable
        } else {
            label.kind != TensorKind::Constant && set != NO_USERS
        };
        let begin = model.classes.ranges(class).first().map(|range| range.0);
        let is_of_backward = model.backward_start.is_some() && begin >= model.backward_start;
        let is_late = self.late[index];
        match (is_parameter, is_late && self.only_updates[index]) {
            _ if !is_known => &mut kinds.other,
            (true, _) if label.is_accumulator() => &mut kinds.gradients,
            (true, _) if self.forward[index] => &mut kinds.weights,
            (true, true) => &mut kinds.optimizer_state,
            (false, true) => &mut kinds.other,
            _ if is_late && (is_parameter || is_of_backward) => &mut kinds.gradients,
            (true, false) => &mut kinds.other,
            (false, false) => &mut kinds.activations,
        }
    }
}

impl MemoryModel<'_> {
    /// Returns one entry per stage: the bytes of its variables on its fullest tile at its peak
    /// step, broken down by kind. `stages` are ranges of positions (end exclusive), and `memory`
    /// has the memory of each of these stages.
    pub fn variable_kinds(
        &self,
        stages: &[Range<usize>],
        memory: &[StageMemory],
    ) -> Vec<VariableKinds> {
        let [.., after] = &self.phases;
        let rules = KindRules::new(self.model, after.start);
        let data = self.uses.data.uses().len();
        let mut kinds = vec![VariableKinds::default(); stages.len()];
        for ((kinds, stage), memory) in kinds.iter_mut().zip(stages).zip(memory) {
            let Some(step) = memory.peak_step() else {
                continue;
            };
            let tile = memory.max_tile();
            let update = self.update.as_ref().filter(|_| {
                let update = memory.updates.get(tile as usize);
                update.is_some_and(|update| update.bytes > update.in_passes)
            });
            for (number, bytes) in self.uses.numbered_on_tile(tile) {
                let own = self.uses.of(number);
                let counted = self.counted(own.set);
                // If the stage has its peak in a weight update, all its parameters that stay on the
                // chip are counted, even those that the profile lists as live at some steps only.
                // The bytes of tensors that the update makes are counted as optimizer state, not as
                // variables.
                let is_filled = update.is_some_and(|update| update.of(number).fills_holes)
                    && counted != EVERYWHERE
                    && self.counts_in(counted, stage);
                let mut times = u64::from(is_filled);
                self.each_life(number, |part, live| {
                    let is_live = live.is_none_or(|live| update.is_none() && has_step(live, step))
                        && part.0 != EVERYWHERE
                        && self.has_part(part, stage);
                    times += u64::from(is_live);
                });
                // The first `data` groups of variables hold data, such as weights. All further
                // groups hold code, which is not of any of the other kinds.
                *if (number as usize) < data {
                    rules.of(kinds, own.class, own.set)
                } else {
                    &mut kinds.other
                } += times * bytes;
            }
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Analysis, Request};
    use crate::memory::testing::{placed, random_training, seeds};
    use crate::memory::tests::reference_model::{full, memory};
    use crate::memory::{Pipeline, Recompute, Schedule, StatePlace};
    use crate::search::IpuCount;
    use std::path::Path;

    fn total(kinds: &VariableKinds) -> u64 {
        kinds.named().iter().map(|(_, bytes)| bytes).sum()
    }

    fn pipelines() -> impl Iterator<Item = Pipeline> {
        let recomputes = [Recompute::None, Recompute::Layer];
        let elsewhere = [
            StatePlace::OnChip,
            StatePlace::OffChip,
            StatePlace::ShardedOffChip,
        ];
        let all = elsewhere
            .into_iter()
            .flat_map(move |state| recomputes.map(|recompute| (state, recompute)));
        let pipelines = all.map(|(state, recompute)| Pipeline {
            schedule: Schedule::Popart,
            recompute,
            state,
            replicas: 2,
            ..Pipeline::default()
        });
        pipelines.chain([Pipeline::default()])
    }

    #[test]
    fn kinds_add_up_to_the_variables() {
        for seed in seeds(40) {
            let (model, layering) = random_training(seed, 0);
            let placement = full(&model, &layering);
            for pipeline in pipelines() {
                let memory = memory(&model, &placement).in_pipeline(pipeline);
                let memory = memory.expect("few places");
                let stages = placed(memory.layers());
                let computed = memory.placed_stages(&stages);
                let ranges: Vec<_> = stages.into_iter().map(|stage| stage.positions).collect();
                let kinds = memory.variable_kinds(&ranges, &computed);
                for ((kinds, computed), range) in kinds.iter().zip(&computed).zip(ranges) {
                    let parts = &computed.tiles[computed.max_tile() as usize];
                    let case = format!("seed {seed}, {pipeline:?}, {range:?}");
                    assert_eq!(total(kinds), parts.variables, "{case}");
                }
            }
        }
    }

    fn of_fixture(name: &str) -> Vec<VariableKinds> {
        let folder = Path::new("fixtures").join(name);
        let files = ["profile.pop", "debug.cbor"].map(|file| folder.join(file));
        let analysis = Analysis::read(&files[0], &files[1]).expect(name);
        let request = Request {
            ipus: Some(IpuCount::Exactly(4)),
            ..Request::default()
        };
        let split = analysis.split(&request).expect(name).split.expect(name);
        let kinds = split.stages.iter().map(|stage| {
            let tile = &stage.fullest_tile;
            assert_eq!(total(&tile.variable_kinds), tile.parts.variables, "{name}");
            tile.variable_kinds
        });
        kinds.collect()
    }

    #[test]
    fn fixtures_have_the_kinds_that_they_were_made_with() {
        for kinds in of_fixture("popart-bert-inference") {
            assert!(kinds.weights > 0 && kinds.activations > 0, "{kinds:?}");
            assert_eq!((kinds.gradients, kinds.optimizer_state), (0, 0));
        }
        // This fixture has a 16-bit accumulator and two 32-bit moments for each 16-bit weight, so
        // the optimizer state takes four times the bytes of the weights.
        for kinds in of_fixture("training-pipeline") {
            assert_eq!(kinds.gradients, kinds.weights);
            assert_eq!(kinds.optimizer_state, 4 * kinds.weights);
        }
        for name in ["poptorch-bert-training", "tensorflow-cnn"] {
            let kinds = of_fixture(name);
            assert!(kinds.iter().all(|kinds| kinds.weights > 0), "{kinds:?}");
            assert!(kinds.iter().any(|kinds| kinds.gradients > 0), "{kinds:?}");
        }
    }
}
