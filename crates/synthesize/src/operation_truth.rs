//! Gives the places to which each operation belongs, as the author of the model decided, and the
//! bytes that were planted for it.

use super::places::Places;
use super::plan::Plan;

/// An operation that has programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationTruth {
    /// The id of its context in `debug.cbor`.
    pub context: u32,
    /// Its name in the framework; empty if the framework's compiler made it.
    pub name: String,
    /// Its operator.
    pub op_type: String,
    /// The places for which it works.
    pub home: Home,
    /// Bytes on all tiles of the variables that were made for it.
    pub bytes: u64,
    /// In a model with a graph: the number in the graph of the operation, or of the operation whose
    /// gradient it computes.
    pub forward: Option<usize>,
    /// The block of the graph to which it belongs; `None` outside all blocks.
    pub block: Option<String>,
}

/// The places to which an operation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// It runs in these places. If there are several, it is in a body that is called in all of
    /// them, or updates a weight that they share.
    Places(Places),
    /// It works on variables of these places, on each variable where it is.
    Global(Places),
    /// It runs on every IPU.
    EveryIpu,
}

/// Returns all operations that have programs.
pub(crate) fn operations(plan: &Plan) -> Vec<OperationTruth> {
    let mut bytes = vec![0; plan.model.ops.len()];
    for (index, group) in plan.groups.iter().enumerate() {
        let tiles = group.window.tiles();
        bytes[group.op] += tiles.map(|tile| plan.bytes(index, tile)).sum::<u64>();
    }
    let blocks = plan
        .settings
        .graph
        .as_ref()
        .and_then(|graph| graph.blocks.as_ref());
    let ops = plan.model.ops.iter().enumerate();
    let ops = ops.filter(|(index, _)| !plan.tree.op_stages[*index].is_empty());
    ops.map(|(index, op)| OperationTruth {
        context: plan.contexts.ops[index].op,
        name: op.name.clone(),
        op_type: op.op_type.clone(),
        home: home(plan, index),
        bytes: bytes[index],
        forward: op.in_graph,
        block: op.in_graph.and_then(|number| blocks?[number].clone()),
    })
    .collect()
}

fn home(plan: &Plan, op: usize) -> Home {
    let operation = &plan.model.ops[op];
    if operation.places == Places::EVERY {
        return Home::EveryIpu;
    }
    let weights = || operation.works_on.iter().flatten();
    let places = weights().map(|&weight| plan.model.weights[weight].places);
    let places = places.fold(operation.places, |all, one| all | one);
    match weights().min() == weights().max() {
        true => Home::Places(places),
        false => Home::Global(places),
    }
}
