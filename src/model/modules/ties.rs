//! Operations at the ends of a model that share a weight, such as an embedding and the head.
//!
//! Frameworks keep a weight on one IPU, and In and Out may be together on the first. So operations
//! that use a shared weight are in In or Out instead of in layers, which could not be apart.

use super::ModuleLayers;
use crate::model::{Model, WeightTie};
use rustc_hash::FxHashSet;

impl ModuleLayers {
    /// The layers without the operations that are in In or Out so that ties bind no layers;
    /// `None` where that is not possible for any tie.
    pub(crate) fn without_tied_ends(&self, model: &Model, ties: &[WeightTie]) -> Option<Self> {
        let mut is_released = self.is_released.clone();
        for tie in ties.iter().filter(|tie| !tie.is_untied) {
            for operation in self.users(model, tie) {
                if let Some(range) = self.releasable(operation) {
                    is_released[range].fill(true);
                }
            }
        }
        if is_released == self.is_released {
            return None;
        }
        let is_left =
            |nodes: &Vec<usize>| !is_released[self.modules.run(nodes)].iter().all(|&is| is);
        let kept: Vec<usize> = (0..self.layers.len())
            .filter(|&layer| is_left(&self.layers[layer]))
            .collect();
        Some(Self {
            layers: kept
                .iter()
                .map(|&layer| self.layers[layer].clone())
                .collect(),
            names: kept
                .iter()
                .map(|&layer| self.names[layer].clone())
                .collect(),
            paths: kept
                .iter()
                .map(|&layer| self.paths[layer].clone())
                .collect(),
            modules: self.modules.clone(),
            is_released,
        })
    }

    /// The operations of the forward pass that use a weight.
    fn users(&self, model: &Model, tie: &WeightTie) -> FxHashSet<u32> {
        let sets = (0..model.use_sets.len() as u32)
            .filter(|&set| model.label_of(set).weight_name() == tie.weight);
        let groups: FxHashSet<u32> = sets.flat_map(|set| model.use_sets.groups(set)).collect();
        let forward = (0u32..).zip(&self.modules.forward);
        let uses =
            |&(_, &number): &(u32, &u32)| groups.contains(&model.operations[number as usize].group);
        forward
            .filter(uses)
            .map(|(operation, _)| operation)
            .collect()
    }

    /// The operations that go to In or Out with one: all up to the end of its layer before the first
    /// layer that is like others, all from its layer on after the last; between them the operation alone if
    /// no data flows to it.
    fn releasable(&self, operation: u32) -> Option<std::ops::Range<usize>> {
        let at = operation as usize;
        let layer = self
            .layers
            .iter()
            .position(|nodes| self.modules.run(nodes).contains(&at))?;
        let run = self.modules.run(&self.layers[layer]);
        let (first, last) = self.blocks()?;
        if layer < first {
            Some(0..run.end)
        } else if layer > last {
            Some(run.start..self.modules.forward.len())
        } else {
            let has_input = self.modules.flow.iter().any(|&(_, to)| to == at);
            (!has_input).then_some(at..at + 1)
        }
    }

    /// The first and the last layer that are like another layer.
    fn blocks(&self) -> Option<(usize, usize)> {
        let runs: Vec<_> = self
            .layers
            .iter()
            .map(|nodes| self.modules.run(nodes))
            .collect();
        let are_alike = self.modules.sums.have_likes(&runs);
        let first = are_alike.iter().position(|&is| is)?;
        Some((first, are_alike.iter().rposition(|&is| is)?))
    }
}
