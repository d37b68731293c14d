//! Chooses the modules that are layers (docs/model.md, "Layers from modules"): the nodes that cover
//! the module tree with the shortest description of the program, with small runs joined to their
//! neighbours. If names show no modules, the layers are runs of about equal bytes.
//!
//! Frameworks keep a weight on one IPU, and In and Out may share the first. So operations at both
//! ends of a model that share a weight, such as an embedding and the head, belong to In or Out: as
//! layers they would have to be on one IPU with all layers between them.

use super::evidence::RunSums;
use super::paths::shared;
use super::tree::{Node, Tree};
use super::{ModuleLayer, ModuleLayers};
use crate::model::Model;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Cost of describing one layer besides its operations, counted in operations. With a lower cost,
/// parts of blocks become layers; with a higher cost, whole stages of blocks do.
pub(super) const WORD: f64 = 1.5;

/// Computes the lengths of descriptions of runs of operations, counted in operations. A run costs
/// `word` plus its number of operations; runs with the same types of operations share the cost of
/// the operations equally.
pub(super) struct Lengths<'a> {
    sums: &'a RunSums,
    alike: FxHashMap<u64, u32>,
    word: f64,
}

impl<'a> Lengths<'a> {
    pub(super) fn new<'r>(
        sums: &'a RunSums,
        runs: impl Iterator<Item = &'r Range<usize>>,
        word: f64,
    ) -> Self {
        let mut alike = FxHashMap::default();
        for run in runs {
            *alike.entry(sums.likeness(run)).or_default() += 1;
        }
        Self { sums, alike, word }
    }

    /// Returns whether none of the other runs has the same types of operations as `run`, each
    /// equally often.
    pub(super) fn is_unique(&self, run: &Range<usize>) -> bool {
        self.alike
            .get(&self.sums.likeness(run))
            .is_none_or(|&count| count < 2)
    }

    /// Returns the length of the description of `run`, counted in operations.
    pub(super) fn of(&self, run: &Range<usize>) -> f64 {
        let alike = self.alike.get(&self.sums.likeness(run)).copied();
        self.word + run.len() as f64 / f64::from(alike.unwrap_or(1))
    }
}

/// Returns the nodes of the module tree, as indices in the order of the program, that cover all
/// operations with the shortest description. `word` is the cost of each node besides its
/// operations, in operations. Large modules are divided further
/// ([`LARGE`](super::evidence::LARGE)).
pub(super) fn cover(tree: &Tree, sums: &RunSums, word: f64) -> Vec<usize> {
    let runs = tree.nodes.iter().map(|node| &node.operations);
    let described = Lengths::new(sums, runs, word);
    let mut is_cut = vec![false; tree.nodes.len()];
    let mut lengths = vec![0.0; tree.nodes.len()];
    // Children come after their parents in the list of nodes.
    for (number, node) in tree.nodes.iter().enumerate().rev() {
        let whole = described.of(&node.operations);
        let parts: f64 = node.children.iter().map(|&child| lengths[child]).sum();
        is_cut[number] = !node.children.is_empty() && (number == 0 || parts < whole);
        lengths[number] = if is_cut[number] { parts } else { whole };
    }
    let mut chosen = Vec::new();
    // Children of a large module are not divided further unless they are large themselves.
    let mut left = vec![(0, false)];
    while let Some((number, is_part)) = left.pop() {
        let node = &tree.nodes[number];
        let is_cut_by_words = is_cut[number] && !is_part;
        if is_cut_by_words {
            cut_alike(tree, &node.children, &mut is_cut);
        }
        let is_container = !node.children.is_empty()
            && sums.is_large(&node.operations)
            && described.is_unique(&node.operations);
        if is_cut_by_words || is_container {
            let children = node.children.iter().rev();
            left.extend(children.map(|&child| (child, !is_cut_by_words)));
        } else {
            chosen.push(number);
        }
    }
    chosen
}

/// Also divides each of `siblings` if most of the others with the same submodules, weighted by
/// operations, are divided: the first stage of blocks often has fewer blocks than the others.
/// `siblings` are nodes of the tree; `is_cut` has, by node, whether it is divided, and is changed.
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

/// A run is small if it has at most 1/`FEW_OPERATIONS` of the operations of a typical run
/// ([`typical`]), and also few bytes ([`FEW_BYTES`]).
const FEW_OPERATIONS: usize = 6;

/// A run is small if it has at most 1/`FEW_BYTES` of the bytes of a typical run ([`typical`]), and
/// also few operations ([`FEW_OPERATIONS`]).
const FEW_BYTES: u64 = 8;

/// Joins small runs, such as a cast or a shortcut, to the run before or after them, whichever
/// shares more of their path; if both share equally much, to the next run if data flows there, else
/// to the run before. `chosen` has the nodes of the tree, one for each run in order; `is_used(run,
/// next)` returns whether data flows from `run` to `next`. Returns the nodes of each resulting run.
pub(super) fn attach(
    tree: &Tree,
    sums: &RunSums,
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
    // By run: whether it joins the run before it.
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

/// Returns the size of a typical run: the smallest size such that all sizes up to it add up to at
/// least half of the total; 0 without sizes.
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

/// If names show no modules, a layer has at most 1/`RUNS` of the bytes of all operations.
const RUNS: u64 = 32;

/// Returns the layers of a tree that was divided by data flow, in the order of the program, each as
/// a list of one node: the largest nodes that have at most 1/`RUNS` of all bytes, or one operation.
pub(super) fn by_flow(tree: &Tree, sums: &RunSums) -> Vec<Vec<usize>> {
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
    /// Moves operations that use a weight named in `tied` to In or Out, so that the weight does not
    /// force layers onto one IPU. In a layer before the first or after the last of the like
    /// [`blocks`](Self::blocks), this moves the whole layer and all before or after it; elsewhere,
    /// only operations without input. `None` if nothing moves.
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
            // All operations up to the end of a layer before the first block belong to In, and all
            // from the start of a layer after the last block belong to Out.
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

    /// Returns the layers without the operations that belong to In or Out: `is_released` says so
    /// for each operation of the forward pass. Layers without other operations are removed.
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

    /// Returns the operations that use a weight named in `tied`, as ascending indices into the
    /// forward pass.
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

    /// Returns the indices of the first and the last layer that have the same types of operations
    /// as another layer, such as the blocks of a transformer; `None` if there are none.
    fn blocks(&self) -> Option<(usize, usize)> {
        let mut runs = self.layers.iter().map(|layer| &layer.run);
        let described = Lengths::new(&self.modules.sums, runs.clone(), WORD);
        let has_like = |run| !described.is_unique(run);
        Some((runs.clone().position(has_like)?, runs.rposition(has_like)?))
    }
}
