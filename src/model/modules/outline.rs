//! Lists the modules of a model for `--list-layers`, and writes layers as a regex for PopART's
//! outliner.

use super::{
    ModuleLayers,
    names::without_numbers,
    paths::{scope_and_type, shared},
};
use crate::model::{Operation, counts};
use rustc_hash::{FxHashMap, FxHashSet};

/// A row of the tree of modules that `--list-layers` prints. It stands for one run of a module in
/// the forward pass: a module that runs twice has two rows.
#[derive(Debug, PartialEq, Eq)]
pub struct ModuleRow {
    /// Number of modules around this module, by which its line in the list is indented.
    pub depth: usize,
    /// The path of the module without its beginning, the path of the module around it.
    pub name: String,
    /// Number of operations that one run of the module has in the forward pass.
    pub operations: usize,
    /// Bytes, over all tiles, of the variables that are used in this run of the module but not by
    /// earlier operations.
    pub bytes: u64,
    /// How often the module with this path runs in the forward pass.
    pub runs: usize,
    /// The name of the layer, if this module is one; `None` if the module contains several layers
    /// or is outside all layers.
    pub layer: Option<String>,
}

/// Maximum number of scopes (common beginnings of operation names) in the regex for PopART's
/// outliner. A model with more scopes gets no regex.
const ALTERNATIVES: usize = 64;

impl ModuleLayers {
    /// Lists the modules of the model in program order, each before its submodules. Modules inside
    /// a layer are left out.
    pub fn outline(&self) -> Vec<ModuleRow> {
        let tree = &self.modules.tree;
        let mut layer_of: FxHashMap<usize, &String> = FxHashMap::default();
        for layer in &self.layers {
            let nodes = layer.runs.iter().flat_map(|run| &run.nodes);
            layer_of.extend(nodes.map(|&node| (node, &layer.name)));
        }
        let modules = (0..tree.nodes.len()).filter(|&node| !tree.nodes[node].is_own);
        let runs = counts(modules.map(|node| tree.path(node)));
        let mut rows = Vec::new();
        let mut left = vec![(0, 0, String::new())];
        while let Some((number, depth, parent)) = left.pop() {
            let path = self.modules.path(&self.modules.run(vec![number]));
            let layer = layer_of.get(&number).copied();
            let below = path.strip_prefix(&parent).unwrap_or(&path);
            rows.push(ModuleRow {
                depth,
                name: below.trim_start_matches(['/', '.']).to_string(),
                operations: tree.operations(number).len(),
                bytes: self.modules.sums.bytes(tree.operations(number)),
                runs: runs[tree.path(number)],
                layer: layer.cloned(),
            });
            if layer.is_none() {
                let modules = tree.submodules(number).rev();
                left.extend(modules.map(|module| (module, depth + 1, path.clone())));
            }
        }
        rows
    }

    /// Returns a regex for the environment variable `POPART_POPLINER_OUTLINER_REGEX`, by which
    /// PopART keeps the code of layers apart. It matches the scope (the common beginning of
    /// operation names) of each layer, with any number in place of numbers. Returns `None` if no
    /// layer has a scope, or if there are more than [`ALTERNATIVES`] scopes.
    pub fn outliner_regex(&self, operations: &[Operation]) -> Option<String> {
        let name = |at: usize| &*operations[self.modules.forward[at]].name;
        let mut seen = FxHashSet::default();
        let scopes: Vec<String> = (self.layers.iter())
            .map(|layer| pattern(&shared_scope(layer.operations().map(name))))
            .filter(|scope| !scope.is_empty() && seen.insert(scope.clone()))
            .collect();
        (1..=ALTERNATIVES)
            .contains(&scopes.len())
            .then(|| format!("^({})(?:/|$)", scopes.join("|")))
    }
}

/// Returns the longest scope (an operation name without its type) with which all `names` begin.
pub fn shared_scope<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut scopes = names.map(|name| scope_and_type(name).0.split('/'));
    let first: Vec<&str> = scopes.next().map_or_else(Vec::new, Iterator::collect);
    let counts = scopes.map(|scope| shared(first.iter().copied(), scope));
    first[..counts.min().unwrap_or(first.len())].join("/")
}

/// Returns a regex in which each number in `scope` stands for any number: `encoder/\d+/a` for
/// `encoder/12/a`.
fn pattern(scope: &str) -> String {
    without_numbers(&regex::escape(scope), r"\d+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_any_numbers() {
        assert_eq!(pattern("encoder/12/a"), r"encoder/\d+/a");
        assert_eq!(pattern("a.b3"), r"a\.b\d+");
        let names = ["a/0/q/MatMul", "a/0/k/MatMul", "a/0/Add"];
        assert_eq!(shared_scope(names.into_iter()), "a/0");
        assert_eq!(shared_scope(["MatMul"].into_iter()), "");
    }
}
