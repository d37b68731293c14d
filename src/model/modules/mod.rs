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

use super::layer_lookup::{Named, Way, lookup_path};
use super::names::unwrapped;
use super::{Model, Operation, counts, crossing};
use crate::limits;
use calls::Calls;
pub use calls::ModuleCalls;
use evidence::{Evidence, RunSums};
pub(crate) use names::without_numbers;

use outline::shared_scope;
use paths::{Lookup, bare, components, full_paths, is_number, scope_and_type};
pub use runs::Repeat;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use tree::Tree;

/// The module tree of the forward pass, with the data from which layers are chosen.
#[derive(Debug, Default)]
struct ForwardModules {
    /// The operations of the forward pass, in the order of the program, as indices into the model's
    /// operations.
    forward: Vec<usize>,
    tree: Tree,
    sums: RunSums,
    /// For each parameter (by its name): the index into `forward` of the first operation that uses
    /// it.
    parameters: FxHashMap<Box<str>, usize>,
    /// Finds the operations, as indices into `forward`, whose module paths have a given beginning.
    lookup: Lookup,
    /// One entry per operation in `forward`: the modules that are being called when the operation
    /// runs.
    calls: Calls,
    /// Pairs of an operation and a later operation to which data flows, as indices into `forward`,
    /// ascending.
    flow: Vec<(usize, usize)>,
    /// One entry per operation in `forward`, and one more for the end: the bytes, over all tiles,
    /// that earlier operations pass on to this or later operations.
    crossing: Vec<i64>,
    /// One entry per operation in `forward`: whether it is the first operation to use a parameter.
    has_parameters: Vec<bool>,
    /// One entry per operation in `forward`: its name (empty if it has none), and its first and its
    /// last liveness step. A layer that begins with the operation is named after it. `None` if
    /// names of operations show modules.
    without_modules: Option<Vec<(String, (u32, u32))>>,
}

/// The layers that are found in the modules of a model.
#[derive(Debug, Clone)]
pub struct ModuleLayers {
    modules: Arc<ForwardModules>,
    /// The layers, in the order of their first runs.
    pub layers: Vec<ModuleLayer>,
    /// One entry per operation of the forward pass: the index into `layers` of its layer; `None` if
    /// the operation belongs to In or Out (before or after all layers).
    layer_at: Vec<Option<usize>>,
}

/// A layer that consists of one module of the model, or of several consecutive ones.
#[derive(Debug, Clone)]
pub struct ModuleLayer {
    /// The shortest end of `path` that no other layer has, such as `layer.3`.
    pub name: String,
    /// The path of the layer's module in the framework's notation, such as `bert.encoder.layer.3`.
    pub path: String,
    /// The runs of the layer, in the order of the program; at least one.
    runs: Vec<Run>,
}

/// One run of a layer: consecutive operations of the forward pass.
#[derive(Debug, Clone)]
struct Run {
    /// The consecutive nodes of the module tree that make up the run, as indices into its nodes.
    nodes: Vec<usize>,
    /// The operations of the run, as indices into the operations of the forward pass.
    operations: Range<usize>,
}

impl ModuleLayer {
    /// Iterates over the operations of all runs of the layer, as indices into the forward pass.
    fn operations(&self) -> impl Iterator<Item = usize> + '_ {
        self.runs.iter().flat_map(|run| run.operations.clone())
    }
}

impl ForwardModules {
    /// Builds the module tree from the names of operations and parameters. `operations` has all
    /// operations of the model.
    fn by_names(operations: &[Operation], evidence: Evidence<'_>) -> Self {
        let forward = evidence.forward.iter();
        let names: Vec<_> = forward
            .map(|&number| unwrapped(&operations[number].name))
            .collect();
        let of_names = names.iter().map(|name| scope_and_type(name));
        let (mut scopes, types): (Vec<&str>, Vec<&str>) = of_names.unzip();
        if !evidence.scopes.is_empty() {
            scopes = evidence.scopes.iter().map(String::as_str).collect();
        }
        let paths = full_paths(&scopes, &evidence.parameters, &evidence.used);
        let calls = Calls::new(&paths);
        let paths: Vec<String> = paths.into_iter().map(|path| path.text).collect();
        let parts = paths
            .iter()
            .map(|path| components(path).map(Box::from).collect());
        let tree = Tree::new(parts.collect());
        let mut lookup = Lookup::default();
        // Names of variables may lack the modules around all operations (`model` in Keras), so
        // paths without these modules are added too, unless only numbers remain, as in `Add:0/1`.
        let scoped = names.iter().map(|name| &**name);
        let root = shared_scope(scoped.filter(|name| name.contains('/'))).len();
        let below: Vec<&str> = scopes
            .iter()
            .map(|scope| scope.get(root..).map_or("", bare))
            .collect();
        let is_list = below
            .iter()
            .all(|scope| scope.is_empty() || is_number(scope));
        for (number, (scope, path)) in (0..).zip(scopes.iter().zip(&paths)) {
            lookup.add(scope, number);
            if !is_list {
                lookup.add(below[number], number);
            }
            lookup.add(path, number);
        }
        // In reverse order, so that the first operation with a parameter remains.
        let parameters = evidence.parameters.iter().enumerate().rev();
        let parameters =
            parameters.flat_map(|(number, used)| used.iter().map(move |&own| (own.into(), number)));
        Self {
            sums: RunSums::new(&evidence.bytes, types.into_iter()),
            calls,
            flow: evidence.flow,
            crossing: evidence.crossing,
            has_parameters: (evidence.parameters.iter().map(|used| !used.is_empty())).collect(),
            forward: evidence.forward,
            tree,
            parameters: parameters.collect(),
            lookup,
            without_modules: None,
        }
    }

    /// Builds a module tree that divides the program where little data flows, for a model whose
    /// names show no modules. `operations` has all operations of the model.
    fn by_flow(operations: &[Operation], evidence: Evidence<'_>) -> Self {
        let forward = evidence.forward;
        let sums = RunSums::new(&evidence.bytes, forward.iter().map(|_| ""));
        let name_and_steps = |&number: &usize| {
            let operation = &operations[number];
            let name = Some(&operation.name).filter(|_| operation.is_named());
            let name = name.map_or_else(String::new, |name| name.to_string());
            (name, operation.window.unwrap_or_default())
        };
        // One tensor per operation: it is passed on to the last operation that uses the operation's
        // data.
        let tensors = evidence.flow.chunk_by(|one, other| one.0 == other.0);
        let tensors = tensors.map(|flow| (flow[0].0, flow[flow.len() - 1].1, 1));
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

    /// Iterates over the operations that use data made by the operations `from`, all as indices
    /// into `forward`.
    fn users(&self, from: Range<usize>) -> impl Iterator<Item = usize> {
        let begin = self.flow.partition_point(|edge| edge.0 < from.start);
        let edges = self.flow[begin..].iter();
        edges
            .take_while(move |edge| edge.0 < from.end)
            .map(|&(_, to)| to)
    }

    /// Returns one run of a layer made of consecutive `nodes` (at least one) of the module tree.
    fn run(&self, nodes: Vec<usize>) -> Run {
        let operations = |node: usize| &self.tree.nodes[node].operations;
        Run {
            operations: operations(nodes[0]).start..operations(nodes[nodes.len() - 1]).end,
            nodes,
        }
    }

    /// Builds layers. `layers` has one entry per layer: its runs. `names` computes the names of all
    /// layers from the paths of all layers. Layers have equal paths if they are runs of one module,
    /// or if the path is only the beginning of the names of several modules. In the second case,
    /// each layer gets the path of its first operation instead.
    fn layers(
        &self,
        layers: Vec<Vec<Run>>,
        names: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Vec<ModuleLayer> {
        // One entry per layer: its path, and the path of the first operation of its module.
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
        names(&paths)
            .into_iter()
            .zip(paths)
            .zip(layers)
            .map(|((name, path), runs)| ModuleLayer { name, path, runs })
            .collect()
    }

    /// Returns the main node of a run, as an index into the nodes of the tree: the module with the
    /// most operations, to which the other nodes of the run were joined.
    fn module(&self, run: &Run) -> usize {
        let size = |&&node: &&usize| {
            let node = &self.tree.nodes[node];
            (!node.is_own, node.operations.len())
        };
        run.nodes
            .iter()
            .rev()
            .max_by_key(size)
            .copied()
            .unwrap_or(0)
    }

    /// Returns the operations of the main node of a run ([`module`](Self::module)).
    fn block(&self, run: &Run) -> &Range<usize> {
        &self.tree.nodes[self.module(run)].operations
    }

    /// Returns the path of the main node of a run ([`module`](Self::module)). If names of
    /// operations show no modules, returns the name of the first named operation of the run or, if
    /// no operation has a name, the range of steps of the run, such as `step3-17`.
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
    /// Finds the layers of a model. They are found in names of operations if these show from 2 to
    /// [`limits::LAYERS`] layers; otherwise, the program is divided into layers where little data
    /// flows.
    pub fn new(model: &Model) -> Self {
        let operations = &model.operations;
        let by_names = ForwardModules::by_names(operations, Evidence::new(model, true));
        let found = Self::of(by_names);
        if (2..=limits::LAYERS).contains(&found.layers.len()) {
            return found.with_all_runs(model);
        }
        Self::of(ForwardModules::by_flow(
            operations,
            Evidence::new(model, false),
        ))
    }

    /// Finds the layers from names of operations alone, without the flow of data and without bytes.
    /// Each run of a module is a layer.
    pub fn of_names(operations: &[Operation]) -> Self {
        let evidence = Evidence::nothing(operations, true);
        Self::of(ForwardModules::by_names(operations, evidence))
    }

    fn of(modules: ForwardModules) -> Self {
        let (runs, names): (_, fn(&[String]) -> _) = match modules.without_modules {
            _ if modules.forward.is_empty() => (Vec::new(), names::names),
            Some(_) => (modules.of_few_bytes(), |paths| {
                names::numbered(paths.to_vec())
            }),
            None => (modules.with_own(modules.cover()), names::names),
        };
        let layers = runs.into_iter().map(|run| vec![run]).collect();
        let layers = modules.layers(layers, names);
        let none = Self {
            modules: Arc::new(modules),
            layers: Vec::new(),
            layer_at: Vec::new(),
        };
        none.with_layers(layers, |_| false)
    }

    /// Replaces the layers with `layers`. `is_released` is called with the index of an operation in
    /// the forward pass, and returns whether the operation belongs to In or Out although its module
    /// is a layer.
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

    /// Returns whether the layers come from the flow of data, since names show no modules.
    pub fn are_by_flow(&self) -> bool {
        self.modules.without_modules.is_some()
    }

    /// Divides the layer with index `layer` into its submodules, which become layers and are named
    /// after the divided layer. Returns `None` if the layer has no submodules, or if there would be
    /// more than [`limits::LAYERS`] layers.
    pub fn refined(&self, layer: usize) -> Option<Self> {
        let divided = &self.layers[layer];
        let parts = self.modules.parts(divided);
        if parts.len() < 2 || self.layers.len() + parts.len() > limits::LAYERS {
            return None;
        }
        let names = |paths: &[String]| names::of_parts(&divided.name, &divided.path, paths);
        let parts = self.modules.layers(parts, names);
        let mut layers = self.layers.clone();
        layers.splice(layer..=layer, parts);
        Some(self.with_layers(layers, |at| self.layer_at[at].is_none()))
    }

    /// Divides the layer whose name is the beginning of `name`, repeatedly if needed, until a layer
    /// has the name `name`. Returns `None` if there is no submodule with this name.
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

    /// Finds the module, or the list of modules, that `text` stands for. The entries of `ways` are
    /// tried in order, and the first way in which any module matches decides. The index in the
    /// result is not that of a module, but that of its first operation among the operations of the
    /// model.
    pub fn first_of_module(&self, text: &str, ways: &[Way]) -> Named {
        let tree = &self.modules.tree;
        let is_called = |&node: &usize| !tree.nodes[node].is_own;
        let nodes = (0..tree.nodes.len()).filter(is_called);
        let nodes = nodes.map(|node| (tree.path(node).concat(), tree.nodes[node].operations.start));
        // A module with a single submodule shares one node with it, so beginnings of paths are
        // searched too.
        let called = tree.paths.iter().zip(0..).flat_map(|(path, at)| {
            let path = path.concat();
            let ends = path.match_indices(['/', '.']).map(|(end, _)| end);
            let ends: Vec<usize> = ends.chain([path.len()]).collect();
            ends.into_iter()
                .map(move |end| (path[..end].to_owned(), at))
        });
        let mut seen = FxHashSet::default();
        let (paths, firsts): (Vec<String>, Vec<usize>) = nodes
            .chain(called)
            .filter(|(path, _)| seen.insert(path.clone()))
            .unzip();
        lookup_path(text, &paths, ways).map(|module| self.modules.forward[firsts[module]])
    }
    /// Returns the first operation of the forward pass with name `name`, as an index into
    /// `operations` of the model; `None` if there is none.
    pub fn operation(&self, name: &str, operations: &[Operation]) -> Option<usize> {
        let mut forward = self.modules.forward.iter().copied();
        forward.find(|&number| unwrapped(&operations[number].name) == name)
    }

    /// Returns `operation`, unless it belongs to In or to an earlier layer than an operation before
    /// it, such as an embedding that encoder and decoder share. In that case, returns the next
    /// operation that does not. `layers` has one entry per operation of the model: the number of
    /// its layer from 1, or 0 for none.
    pub fn layered_from(&self, operation: usize, layers: &[u32]) -> usize {
        let forward = &self.modules.forward;
        let at = forward.partition_point(|&other| other < operation);
        let layer = |&other: &usize| layers[other];
        let reached = forward[..at].iter().map(layer).max().unwrap_or(0);
        let is_end = layers.iter().max() == Some(&reached);
        let next = forward[at..].iter().find(|&other| layer(other) >= reached);
        next.copied().filter(|_| !is_end).unwrap_or(operation)
    }

    /// Divides layers until one begins with `operation`, an index into the operations of the model.
    /// Returns `None` if a layer already begins with this operation, or if no division makes a
    /// layer begin there.
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

    /// Returns one entry per operation of the model: the index of its layer from 0; `None` if it
    /// has no layer. An operation of the forward pass belongs to the layer whose module calls it.
    /// Any other operation belongs to the layer of the module in its name.
    pub fn layers(&self, operations: &[Operation]) -> Vec<Option<usize>> {
        let mut layers: Vec<Option<usize>> = operations
            .iter()
            .map(|operation| {
                let layer = self.layer_of_module_in(&operation.name);
                layer.filter(|_| operation.is_named())
            })
            .collect();
        for (&operation, &layer) in self.modules.forward.iter().zip(&self.layer_at) {
            layers[operation] = layer;
        }
        layers
    }

    /// Returns the index of the layer of the variable with name `variable`: the layer that is the
    /// first to use the parameter with this name, or else the layer of the module whose path the
    /// name contains. Returns `None` if there is no such layer.
    pub fn layer_of(&self, variable: &str) -> Option<usize> {
        self.modules
            .parameters
            .get(variable)
            .and_then(|&operation| self.layer_at[operation])
            .or_else(|| self.layer_of_module_in(variable))
    }

    /// Returns the index of the layer of the module whose path is in `text`; `None` if there is no
    /// such module, or if the module belongs to several layers.
    fn layer_of_module_in(&self, text: &str) -> Option<usize> {
        let (first, last) = self.modules.lookup.find(&unwrapped(text))?;
        let layer = self.layer_at[first];
        layer.filter(|_| layer == self.layer_at[last])
    }
}
