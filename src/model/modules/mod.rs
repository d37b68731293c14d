//! Finds layers in the modules of the model (docs/model.md, "Layers from modules"), such as the
//! PyTorch modules that its code calls.
//!
//! A layer has the operations of the forward pass that one module calls, in all runs of the module.
//! `paths` finds the path of each operation in the module tree, `tree` builds the tree,
//! `which_are_layers` chooses the modules that are layers, `runs` joins the runs of a module, and
//! `names` gives layers short names. If the names of operations show no modules, the tree is built
//! from the flow of data.

mod calls;
mod description;
mod evidence;
mod names;
mod outline;
mod paths;
mod runs;
#[cfg(test)]
mod tests;
mod tree;
mod which_are_layers;

use super::{
    Model, Operation, counts, crossing,
    layer_lookup::{Named, Way, lookup_path},
    names::unwrapped,
};
use crate::limits;
use calls::Calls;
pub use calls::ModuleCalls;
use evidence::{Evidence, RunSums};
pub(crate) use names::without_numbers;

use outline::shared_scope;
use paths::{Lookup, ModulePath, bare, components, full_paths, is_number, scope_and_type};
pub use runs::Repeat;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{ops::Range, sync::Arc};
use tree::Tree;

/// The tree of modules that the forward pass calls, and data about its operations, such as their
/// bytes, from which layers are chosen.
#[derive(Debug, Default)]
struct ForwardModules {
    /// The operations of the forward pass, in the order of the program, as indices into the model's
    /// operations.
    forward: Vec<usize>,
    tree: Tree,
    sums: RunSums,
    /// Map from the name of a parameter to the first operation that uses the parameter, as an index
    /// into `forward`.
    parameters: FxHashMap<Box<str>, usize>,
    /// Map from the beginning of a module path to the operations whose paths begin with it.
    lookup: Lookup,
    /// The modules that are being called when each operation of the forward pass runs.
    calls: Calls,
    /// Pairs of an operation and a later operation that uses its data, as indices into `forward`,
    /// ascending.
    flow: Vec<(usize, usize)>,
    /// One entry per operation in `forward`, and one more for the end: the bytes, over all tiles,
    /// that earlier operations pass on to the operation or to later ones.
    crossing: Vec<i64>,
    /// One entry per operation in `forward`: whether the operation is the first to use some
    /// parameter.
    has_parameters: Vec<bool>,
    /// `None` if the names of operations show modules, after which layers are then named.
    /// Otherwise, layers are named after operations. The list then has one entry per operation in
    /// `forward`: its name (empty if unknown), and its first and last liveness step.
    without_modules: Option<Vec<(String, (u32, u32))>>,
}

/// The layers that were found among the modules of a model, such as the blocks of a transformer.
#[derive(Debug, Clone, Default)]
pub struct ModuleLayers {
    modules: Arc<ForwardModules>,
    /// The layers, in the order in which each first runs.
    pub layers: Vec<ModuleLayer>,
    /// One entry per operation of the forward pass: its layer, as an index into `layers`; `None` if
    /// the operation belongs to In or Out (before or after all layers).
    layer_at: Vec<Option<usize>>,
}

/// A layer: one module of the model, possibly with single operations before or after it.
#[derive(Debug, Clone)]
pub struct ModuleLayer {
    /// The name of the layer: the shortest end of `path` that no other layer has, such as
    /// `layer.3`.
    pub name: String,
    /// The path of the layer's module in the framework's notation, such as `bert.encoder.layer.3`.
    pub path: String,
    /// The runs of the layer in program order: one, or several if the model's code calls the
    /// layer's module several times.
    runs: Vec<Run>,
}

/// One run of a layer: consecutive operations of the forward pass in which the layer's module is
/// called once.
#[derive(Debug, Clone)]
struct Run {
    /// The neighbouring nodes of the module tree, as indices into [`Tree::nodes`], that together
    /// have the operations of this run.
    nodes: Vec<usize>,
    operations: Range<usize>,
}

impl ModuleLayer {
    fn operations(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().flat_map(|run| run.operations.clone())
    }
}

impl ForwardModules {
    fn by_names(operations: &[Operation], evidence: Evidence<'_>) -> Self {
        let names: Vec<_> = (evidence.forward.iter())
            .map(|&number| unwrapped(&operations[number].name))
            .collect();
        let (mut scopes, types): (Vec<&str>, Vec<&str>) =
            names.iter().map(|name| scope_and_type(name)).unzip();
        if !evidence.scopes.is_empty() {
            scopes = evidence.scopes.iter().map(String::as_str).collect();
        }
        let paths = full_paths(&scopes, &evidence.parameters, &evidence.used);
        let parts = |path: &ModulePath<'_>| components(&path.text).map(Box::from).collect();
        let mut lookup = Lookup::default();
        // Names of variables may lack the outermost modules, which call all operations (`model` in
        // Keras). So each scope (the modules that call an operation) is also added to `lookup`
        // without these modules. This is not done if only numbers would be left of all scopes,
        // because unrelated names such as `Add:0/1` contain numbers too.
        let scoped = names.iter().map(|name| &**name);
        let root = shared_scope(scoped.filter(|name| name.contains('/'))).len();
        let mut below: Vec<&str> = (scopes.iter())
            .map(|scope| scope.get(root..).map_or("", bare))
            .collect();
        if below
            .iter()
            .all(|scope| scope.is_empty() || is_number(scope))
        {
            below.fill("");
        }
        for (number, path) in paths.iter().enumerate() {
            for text in [scopes[number], below[number], &path.text] {
                lookup.add(text, number);
            }
        }
        // If several operations use a parameter, the map keeps the one that is added last. So
        // operations are added in reverse order, for the first one to remain.
        let parameters = (evidence.parameters.iter().enumerate().rev())
            .flat_map(|(number, used)| used.iter().map(move |&own| (own.into(), number)));
        Self {
            sums: RunSums::new(&evidence.bytes, &types),
            calls: Calls::new(&paths),
            flow: evidence.flow,
            crossing: evidence.crossing,
            has_parameters: (evidence.parameters.iter().map(|used| !used.is_empty())).collect(),
            forward: evidence.forward,
            tree: Tree::new(paths.iter().map(parts).collect()),
            parameters: parameters.collect(),
            lookup,
            without_modules: None,
        }
    }

    /// Builds a module tree for a model whose names show no modules, by dividing the program where
    /// little data flows.
    fn by_flow(operations: &[Operation], evidence: Evidence<'_>) -> Self {
        let forward = evidence.forward;
        let sums = RunSums::new(&evidence.bytes, &vec![""; forward.len()]);
        let name_and_steps = |&number: &usize| {
            let operation = &operations[number];
            let name = if operation.is_named() {
                &operation.name
            } else {
                ""
            };
            (name.to_owned(), operation.window.unwrap_or_default())
        };
        // To count the tensors that are passed on at each point of the program, each operation is
        // taken to make one tensor, which is kept until the last operation that uses it.
        let tensors = (evidence.flow.chunk_by(|one, other| one.0 == other.0))
            .map(|flow| (flow[0].0, flow[flow.len() - 1].1, 1));
        let tensors = crossing(forward.len(), tensors);
        Self {
            tree: tree::by_flow(&sums, &evidence.crossing, &tensors),
            sums,
            flow: evidence.flow,
            crossing: evidence.crossing,
            without_modules: Some(forward.iter().map(name_and_steps).collect()),
            forward,
            ..Self::default()
        }
    }

    fn users(&self, from: Range<usize>) -> impl Iterator<Item = usize> {
        let begin = self.flow.partition_point(|edge| edge.0 < from.start);
        self.flow[begin..]
            .iter()
            .take_while(move |edge| edge.0 < from.end)
            .map(|&(_, to)| to)
    }

    fn run(&self, nodes: Vec<usize>) -> Run {
        let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
        Run {
            operations: self.tree.operations(first).start..self.tree.operations(last).end,
            nodes,
        }
    }

    /// Builds layers with names and paths. Each entry of `layers` has the runs of one layer (the
    /// calls of its module). If `divided` is a layer, the built layers are its parts, and the name
    /// of each begins with that of `divided`.
    ///
    /// The path of a layer is that of its module. If several layers would have the same path
    /// although the paths of their first operations differ, each gets the path of its first
    /// operation instead.
    fn layers(&self, layers: Vec<Vec<Run>>, divided: Option<&ModuleLayer>) -> Vec<ModuleLayer> {
        // One entry per layer: the path of its module, and the path of the first operation of this
        // module.
        let both = |runs: &Vec<Run>| {
            let first = self.tree.paths[self.block(&runs[0]).start].concat();
            (self.path(&runs[0]), first)
        };
        let both: Vec<(String, String)> = layers.iter().map(both).collect();
        let distinct: FxHashSet<_> = both.iter().cloned().collect();
        let firsts = counts(distinct.into_iter().map(|(path, _)| path));
        let paths: Vec<String> = both
            .into_iter()
            .map(|(path, first)| if firsts[&path] > 1 { first } else { path })
            .collect();
        let names = match divided {
            Some(divided) => names::of_parts(&divided.name, &divided.path, &paths),
            None if self.without_modules.is_some() => names::numbered(paths.clone()),
            None => names::names(&paths),
        };
        names
            .into_iter()
            .zip(paths)
            .zip(layers)
            .map(|((name, path), runs)| ModuleLayer { name, path, runs })
            .collect()
    }

    /// Returns the module of a layer, as a node of the module tree. `run` is one run of the layer:
    /// one of its nodes is the module, and the others are single operations beside the module, such
    /// as a residual addition.
    fn module(&self, run: &Run) -> usize {
        let size = |&node: &usize| {
            let node = &self.tree.nodes[node];
            (!node.is_own, node.operations.len())
        };
        run.nodes
            .iter()
            .copied()
            .rev()
            .max_by_key(size)
            .unwrap_or(0)
    }

    fn block(&self, run: &Run) -> &Range<usize> {
        self.tree.operations(self.module(run))
    }

    /// Returns the module path of `run`, one of the times that the model runs a layer. If names of
    /// operations show no modules, returns the name of the first operation in `run` that has one
    /// or, if none has, the liveness steps of `run`, such as `step3-17`.
    fn path(&self, run: &Run) -> String {
        let Some(operations) = &self.without_modules else {
            return self.tree.path(self.module(run)).concat();
        };
        let operations = operations[run.operations.clone()].iter();
        if let Some((name, _)) = operations.clone().find(|(name, _)| !name.is_empty()) {
            return name.clone();
        }
        let first = operations.clone().map(|&(_, (first, _))| first).min();
        let last = operations.map(|&(_, (_, last))| last).max();
        format!("step{}-{}", first.unwrap_or(0), last.unwrap_or(0))
    }
}

impl ModuleLayers {
    /// Finds the layers of a model. Names of operations give the layers if they show at least 2 and
    /// at most [`limits::LAYERS`] layers. Otherwise, the program is divided into layers where
    /// little data flows.
    pub fn new(model: &Model) -> Self {
        let operations = &model.operations;
        let found = Self::of(ForwardModules::by_names(
            operations,
            Evidence::new(model, true),
        ));
        if (2..=limits::LAYERS).contains(&found.layers.len()) {
            return found.with_all_runs(model);
        }
        Self::of(ForwardModules::by_flow(
            operations,
            Evidence::new(model, false),
        ))
    }

    /// Finds the layers from names of operations alone, for a program whose data flow and bytes are
    /// unknown. Each run of a module is a layer.
    pub fn of_names(operations: &[Operation]) -> Self {
        let evidence = Evidence::nothing(operations, true);
        Self::of(ForwardModules::by_names(operations, evidence))
    }

    fn of(modules: ForwardModules) -> Self {
        let runs = match modules.without_modules {
            _ if modules.forward.is_empty() => Vec::new(),
            Some(_) => modules.of_few_bytes(),
            None => modules.with_own(modules.cover()),
        };
        let layers = modules.layers(runs.into_iter().map(|run| vec![run]).collect(), None);
        Self {
            modules: Arc::new(modules),
            ..Self::default()
        }
        .with_layers(layers, |_| false)
    }

    /// Returns a copy of `self` whose layers are `layers`. Operations for which `is_released` is
    /// true, given by index in the forward pass, stay outside all layers, such as a head that
    /// shares its weight with the embedding.
    fn with_layers(&self, layers: Vec<ModuleLayer>, is_released: impl Fn(usize) -> bool) -> Self {
        let mut layer_at = vec![None; self.modules.forward.len()];
        for (number, layer) in layers.iter().enumerate() {
            for at in layer.operations().filter(|&at| !is_released(at)) {
                layer_at[at] = Some(number);
            }
        }
        Self {
            modules: Arc::clone(&self.modules),
            layers,
            layer_at,
        }
    }

    /// Returns whether the layers were found by the flow of data, because names of operations show
    /// no modules.
    pub fn are_by_flow(&self) -> bool {
        self.modules.without_modules.is_some()
    }

    /// Divides a layer into its submodules, which become layers. Returns `None` if the layer has no
    /// submodules, or if there would be more than [`limits::LAYERS`] layers.
    pub fn refined(&self, layer: usize) -> Option<Self> {
        let divided = &self.layers[layer];
        let parts = self.modules.parts(divided);
        if parts.len() < 2 || self.layers.len() + parts.len() > limits::LAYERS {
            return None;
        }
        let mut layers = self.layers.clone();
        layers.splice(layer..=layer, self.modules.layers(parts, Some(divided)));
        Some(self.with_layers(layers, |at| self.layer_at[at].is_none()))
    }

    /// Divides a layer into its submodules, and these again, until one of them has the name `name`,
    /// such as `3.attention` in layer `3`. Returns `None` if no submodule has this name.
    pub fn with_part(&self, name: &str) -> Option<Self> {
        let is_in = |layer: &ModuleLayer| {
            let rest = name.strip_prefix(&*layer.name);
            rest.is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        let layer = self.layers.iter().position(is_in)?;
        let refined = self.refined(layer)?;
        if refined.layers.iter().any(|layer| layer.name == name) {
            Some(refined)
        } else {
            refined.with_part(name)
        }
    }

    /// Finds the module, or the list of modules, that the name `text` stands for. The number in the
    /// result is the index of the module's first operation, not that of a layer. `ways` are ways to
    /// compare `text` with the path of a module, which are tried in order until a path matches.
    pub fn first_of_module(&self, text: &str, ways: &[Way]) -> Named {
        let tree = &self.modules.tree;
        let nodes = (0..tree.nodes.len())
            .filter(|&node| !tree.nodes[node].is_own)
            .map(|node| (tree.path(node).concat(), tree.operations(node).start));
        // In the module tree, a module with a single submodule shares a node with this submodule,
        // so the node does not show the path of the outer module. It is found as the beginning of
        // the path of an operation instead.
        let called = tree.paths.iter().zip(0..).flat_map(|(path, at)| {
            let path = path.concat();
            let ends = path.match_indices(['/', '.']).map(|(end, _)| end);
            ends.chain([path.len()])
                .map(|end| (path[..end].to_owned(), at))
                .collect::<Vec<_>>()
        });
        let mut seen = FxHashSet::default();
        let (paths, firsts): (Vec<String>, Vec<usize>) = nodes
            .chain(called)
            .filter(|(path, _)| seen.insert(path.clone()))
            .unzip();
        lookup_path(text, &paths, ways).map(|module| self.modules.forward[firsts[module]])
    }
    pub fn operation(&self, name: &str, operations: &[Operation]) -> Option<usize> {
        self.modules
            .forward
            .iter()
            .copied()
            .find(|&number| unwrapped(&operations[number].name) == name)
    }

    /// Returns the first operation of the forward pass, from `operation` on, that belongs to no
    /// earlier layer than any operation before it. This skips, for example, an embedding that a
    /// decoder calls again. Returns `operation` itself if there is no such operation, or if an
    /// operation of the last layer runs before it. `layers` has the layer of each operation: from
    /// 1, or 0 for none, which is earlier than all layers.
    pub fn layered_from(&self, operation: usize, layers: &[u32]) -> usize {
        let forward = &self.modules.forward;
        let at = forward.partition_point(|&other| other < operation);
        let layer = |&other: &usize| layers[other];
        let reached = forward[..at].iter().map(layer).max().unwrap_or(0);
        let is_end = layers.iter().max() == Some(&reached);
        let next = forward[at..].iter().find(|&other| layer(other) >= reached);
        next.copied().filter(|_| !is_end).unwrap_or(operation)
    }

    /// Divides layers until one begins with `operation`. Returns `None` if a layer already begins
    /// with this operation, or if no division makes a layer begin with it.
    pub fn beginning_at(&self, operation: usize) -> Option<Self> {
        let at = self.modules.forward.binary_search(&operation).ok()?;
        let layer = self.layer_at[at]?;
        let begins =
            |layers: &Self, layer: usize| layers.layers[layer].runs[0].operations.start == at;
        if begins(self, layer) {
            return None;
        }
        let refined = self.refined(layer)?;
        if begins(&refined, refined.layer_at[at]?) {
            Some(refined)
        } else {
            refined.beginning_at(operation)
        }
    }

    /// Returns the layer of each operation of the model. In the forward pass, this is the layer
    /// whose module calls the operation; in later passes, the layer of the module in the
    /// operation's name.
    pub fn layers(&self, operations: &[Operation]) -> Vec<Option<usize>> {
        let mut layers: Vec<Option<usize>> = operations
            .iter()
            .map(|operation| {
                self.layer_of_module_in(&operation.name)
                    .filter(|_| operation.is_named())
            })
            .collect();
        for (&operation, &layer) in self.modules.forward.iter().zip(&self.layer_at) {
            layers[operation] = layer;
        }
        layers
    }

    /// Returns the layer of the first operation that uses the parameter `variable`. If that gives
    /// none, returns the layer of the module whose path occurs in `variable`, such as
    /// `encoder.layer.3` in `Accl1___encoder.layer.3.weight`.
    pub fn layer_of(&self, variable: &str) -> Option<usize> {
        self.modules
            .parameters
            .get(variable)
            .and_then(|&operation| self.layer_at[operation])
            .or_else(|| self.layer_of_module_in(variable))
    }

    /// Returns the layer of the module whose path `text` contains; `None` if there is no such
    /// module, or if the module belongs to several layers.
    fn layer_of_module_in(&self, text: &str) -> Option<usize> {
        let (first, last) = self.modules.lookup.find(&unwrapped(text))?;
        let layer = self.layer_at[first];
        layer.filter(|_| layer == self.layer_at[last])
    }
}
