//! Describes a compilation for one IPU, in as much detail as the simulation of pipelines needs.

use super::updates::{Held, Updates, held};
use crate::cycles;
use crate::groups::{Group, Role};
use crate::liveness::{Ranges, Steps, Variable};
use crate::places::Places;
use crate::plan::Plan;
use crate::tensors::{State, TensorOf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pass {
    Forward,
    Backward,
}

/// Everything that lives for a part of the time, and the steps of all places.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub layers: u32,
    pub tiles: u32,
    /// The first step of a micro-batch; steps before it run once.
    pub first: u32,
    /// The first backward step; none in inference.
    pub backward_start: Option<u32>,
    /// The first step after both passes; from it on all steps run once.
    pub update: u32,
    /// By pass and position: the steps of the position.
    pub passes: [Vec<Option<Steps>>; 2],
    pub classes: Vec<Ranges>,
    pub tensors: Vec<Tensor>,
    /// The weights that get an accumulator in a pipeline.
    pub weights: Vec<Held>,
    /// By tile: the variables that are neither always live nor tensors.
    pub locals: Vec<Vec<Local>>,
    pub updates: Updates,
    /// The cycles of each position in forward pass, backward pass and update, for one run of each
    /// program. Cycles of programs of several positions count in equal parts, cycles of programs of
    /// no position not at all.
    pub cycles: [Vec<u64>; 3],
}

/// A variable of a single operation, which lives at the same steps on any IPU.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub places: Places,
    pub variable: Variable,
    /// The number of the update that makes it and is its only user.
    pub made_by: Option<usize>,
    /// Whether it is a gradient that lives until the update. If the profile has accumulators,
    /// gradients are freed before.
    pub is_gradient: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub name: String,
    /// The number of its group.
    pub group: usize,
    pub from_host: bool,
    /// All uses; the first one in time makes the tensor.
    pub uses: Vec<Use>,
    /// Its variables, each with its tile.
    pub on_tiles: Vec<(u32, Variable)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub position: u32,
    pub steps: Steps,
}

impl Graph {
    pub fn new(plan: &Plan) -> Self {
        let groups = || plan.groups.iter().enumerate();
        let tensors = groups().filter(|(_, group)| group.role == Role::Activation);
        let weights = groups().filter(|(_, group)| is_accumulated(plan, group));
        let updates = Updates::new(plan);
        let locals = (0..plan.settings.tiles).map(|tile| locals(plan, &updates, tile));
        let passes = passes(plan);
        let firsts = passes.each_ref().map(|pass| {
            let steps = pass.iter().flatten();
            steps.map(|steps| steps.0).min()
        });
        let ends = passes.iter().flatten().flatten().map(|steps| steps.1);
        Self {
            layers: plan.settings.layers,
            tiles: plan.settings.tiles,
            first: firsts[0].unwrap_or(0),
            backward_start: firsts[1],
            update: ends.max().unwrap_or(0),
            classes: plan.classes.ranges.clone(),
            tensors: tensors.map(|(at, group)| tensor(plan, at, group)).collect(),
            weights: weights.map(|(at, group)| held(plan, at, group)).collect(),
            locals: locals.collect(),
            cycles: cycles(plan),
            passes,
            updates,
        }
    }

    /// Returns the end of the forward pass.
    pub fn turn(&self) -> u32 {
        self.backward_start.unwrap_or(self.update)
    }

    pub fn pass(&self, usage: &Use) -> Pass {
        match self.backward_start {
            Some(start) if usage.steps.0 >= start => Pass::Backward,
            _ => Pass::Forward,
        }
    }

    /// Returns the first step of these positions in a pass, and the end of their last step.
    pub fn steps(&self, pass: Pass, positions: impl Iterator<Item = u32>) -> Option<Steps> {
        let steps = positions.filter_map(|position| self.passes[pass as usize][position as usize]);
        steps.reduce(both)
    }
}

impl Tensor {
    pub fn maker(&self) -> Use {
        let first = self.uses.iter().min_by_key(|usage| usage.steps);
        *first.expect("a tensor has uses")
    }

    pub fn end(&self) -> u32 {
        let ends = self.uses.iter().map(|usage| usage.steps.1);
        ends.max().unwrap_or(0)
    }
}

fn both(one: Steps, other: Steps) -> Steps {
    (one.0.min(other.0), one.1.max(other.1))
}

fn passes(plan: &Plan) -> [Vec<Option<Steps>>; 2] {
    let positions = plan.settings.layers as usize + 2;
    let mut passes = [(); 2].map(|()| vec![None; positions]);
    for (index, op) in plan.model.ops.iter().enumerate() {
        let is_at_one = op.places.count() == 1 && op.function.is_none();
        let (Some(pass @ 0..2), Some(steps)) = (op.phase.pass(), plan.steps_of(index)) else {
            continue;
        };
        if is_at_one {
            let all = &mut passes[pass][position_of(plan, op.places) as usize];
            *all = Some(all.map_or(steps, |all| both(all, steps)));
        }
    }
    passes
}

fn cycles(plan: &Plan) -> [Vec<u64>; 3] {
    let positions = plan.settings.layers as usize + 2;
    let mut sums = [(); 3].map(|()| vec![0; positions]);
    cycles::by_owner(plan, None, false, &mut |owner, cycles| {
        let Some((op, places)) = owner else { return };
        let Some(pass) = plan.model.ops[op].phase.pass() else {
            return;
        };
        let places = places.in_order(plan.settings.layers);
        for &position in &places {
            sums[pass][position as usize] += cycles / places.len() as u64;
        }
    });
    sums
}

fn position_of(plan: &Plan, places: Places) -> u32 {
    let layers = plan.settings.layers;
    let positions = places.in_order(layers);
    positions.first().copied().unwrap_or(layers + 1)
}

fn tensor(plan: &Plan, index: usize, group: &Group) -> Tensor {
    let uses = group.uses.iter().flat_map(|&(stage, _)| {
        let op = plan.tree.stages[stage].op;
        let position = position_of(plan, plan.model.ops[op].places);
        let steps = plan.stage_steps(stage);
        steps.map(move |steps| Use { position, steps })
    });
    let tiles = group.window.tiles();
    let on_tiles = tiles.map(|tile| (tile, plan.variable(index, tile)));
    Tensor {
        name: group.name.clone(),
        group: index,
        from_host: group.mark == Some(TensorOf::Input),
        uses: uses.collect(),
        on_tiles: on_tiles.collect(),
    }
}

fn is_accumulated(plan: &Plan, group: &Group) -> bool {
    match group.mark {
        Some(TensorOf::Weight(weight, State::Value)) => {
            plan.model.weights[weight].is_trained && !plan.settings.features.accumulation
        }
        _ => false,
    }
}

fn locals(plan: &Plan, updates: &Updates, tile: u32) -> Vec<Local> {
    let groups = plan.groups_on(tile);
    let groups = groups.filter(|&group| plan.groups[group].role != Role::Activation);
    let groups = groups.map(|index| {
        let group = &plan.groups[index];
        let made_by = updates.all.iter().position(|update| update.op == group.op);
        Local {
            places: group.places,
            variable: plan.variable(index, tile),
            made_by: made_by.filter(|_| group.role == Role::Work),
            is_gradient: group.role == Role::Gradient && !plan.settings.features.accumulation,
        }
    });
    let extras = plan.extras_on(tile).into_iter().map(|extra| Local {
        places: Places::EVERY,
        variable: extra.variable,
        made_by: None,
        is_gradient: false,
    });
    let is_always = |local: &Local| plan.classes.always[local.variable.class as usize];
    let all = groups.chain(extras).filter(|local| !is_always(local));
    all.collect()
}
