//! Which weights get an accumulator: weights that an operation updates.

use crate::model::{Framework, Model, PassPlaces, TensorKind};

/// Bytes of one element of a weight; `None` if they are unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccumulatorSize(pub(super) Option<u8>);

/// Memory that a training pipeline adds for a variable that is live throughout.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lasting {
    /// An accumulator for a weight.
    Accumulated(AccumulatorSize),
    /// Nothing, for a weight that no operation updates.
    NotUpdated,
    /// Nothing, for a variable that is no weight or whose accumulator is in the profile.
    Other,
}

/// By use set, what is added for its parameters: nothing where the profile has accumulators or
/// gradients are not summed up.
pub(super) fn by_set(model: &Model, by_pass: &PassPlaces) -> Vec<Lasting> {
    let sets = model.use_sets.len();
    if model.backward_start.is_none() || model.recording.accumulates {
        return vec![Lasting::Other; sets];
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
            _ if !may_be_weight || forward.is_empty() => Lasting::Other,
            0 => Lasting::NotUpdated,
            // A variable that several updates use, such as a learning rate, is not a weight.
            2.. if !has_kinds => Lasting::Other,
            _ => Lasting::Accumulated(AccumulatorSize(label.element_bytes)),
        }
    };
    (0..sets as u32).map(of_set).collect()
}
