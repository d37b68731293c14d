//! Generated models, and their truth by construction.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;

use popliner::model::{
    LayerOptions, LayerOrder, Layering, Model, NO_LAYER, Placement, PlacementOptions,
};
use synthesize::place_truth::PlaceTruth;
use synthesize::places::Places;
use tempfile::TempDir;

use super::drawn::Drawn;
use crate::support::model_in;

/// A generated model.
pub struct Planted {
    pub drawn: Drawn,
    pub folder: TempDir,
    pub truth: PlaceTruth,
}

impl Planted {
    /// Generates the model of these options.
    pub fn with(drawn: Drawn) -> Self {
        let folder = TempDir::new().expect("a folder");
        let model = synthesize::write(folder.path(), &drawn.options).expect("both files");
        Self {
            truth: model.places(),
            drawn,
            folder,
        }
    }

    /// Must In and Out be on one IPU? Then both are the first position.
    pub fn ends_are_tied(&self) -> bool {
        let ends = Places::IN | Places::OUT;
        self.truth.ties.iter().any(|(_, tied)| tied.holds(ends))
    }

    /// Returns the number of positions: In, each layer, and Out.
    pub fn positions(&self) -> usize {
        self.truth.layers as usize + if self.ends_are_tied() { 1 } else { 2 }
    }

    /// Returns all contiguous ranges of positions that hold all places of each of their weights.
    pub fn stages(&self) -> impl Iterator<Item = Range<usize>> {
        let all = self.positions();
        let ranges = (0..all).flat_map(move |from| (from + 1..=all).map(move |to| from..to));
        ranges.filter(|range| self.can_be_a_stage(range))
    }

    fn places(&self, range: &Range<usize>) -> Places {
        let positions = range.start as u32..=range.end as u32 - 1;
        let places = Places::positions(self.truth.layers, positions);
        match range.start {
            0 if self.ends_are_tied() => places | Places::OUT,
            _ => places,
        }
    }

    /// Returns the positions of places.
    pub fn positions_of(&self, places: Places) -> BTreeSet<usize> {
        let last = self.truth.layers as usize + 1;
        let position = |position: u32| match position as usize {
            out if out == last && self.ends_are_tied() => 0,
            position => position,
        };
        let places = places.in_order(self.truth.layers).into_iter();
        places.map(position).collect()
    }

    /// Returns, for each tile, the bytes that a range needs.
    pub fn bytes(&self, range: &Range<usize>) -> Vec<u64> {
        self.truth.bytes(self.places(range))
    }

    /// Does a range hold all places of each of its weights?
    pub fn can_be_a_stage(&self, range: &Range<usize>) -> bool {
        let places = self.places(range);
        let mut ties = self.truth.ties.iter();
        ties.all(|(_, tied)| !places.meets(*tied) || places.holds(*tied))
    }
}

/// A planted model as the library reads it.
pub struct Read {
    pub model: Model,
    pub layering: Layering,
    pub placement: Placement,
}

impl Read {
    pub fn new(folder: &Path, truth: &PlaceTruth) -> Self {
        let model = model_in(folder);
        assert_eq!(model.contradictions, [], "{}", folder.display());
        let layering = layering(&model, truth);
        let placement = Placement::full(&model, &layering, &PlacementOptions::default());
        Self {
            placement: placement.expect("places"),
            model,
            layering,
        }
    }
}

/// Returns the layers of a model: by the names of operations, or the blocks of a graph with the
/// operations between them. Gradients of PopART have no name.
fn layering(model: &Model, truth: &PlaceTruth) -> Layering {
    let blocks = &truth.blocks;
    if blocks.is_empty() {
        let options = LayerOptions {
            order: LayerOrder::Natural,
            ..LayerOptions::default()
        };
        return Layering::of_names(&model.operations, &options);
    }
    let of_graph = truth.operations.iter().filter(|op| op.forward.is_some());
    let layers: HashMap<u64, u32> = of_graph
        .map(|operation| (operation.context.into(), truth.position(operation)))
        .filter(|&(_, position)| position <= truth.layers)
        .collect();
    let of_operation = model.operations.iter().map(|operation| {
        let uid = model.operation_groups[operation.group as usize].uid;
        let layer = layers.get(&uid).filter(|_| !operation.is_anonymous);
        *layer.unwrap_or(&NO_LAYER)
    });
    let names = [String::new()].into_iter().chain(blocks.iter().cloned());
    Layering::of(names.collect(), of_operation.collect())
}
