//! Chooses the modules that are layers (docs/model.md, "Layers from modules"): those that describe
//! the program most briefly, where modules with the same types of operations are described once
//! ([`Lengths`]). But chains of similar blocks are always divided. If names of operations show no
//! modules, the layers have about equal bytes.
//!
//! Frameworks keep a weight on one IPU. If operations at both ends of a model that share a weight,
//! such as an embedding and the head, were layers, all layers between them would have to be on the
//! same IPU. So these operations belong to In and Out, which may both be on the first IPU.

use super::{
    ForwardModules, ModuleLayer, ModuleLayers, Run,
    evidence::{LARGE, RunSums},
    tree::Node,
};
use crate::model::{Model, ascending, counts};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Cost of a layer, besides its operations, when choices of layers are compared: the choice with
/// the lowest sum of costs is taken ([`Lengths`]). Each operation of the layer costs 1 more. With a
/// lower value, parts of blocks would become layers; with a higher value, pairs of different blocks
/// would.
const WORD: f64 = 6.0;

/// Computes the cost of layers: of the ways to divide a model into layers, the one with the lowest
/// sum of costs is the best. A layer costs [`WORD`], plus its number of operations. Layers with the
/// same types of operations share the cost of these operations, as if described only once.
pub struct Lengths<'a> {
    sums: &'a RunSums,
    alike: FxHashMap<u64, usize>,
}

impl<'a> Lengths<'a> {
    pub fn new<'r>(sums: &'a RunSums, runs: impl Iterator<Item = &'r Range<usize>>) -> Self {
        Self {
            sums,
            alike: counts(runs.map(|run| sums.likeness(run))),
        }
    }

    /// Returns how many of the ranges of operations given to [`new`](Self::new) have the same types
    /// of operations as `run`, each type equally often; at least 1.
    fn alike(&self, run: &Range<usize>) -> usize {
        self.alike
            .get(&self.sums.likeness(run))
            .copied()
            .unwrap_or(1)
    }

    pub fn of(&self, run: &Range<usize>) -> f64 {
        WORD + run.len() as f64 / self.alike(run) as f64
    }
}
impl ForwardModules {
    /// Returns the nodes of the module tree that become layers, in program order. Each operation is
    /// in exactly one of them. They are chosen so that the sum of their costs ([`Lengths`]) is the
    /// lowest, except for two rules:
    /// - Nodes that contain layers ([`containers`](Self::containers)) are always divided.
    /// - Of siblings with equally named submodules, all or none are divided
    ///   ([`cut_alike`](Self::cut_alike)).
    pub fn cover(&self) -> Vec<usize> {
        let nodes = &self.tree.nodes;
        let described = Lengths::new(&self.sums, nodes.iter().map(|node| &node.operations));
        let is_container = self.containers(&described);
        let mut is_cut = is_container.clone();
        let mut lengths = vec![0.0; nodes.len()];
        // Whether a node is divided depends on the cost of its children. So children must be
        // examined first: `nodes` has them after their parents, and is read in reverse order.
        for (number, node) in nodes.iter().enumerate().rev() {
            let whole = described.of(&node.operations);
            let parts: f64 = node.children.iter().map(|&child| lengths[child]).sum();
            is_cut[number] |= !node.children.is_empty() && parts < whole;
            lengths[number] = if is_cut[number] { parts } else { whole };
        }
        for node in nodes {
            self.cut_alike(&node.children, &is_container, &mut is_cut);
        }
        self.undivided(|node| is_cut[node])
    }

    /// Divides the module tree from the root on: replaces each node for which `is_divided` is true
    /// by its children. Returns the nodes that remain, in program order.
    fn undivided(&self, is_divided: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut chosen = Vec::new();
        let mut left = vec![0];
        while let Some(number) = left.pop() {
            let children = &self.tree.nodes[number].children;
            if is_divided(number) && !children.is_empty() {
                left.extend(children.iter().rev());
            } else {
                chosen.push(number);
            }
        }
        chosen
    }

    /// Returns one entry per node of the module tree: whether the node must be divided, because it
    /// cannot be a layer. Such nodes, if they have children, are:
    /// - the whole model
    /// - modules with most of their operations in [chains](Self::is_chain) of similar blocks
    /// - modules with more than 1/[`LARGE`] of the bytes of all operations, unless another module
    ///   has the same types of operations
    /// - [common beginnings](Self::begins_names) of several modules' names
    /// - other runs of one of these modules
    fn containers(&self, described: &Lengths<'_>) -> Vec<bool> {
        let nodes = &self.tree.nodes;
        let mut is_container = vec![false; nodes.len()];
        // One entry per node of the module tree: how many of its operations are in
        // [chains](Self::is_chain) of similar blocks.
        let mut chained = vec![0; nodes.len()];
        for (number, node) in nodes.iter().enumerate().rev() {
            let operations = &node.operations;
            let mut parts = node.children.clone();
            parts.retain(|&child| chained[child] > 0);
            let counts = parts.iter().map(|&part| chained[part]);
            chained[number] = if self.is_chain(number) {
                operations.len()
            } else if self.follow_each_other(&parts) {
                counts.sum()
            } else {
                counts.max().unwrap_or(0)
            };
            let is_large = self.sums.bytes(operations) > self.sums.all_bytes() / LARGE
                && described.alike(operations) < 2;
            let is_divided = number == 0 || is_large || self.begins_names(node);
            is_container[number] =
                !node.children.is_empty() && (is_divided || 2 * chained[number] > operations.len());
        }
        self.in_all_runs(is_container)
    }

    /// Extends a choice of nodes of the module tree: if a node is chosen, all other nodes that are
    /// runs of the same module become chosen too. `chosen` has one entry per node: whether it is
    /// chosen.
    fn in_all_runs(&self, mut chosen: Vec<bool>) -> Vec<bool> {
        let nodes = &self.tree.nodes;
        let is_run =
            |&run: &usize| nodes[run].component.is_some() && !nodes[run].children.is_empty();
        let runs = (0..nodes.len()).filter(is_run);
        let chosen_runs = runs.clone().filter(|&run| chosen[run]);
        let paths: FxHashSet<_> = chosen_runs.map(|run| self.tree.path(run)).collect();
        for run in runs {
            chosen[run] |= paths.contains(self.tree.path(run));
        }
        chosen
    }

    /// Returns whether a module is a chain of similar blocks that could be on different IPUs, such
    /// as a stage of a convolutional network. Each block computes with one type of operation
    /// several times, resembles another block, and uses data of the block before it. Between two
    /// blocks, no more bytes are passed on than at the start or the end of the chain. The parts of
    /// a residual block are no such chain, because additional data passes by them.
    fn is_chain(&self, node: usize) -> bool {
        let items: Vec<usize> = self.tree.submodules(node).collect();
        let run = |item: usize| self.tree.operations(item);
        let kinds: Vec<_> = items.iter().map(|&at| self.sums.kinds(run(at))).collect();
        let numbers = 0..items.len();
        let is_block = |a: usize| {
            let item = items[a];
            !self.tree.nodes[item].children.is_empty() && kinds[a].len() < run(item).len()
        };
        let is_like = |a: usize, b: usize| {
            let (few, many) = (run(items[a]).len(), run(items[b]).len());
            a != b
                && few <= 2 * many
                && many <= 2 * few
                && (kinds[a].is_subset(&kinds[b]) || kinds[b].is_subset(&kinds[a]))
        };
        let has_like = |a: usize| numbers.clone().any(|b| is_like(a, b));
        let ends = self.crossing[run(node).start].max(self.narrowest(run(node).end));
        let is_narrow = |&item: &usize| self.crossing[run(item).start] <= ends;
        items.len() > 1
            && numbers.clone().all(|a| is_block(a) && has_like(a))
            && self.follow_each_other(&items)
            && items[1..].iter().all(is_narrow)
    }

    /// Returns whether a node of the module tree stands only for the common beginning of several
    /// modules' names, such as `time` of `time_proj` and `time_embedding`, and not for a module.
    /// Only paths of parameters show this, because they have dots between modules.
    fn begins_names(&self, node: &Node) -> bool {
        let mut names = node
            .children
            .iter()
            .map(|&child| &self.tree.nodes[child])
            .filter_map(|part| part.component.as_deref());
        let mut inner = self.tree.paths[node.operations.clone()]
            .iter()
            .flat_map(|path| path.iter().skip(node.depth));
        names.any(|name| !name.starts_with(['/', '.'])) && inner.any(|part| part.starts_with('.'))
    }

    /// Returns whether each of `nodes` uses data of the node before it or of operations between the
    /// two; true if the flow of data is unknown.
    fn follow_each_other(&self, nodes: &[usize]) -> bool {
        let mut pairs = nodes.windows(2);
        self.flow.is_empty()
            || pairs.all(|pair| {
                let [run, next] = [pair[0], pair[1]].map(|node| self.tree.operations(node));
                let mut users = self.users(run.start..next.start);
                users.any(|to| next.contains(&to))
            })
    }

    /// Returns the fewest bytes that are passed on to later operations at the end of a module. `at`
    /// is the operation after the module. Operations without parameters after the module, such as a
    /// residual addition, may still belong to it, so the end may be before or after any of them.
    fn narrowest(&self, at: usize) -> i64 {
        let weightless = self.has_parameters[at..]
            .iter()
            .take_while(|&&has_parameters| !has_parameters);
        self.crossing[at..=at + weightless.count()]
            .iter()
            .copied()
            .min()
            .unwrap_or(0)
    }

    /// Changes `is_cut` (whether a node of the module tree is divided) so that all `siblings` whose
    /// submodules have the same names agree: all are divided if most of them were, and none if most
    /// were not. So one additional operation in a sibling does not make it differ from the others.
    /// Nodes that contain layers (`is_container`) are left out.
    fn cut_alike(&self, siblings: &[usize], is_container: &[bool], is_cut: &mut [bool]) {
        let nodes = &self.tree.nodes;
        let parts = |sibling: usize| {
            let parts = self.tree.submodules(sibling);
            ascending(parts.map(|part| nodes[part].component.as_deref()))
        };
        let is_free =
            |&&sibling: &&usize| !nodes[sibling].children.is_empty() && !is_container[sibling];
        let siblings: Vec<_> = (siblings.iter().filter(is_free))
            .map(|&sibling| (sibling, parts(sibling)))
            .collect();
        let mut votes = FxHashMap::<_, i64>::default();
        for (sibling, parts) in &siblings {
            *votes.entry(parts).or_default() += if is_cut[*sibling] { 1 } else { -1 };
        }
        for (sibling, parts) in &siblings {
            let votes = votes[parts];
            is_cut[*sibling] = votes > 0 || votes == 0 && is_cut[*sibling];
        }
    }

    /// Groups consecutive nodes of the module tree into runs of one module each. An operation that
    /// the parent module itself calls between two submodules joins the run before it, or the run
    /// after it if only that run uses the operation's result.
    pub fn with_own(&self, nodes: Vec<usize>) -> Vec<Run> {
        let node = |number: usize| &self.tree.nodes[number];
        let mut runs: Vec<Vec<usize>> = Vec::new();
        let mut own: Vec<usize> = Vec::new();
        for number in nodes {
            if node(number).is_own {
                own.push(number);
                continue;
            }
            let end = node(number).operations.end;
            let is_of_next = |own: &&usize| {
                let at = node(**own).operations.start;
                let mut users = self.users(at..at + 1).peekable();
                users.peek().is_some() && users.all(|to| to < end)
            };
            let of_next = own.iter().rev().take_while(is_of_next).count();
            if let Some(before) = runs.last_mut() {
                before.extend(own.drain(..own.len() - of_next));
            }
            own.push(number);
            runs.push(std::mem::take(&mut own));
        }
        match runs.last_mut() {
            Some(last) => last.extend(own),
            None => runs.push(own),
        }
        runs.into_iter().map(|nodes| self.run(nodes)).collect()
    }

    /// Returns the layers of a model, in program order, if the names of its operations show no
    /// modules. The tree then divides the program in two repeatedly. The layers are its largest
    /// nodes that consist of one operation or have at most 1/32 of all bytes ([`RUNS`]).
    pub fn of_few_bytes(&self) -> Vec<Run> {
        let most = self.sums.all_bytes() / RUNS;
        self.undivided(|node| self.sums.bytes(self.tree.operations(node)) > most)
            .into_iter()
            .map(|node| self.run(vec![node]))
            .collect()
    }
}

/// If names of operations show no modules, each layer has at most 1/`RUNS` of the bytes of all
/// operations, unless the layer is a single operation.
const RUNS: u64 = 32;

impl ModuleLayers {
    /// Moves operations that use a weight named in `tied` from layers to In (the operations before
    /// the first layer) or Out (those after the last layer), so that the weight does not force
    /// layers onto one IPU. Returns `None` if nothing moves.
    ///
    /// Such an operation moves as follows:
    /// - Before the first block ([`blocks`](Self::blocks)), it moves to In, with its layer and all
    ///   layers before it.
    /// - After the last block, it moves to Out, with its layer and all layers after it.
    /// - In between, it leaves its layer if it uses no results of other operations, as an embedding
    ///   does. Its place then follows from the operations that use its results. A layer that runs
    ///   several times leaves as a whole. All other operations stay.
    pub fn without_tied_ends(&self, model: &Model, tied: &[&str]) -> Option<Self> {
        let (first, last) = self.blocks()?;
        let has_input: FxHashSet<usize> = self.modules.flow.iter().map(|&(_, to)| to).collect();
        // Layers before the index `begin` move to In (before all layers), and layers from the index
        // `end` on move to Out (after all layers).
        let (mut begin, mut end) = (0, self.layers.len());
        let mut alone = FxHashSet::default();
        for at in self.tied_operations(model, tied) {
            match self.layer_at[at] {
                Some(layer) if layer < first => begin = begin.max(layer + 1),
                Some(layer) if layer > last => end = end.min(layer),
                Some(layer) if !has_input.contains(&at) => {
                    let layer = &self.layers[layer];
                    let is_single = layer.runs.len() == 1;
                    alone.extend(
                        layer
                            .operations()
                            .filter(|&other| !is_single || other == at),
                    );
                }
                _ => {}
            }
        }
        let is_released = |at: usize| {
            let is_outside = |layer| !(begin..end).contains(&layer);
            alone.contains(&at) || self.layer_at[at].is_none_or(is_outside)
        };
        let is_left = |layer: &&ModuleLayer| !layer.operations().all(is_released);
        (0..self.layer_at.len())
            .filter(|&at| self.layer_at[at].is_some())
            .any(is_released)
            .then(|| {
                let layers = self.layers.iter().filter(is_left).cloned().collect();
                self.with_layers(layers, is_released)
            })
    }

    /// Returns the operations that use a weight named in `tied`, as ascending indices into the
    /// forward pass.
    fn tied_operations(&self, model: &Model, tied: &[&str]) -> Vec<usize> {
        let tied: FxHashSet<&str> = tied.iter().copied().collect();
        let is_tied = |&set: &u32| tied.contains(model.label_of(set).weight_name());
        let users: FxHashSet<usize> = (0..model.use_sets.len() as u32)
            .filter(is_tied)
            .flat_map(|set| model.use_sets.groups(set))
            .collect();
        let forward = &self.modules.forward;
        (0..forward.len())
            .filter(|&at| users.contains(&(model.operations[forward[at]].group as usize)))
            .collect()
    }

    /// Returns the indices of the first and the last layer that are blocks, such as those of a
    /// transformer; `None` without blocks. A block has the same types of operations as another
    /// layer. It also has at least half as many operations as the largest such layer, which
    /// excludes small layers that are alike, such as two embeddings.
    pub fn blocks(&self) -> Option<(usize, usize)> {
        let mut runs = self
            .layers
            .iter()
            .map(|layer| self.modules.block(&layer.runs[0]));
        let described = Lengths::new(&self.modules.sums, runs.clone());
        let has_like = |run: &&Range<usize>| described.alike(run) > 1;
        let largest = runs.clone().filter(has_like).map(Range::len).max()?;
        let is_block = |run| has_like(&run) && 2 * run.len() >= largest;
        Some((runs.clone().position(is_block)?, runs.rposition(is_block)?))
    }
}
