//! Layers from the modules of the model (docs/model.md, "Layers from modules").
//!
//! A layer is a run of consecutive operations of the forward pass that one module of the model
//! calls. `paths` gives each operation its place in the module tree, `tree` builds the tree,
//! `which_are_layers` chooses the modules that are layers by one measure and joins small pieces to
//! their neighbours, and `names` gives short names. Where names show no modules, the flow of data
//! gives the tree.

mod calls;
mod description;
mod evidence;
mod names;
mod outline;
mod paths;
#[cfg(test)]
mod tests;
mod tree;
mod unscoped;
mod which_are_layers;

use super::{Model, Operation};
use crate::limits;
use calls::Calls;
pub use calls::ModuleCalls;
use evidence::{Evidence, Sums, forward};
pub(crate) use outline::ModuleRow;
use paths::{Lookup, components, full_paths, scope_and_type, shared};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use tree::Tree;
use which_are_layers::{WORD, attach, cover};

/// If there are more layers than this, which nobody reads, coarser ones are preferred.
const MANY: usize = 64;

/// The modules of a model as they run, whether they are layers or not.
#[derive(Debug)]
struct Modules {
    /// Operations of the forward pass, in the order of the program.
    forward: Vec<u32>,
    tree: Tree,
    sums: Sums,
    /// By parameter: the first operation that uses it, as a position in `forward`.
    parameters: FxHashMap<Box<str>, u32>,
    /// Operations by their paths, as positions in `forward`.
    lookup: Lookup,
    /// By operation of the forward pass: the modules that are being called.
    calls: Calls,
    /// Pairs of an operation and a later one that data flows to, as positions in `forward`,
    /// ascending.
    flow: Vec<(usize, usize)>,
    /// By operation in `forward`: its first and last step, if names show no modules.
    steps: Option<Vec<(u32, u32)>>,
}

/// The modules that are layers.
#[derive(Debug, Clone)]
pub(crate) struct ModuleLayers {
    modules: Arc<Modules>,
    /// In the order of the program.
    pub(crate) layers: Vec<ModuleLayer>,
    /// By operation of the forward pass: is the operation in In or Out, not in the layer that runs
    /// it?
    is_released: Vec<bool>,
}

/// A layer that consists of one module or of several.
#[derive(Debug, Clone)]
pub(crate) struct ModuleLayer {
    /// The shortest name that no other layer has.
    pub(crate) name: String,
    /// The path of the module, as the framework writes it.
    pub(crate) path: String,
    /// The nodes of the tree that make up the layer.
    nodes: Vec<usize>,
    /// The operations of the nodes, as positions in the forward pass.
    run: Range<usize>,
}

impl Modules {
    /// The modules that names show.
    fn by_names(operations: &[Operation], forward: Vec<u32>, evidence: Evidence<'_>) -> Self {
        let names = forward
            .iter()
            .map(|&number| &*operations[number as usize].name);
        let (mut scopes, types): (Vec<&str>, Vec<&str>) = names.map(scope_and_type).unzip();
        if !evidence.scopes.is_empty() {
            scopes = evidence.scopes.iter().map(String::as_str).collect();
        }
        let paths = full_paths(&scopes, &evidence.parameters);
        let calls = Calls::new(&paths);
        let paths: Vec<String> = paths.into_iter().map(|path| path.text).collect();
        let split = |path: &String| components(path).map(Box::from).collect();
        let tree = Tree::new(paths.iter().map(split).collect());
        let mut lookup = Lookup::default();
        for (number, (scope, path)) in (0u32..).zip(scopes.iter().zip(&paths)) {
            lookup.add(scope, number);
            if path != scope {
                lookup.add(path, number);
            }
        }
        let mut parameters = FxHashMap::default();
        for (number, used) in (0u32..).zip(&evidence.parameters) {
            for &parameter in used {
                parameters.entry(parameter.into()).or_insert(number);
            }
        }
        Self {
            sums: Sums::new(&evidence.bytes, types.into_iter()),
            calls,
            flow: evidence.flow,
            steps: None,
            forward,
            tree,
            parameters,
            lookup,
        }
    }

    /// Runs of the program between which little data flows, as modules.
    fn by_flow(operations: &[Operation], forward: Vec<u32>, evidence: Evidence<'_>) -> Self {
        let sums = Sums::new(&evidence.bytes, forward.iter().map(|_| ""));
        let steps = |&number: &u32| operations[number as usize].window.unwrap_or_default();
        Self {
            tree: tree::by_flow(&sums, &evidence.crossing),
            sums,
            calls: Calls::default(),
            flow: evidence.flow,
            steps: Some(forward.iter().map(steps).collect()),
            forward,
            parameters: FxHashMap::default(),
            lookup: Lookup::default(),
        }
    }

    /// The nodes of each layer.
    fn choose(&self) -> Vec<Vec<usize>> {
        if self.forward.is_empty() {
            return Vec::new();
        }
        if self.steps.is_some() {
            return which_are_layers::by_flow(&self.tree, &self.sums);
        }
        let chosen = self.cover(WORD);
        if chosen.len() <= MANY {
            return chosen;
        }
        let coarser = self.cover(2.0 * WORD);
        if coarser.len() <= MANY {
            coarser
        } else {
            chosen
        }
    }

    /// The layers if naming one costs `word`.
    fn cover(&self, word: f64) -> Vec<Vec<usize>> {
        let chosen = cover(&self.tree, &self.sums, word);
        attach(&self.tree, &self.sums, &chosen, |from, to| {
            self.flows(from, to)
        })
    }

    /// Does data flow from one run of operations to another?
    fn flows(&self, from: &Range<usize>, to: &Range<usize>) -> bool {
        let begin = self.flow.partition_point(|edge| edge.0 < from.start);
        let of_run = self.flow[begin..].iter();
        let mut of_run = of_run.take_while(|edge| edge.0 < from.end);
        of_run.any(|edge| to.contains(&edge.1))
    }

    /// The run of consecutive nodes.
    fn run(&self, nodes: &[usize]) -> Range<usize> {
        let operations = |node: usize| &self.tree.nodes[node].operations;
        operations(nodes[0]).start..operations(nodes[nodes.len() - 1]).end
    }

    /// Consecutive layers of these nodes; `names` gives the name of each from the paths of all.
    fn layers(
        &self,
        layers: Vec<Vec<usize>>,
        names: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Vec<ModuleLayer> {
        let path = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| layers.get(before));
            let neighbours: Vec<_> = before.into_iter().chain(layers.get(at + 1)).collect();
            self.path(&layers[at], &neighbours)
        };
        let paths: Vec<String> = (0..layers.len()).map(path).collect();
        let named = names(&paths).into_iter().zip(paths).zip(layers);
        let layer = |((name, path), nodes): ((String, String), Vec<usize>)| ModuleLayer {
            name,
            path,
            run: self.run(&nodes),
            nodes,
        };
        named.map(layer).collect()
    }

    /// The path of a layer's module: the path that all its nodes share if no neighbour is in it,
    /// else the path of the node with most operations.
    fn path(&self, nodes: &[usize], neighbours: &[&Vec<usize>]) -> String {
        if let Some(steps) = &self.steps {
            let steps = &steps[self.run(nodes)];
            let first = steps.iter().map(|steps| steps.0).min();
            let last = steps.iter().map(|steps| steps.1).max();
            return format!("step{}-{}", first.unwrap_or(0), last.unwrap_or(0));
        }
        let first = self.tree.path(nodes[0]);
        let depths = nodes
            .iter()
            .map(|&node| shared(first, self.tree.path(node)));
        let depth = depths.min().unwrap_or(0);
        let common = &first[..depth];
        let is_inside = |node: &usize| self.tree.path(*node).starts_with(common);
        let is_whole = nodes.len() == 1
            || depth > 0 && !neighbours.iter().any(|nodes| nodes.iter().any(is_inside));
        let largest = nodes
            .iter()
            .max_by_key(|&&node| self.tree.nodes[node].operations.len());
        let path = match largest {
            Some(&largest) if !is_whole => self.tree.path(largest),
            _ => common,
        };
        path.concat()
    }
}

impl ModuleLayers {
    /// The layers of a model.
    pub(crate) fn new(model: &Model) -> Self {
        let named = forward(&model.operations, true);
        let evidence = Evidence::new(model, &named);
        let found = Self::of(Modules::by_names(&model.operations, named, evidence));
        if (2..=limits::LAYERS).contains(&found.layers.len()) {
            return found;
        }
        let forward = forward(&model.operations, false);
        let evidence = Evidence::new(model, &forward);
        Self::of(Modules::by_flow(&model.operations, forward, evidence))
    }

    /// The layers of a program whose operations have names, but no flow of data and no bytes.
    pub(crate) fn of_names(operations: &[Operation]) -> Self {
        let forward = forward(operations, true);
        let evidence = Evidence::nothing(forward.len());
        Self::of(Modules::by_names(operations, forward, evidence))
    }

    fn of(modules: Modules) -> Self {
        Self {
            layers: modules.layers(modules.choose(), names::names),
            is_released: vec![false; modules.forward.len()],
            modules: Arc::new(modules),
        }
    }

    /// Do the layers come from the flow of data, since names show no modules?
    pub(crate) fn are_by_flow(&self) -> bool {
        self.modules.steps.is_some()
    }

    /// The layers with one of them cut into its parts, which are named after it; `None` if it has
    /// no parts.
    pub(crate) fn refined(&self, layer: usize) -> Option<Self> {
        let ModuleLayer {
            name, path, nodes, ..
        } = &self.layers[layer];
        let parts_of = |&node: &usize| match self.modules.tree.nodes[node].children.as_slice() {
            [] => vec![node],
            // Small pieces joined to a module are parts beside the parts of the module.
            _ if self.modules.path(&[node], &[]) != *path => vec![node],
            children => children.to_vec(),
        };
        let parts = nodes.iter().flat_map(parts_of);
        let parts: Vec<Vec<usize>> = parts.map(|part| vec![part]).collect();
        if parts.len() < 2 || self.layers.len() + parts.len() > limits::LAYERS {
            return None;
        }
        let names = |paths: &[String]| names::of_parts(name, path, paths);
        let parts = self.modules.layers(parts, names);
        let mut refined = self.clone();
        refined.layers.splice(layer..=layer, parts);
        Some(refined)
    }

    /// The layers with the named part of a layer as a separate layer; `None` if there is no such
    /// part.
    pub(crate) fn with_part(&self, name: &str) -> Option<Self> {
        let is_in = |layer: &ModuleLayer| {
            let rest = name.strip_prefix(&*layer.name);
            rest.is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        let layer = self.layers.iter().position(is_in)?;
        let refined = self.refined(layer)?;
        match refined.layers.iter().any(|layer| layer.name == name) {
            true => Some(refined),
            false => refined.with_part(name),
        }
    }

    /// By operation of the model: its layer, from 0. Operations of the forward pass are in the
    /// layer that runs them, others in the layer of the module that their name gives.
    pub(crate) fn layers(&self, operations: &[Operation]) -> Vec<Option<u32>> {
        let by_name = |operation: &Operation| {
            let is_named = !operation.is_tensor && !operation.is_anonymous;
            is_named.then(|| self.named(&operation.name)).flatten()
        };
        let mut layers: Vec<Option<u32>> = operations.iter().map(by_name).collect();
        for (layer, ModuleLayer { run, .. }) in (0u32..).zip(&self.layers) {
            for at in run.clone() {
                let operation = self.modules.forward[at] as usize;
                layers[operation] = Some(layer).filter(|_| !self.is_released[at]);
            }
        }
        layers
    }

    /// The layer of a parameter, or of a variable that is named after a parameter or a module.
    pub(crate) fn layer_of(&self, variable: &str) -> Option<u32> {
        let parameter = self.modules.parameters.get(variable);
        let layer = parameter.and_then(|&operation| self.layer_at(operation));
        layer.or_else(|| self.named(variable))
    }

    /// The layer of the module that a text begins with.
    fn named(&self, text: &str) -> Option<u32> {
        let (first, last) = self.modules.lookup.find(text)?;
        let layer = self.layer_at(first);
        layer.filter(|_| layer == self.layer_at(last))
    }

    /// The layer of an operation of the forward pass.
    fn layer_at(&self, operation: u32) -> Option<u32> {
        let at = operation as usize;
        let begins = |layer: &ModuleLayer| layer.run.start <= at;
        let layer = self.layers.partition_point(begins).checked_sub(1)?;
        let is_inside = self.layers[layer].run.contains(&at);
        (is_inside && !self.is_released[at]).then_some(layer as u32)
    }
}
