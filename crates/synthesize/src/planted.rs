//! Computes where each operation is at home, its pass, and the cycles of each place, from the plan
//! and not from the rows: the analysis has to find the same.

use std::collections::HashMap;

use super::cycles;
use super::places::Places;
use super::plan::Plan;

/// The cycles of compute sets and exchanges.
#[derive(Debug)]
pub struct Cycles {
    /// Number of runs of the execution; 1 for estimates, which are for one run of each branch.
    pub runs: u64,
    /// Cycles over all runs by position (In, the layers, Out). Cycles of several places count in
    /// equal parts.
    pub positions: Vec<u64>,
    /// Cycles of programs that the compiler made for no operation or for every IPU.
    pub nowhere: u64,
}

impl Cycles {
    /// Sums up the cycles by following the programs as they are executed; `None` if the profile has
    /// no cycles.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let is_executed = plan.settings.execution;
        let branches = match is_executed {
            true => cycles::RUNS.map(Some).to_vec(),
            false if plan.settings.no_cycle_estimates => return None,
            false => vec![None],
        };
        let mut sums = Self {
            runs: branches.len() as u64,
            positions: vec![0; plan.settings.layers as usize + 2],
            nowhere: 0,
        };
        for branch in branches {
            cycles::by_owner(plan, branch, is_executed, &mut |owner, cycles| {
                let places = owner.map(|(_, places)| places);
                let places = places.filter(|&places| places != Places::EVERY);
                let positions = places
                    .unwrap_or(Places::NONE)
                    .in_order(plan.settings.layers);
                let part = cycles.checked_div(positions.len() as u64).unwrap_or(0);
                sums.nowhere += cycles - part * positions.len() as u64;
                for position in positions {
                    sums.positions[position as usize] += part;
                }
            });
        }
        Some(sums)
    }
}

/// Returns the pass of each operation that the framework made, by the id of its context: `forward`,
/// `backward` or `update`.
pub(crate) fn passes(plan: &Plan) -> HashMap<u64, &'static str> {
    let ops = plan.model.ops.iter().zip(&plan.contexts.ops);
    let passes = ops.filter_map(|(op, contexts)| {
        let pass = ["forward", "backward", "update"][op.phase.pass()?];
        Some((contexts.op.into(), pass))
    });
    passes.collect()
}

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
    let graph = plan.settings.graph.as_ref();
    let blocks = graph.and_then(|graph| graph.blocks.as_ref());
    let ops = plan.model.ops.iter().enumerate();
    let ops = ops.filter(|(index, _)| !plan.tree.op_stages[*index].is_empty());
    let operations = ops.map(|(index, op)| OperationTruth {
        context: plan.contexts.ops[index].op,
        name: op.name.clone(),
        op_type: op.op_type.clone(),
        home: home(plan, index),
        bytes: bytes[index],
        forward: op.in_graph,
        block: op.in_graph.and_then(|number| blocks?[number].clone()),
    });
    operations.collect()
}

fn home(plan: &Plan, op: usize) -> Home {
    let operation = &plan.model.ops[op];
    if operation.places == Places::EVERY {
        return Home::EveryIpu;
    }
    let weights = || operation.works_on.iter().flatten();
    let places = weights().map(|&weight| plan.model.weights[weight].places);
    let places = places.chain([operation.places]).collect();
    match weights().min() == weights().max() {
        true => Home::Places(places),
        false => Home::Global(places),
    }
}
