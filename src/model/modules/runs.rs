//! Joins the runs of a module that runs several times, such as for a prompt and for each token
//! after it, into one layer (docs/model.md, "Layers from modules").

use super::{ForwardModules, ModuleLayer, ModuleLayers, Run};
use crate::model::Model;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// One or more neighbouring positions (In, layers, Out) that the forward pass of a micro-batch runs
/// through several times, as for each token of a text. If a split point divides these positions,
/// the IPUs on both sides of the split point take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// The first of the neighbouring positions (In, layers, Out) that the forward pass of a
    /// micro-batch runs through several times.
    pub first: usize,
    /// The last of the neighbouring positions (In, layers, Out) that the forward pass of a
    /// micro-batch runs through several times.
    pub last: usize,
    /// How often the forward pass runs through the positions from `first` to `last`: the largest
    /// number of runs of any of their layers. It is at least 2, because positions that run once are
    /// not listed.
    pub runs: usize,
}

impl Repeat {
    /// Returns whether a split point before `position` divides the positions from `first` to
    /// `last`, so that one stage has some of them and a later stage has the others.
    pub fn is_cut_before(&self, position: usize) -> bool {
        (self.first + 1..=self.last).contains(&position)
    }
}

impl ModuleLayers {
    /// Joins layers into one if they are runs of the same module, that is, if their paths are equal
    /// and they use a common weight. Repeated calls of a module without weights, such as an
    /// activation, remain separate layers.
    pub fn with_all_runs(self, model: &Model) -> Self {
        let mut paths = FxHashSet::default();
        if self.layers.iter().all(|layer| paths.insert(&layer.path)) {
            return self;
        }
        // One entry per layer: the index of the first layer that is a run of the same module.
        let mut first_run: Vec<usize> = (0..self.layers.len()).collect();
        let mut of_group: Vec<BTreeSet<usize>> =
            vec![BTreeSet::new(); model.operation_groups.len()];
        for (number, layer) in self.layers.iter().enumerate() {
            for at in layer.operations() {
                let operation = &model.operations[self.modules.forward[at]];
                of_group[operation.group as usize].insert(number);
            }
        }
        for (set, _) in model.weights(&model.bytes_of_sets()) {
            let mut first_user: FxHashMap<&str, usize> = FxHashMap::default();
            for &layer in model
                .use_sets
                .groups(set)
                .flat_map(|group| &of_group[group])
            {
                let known = *first_user.entry(&self.layers[layer].path).or_insert(layer);
                let (a, b) = (first_run[known], first_run[layer]);
                if a != b {
                    first_run
                        .iter_mut()
                        .filter(|first| **first == a.max(b))
                        .for_each(|first| *first = a.min(b));
                }
            }
        }
        let mut joined: BTreeMap<usize, Vec<Run>> = BTreeMap::new();
        for (layer, first) in self.layers.iter().zip(first_run) {
            joined
                .entry(first)
                .or_default()
                .extend_from_slice(&layer.runs);
        }
        let layers = joined.into_values().collect();
        self.with_layers(self.modules.layers(layers, None), |_| false)
    }

    pub fn run_several_times(&self) -> bool {
        self.layers.iter().any(|layer| layer.runs.len() > 1)
    }

    /// Returns the ranges of neighbouring positions (In, layers, Out) that the forward pass runs
    /// through several times, such as the layers of a decoder. `position` returns the position of
    /// an operation, or `None` if the operation is at several positions or at none. `self` only
    /// shows which modules run several times: the positions may have other layers, such as those
    /// that a regex found.
    pub fn repeats(&self, position: impl Fn(usize) -> Option<usize>) -> Vec<Repeat> {
        let positions: Vec<Option<usize>> = self
            .modules
            .forward
            .iter()
            .map(|&operation| position(operation))
            .collect();
        let mut repeats: Vec<Repeat> = Vec::new();
        let mut add = |first, last, runs| repeats.push(Repeat { first, last, runs });
        for ModuleLayer { runs, .. } in &self.layers {
            let start = runs[0].operations.start;
            for (count, run) in (2..).zip(&runs[1..]) {
                let first = positions[run.operations.clone()].iter().flatten().min();
                let between = positions[start..run.operations.start].iter().flatten();
                if let (Some(&first), Some(&last)) = (first, between.max()) {
                    add(first, last, count);
                }
            }
        }
        // In (the operations before the first layer) may use the output of a layer, as when a
        // generated token is embedded. The positions from In to this layer then form a loop. If a
        // range of layers that runs several times overlaps with the loop, the two are joined.
        for &(from, to) in &self.modules.flow {
            if let (Some(last), Some(0)) = (positions[from], positions[to]) {
                add(0, last, 1);
            }
        }
        joined(repeats)
    }
}

/// Joins ranges of positions (In, layers, Out) that overlap by at least two positions, since one
/// split point may divide both. Joined ranges that the forward pass runs through only once are left
/// out.
fn joined(mut repeats: Vec<Repeat>) -> Vec<Repeat> {
    repeats.sort_by_key(|repeat| repeat.first);
    let mut joined: Vec<Repeat> = Vec::new();
    for repeat in repeats {
        match joined.last_mut() {
            Some(before) if repeat.first < before.last => {
                before.last = before.last.max(repeat.last);
                before.runs = before.runs.max(repeat.runs);
            }
            _ => joined.push(repeat),
        }
    }
    joined.retain(|repeat| repeat.runs > 1);
    joined
}

impl ForwardModules {
    /// Divides each run of a layer (one call of its module) into runs of submodules. Returns one
    /// entry per submodule: its runs, at most one in each run of the layer. If each run of the
    /// layer calls a module twice, the module counts as two submodules: one has all first calls,
    /// the other all second calls.
    pub fn parts(&self, layer: &ModuleLayer) -> Vec<Vec<Run>> {
        let mut parts: Vec<Vec<Run>> = Vec::new();
        let mut known: FxHashMap<(String, usize), usize> = FxHashMap::default();
        for run in &layer.runs {
            let mut earlier: FxHashMap<String, usize> = FxHashMap::default();
            let module = self.module(run);
            let nodes = run.nodes.iter().flat_map(|&node| {
                let children = &self.tree.nodes[node].children;
                if node == module && !children.is_empty() {
                    children.clone()
                } else {
                    vec![node]
                }
            });
            for part_run in self.with_own(nodes.collect()) {
                let path = self.path(&part_run);
                let turn = earlier.entry(path.clone()).or_default();
                *turn += 1;
                let part = *known.entry((path, *turn)).or_insert(parts.len());
                if part == parts.len() {
                    parts.push(Vec::new());
                }
                parts[part].push(part_run);
            }
        }
        parts
    }
}
