//! Which weights get an accumulator: weights that an operation updates.

use super::UseInPipeline;
use crate::model::{Framework, Model, PassPlaces, TensorKind};

/// By use set, the role of its parameters: no weights where the profile has accumulators or
/// gradients are not summed up.
pub(super) fn by_set(model: &Model, by_pass: &PassPlaces) -> Vec<UseInPipeline> {
    let sets = model.use_sets.len();
    if model.backward_start.is_none() || model.recording.accumulates {
        return vec![UseInPipeline::Other; sets];
    }
    let is_tensorflow = model.recording.framework == Framework::Tensorflow;
    let has_kinds = !is_tensorflow && model.tells_weights();
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
