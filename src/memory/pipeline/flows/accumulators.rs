//! Which weights get an accumulator.

use crate::model::{Framework, Model, PassPlaces, TensorKind};

/// For a weight: the bytes of its elements, if they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccumulatorSize(pub(super) Option<u8>);

/// By user set: which are weights that need an accumulator (pipeline.md, section
/// 14). None do where the profile has accumulators or gradients are not summed up.
pub(super) fn by_set(model: &Model, by_pass: &PassPlaces) -> Vec<Option<AccumulatorSize>> {
    let sets = model.user_sets.len();
    if model.turn.is_none() || model.recording.accumulates {
        return vec![None; sets];
    }
    let has_kinds = model.recording.framework != Framework::Tensorflow
        && model
            .labels
            .iter()
            .any(|own| own.kind == TensorKind::Variable);
    let updates = model.updates_by_set();
    let size = |set: u32| {
        let label = model.label_of(set);
        let is_forward = !by_pass
            .sets
            .places(by_pass.forward[set as usize])
            .is_empty();
        let is_weight = if has_kinds {
            // The optimiser's state has these marks in front of the weight.
            let is_state = ["Accum___", "Accl"]
                .iter()
                .any(|mark| label.tensor.starts_with(mark));
            label.kind == TensorKind::Variable && !is_state
        } else {
            // What several updates use, such as a learning rate, is not a weight.
            label.kind != TensorKind::Constant && updates[set as usize] == 1
        };
        (is_weight && is_forward).then_some(AccumulatorSize(label.element_bytes))
    };
    (0..sets as u32).map(size).collect()
}
