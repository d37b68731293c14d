//! The updates of the weights, and the state of the optimizer.
//!
//! State may be elsewhere between two steps: outside the IPUs, or shared out among
//! replicas. An update is an operation. Its state is loaded before it, and stored after
//! it, each through landing pads; where it is shared out, the replicas share out what
//! the operation makes too, and gather the weight when it is done.

use std::collections::BTreeMap;

use super::graph::{Held, Local, Update, Updates};
use super::options::{Elsewhere, PipelineOptions};
use crate::groups::{Group, Role};
use crate::liveness::Steps;
use crate::places::Places;
use crate::plan::Plan;
use crate::settings::Framework;
use crate::tensors::{State, TensorOf};

pub(super) fn updates(plan: &Plan) -> Updates {
    let ops = plan.model.ops.iter().enumerate();
    let updates = ops.filter(|(_, op)| op.is_update());
    let updates = updates.filter_map(|(op, _)| Some((op, plan.steps_of(op)?)));
    let ops: Vec<(usize, Steps)> = updates.collect();
    let of = |op: usize, wanted: &dyn Fn(State) -> bool| -> Vec<Held> {
        let groups = plan.groups.iter().enumerate();
        let groups = groups.filter(|(_, group)| match group.mark {
            Some(TensorOf::Weight(_, state)) if wanted(state) => {
                let mut uses = group.uses.iter();
                uses.any(|&(stage, _)| plan.tree.stages[stage].op == op)
            }
            _ => false,
        });
        groups
            .map(|(index, group)| held(plan, index, group))
            .collect()
    };
    let all = ops.iter().map(|&(op, steps)| Update {
        steps,
        state: of(op, &|state| matches!(state, State::First | State::Second)),
        weights: of(op, &|state| state == State::Value),
    });
    let tiles = 0..plan.settings.tiles;
    Updates {
        all: all.collect(),
        made: tiles.clone().map(|tile| made(plan, tile, &ops)).collect(),
        gradients: tiles.map(|tile| gradients(plan, tile)).collect(),
        is_tensorflow: plan.settings.framework == Framework::Tensorflow,
    }
}

pub(super) fn held(plan: &Plan, index: usize, group: &Group) -> Held {
    let mut on_tiles = vec![0; plan.settings.tiles as usize];
    for tile in group.window.tiles() {
        on_tiles[tile as usize] = plan.bytes(index, tile);
    }
    Held {
        name: group.name.clone(),
        places: group.places,
        bytes: on_tiles.iter().sum(),
        on_tiles,
    }
}

fn local(plan: &Plan, index: usize, tile: u32) -> Local {
    Local::new(plan.groups[index].places, &plan.variable(index, tile))
}

fn made(plan: &Plan, tile: u32, ops: &[(usize, Steps)]) -> BTreeMap<Local, Vec<(usize, u64)>> {
    let mut made: BTreeMap<Local, Vec<(usize, u64)>> = BTreeMap::new();
    for index in plan.groups_on(tile) {
        let group = &plan.groups[index];
        let update = ops.iter().position(|&(op, _)| op == group.op);
        if let (Some(update), Role::Work) = (update, group.role) {
            let made = made.entry(local(plan, index, tile)).or_default();
            made.push((update, plan.bytes(index, tile)));
        }
    }
    made
}

/// Those of profiles without accumulation: with it they are gone before the update.
fn gradients(plan: &Plan, tile: u32) -> BTreeMap<Local, u64> {
    let mut gradients = BTreeMap::new();
    if plan.settings.features.accumulation {
        return gradients;
    }
    let of_role = |index: &usize| plan.groups[*index].role == Role::Gradient;
    for index in plan.groups_on(tile).filter(of_role) {
        *gradients.entry(local(plan, index, tile)).or_default() += plan.bytes(index, tile);
    }
    gradients
}

/// What an update takes on a tile of an IPU beside the weights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    /// State of this update that is on the chip from its load to its store.
    pub loaded: u64,
    /// Shares of weights and gradients while the operation runs.
    pub shares: u64,
    /// The gathered weights with the shares that they come from, when it is done.
    pub gathered: u64,
}

impl Updates {
    pub fn taken(
        &self,
        update: &Update,
        (tile, places): (usize, Places),
        options: &PipelineOptions,
    ) -> Taken {
        let elsewhere = options.elsewhere;
        let mut taken = Taken::default();
        if elsewhere.is_off_chip {
            let state = update
                .state
                .iter()
                .filter(|state| state.places.meets(places) && self.leaves(state, elsewhere));
            taken.loaded = state.map(|state| self.part(state, tile, elsewhere)).sum();
        }
        if self.is_shared_out(update, elsewhere) {
            let weights = update.weights.iter();
            for weight in weights.filter(|weight| weight.places.meets(places)) {
                let bytes = weight.on_tiles[tile];
                let share = bytes.div_ceil(elsewhere.replicas);
                // The gradient has the elements of the weight.
                taken.shares += 2 * share;
                taken.gathered += bytes + share;
            }
        }
        taken
    }

    /// State that leaves a tile, and what stays of it as the share of a replica.
    pub fn moved(&self, tile: usize, places: Places, elsewhere: Elsewhere) -> (u64, u64) {
        let state = self.all.iter().flat_map(|update| &update.state);
        let state = state.filter(|state| state.places.meets(places));
        let (mut left, mut shares) = (0, 0);
        for state in state.filter(|state| self.leaves(state, elsewhere)) {
            left += state.on_tiles[tile];
            if !elsewhere.is_off_chip {
                shares += self.part(state, tile, elsewhere);
            }
        }
        (left, shares)
    }

    pub fn is_shared_out(&self, update: &Update, elsewhere: Elsewhere) -> bool {
        let mut state = update.state.iter();
        state.any(|state| self.is_shared(state, elsewhere))
    }

    fn part(&self, state: &Held, tile: usize, elsewhere: Elsewhere) -> u64 {
        match self.is_shared(state, elsewhere) {
            true => state.on_tiles[tile].div_ceil(elsewhere.replicas),
            false => state.on_tiles[tile],
        }
    }

    /// Moments have 32 bits.
    fn is_shared(&self, state: &Held, elsewhere: Elsewhere) -> bool {
        let is_large = match self.is_tensorflow {
            true => state.bytes >= 128 * elsewhere.replicas,
            false => state.bytes / 4 >= 8192,
        };
        is_large && elsewhere.replicas > 1
    }

    fn leaves(&self, state: &Held, elsewhere: Elsewhere) -> bool {
        let is_large = match self.is_tensorflow {
            true => state.bytes >= 128 * elsewhere.replicas,
            false => state.bytes / 4 >= 2,
        };
        self.is_shared(state, elsewhere) || elsewhere.is_off_chip && is_large
    }
}
