//! Collects the data, besides names, from which layers are chosen: parameters, bytes and data flow
//! of the operations of the forward pass. If names of operations contain no modules, names of
//! parameters tell which modules call an operation.

use super::paths::{is_number, modules, scope_and_type};
use crate::model::{Label, Model, NO_NODE, Operation, TensorKind, crossing};
use std::{
    collections::BTreeSet,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash},
    ops::Range,
};

/// What is known, besides names, about the operations of the forward pass when layers are chosen.
/// All fields except `forward` refer to operations by their index in the forward pass.
pub struct Evidence<'a> {
    /// The operations of the forward pass, as ascending indices into the model's list of
    /// operations.
    pub forward: Vec<usize>,
    /// One entry per operation: the names of the parameters, such as weights, that no earlier
    /// operation uses.
    pub parameters: Vec<Vec<&'a str>>,
    /// One entry per operation: the names of all parameters, such as weights, that the operation
    /// uses.
    pub used: Vec<Vec<&'a str>>,
    /// One entry per operation: the modules that call the operation, joined by `/`, as the names of
    /// parameters show them. Empty if names of operations contain modules, or if names of
    /// parameters contain none.
    pub scopes: Vec<String>,
    /// One entry per operation: the bytes, over all tiles, of the variables that the operation is
    /// the first to use.
    pub bytes: Vec<u64>,
    /// Pairs `(a, b)` in which operation `b` uses data of the earlier operation `a`, sorted by `a`,
    /// then by `b`.
    pub flow: Vec<(usize, usize)>,
    /// One entry per operation, and one more for the end: the bytes, over all tiles, of the tensors
    /// that earlier operations make and that the operation or a later one uses.
    pub crossing: Vec<i64>,
}

/// Stands for "no operation" in place of an index into the forward pass, such as that of the first
/// operation that uses a variable.
const NONE: usize = usize::MAX;

/// Maximum number of parameters that are kept for each operation. Operations of real models use
/// fewer than 8; a damaged file may list every parameter for every operation.
const USED: usize = 32;

impl<'a> Evidence<'a> {
    /// Lists the operations of the forward pass. Their parameters, bytes and data flow remain empty
    /// or 0. If `named`, operations to which the framework gave no name are left out.
    pub fn nothing(operations: &[Operation], named: bool) -> Self {
        let is_forward = |&number: &usize| {
            let operation = &operations[number];
            let is_named = !operation.is_anonymous && !operation.name.starts_with("Call");
            operation.pass.is_forward()
                && !(operation.is_backward || operation.is_update || operation.is_tensor)
                && (is_named || !named && operation.window.is_some())
        };
        let forward: Vec<usize> = (0..operations.len()).filter(is_forward).collect();
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

    /// Collects parameters, bytes and data flow of the operations of the forward pass. If `named`,
    /// operations to which the framework gave no name are left out.
    pub fn new(model: &'a Model, named: bool) -> Self {
        let mut evidence = Self::nothing(&model.operations, named);
        let mut first_of_group = vec![NONE; model.operation_groups.len()];
        let mut position = vec![None; model.operations.len()];
        for (at, &operation) in evidence.forward.iter().enumerate().rev() {
            first_of_group[model.operations[operation].group as usize] = at;
            position[operation] = Some(at);
        }
        evidence.add_flow(model, &position);
        let bytes = model.bytes_of_sets();
        let first_of_set = model
            .use_sets
            .fold(NONE, |first: usize, group| first.min(first_of_group[group]));
        for (set, first) in (0u32..).zip(first_of_set) {
            let Some(sum) = evidence.bytes.get_mut(first) else {
                continue;
            };
            *sum += bytes[set as usize].all;
            let Label { tensor, kind, .. } = model.label_of(set);
            if *kind == TensorKind::Variable && !tensor.is_empty() {
                evidence.parameters[first].push(tensor);
                for group in model.use_sets.groups(set) {
                    if let Some(used) = evidence.used.get_mut(first_of_group[group])
                        && used.len() < USED
                        && !used.contains(&&**tensor)
                    {
                        used.push(tensor);
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

    fn add_flow(&mut self, model: &Model, position: &[Option<usize>]) {
        let of_node = |node: u32| {
            let mut operations = model.flow.nodes[node as usize].operations.iter();
            operations.find_map(|&operation| position[operation as usize])
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

/// Returns the scope of each operation of the forward pass, that is, the modules that call the
/// operation, for models whose operation names lack scopes. The list is empty if no parameter has
/// modules in its name.
///
/// An operation that uses parameters gets its scope from the name of a parameter. The operations
/// between two such operations are divided where the fewest bytes (`crossing`) are passed on: the
/// first part gets the earlier scope, and the second part the later scope.
fn scopes(used: &[Vec<&str>], crossing: &[i64]) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for (at, used) in used.iter().enumerate() {
        let Some(scope) = used.iter().find_map(|parameter| called(parameter)) else {
            continue;
        };
        // The operations between the parameters of two modules are divided between these modules.
        // The second module begins with the operation before which the fewest bytes are passed on.
        // If there are several such operations, it is the last, so that an activation function
        // stays with the module before it.
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

/// Returns the modules that are called on the way to a parameter: `encoder/3/query` for
/// `encoder.layer.3.query.weight`. A list such as `layer` is left out, since the code calls only
/// its items. Returns `None` if the model itself owns the parameter.
fn called(parameter: &str) -> Option<String> {
    let path: Vec<&str> = modules(parameter).collect();
    let (_, path) = path.split_last()?;
    let next = path.iter().skip(1).chain([&""]);
    let called: Vec<&str> = (path.iter().zip(next))
        .filter(|(_, next)| !is_number(next))
        .map(|(module, _)| *module)
        .collect();
    (!called.is_empty()).then(|| called.join("/"))
}

/// A module is divided into its submodules if its variables have more than a quarter (1/`LARGE`) of
/// the bytes of all variables that the forward pass uses, unless another module has the same types
/// of operations.
pub const LARGE: u64 = 4;

/// Returns a hash of `value` that is the same in each run of this program, so that results are
/// reproducible.
pub fn hash(value: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Gives the bytes of the variables and the types of the operations in any range of consecutive
/// operations of the forward pass.
#[derive(Debug, Default)]
pub struct RunSums {
    /// One entry per operation, and one more for the end: the bytes, over all tiles, of the
    /// variables that earlier operations use. The bytes of a run (consecutive operations) are the
    /// difference of two entries.
    bytes: Vec<u64>,
    /// One entry per operation: the hash of its type, such as `MatMul`.
    types: Vec<u64>,
}

impl RunSums {
    pub fn new(bytes: &[u64], types: &[&str]) -> Self {
        let mut sums = Self {
            bytes: vec![0],
            types: types.iter().map(hash).collect(),
        };
        for &bytes in bytes {
            sums.bytes.push(sums.all_bytes().saturating_add(bytes));
        }
        sums
    }

    /// Returns the bytes, over all tiles, of the variables that are first used by one of
    /// `operations`, a range of indices into the forward pass.
    pub fn bytes(&self, operations: &Range<usize>) -> u64 {
        self.bytes[operations.end] - self.bytes[operations.start]
    }

    pub fn all_bytes(&self) -> u64 {
        self.bytes[self.bytes.len() - 1]
    }

    /// Returns a number that is equal for two series of operations with the same types of
    /// operations, each type equally often, in any order.
    pub fn likeness(&self, operations: &Range<usize>) -> u64 {
        self.types[operations.clone()]
            .iter()
            .fold(0, |sum, kind| sum.wrapping_add(*kind))
    }

    /// Returns the types, as hashes without duplicates, of the operations with the indices
    /// `operations`.
    pub fn kinds(&self, operations: &Range<usize>) -> BTreeSet<u64> {
        self.types[operations.clone()].iter().copied().collect()
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
        // Module `a` calls operation 1, and module `b` calls operation 5. Between them, the fewest
        // bytes (`crossing`) are passed on before operation 3 and before operation 4. The later of
        // these two, operation 4, is the first that is assigned to module `b`.
        let crossing = [0, 2, 2, 1, 1, 2, 1, 0];
        let mut used = vec![vec![]; 7];
        used[1].push("a.weight");
        used[5].push("b.weight");
        let expected = ["a", "a", "a", "a", "b", "b", "b"];
        assert_eq!(scopes(&used, &crossing), expected);
        assert_eq!(scopes(&[vec![], vec![], vec![]], &[0; 4]), [""; 0]);
    }
}
