//! The graph of a planted model.

use std::collections::BTreeMap;

use super::graph::{Cycles, Graph, Local, Tensor, Use};
use super::updates::{held, updates};
use crate::cycles;
use crate::groups::{Group, Role};
use crate::liveness::Steps;
use crate::model::{Op, Phase};
use crate::places::Places;
use crate::plan::Plan;
use crate::tensors::{State, TensorOf};

pub(super) fn graph(plan: &Plan) -> Graph {
    let positions = plan.settings.layers as usize + 2;
    let groups = plan.groups.iter().enumerate();
    let tensors = groups.clone();
    let tensors = tensors.filter(|(_, group)| group.role == Role::Activation);
    let has_accumulators = plan.settings.features.accumulation;
    let weights = groups.filter(|(_, group)| is_weight(plan, group) && !has_accumulators);
    let tiles = 0..plan.settings.tiles;
    let mut graph = Graph {
        layers: plan.settings.layers,
        tiles: plan.settings.tiles,
        forward: vec![None; positions],
        backward: vec![None; positions],
        classes: plan.classes.ranges.clone(),
        tensors: tensors
            .map(|(index, group)| tensor(plan, index, group))
            .collect(),
        weights: weights
            .map(|(index, group)| held(plan, index, group))
            .collect(),
        locals: tiles.map(|tile| locals(plan, tile)).collect(),
        updates: updates(plan),
        cycles: cycles(plan),
        ..Graph::default()
    };
    passes(plan, &mut graph);
    graph
}

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
    let [forward, backward, update] = [(); 3].map(|()| vec![0; positions]);
    let mut sums = Cycles {
        forward,
        backward,
        update,
    };
    cycles::by_owner(plan, None, false, &mut |owner, cycles| {
        let Some((op, places)) = owner else { return };
        let pass = match plan.model.ops[op].phase {
            Phase::Embedding | Phase::Forward | Phase::Head => &mut sums.forward,
            Phase::Backward => &mut sums.backward,
            Phase::Optimiser => &mut sums.update,
            Phase::Compiler => return,
        };
        let places = places.in_order(plan.settings.layers);
        for &position in &places {
            pass[position as usize] += cycles / places.len() as u64;
        }
    });
    sums
}

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
        from_host: group.mark == Some(TensorOf::Input),
        uses,
        on_tiles: tiles
            .map(|tile| (tile, plan.variable(index, tile)))
            .collect(),
    }
}

fn is_weight(plan: &Plan, group: &Group) -> bool {
    match group.mark {
        Some(TensorOf::Weight(weight, State::Value)) => plan.model.weights[weight].is_trained,
        _ => false,
    }
}

/// Variables that come and go on a tile and are no tensors.
fn locals(plan: &Plan, tile: u32) -> BTreeMap<Local, u64> {
    let groups = plan.groups_on(tile);
    let groups = groups.filter(|&group| plan.groups[group].role != Role::Activation);
    let groups = groups.map(|group| (plan.groups[group].places, plan.variable(group, tile)));
    let extras = plan.extras_on(tile).into_iter();
    let extras = extras.map(|extra| (Places::EVERY, extra.variable));
    let mut locals = BTreeMap::new();
    for (places, variable) in groups.chain(extras) {
        if !plan.classes.always[variable.class as usize] {
            *locals.entry(Local::new(places, &variable)).or_default() += variable.bytes;
        }
    }
    locals
}
