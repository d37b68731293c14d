//! Finds the layer whose operation runs at each liveness step.

use super::{MemoryModel, steps::each_stretch};
use std::cmp::Reverse;

/// A run of consecutive liveness steps that all belong to one layer. Steps without a layer that lie
/// between steps of the layer belong to the run too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerSpan {
    /// The layer to which the steps from `from` to `to` belong, by its position in the layer order.
    pub layer: u32,
    /// The first liveness step of the run of steps that belong to the layer.
    pub from: u32,
    /// The last liveness step, inclusive, of the run of steps that belong to the layer.
    pub to: u32,
}

/// The maximum number of spans (consecutive liveness steps of one layer) that
/// [`MemoryModel::layer_spans`] returns. If there are more, all steps are cut into at most this
/// number of pieces of equal length instead, and each piece is attributed to one layer.
const MAX_SPANS: usize = 600;

impl MemoryModel<'_> {
    /// Returns spans of consecutive liveness steps that belong to one layer, in the order of steps.
    ///
    /// - A step belongs to the layer of the operation that runs at this step. If several operations
    ///   run at it, the one that runs for the fewest steps decides. Operations that belong to more
    ///   than one layer are ignored.
    /// - A step without a layer belongs to a span if it lies between steps of the span's layer, and
    ///   otherwise to no span.
    /// - If there are more than 600 spans, all steps are cut into at most 600 pieces of equal
    ///   length instead. Each piece belongs to the most frequent layer of its steps.
    pub fn layer_spans(&self) -> Vec<LayerSpan> {
        let layers = self.layers_of_steps();
        let spans = runs(&layers);
        if spans.len() <= MAX_SPANS {
            return spans;
        }
        let stretch = layers.len().div_ceil(MAX_SPANS);
        let coarse: Vec<_> = layers
            .chunks(stretch)
            .flat_map(|steps| std::iter::repeat_n(most_frequent(steps), steps.len()))
            .collect();
        runs(&coarse)
    }

    /// Returns the layer of each liveness step, by its position in the layer order. Only operation
    /// groups with exactly one layer are considered. If several of them run at a step, the group
    /// that runs for the fewest steps decides; if none does, the entry is `None`.
    fn layers_of_steps(&self) -> Vec<Option<u32>> {
        let spans = self
            .model
            .operation_groups
            .iter()
            .zip(0u32..)
            .zip(&self.placement.of_group)
            .filter_map(|((group, number), &set)| {
                let (layer, (from, to)) = (self.sets.only(set)?, group.window?);
                Some((from, to + 1, (to - from, number, layer)))
            });
        let mut layers = vec![None; self.model.steps() as usize];
        each_stretch(spans, |from, to, running| {
            let shortest = running.keys().next().map(|&(.., layer)| layer);
            layers[from as usize..to as usize].fill(shortest);
        });
        layers
    }
}

fn runs(layers: &[Option<u32>]) -> Vec<LayerSpan> {
    let of_layers: Vec<_> = (0u32..)
        .zip(layers)
        .filter_map(|(step, layer)| Some((step, (*layer)?)))
        .collect();
    of_layers
        .chunk_by(|a, b| a.1 == b.1)
        .map(|run| LayerSpan {
            layer: run[0].1,
            from: run[0].0,
            to: run[run.len() - 1].0,
        })
        .collect()
}

fn most_frequent(layers: &[Option<u32>]) -> Option<u32> {
    let mut sorted: Vec<u32> = layers.iter().flatten().copied().collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|a, b| a == b)
        .max_by_key(|run| (run.len(), Reverse(run[0])))
        .map(|run| run[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_within_a_layer_go_with_it() {
        let layers = [None, Some(1), None, Some(1), None, Some(2), Some(1), None];
        let span = |layer, from, to| LayerSpan { layer, from, to };
        assert_eq!(runs(&layers), [span(1, 1, 3), span(2, 5, 5), span(1, 6, 6)]);
    }

    #[test]
    fn the_first_of_the_most_frequent() {
        let (one, two) = (Some(1), Some(2));
        assert_eq!(most_frequent(&[two, None, one, two, one]), one);
        assert_eq!(most_frequent(&[None, two, None]), two);
        assert_eq!(most_frequent(&[None]), None);
    }
}
