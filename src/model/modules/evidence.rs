//! Collects the data, besides names, from which layers are chosen: parameters, bytes and data flow
//! of the operations of the forward pass. For programs that were recorded without scopes of
//! operations (the modules that call an operation), names of parameters give the scopes.

use super::paths::{is_number, modules, scope_and_type};
use crate::model::{Label, Model, NO_NODE, Operation, Pass, TensorKind, ascending, crossing};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::Range;

/// Data on each operation of the forward pass from which layers are chosen. All indices of
/// operations, except in `forward`, are indices into the forward pass.
pub struct Evidence<'a> {
    /// The operations of the forward pass, as ascending indices into the model's operations.
    pub forward: Vec<usize>,
    /// One entry per operation: the names of the parameters that it is the first to use.
    pub parameters: Vec<Vec<&'a str>>,
    /// One entry per operation: the names of all parameters that it uses.
    pub used: Vec<Vec<&'a str>>,
    /// One entry per operation: the scope that its name lacks. The scope has the modules, joined by
    /// `/`, in names of the parameters that the operation or its neighbours use. The list is empty
    /// if names of operations contain modules, or if names of parameters contain none.
    pub scopes: Vec<String>,
    /// One entry per operation: the bytes, over all tiles, of the variables that the operation is
    /// the first to use.
    pub bytes: Vec<u64>,
    /// Pairs of an operation and a later operation to which data flows, ascending.
    pub flow: Vec<(usize, usize)>,
    /// One entry per operation, and one more for the end: the bytes, over all tiles, of the tensors
    /// that earlier operations make and that this or a later operation uses.
    pub crossing: Vec<i64>,
}

/// Returns the operations of the forward pass, as ascending indices into `operations`. If `named`,
/// returns only operations to which the framework gave a name.
fn forward(operations: &[Operation], named: bool) -> Vec<usize> {
    let is_forward = |&number: &usize| {
        let operation = &operations[number];
        let is_named = !operation.is_anonymous && !operation.name.starts_with("Call");
        matches!(operation.pass, Pass::Forward | Pass::Both)
            && !(operation.is_backward || operation.is_update || operation.is_tensor)
            && (is_named || !named && operation.window.is_some())
    };
    (0..operations.len()).filter(is_forward).collect()
}

/// Used in place of an index into the forward pass for an operation outside the forward pass.
const NONE: usize = usize::MAX;

/// Maximum number of parameters that are kept for each operation. Operations of real models use
/// fewer than 8; a damaged file may list every parameter for every operation.
const USED: usize = 32;

impl<'a> Evidence<'a> {
    /// Returns evidence without any parameters, bytes or data flow. With `named`, it is only about
    /// operations to which the framework gave a name.
    pub fn nothing(operations: &[Operation], named: bool) -> Self {
        let forward = forward(operations, named);
        let count = forward.len();
        Self {
            forward,
            parameters: vec![Vec::new(); count],
            used: vec![Vec::new(); count],
            scopes: Vec::new(),
            bytes: vec![0; count],
            flow: Vec::new(),
            crossing: vec![0; count + 1],
        }
    }

    /// Collects the evidence of a model. With `named`, it is only about operations to which the
    /// framework gave a name.
    pub fn new(model: &'a Model, named: bool) -> Self {
        let mut evidence = Self::nothing(&model.operations, named);
        let mut first_of_group = vec![NONE; model.operation_groups.len()];
        let mut position = vec![NONE; model.operations.len()];
        for (at, &operation) in evidence.forward.iter().enumerate().rev() {
            first_of_group[model.operations[operation].group as usize] = at;
            position[operation] = at;
        }
        evidence.add_flow(model, &position);
        let bytes = model.bytes_of_sets();
        let first_of_set = model.use_sets.fold(NONE, |first: usize, group| {
            first.min(first_of_group[group as usize])
        });
        let sets = (0u32..).zip(first_of_set);
        for (set, first) in sets.filter(|&(_, first)| first != NONE) {
            evidence.bytes[first] += bytes[set as usize].all;
            let Label { tensor, kind, .. } = model.label_of(set);
            if *kind == TensorKind::Variable && !tensor.is_empty() {
                evidence.parameters[first].push(tensor);
                let groups = model.use_sets.groups(set);
                for at in groups.map(|group| first_of_group[group as usize]) {
                    if at != NONE && evidence.used[at].len() < USED {
                        evidence.used[at].push(tensor);
                    }
                }
            }
        }
        for used in evidence.parameters.iter_mut().chain(&mut evidence.used) {
            used.sort_unstable();
            used.dedup();
        }
        let has_scope =
            |&number: &usize| !scope_and_type(&model.operations[number].name).0.is_empty();
        let mut used = evidence.forward.iter().zip(&evidence.parameters);
        if used.all(|(number, parameters)| parameters.is_empty() || !has_scope(number)) {
            evidence.scopes = scopes(&evidence.used, &evidence.crossing);
        }
        evidence
    }

    /// Adds the data that flows between operations of the forward pass. `position` has one entry
    /// per operation of the model: its index in the forward pass, or [`NONE`].
    fn add_flow(&mut self, model: &Model, position: &[usize]) {
        let of_node = |node: u32| {
            model.flow.nodes[node as usize]
                .operations
                .iter()
                .map(|&operation| position[operation as usize])
                .find(|&at| at != NONE)
        };
        let mut passed = Vec::new();
        for edge in model.flow.edges.iter().filter(|edge| edge.from != NO_NODE) {
            if let Some(from) = of_node(edge.from) {
                let to = edge.to.iter().filter_map(|&node| of_node(node));
                let to = to.filter(|&to| to > from);
                passed.extend(to.clone().max().map(|last| (from, last, edge.bytes as i64)));
                self.flow.extend(to.map(|to| (from, to)));
            }
        }
        self.flow.sort_unstable();
        self.flow.dedup();
        self.crossing = crossing(self.bytes.len(), passed.into_iter());
    }
}

/// Returns one entry per operation of the forward pass: its scope, taken from the modules in the
/// names of parameters, for a model whose operations have no scopes. The list is empty if no
/// parameter has modules in its name. `used` has one entry per operation: the names of the
/// parameters that it uses. `crossing` has one entry per operation, and one more for the end: the
/// bytes that are passed on before the operation.
///
/// The scope of an operation with parameters is the modules that are called on the way to one of
/// its parameters. The operations between two operations with parameters are divided at the place
/// where the fewest bytes are passed on: those before it get the scope of the earlier operation,
/// and those after it the scope of the later one.
fn scopes(used: &[Vec<&str>], crossing: &[i64]) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for (at, used) in used.iter().enumerate() {
        let Some(scope) = used.iter().find_map(|parameter| called(parameter)) else {
            continue;
        };
        // If the fewest bytes are passed on at several places, the last of these is taken: an
        // activation function follows the last parameter of its module.
        let cut = (scopes.len()..=at).rev().min_by_key(|&at| crossing[at]);
        if let Some(before) = scopes.last().cloned() {
            scopes.resize(cut.unwrap_or(at), before);
        }
        scopes.resize(at + 1, scope);
    }
    if let Some(last) = scopes.last().cloned() {
        scopes.resize(used.len(), last);
    }
    scopes
}

/// Returns the modules that are called on the way to the parameter with name `parameter`, joined by
/// `/`; `None` if the parameter belongs to the model itself. A list of modules, whose items are
/// numbered, is left out since it is not called.
fn called(parameter: &str) -> Option<String> {
    let path: Vec<&str> = modules(parameter).collect();
    let (_, path) = path.split_last()?;
    let is_list = |at: &usize| path.get(at + 1).is_some_and(|part| is_number(part));
    let called = (0..path.len()).filter(|at| !is_list(at));
    let called: Vec<&str> = called.map(|at| path[at]).collect();
    (!called.is_empty()).then(|| called.join("/"))
}

/// A module with more than 1/`LARGE` of the bytes of all operations is divided into its submodules
/// if no other module has the same types of operations.
pub const LARGE: u64 = 4;

/// Returns a hash of `value` that is the same each time this program runs.
pub fn hash(value: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Prefix sums over the operations of the forward pass. The sum over any run of consecutive
/// operations is the difference of two entries.
#[derive(Debug, Default)]
pub struct RunSums {
    /// One entry per operation, and one more for the end: the bytes, over all tiles, of the
    /// variables that earlier operations use.
    bytes: Vec<u64>,
    /// One entry per operation, and one more for the end: the wrapping sum of the hashes of the
    /// types of all earlier operations.
    types: Vec<u64>,
    /// One entry per operation: the hash of its type, such as `MatMul`. A sum of hashes identifies
    /// a multiset of types.
    kinds: Vec<u64>,
}

impl RunSums {
    pub fn new<'a>(bytes: &[u64], types: impl Iterator<Item = &'a str>) -> Self {
        let mut sums = Self {
            bytes: vec![0],
            types: vec![0],
            kinds: types.map(hash).collect(),
        };
        for (&bytes, &kind) in bytes.iter().zip(&sums.kinds) {
            sums.bytes.push(sums.all_bytes().saturating_add(bytes));
            sums.types
                .push(sums.types[sums.types.len() - 1].wrapping_add(kind));
        }
        sums
    }

    /// Returns the bytes, over all tiles, of the variables that the run `operations` of the forward
    /// pass uses and no earlier operation uses.
    pub fn bytes(&self, operations: &Range<usize>) -> u64 {
        self.bytes[operations.end] - self.bytes[operations.start]
    }

    /// Returns the bytes over all tiles of all variables that the forward pass uses.
    pub fn all_bytes(&self) -> u64 {
        self.bytes[self.bytes.len() - 1]
    }

    /// Returns a number that is equal for two runs of operations with the same types of operations,
    /// each equally often, in any order.
    pub fn likeness(&self, operations: &Range<usize>) -> u64 {
        self.types[operations.end].wrapping_sub(self.types[operations.start])
    }

    /// Returns the distinct types of a run of operations, as hashes in ascending order.
    pub fn kinds(&self, operations: &Range<usize>) -> Vec<u64> {
        ascending(self.kinds[operations.clone()].iter().copied()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_not_called() {
        for (parameter, expected) in [
            (
                "encoder.layer.3.attention.query.weight",
                Some("encoder/3/attention/query"),
            ),
            ("features.0.weight", Some("0")),
            ("weight", None),
            ("", None),
        ] {
            assert_eq!(called(parameter).as_deref(), expected, "{parameter}");
        }
    }

    #[test]
    fn operations_without_parameters_are_where_few_bytes_are_passed_on() {
        // After the first operation with parameters, two tensors are passed on until 3.
        let crossing = [0, 2, 2, 1, 1, 2, 1, 0];
        let mut used = vec![vec![]; 7];
        used[1].push("a.weight");
        used[5].push("b.weight");
        let expected = ["a", "a", "a", "a", "b", "b", "b"];
        assert_eq!(scopes(&used, &crossing), expected);
        assert_eq!(scopes(&[vec![], vec![], vec![]], &[0; 4]), [""; 0]);
    }
}
