//! The graph of a planted model.

use std::collections::BTreeMap;

use super::graph::{Cycles, Graph, Local, OnTile, Tensor, Use};
use super::updates::{held, updates};
use crate::cycles;
use crate::groups::{Group, Role};
use crate::liveness::Steps;
use crate::model::{Op, Phase};
use crate::overhead;
use crate::places::Places;
use crate::plan::Plan;
use crate::tensors::State;
use crate::tensors::TensorOf;
use crate::tree::Mark;

/// Fills a graph from a plan.
pub(super) fn graph(plan: &Plan) -> Graph {
    let positions = plan.settings.layers + 2;
    let mut graph = Graph {
        layers: plan.settings.layers,
        tiles: plan.settings.tiles,
        forward: vec![None; positions as usize],
        backward: vec![None; positions as usize],
        classes: plan.classes.ranges.clone(),
        ..Graph::default()
    };
    passes(plan, &mut graph);
    let groups = plan.groups.iter().enumerate();
    graph.tensors = groups
        .clone()
        .filter(|(_, group)| group.role == Role::Activation)
        .map(|(index, group)| tensor(plan, index, group))
        .collect();
    graph.weights = groups
        .filter(|(_, group)| is_weight(plan, group) && !plan.settings.features.accumulation)
        .map(|(index, group)| held(plan, index, group))
        .collect();
    let tiles = 0..plan.settings.tiles;
    graph.locals = tiles.map(|tile| locals(plan, tile)).collect();
    graph.updates = updates(plan);
    graph.cycles = cycles(plan);
    graph
}

/// The steps of each position in both passes, and where these begin and end.
fn passes(plan: &Plan, graph: &mut Graph) {
    for (index, op) in plan.model.ops.iter().enumerate() {
        let (Some(position), Some(steps)) = (position(plan, op), plan.steps_of(index)) else {
            continue;
        };
        let pass = match op.phase {
            Phase::Embedding | Phase::Forward | Phase::Head => &mut graph.forward,
            Phase::Backward => &mut graph.backward,
            Phase::Optimiser | Phase::Compiler => continue,
        };
        let all = pass[position as usize].get_or_insert(steps);
        *all = (all.0.min(steps.0), all.1.max(steps.1));
    }
    let first = |pass: &[Option<Steps>]| pass.iter().flatten().map(|steps| steps.0).min();
    let passes = graph.forward.iter().chain(&graph.backward).flatten();
    graph.update = passes.map(|steps| steps.1).max().unwrap_or(0);
    graph.first = first(&graph.forward).unwrap_or(0);
    graph.backward_start = first(&graph.backward);
}

fn cycles(plan: &Plan) -> Cycles {
    let positions = plan.settings.layers as usize + 2;
    let mut sums = Cycles {
        forward: vec![0; positions],
        backward: vec![0; positions],
        update: vec![0; positions],
    };
    cycles::run(plan, None, &mut |program, call| {
        let Some((op, places)) = cycles::owner(plan, program, call) else {
            return;
        };
        let pass = match plan.model.ops[op].phase {
            Phase::Embedding | Phase::Forward | Phase::Head => &mut sums.forward,
            Phase::Backward => &mut sums.backward,
            Phase::Optimiser => &mut sums.update,
            Phase::Compiler => return,
        };
        let places = places.in_order(plan.settings.layers);
        let all = cycles::of_program(plan, program, false);
        for &position in &places {
            pass[position as usize] += all / places.len() as u64;
        }
    });
    sums
}

/// The position of an operation that works for one place in the main program.
fn position(plan: &Plan, op: &Op) -> Option<u32> {
    let is_one = op.places.count() == 1 && op.function.is_none();
    is_one.then(|| position_of(plan, op.places))
}

fn position_of(plan: &Plan, places: Places) -> u32 {
    let layers = plan.settings.layers;
    let positions = places.in_order(layers);
    positions.first().copied().unwrap_or(layers + 1)
}

fn tensor(plan: &Plan, index: usize, group: &Group) -> Tensor {
    let mut uses = Vec::new();
    for &(stage, _) in &group.uses {
        let op = plan.tree.stages[stage].op;
        let position = position_of(plan, plan.model.ops[op].places);
        uses.extend(plan.stage_steps(stage).map(|steps| Use { position, steps }));
    }
    let tiles = group.window.tiles();
    Tensor {
        name: group.name.clone(),
        from_host: group.mark == Some(Mark::Input),
        uses,
        on_tiles: tiles
            .map(|tile| OnTile {
                tile,
                variable: plan.variable(index, tile),
            })
            .collect(),
    }
}

/// Whether a group is a weight that is trained, not what an optimiser has for it.
fn is_weight(plan: &Plan, group: &Group) -> bool {
    let weight = match group.mark {
        Some(Mark::Tensor(TensorOf::Weight(weight, State::Value))) => Some(weight),
        _ => None,
    };
    weight.is_some_and(|weight| plan.model.weights[weight].is_trained)
}

/// Variables that come and go on a tile and are no tensors.
fn locals(plan: &Plan, tile: u32) -> BTreeMap<Local, u64> {
    let groups = plan.groups_on(tile);
    let groups = groups.filter(|&group| plan.groups[group].role != Role::Activation);
    let groups = groups.map(|group| (plan.groups[group].places, plan.variable(group, tile)));
    let extras = overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile).into_iter();
    let extras = extras.map(|extra| (Places::EVERY, extra.variable));
    let mut locals = BTreeMap::new();
    for (places, variable) in groups.chain(extras) {
        if !plan.classes.always[variable.class as usize] {
            *locals.entry(Local::new(places, &variable)).or_default() += variable.bytes;
        }
    }
    locals
}
