//! Operations at the ends of a model that share a weight, such as an embedding and the head.
//!
//! Frameworks keep a weight on one IPU, and In and Out may share the first. So operations that use
//! a shared weight are in In or Out; in layers, they would bind these layers to one IPU.

use super::ModuleLayers;
use super::cover::{Lengths, WORD};
use crate::model::{Model, WeightTie};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl ModuleLayers {
    /// The layers without operations that are in In or Out, so that ties do not bind layers; `None`
    /// if there is no such operation.
    pub(crate) fn without_tied_ends(&self, model: &Model, ties: &[WeightTie]) -> Option<Self> {
        let (first, last) = self.blocks()?;
        let has_input: FxHashSet<usize> = self.modules.flow.iter().map(|&(_, to)| to).collect();
        let mut is_released = self.is_released.clone();
        for operation in self.tied_operations(model, ties) {
            let at = operation as usize;
            let Some(layer) = self.layer_at(operation) else {
                continue;
            };
            let run = self.modules.run(&self.layers[layer as usize]);
            // Operations before the first block are In, and operations after the last are Out.
            if (layer as usize) < first {
                is_released[..run.end].fill(true);
            } else if layer as usize > last {
                is_released[run.start..].fill(true);
            } else if !has_input.contains(&at) {
                is_released[at] = true;
            }
        }
        (is_released != self.is_released).then(|| self.released(is_released))
    }

    /// The layers that still have operations.
    fn released(&self, is_released: Vec<bool>) -> Self {
        let mut left = Self {
            layers: Vec::new(),
            names: Vec::new(),
            paths: Vec::new(),
            modules: Arc::clone(&self.modules),
            is_released,
        };
        for (layer, nodes) in self.layers.iter().enumerate() {
            let run = self.modules.run(nodes);
            if !left.is_released[run].iter().all(|&is_released| is_released) {
                left.layers.push(nodes.clone());
                left.names.push(self.names[layer].clone());
                left.paths.push(self.paths[layer].clone());
            }
        }
        left
    }

    /// The operations of the forward pass that use a weight of several places, ascending.
    fn tied_operations(&self, model: &Model, ties: &[WeightTie]) -> Vec<u32> {
        let tied = ties.iter().filter(|tie| !tie.is_untied);
        let tied: FxHashSet<&str> = tied.map(|tie| &*tie.weight).collect();
        let mut is_user = vec![false; model.operation_groups.len()];
        let sets = 0..model.use_sets.len() as u32;
        for set in sets.filter(|&set| tied.contains(model.label_of(set).weight_name())) {
            for group in model.use_sets.groups(set) {
                is_user[group as usize] = true;
            }
        }
        let uses = |number: u32| is_user[model.operations[number as usize].group as usize];
        let forward = (0u32..).zip(&self.modules.forward);
        let users = forward.filter(|&(_, &number)| uses(number));
        users.map(|(operation, _)| operation).collect()
    }

    /// The first and the last layer that are like another layer.
    fn blocks(&self) -> Option<(usize, usize)> {
        let runs = self.layers.iter().map(|nodes| self.modules.run(nodes));
        let runs: Vec<_> = runs.collect();
        let described = Lengths::new(&self.modules.sums, runs.iter(), WORD);
        let has_like = |run| !described.is_alone(run);
        Some((
            runs.iter().position(has_like)?,
            runs.iter().rposition(has_like)?,
        ))
    }
}
