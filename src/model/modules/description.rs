//! Compares two ways to divide a model into layers: its modules, and other layers, such as those of
//! a regex. The other layers are given by a list with the layer of each operation: a number from 1,
//! or 0 for none.

use super::{ModuleLayer, ModuleLayers, evidence::LARGE, paths::shared, which_are_layers::Lengths};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Measures by which two ways to divide a model into layers are compared. The shorter the
/// description of the model as a list of layers, the better are the layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Description {
    /// The length of the description, which is a fixed number for each layer plus its number of
    /// operations. Operations of layers with the same types of operations count only once
    /// ([`Lengths`]).
    pub length: f64,
    /// The number of operations of the longest piece. A piece is a layer, or all operations before
    /// or after all layers.
    pub longest: usize,
    /// The bytes, over all tiles, of the largest piece (a layer, or all operations before or after
    /// all layers). A variable counts only in the first piece that uses the variable.
    pub largest: u64,
}

impl ModuleLayers {
    /// Returns the module of each of `count` layers that a regex found: the path of the innermost
    /// module that contains all operations of the layer; empty if there is none. `layers` has the
    /// layer of each operation: from 1, or 0 for none.
    pub fn modules_of(&self, layers: &[u32], count: usize) -> Vec<String> {
        let mut shared_by: Vec<Option<&[Box<str>]>> = vec![None; count];
        for (&operation, path) in self.modules.forward.iter().zip(&self.modules.tree.paths) {
            let Some(layer) = (layers[operation] as usize).checked_sub(1) else {
                continue;
            };
            let known = shared_by[layer].get_or_insert(path);
            *known = &known[..shared(*known, path)];
        }
        shared_by
            .into_iter()
            .map(|path| path.unwrap_or_default().concat())
            .collect()
    }

    /// Returns one [`Description`] for each of two ways to divide the model: into the layers of
    /// `self`, which are modules, and into `layers`, which has the layer of each operation (from 1,
    /// or 0 for none). For `layers`, operations between two layers are added to the earlier one.
    pub fn descriptions(&self, layers: &[u32]) -> [Description; 2] {
        let own = self.layers.iter().map(|layer| &layer.runs[0].operations);
        let others = self.runs_of(layers);
        let sums = &self.modules.sums;
        let describe = |runs: Vec<&Range<usize>>| {
            let lengths = Lengths::new(sums, runs.iter().copied());
            Description {
                length: runs.iter().map(|run| lengths.of(run)).sum(),
                longest: runs.iter().map(|run| run.len()).max().unwrap_or(0),
                largest: runs.iter().map(|run| sums.bytes(run)).max().unwrap_or(0),
            }
        };
        [own.collect(), others.iter().map(|(_, run)| run).collect()].map(describe)
    }

    /// Divides the forward pass into runs, that is, series of consecutive operations of one layer.
    /// Returns the layer of each run (0 before and after all layers), and its operations as indices
    /// into the forward pass.
    fn runs_of(&self, layers: &[u32]) -> Vec<(u32, Range<usize>)> {
        let forward = &self.modules.forward;
        let layer = |at: usize| layers[forward[at]];
        let last = (0..forward.len()).rposition(|at| layer(at) != 0);
        let mut runs: Vec<(u32, Range<usize>)> = Vec::new();
        for at in 0..forward.len() {
            let is_between = layer(at) == 0 && last.is_some_and(|last| at < last);
            match runs.last_mut() {
                Some((of, run)) if is_between || *of == layer(at) => run.end = at + 1,
                _ => runs.push((layer(at), at..at + 1)),
            }
        }
        runs
    }

    /// Returns the names of the modules that would be in In (before the first layer), and of those
    /// that would be in Out (after the last layer), if the model were divided by `layers` and not
    /// by its modules.
    pub fn outside(&self, layers: &[u32]) -> [Vec<&str>; 2] {
        let runs = self.runs_of(layers);
        [runs.first(), runs.last().filter(|_| runs.len() > 1)].map(|end| {
            let end = match end {
                Some((0, end)) => end.clone(),
                _ => 0..0,
            };
            self.layers
                .iter()
                .filter(|layer| layer.operations().all(|at| end.contains(&at)))
                .map(|layer| &*layer.name)
                .collect()
        })
    }

    /// Returns whether `layers` leave out a block: whether a module that begins outside all of
    /// `layers` has the same types of operations as a module that begins inside one of them.
    fn has_block_outside(&self, layers: &[u32]) -> bool {
        let modules = &self.modules;
        let block = |layer: &ModuleLayer| {
            let run = modules.block(&layer.runs[0]);
            let is_inside = layers[modules.forward[run.start]] != 0;
            (is_inside, modules.sums.likeness(run))
        };
        let blocks: FxHashSet<(bool, u64)> = self.layers.iter().map(block).collect();
        blocks
            .iter()
            .any(|&(is_inside, likeness)| is_inside && blocks.contains(&(false, likeness)))
    }

    /// Returns whether `layers`, such as those of a regex, describe the model as well as its
    /// modules do. This holds under the following conditions:
    /// - The description of `layers` is not longer ([`Description::length`]).
    /// - No layer has more operations than the module with the most operations.
    /// - No layer has more than 1.5 times the bytes of the module with the most bytes, unless it
    ///   has at most a quarter of all bytes ([`LARGE`]).
    /// - Each layer runs only once.
    /// - No module outside all `layers` has the same types of operations as a module inside.
    ///
    /// `layers` has the layer of each operation: from 1, or 0 for none.
    pub fn are_matched_by(&self, layers: &[u32]) -> bool {
        let mut seen = FxHashSet::default();
        let are_single = self
            .runs_of(layers)
            .into_iter()
            .all(|(layer, _)| layer == 0 || seen.insert(layer));
        if !are_single || self.has_block_outside(layers) {
            return false;
        }
        let [own, other] = self.descriptions(layers);
        let allowed = own
            .largest
            .saturating_add(own.largest / 2)
            .max(self.modules.sums.all_bytes() / LARGE);
        other.length <= own.length && other.longest <= own.longest && other.largest <= allowed
    }
}
