//! Which weights get an accumulator: those that something updates.

use crate::model::{Framework, Model, PassPlaces, TensorKind};

/// For a weight: the bytes of its elements, if they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccumulatorSize(pub(super) Option<u8>);

/// Memory that a pipeline that trains adds for persistent variables.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lasting {
    /// An accumulator.
    Accumulated(AccumulatorSize),
    /// Nothing: it is a weight that no operation updates.
    NotUpdated,
    /// Nothing: it is no weight, or the profile has its accumulator.
    Other,
}

/// By use set: what is added for its parameters. Nothing where the profile has
/// accumulators or gradients are not summed up.
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
            // The optimiser's state has these marks in front of the weight.
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
