//! Which modules are layers (docs/model.md, "Layers from modules"): the cover of the module tree that
//! describes the program in the fewest words, with small pieces joined to their neighbours; where
//! names show no modules, runs of about equal bytes.
//!
//! Frameworks keep a weight on one IPU, and In and Out may share the first. So operations at the ends
//! of a model that share a weight, such as an embedding and the head, are in In or Out; in layers,
//! they would bind these layers to one IPU.

use super::evidence::Sums;
use super::paths::shared;
use super::tree::{Node, Tree};
use super::{ModuleLayer, ModuleLayers};
use crate::model::Model;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Cost of naming one layer, in operations: with less, parts of blocks become layers, with more,
/// whole stages of blocks.
pub(super) const WORD: f64 = 1.5;

/// Lengths of descriptions of runs: each costs a word, and the operations of runs that are alike
/// are described once.
pub(super) struct Lengths<'a> {
    sums: &'a Sums,
    alike: FxHashMap<u64, u32>,
    word: f64,
}

impl<'a> Lengths<'a> {
    pub(super) fn new<'r>(
        sums: &'a Sums,
        runs: impl Iterator<Item = &'r Range<usize>>,
        word: f64,
    ) -> Self {
        let mut alike = FxHashMap::default();
        for run in runs {
            *alike.entry(sums.likeness(run)).or_default() += 1;
        }
        Self { sums, alike, word }
    }

    /// Is no other run like this one?
    pub(super) fn is_alone(&self, run: &Range<usize>) -> bool {
        self.alike
            .get(&self.sums.likeness(run))
            .is_none_or(|&count| count < 2)
    }

    /// Length of the description of a run, in operations.
    pub(super) fn of(&self, run: &Range<usize>) -> f64 {
        let alike = self.alike.get(&self.sums.likeness(run)).copied();
        self.word + run.len() as f64 / f64::from(alike.unwrap_or(1))
    }
}

/// The nodes that cover the tree in the shortest description, in the order of the program.
pub(super) fn cover(tree: &Tree, sums: &Sums, word: f64) -> Vec<usize> {
    let runs = tree.nodes.iter().map(|node| &node.operations);
    let described = Lengths::new(sums, runs, word);
    let mut is_cut = vec![false; tree.nodes.len()];
    let mut lengths = vec![0.0; tree.nodes.len()];
    // Parts come after the modules that they belong to.
    for (number, node) in tree.nodes.iter().enumerate().rev() {
        let whole = described.of(&node.operations);
        let parts: f64 = node.children.iter().map(|&child| lengths[child]).sum();
        is_cut[number] = !node.children.is_empty() && (number == 0 || parts < whole);
        lengths[number] = if is_cut[number] { parts } else { whole };
    }
    let mut chosen = Vec::new();
    // Parts of a large module stay whole unless they are large themselves.
    let mut left = vec![(0, false)];
    while let Some((number, is_part)) = left.pop() {
        let node = &tree.nodes[number];
        let is_cut_by_words = is_cut[number] && !is_part;
        if is_cut_by_words {
            cut_alike(tree, &node.children, &mut is_cut);
        }
        let is_container = !node.children.is_empty()
            && sums.is_large(&node.operations)
            && described.is_alone(&node.operations);
        if is_cut_by_words || is_container {
            let children = node.children.iter().rev();
            left.extend(children.map(|&child| (child, !is_cut_by_words)));
        } else {
            chosen.push(number);
        }
    }
    chosen
}

/// Also cuts a module if most of its siblings with the same parts, weighted by operations, are cut:
/// the first stage of blocks is often shorter than the others.
fn cut_alike(tree: &Tree, siblings: &[usize], is_cut: &mut [bool]) {
    let parts = |node: &Node| {
        let children = node.children.iter();
        let parts = children.map(|&child| tree.nodes[child].component.as_deref());
        let mut parts: Vec<Option<&str>> = parts.collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    };
    let mut votes: FxHashMap<Option<&str>, i64> = FxHashMap::default();
    let mut undecided = Vec::new();
    for &sibling in siblings {
        let node = &tree.nodes[sibling];
        let operations = node.operations.len() as i64;
        let parts = parts(node);
        for &part in &parts {
            *votes.entry(part).or_default() += if is_cut[sibling] {
                operations
            } else {
                -operations
            };
        }
        if !is_cut[sibling] && parts.len() > 1 {
            undecided.push((sibling, parts));
        }
    }
    for (sibling, parts) in undecided {
        let cut = parts.iter().filter(|part| votes[part] > 0).count();
        is_cut[sibling] = 2 * cut > parts.len();
    }
}

/// A run is small if its operations are at most 1/`FEW_OPERATIONS` of those of a typical run.
const FEW_OPERATIONS: usize = 6;

/// A run is small if its bytes are at most 1/`FEW_BYTES` of those of a typical run.
const FEW_BYTES: u64 = 8;

/// Joins small runs, such as a cast or a shortcut, to the neighbouring run in the same module, or
/// between two modules to the run that their data flows to. `is_used(run, next)` says whether data
/// flows from the first to the second. Returns the nodes of each joined run.
pub(super) fn attach(
    tree: &Tree,
    sums: &Sums,
    chosen: &[usize],
    is_used: impl Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Vec<Vec<usize>> {
    let run = |at: usize| &tree.nodes[chosen[at]].operations;
    let operations: Vec<u64> = (0..chosen.len()).map(|at| run(at).len() as u64).collect();
    let bytes: Vec<u64> = (0..chosen.len()).map(|at| sums.bytes(run(at))).collect();
    let (typical_operations, typical_bytes) = (typical(&operations), typical(&bytes));
    let is_small = |at: usize| {
        operations[at].saturating_mul(FEW_OPERATIONS as u64) <= typical_operations
            && bytes[at].saturating_mul(FEW_BYTES) <= typical_bytes
    };
    let depth = |a: usize, b: usize| shared(tree.path(chosen[a]), tree.path(chosen[b]));
    // By run: does it join the run before it?
    let mut is_joined = vec![false; chosen.len()];
    for at in (0..chosen.len()).filter(|&at| is_small(at)) {
        let before = at.checked_sub(1).map(|before| depth(before, at));
        let after = (at + 1 < chosen.len()).then(|| depth(at, at + 1));
        let is_before = match (before, after) {
            (Some(before), Some(after)) if before == after => !is_used(run(at), run(at + 1)),
            (before, after) => before > after,
        };
        match (is_before, before, after) {
            (true, Some(_), _) => is_joined[at] = true,
            (false, _, Some(_)) => is_joined[at + 1] = true,
            _ => {}
        }
    }
    let mut joined: Vec<Vec<usize>> = Vec::new();
    for (&node, is_joined) in chosen.iter().zip(is_joined) {
        match joined.last_mut() {
            Some(last) if is_joined => last.push(node),
            _ => joined.push(vec![node]),
        }
    }
    joined
}

/// The size for which half of the total is in runs of at most this size.
fn typical(sizes: &[u64]) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let all: u128 = sorted.iter().map(|&size| u128::from(size)).sum();
    let mut seen = 0;
    let typical = sorted.iter().find(|&&size| {
        seen += u128::from(size);
        2 * seen >= all
    });
    typical.copied().unwrap_or(0)
}

/// Number of layers if all runs had equal bytes.
const RUNS: u64 = 32;

/// The largest nodes with at most 1/`RUNS` of all bytes, in the order of the program.
pub(super) fn by_flow(tree: &Tree, sums: &Sums) -> Vec<Vec<usize>> {
    let mut layers = Vec::new();
    let mut left = vec![0];
    while let Some(number) = left.pop() {
        let node = &tree.nodes[number];
        if node.children.is_empty() || sums.bytes(&node.operations) <= sums.all_bytes() / RUNS {
            layers.push(vec![number]);
        } else {
            left.extend(node.children.iter().rev());
        }
    }
    layers
}

impl ModuleLayers {
    /// The layers without operations that are in In or Out, so that the weights named `tied` do not
    /// bind layers; `None` if there is no such operation.
    pub(crate) fn without_tied_ends(&self, model: &Model, tied: &[&str]) -> Option<Self> {
        let (first, last) = self.blocks()?;
        let has_input: FxHashSet<usize> = self.modules.flow.iter().map(|&(_, to)| to).collect();
        let mut is_released = self.is_released.clone();
        for operation in self.tied_operations(model, tied) {
            let at = operation as usize;
            let Some(layer) = self.layer_at(operation) else {
                continue;
            };
            let ModuleLayer { run, .. } = &self.layers[layer as usize];
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
        let is_left = |layer: &ModuleLayer| is_released[layer.run.clone()].contains(&false);
        let mut layers = self.layers.clone();
        layers.retain(is_left);
        Self {
            layers,
            modules: Arc::clone(&self.modules),
            is_released,
        }
    }

    /// The operations of the forward pass that use one of the weights, ascending.
    fn tied_operations(&self, model: &Model, tied: &[&str]) -> Vec<u32> {
        let tied: FxHashSet<&str> = tied.iter().copied().collect();
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
        let mut runs = self.layers.iter().map(|layer| &layer.run);
        let described = Lengths::new(&self.modules.sums, runs.clone(), WORD);
        let has_like = |run| !described.is_alone(run);
        Some((runs.clone().position(has_like)?, runs.rposition(has_like)?))
    }
}
