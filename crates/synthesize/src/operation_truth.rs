//! Where each operation is at home, as the author of the model decided, and how
//! many bytes were planted for it.

use super::places::Places;
use super::plan::Plan;

/// An operation that has programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationTruth {
    /// The id of its context in `debug.cbor`.
    pub context: u32,
    /// Its name in the framework; empty where its compiler made it.
    pub name: String,
    /// Its operator.
    pub op_type: String,
    /// The places that it works for.
    pub home: Home,
    /// Bytes over all tiles of the variables that were made for it.
    pub bytes: u64,
    /// In a model with a graph: the number in it of the operation, or of the one that it is
    /// the gradient of.
    pub forward: Option<usize>,
    /// The block that the graph has it in; none for what stands outside all blocks.
    pub block: Option<String>,
}

/// Where an operation is at home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In these places. In several: a body that is called for all of them, or
    /// the update of a weight that they share.
    Places(Places),
    /// It works on variables of these places, each where it is.
    Global(Places),
    /// On every IPU.
    EveryIpu,
}

/// All operations that have programs.
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
