//! Which weights get an accumulator, and where the gradients end that it takes (docs/model.md,
//! "Accumulators and updates").

use super::{Flow, Life, UseInPipeline};
use crate::model::{Framework, Model, PassPlaces, TensorKind};

/// By use set, the role of its parameters: no weights where the profile has accumulators or
/// gradients are not summed up.
pub(super) fn by_set(model: &Model, by_pass: &PassPlaces) -> Vec<UseInPipeline> {
    let sets = model.use_sets.len();
    if model.backward_start.is_none() || model.recording.accumulates {
        return vec![UseInPipeline::Other; sets];
    }
    let is_tensorflow = model.recording.framework == Framework::Tensorflow;
    let has_kinds = !is_tensorflow && model.has_weight_labels();
    let updates = model.updates_by_set();
    let of_set = |set: u32| {
        let label = model.label_of(set);
        let (forward, _) = by_pass.places(set);
        let may_be_weight = if has_kinds {
            // Names of optimizer state have these marks before the name of the weight.
            let is_state = ["Accum___", "Accl"]
                .iter()
                .any(|mark| label.tensor.starts_with(mark));
            label.kind == TensorKind::Variable && !is_state
        } else {
            label.kind != TensorKind::Constant
        };
        match updates[set as usize] {
            _ if !may_be_weight || forward.is_empty() => UseInPipeline::Other,
            0 => UseInPipeline::NotUpdated,
            // A variable that several updates use, such as a learning rate, is not a weight.
            2.. if !has_kinds => UseInPipeline::Other,
            _ => UseInPipeline::Accumulated(label.element_bytes),
        }
    };
    (0..sets as u32).map(of_set).collect()
}

/// Variables that the backward pass makes for operations after it, such as an update or a norm.
#[derive(Debug, Default)]
pub(super) struct Summed {
    /// By use set: does an operation after both passes compute with it?
    is_used_after: Vec<bool>,
    /// The first step after both passes.
    end: u32,
}

impl Summed {
    /// Finds them for a model that gets accumulators which it was not recorded with.
    pub(super) fn new(model: &Model, end: u32) -> Self {
        let is_after = model.groups_with(|operation| {
            let window = operation.window;
            window.is_some_and(|(first, _)| first >= end)
        });
        let users =
            model.users_by_set(|group| is_after[group] && model.operation_groups[group].computes());
        Self {
            is_used_after: users.into_iter().map(|users| users > 0).collect(),
            end,
        }
    }

    /// The step before which variables of a use set end that the profile has live on `ranges`;
    /// `None` if no accumulator takes their values.
    pub(super) fn until(&self, flow: &Flow, set: u32, ranges: &[(u32, u32)]) -> Option<u32> {
        let is_gradient = flow.life == Life::Backward;
        let is_gradient = is_gradient && self.is_used_after.get(set as usize) == Some(&true);
        let (&(begin, _), &(_, last)) = ranges.first().zip(ranges.last())?;
        (is_gradient && begin < self.end && self.end < last).then_some(self.end)
    }
}
