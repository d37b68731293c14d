//! Parameters, bytes and data flow of the operations of the forward pass, which decide on layers
//! besides names.

use super::unscoped;
use crate::model::{Model, NO_NODE, Operation, Pass, TensorKind};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

/// Evidence by operation of the forward pass.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// By operation: the parameters that no operation before it uses.
    pub(super) parameters: Vec<Vec<&'a str>>,
    /// By operation: the modules of the parameters that it or its neighbours use; empty if names of
    /// operations have modules, or parameters have none.
    pub(super) scopes: Vec<String>,
    /// By operation: bytes of the variables that no operation before it uses.
    pub(super) bytes: Vec<u64>,
    /// Pairs of an operation and a later one that data flows to, ascending.
    pub(super) flow: Vec<(usize, usize)>,
    /// By operation: bytes of tensors from operations before it that it or later ones use. One entry
    /// more, for the end.
    pub(super) crossing: Vec<i64>,
}

/// The operations of the forward pass, in the order of the program; if `named`, only those that the
/// framework named.
pub(super) fn forward(operations: &[Operation], named: bool) -> Vec<u32> {
    let is_forward = |operation: &Operation| {
        let is_named = !operation.is_anonymous && !operation.name.starts_with("Call");
        let is_forward = matches!(operation.pass, Pass::Forward | Pass::Both)
            && !operation.is_backward
            && !operation.is_update;
        !operation.is_tensor && is_forward && (is_named || !named && operation.window.is_some())
    };
    let numbered = (0u32..).zip(operations);
    let forward = numbered.filter(|(_, operation)| is_forward(operation));
    forward.map(|(number, _)| number).collect()
}

/// In place of a position: the forward pass lacks the operation.
const NONE: usize = usize::MAX;

impl<'a> Evidence<'a> {
    /// No evidence, for this number of operations.
    pub(super) fn nothing(operations: usize) -> Self {
        Self {
            parameters: vec![Vec::new(); operations],
            scopes: Vec::new(),
            bytes: vec![0; operations],
            flow: Vec::new(),
            crossing: vec![0; operations + 1],
        }
    }

    pub(super) fn new(model: &'a Model, forward: &[u32]) -> Self {
        let mut first_of_group = vec![NONE; model.operation_groups.len()];
        let mut position = vec![NONE; model.operations.len()];
        for (at, &operation) in forward.iter().enumerate().rev() {
            first_of_group[model.operations[operation as usize].group as usize] = at;
            position[operation as usize] = at;
        }
        let mut evidence = Self::nothing(forward.len());
        evidence.add_flow(model, &position);
        let bytes = model.bytes_of_sets();
        let mut first_of_set = vec![NONE; model.use_sets.len()];
        for (set, smaller, group) in model.use_sets.iter() {
            let first = first_of_set[smaller as usize].min(first_of_group[group as usize]);
            first_of_set[set as usize] = first;
            if first == NONE {
                continue;
            }
            evidence.bytes[first] += bytes[set as usize].all;
            if let Some(parameter) = parameter(model, set) {
                evidence.parameters[first].push(parameter);
            }
        }
        for used in &mut evidence.parameters {
            used.sort_unstable();
            used.dedup();
        }
        let names = forward.iter();
        let names = names.map(|&operation| &*model.operations[operation as usize].name);
        if unscoped::lack_scopes(names.zip(&evidence.parameters)) {
            let used = uses_of_parameters(model, &first_of_group);
            evidence.scopes = unscoped::scopes(used, &evidence.crossing);
        }
        evidence
    }

    /// Adds the data that flows between operations of the forward pass. `position` has the position
    /// of each operation of the model in the forward pass.
    fn add_flow(&mut self, model: &Model, position: &[usize]) {
        let of_node = |node: u32| {
            let operations = model.flow.nodes[node as usize].operations.iter();
            let mut positions = operations.map(|&operation| position[operation as usize]);
            positions.find(|&at| at < usize::MAX)
        };
        for edge in model.flow.edges.iter().filter(|edge| edge.from != NO_NODE) {
            let Some(from) = of_node(edge.from) else {
                continue;
            };
            let to = edge.to.iter().filter_map(|&node| of_node(node));
            let first = self.flow.len();
            self.flow
                .extend(to.filter(|&to| to > from).map(|to| (from, to)));
            if let Some(last) = self.flow[first..].iter().map(|&(_, to)| to).max() {
                self.crossing[from + 1] += edge.bytes as i64;
                self.crossing[last + 1] -= edge.bytes as i64;
            }
        }
        self.flow.sort_unstable();
        self.flow.dedup();
        let mut bytes = 0;
        for change in &mut self.crossing {
            bytes += *change;
            *change = bytes;
        }
    }
}

/// The name of the parameter that the variables of a use set belong to.
fn parameter(model: &Model, set: u32) -> Option<&str> {
    let label = model.label_of(set);
    let is_parameter = label.kind == TensorKind::Variable && !label.tensor.is_empty();
    is_parameter.then_some(&label.tensor)
}

/// Each operation of the forward pass that uses a parameter, as a position, with this parameter.
/// `positions` has the position of each group of operations, or [`NONE`].
fn uses_of_parameters<'a>(
    model: &'a Model,
    positions: &'a [usize],
) -> impl Iterator<Item = (usize, &'a str)> {
    let sets = model.use_sets.iter();
    let named = sets.filter_map(|(set, ..)| Some((set, parameter(model, set)?)));
    let uses = named.flat_map(move |(set, parameter)| {
        let users = model.use_sets.groups(set);
        users.map(move |group| (positions[group as usize], parameter))
    });
    uses.filter(|&(at, _)| at != NONE)
}

/// A module with more than 1/`LARGE` of all bytes is cut into its parts if no other module is like
/// it.
pub(super) const LARGE: u64 = 4;

/// A hash of an operation type; sums of different types are different.
fn hash(kind: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(kind)
}

/// Sums over any run of operations.
#[derive(Debug)]
pub(super) struct Sums {
    /// By operation: bytes of all operations before it.
    bytes: Vec<u64>,
    /// By operation: sum of the hashes of the types of all operations before it.
    types: Vec<u64>,
}

impl Sums {
    pub(super) fn new<'a>(bytes: &[u64], types: impl Iterator<Item = &'a str>) -> Self {
        let mut sums = Self {
            bytes: vec![0],
            types: vec![0],
        };
        for (&bytes, kind) in bytes.iter().zip(types) {
            let (before, types) = (
                sums.bytes[sums.bytes.len() - 1],
                sums.types[sums.types.len() - 1],
            );
            sums.bytes.push(before.saturating_add(bytes));
            sums.types.push(types.wrapping_add(hash(kind)));
        }
        sums
    }

    /// Bytes of a run of operations.
    pub(super) fn bytes(&self, operations: &Range<usize>) -> u64 {
        self.bytes[operations.end] - self.bytes[operations.start]
    }

    /// Bytes of all operations.
    pub(super) fn all_bytes(&self) -> u64 {
        self.bytes[self.bytes.len() - 1]
    }

    /// A number that is equal for runs with the same types of operations, each equally often.
    pub(super) fn likeness(&self, operations: &Range<usize>) -> u64 {
        self.types[operations.end].wrapping_sub(self.types[operations.start])
    }

    /// Does a run have more than 1/[`LARGE`] of all bytes?
    pub(super) fn is_large(&self, operations: &Range<usize>) -> bool {
        self.bytes(operations) > self.all_bytes() / LARGE
    }
}
