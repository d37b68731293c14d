//! The updates of the weights, and the state of the optimizer.
//!
//! State may be elsewhere between two steps: outside the IPUs, or shared out among
//! replicas. An update is an operation. Its state is loaded before it, and stored after
//! it, each through landing pads; where it is shared out, the replicas share out what
//! the operation makes too, and gather the weight when it is done.

use super::options::Elsewhere;
use crate::groups::Group;
use crate::liveness::Steps;
use crate::places::Places;
use crate::plan::Plan;
use crate::settings::Framework;
use crate::tensors::{State, TensorOf};

#[derive(Debug, Clone)]
pub(super) struct Updates {
    pub all: Vec<Update>,
    is_tensorflow: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Update {
    pub op: usize,
    pub steps: Steps,
    pub state: Vec<Held>,
    pub weights: Vec<Held>,
}

/// A tensor that is always live in the compilation for one IPU.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub name: String,
    pub places: Places,
    pub on_tiles: Vec<u64>,
}

/// Returns the tensors of weights in these states that an operation uses.
fn held_by(plan: &Plan, op: usize, states: &[State]) -> Vec<Held> {
    let groups = plan.groups.iter().enumerate();
    let groups = groups.filter(|(_, group)| match group.mark {
        Some(TensorOf::Weight(_, state)) if states.contains(&state) => {
            let mut uses = group.uses.iter();
            uses.any(|&(stage, _)| plan.tree.stages[stage].op == op)
        }
        _ => false,
    });
    let all = groups.map(|(index, group)| held(plan, index, group));
    all.collect()
}

pub(super) fn held(plan: &Plan, index: usize, group: &Group) -> Held {
    let mut on_tiles = vec![0; plan.settings.tiles as usize];
    for tile in group.window.tiles() {
        on_tiles[tile as usize] = plan.bytes(index, tile);
    }
    Held {
        name: group.name.clone(),
        places: group.places,
        on_tiles,
    }
}

/// Bytes that an update takes on a tile of an IPU beside the weights.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// State of this update that is on the chip from its load to its store.
    pub loaded: u64,
    /// Shares of weights and gradients while the operation runs.
    pub shares: u64,
    /// The gathered weights with the shares from which they are gathered, after the operation.
    pub gathered: u64,
}

impl Updates {
    pub fn new(plan: &Plan) -> Self {
        let ops = plan.model.ops.iter().enumerate();
        let updates = ops.filter(|(_, op)| op.is_update());
        let updates = updates.filter_map(|(op, _)| {
            Some(Update {
                op,
                steps: plan.steps_of(op)?,
                state: held_by(plan, op, &[State::First, State::Second]),
                weights: held_by(plan, op, &[State::Value]),
            })
        });
        Self {
            all: updates.collect(),
            is_tensorflow: plan.settings.framework == Framework::Tensorflow,
        }
    }

    pub fn taken(
        &self,
        update: &Update,
        (tile, places): (usize, Places),
        elsewhere: Elsewhere,
    ) -> Taken {
        let mut taken = Taken::default();
        let is_here = |held: &&Held| held.places.meets(places);
        let state = update.state.iter().filter(is_here);
        for state in state.filter(|_| elsewhere.is_off_chip) {
            if let Some(replicas) = self.replicas_of(state, elsewhere) {
                taken.loaded += state.on_tiles[tile].div_ceil(replicas);
            }
        }
        let replicas = self.sharing(update, elsewhere);
        let weights = update.weights.iter().filter(is_here);
        for weight in weights.filter(|_| replicas > 1) {
            let bytes = weight.on_tiles[tile];
            let share = bytes.div_ceil(replicas);
            // The gradient has the elements of the weight.
            taken.shares += 2 * share;
            taken.gathered += bytes + share;
        }
        taken
    }

    /// Returns the bytes of state that leave a tile, and the bytes of their shares that stay on
    /// this replica.
    pub fn moved(&self, tile: usize, places: Places, elsewhere: Elsewhere) -> (u64, u64) {
        let state = self.all.iter().flat_map(|update| &update.state);
        let (mut left, mut shares) = (0, 0);
        for state in state.filter(|state| state.places.meets(places)) {
            if let Some(replicas) = self.replicas_of(state, elsewhere) {
                left += state.on_tiles[tile];
                if !elsewhere.is_off_chip {
                    shares += state.on_tiles[tile].div_ceil(replicas);
                }
            }
        }
        (left, shares)
    }

    /// Returns the number of replicas that share an update.
    pub fn sharing(&self, update: &Update, elsewhere: Elsewhere) -> u64 {
        let state = update.state.iter();
        let replicas = state.filter_map(|state| self.replicas_of(state, elsewhere));
        replicas.max().unwrap_or(1)
    }

    /// Returns the number of replicas that share the state that is elsewhere; `None` if it stays.
    /// TensorFlow moves state with 32 elements for each replica, PopART moves state of two elements
    /// out of the IPUs, and shards state of 8,192. Moments have 32 bits.
    fn replicas_of(&self, state: &Held, elsewhere: Elsewhere) -> Option<u64> {
        let elements = state.on_tiles.iter().sum::<u64>() / 4;
        let (least_off_chip, least_shared) = match self.is_tensorflow {
            true => (32 * elsewhere.replicas, 32 * elsewhere.replicas),
            false => (2, 8192),
        };
        match elsewhere.replicas {
            replicas if replicas > 1 && elements >= least_shared => Some(replicas),
            _ if elsewhere.is_off_chip && elements >= least_off_chip => Some(1),
            _ => None,
        }
    }
}
