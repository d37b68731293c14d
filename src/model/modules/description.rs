//! How well layers describe a model, and other layers beside its modules. Other layers are given as
//! the layer of each operation of the model, from 1, or 0 for none.

use super::evidence::LARGE;
use super::paths::shared;
use super::which_are_layers::{Lengths, WORD};
use super::{ModuleLayer, ModuleLayers};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// How well layers describe a model. Shorter is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Description {
    /// The length of the description, in operations.
    pub(crate) length: f64,
    /// Operations of the longest layer, or of the run before or after all layers.
    pub(crate) longest: usize,
    /// Bytes of the largest layer, or of the run before or after all layers.
    pub(crate) largest: u64,
}

impl ModuleLayers {
    /// For each of `count` layers of another layering: the path of the innermost module that all
    /// its operations are in; empty if there is none. `layers` is as for [`descriptions`](Self::descriptions).
    pub(crate) fn modules_of(&self, layers: &[u32], count: usize) -> Vec<String> {
        let mut shared_by: Vec<Option<&[Box<str>]>> = vec![None; count];
        let paths = self.modules.forward.iter().zip(&self.modules.tree.paths);
        for (&operation, path) in paths {
            let Some(layer) = (layers[operation as usize] as usize).checked_sub(1) else {
                continue;
            };
            let known = shared_by[layer].get_or_insert(path);
            *known = &known[..shared(*known, path)];
        }
        let path = |path: Option<&[Box<str>]>| path.unwrap_or_default().concat();
        shared_by.into_iter().map(path).collect()
    }

    /// Describes the model by its modules as layers, and by other layers: `layers` has the layer of
    /// each operation of the model, from 1, or 0 for none. Operations between layers go with the
    /// layer before them.
    pub(crate) fn descriptions(&self, layers: &[u32]) -> [Description; 2] {
        let own = self.layers.iter().map(|layer| layer.run.clone()).collect();
        let others = self.runs_of(layers).into_iter();
        let others = others.map(|(_, run)| run).collect();
        let sums = &self.modules.sums;
        [own, others].map(|runs: Vec<Range<usize>>| {
            let lengths = Lengths::new(sums, runs.iter(), WORD);
            Description {
                length: runs.iter().map(|run| lengths.of(run)).sum(),
                longest: runs.iter().map(Range::len).max().unwrap_or(0),
                largest: runs.iter().map(|run| sums.bytes(run)).max().unwrap_or(0),
            }
        })
    }

    /// The runs of other layers (as in [`descriptions`](Self::descriptions)), each with its
    /// layer.
    fn runs_of(&self, layers: &[u32]) -> Vec<(u32, Range<usize>)> {
        let forward = &self.modules.forward;
        let layer = |at: usize| layers[forward[at] as usize];
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

    /// Names of the modules that run before and after all other layers (as in
    /// [`descriptions`](Self::descriptions)): In and Out with these layers.
    pub(crate) fn outside(&self, layers: &[u32]) -> [Vec<&str>; 2] {
        let runs = self.runs_of(layers);
        let ends = [runs.first(), runs.last().filter(|_| runs.len() > 1)];
        ends.map(|end| {
            let (_, end) = end.filter(|(layer, _)| *layer == 0)?;
            let is_in = |ModuleLayer { run, .. }: &&ModuleLayer| {
                end.start <= run.start && run.end <= end.end
            };
            let inside = self.layers.iter().filter(is_in);
            Some(inside.map(|layer| &*layer.name).collect())
        })
        .map(Option::unwrap_or_default)
    }

    /// Do other layers describe the model as well as the modules? Each must be one run, the
    /// description must be as short, and no layer may be longer or much larger than the modules'
    /// ones.
    pub(crate) fn are_matched_by(&self, layers: &[u32]) -> bool {
        let mut seen = FxHashSet::default();
        let mut runs = self.runs_of(layers).into_iter();
        if !runs.all(|(layer, _)| layer == 0 || seen.insert(layer)) {
            return false;
        }
        let [own, other] = self.descriptions(layers);
        // The largest piece may be half as large again: a smaller difference is not worth more
        // layers.
        let allowed = own.largest.saturating_add(own.largest / 2);
        let allowed = allowed.max(self.modules.sums.all_bytes() / LARGE);
        other.length <= own.length && other.longest <= own.longest && other.largest <= allowed
    }
}
