//! Plants the variables of a model, each for the places that need it.
//!
//! Each group has one purpose: a weight of a layer, the output of an operation, an argument of a
//! body. Its places follow from that purpose, and not from the operations that happen to use it:
//! they are the places of the computation that needs it. A global operation (uploads, a norm over
//! all gradients, the optimiser) needs its own temporaries for each weight where the weight is.

mod bodies;
mod outputs;
mod weights;

use std::collections::HashMap;

use super::groups::{Access, Group, Role, Use};
use super::model::{Model, Op, Phase};
use super::places::Places;
use super::random::topic;
use super::settings::Settings;
use super::sizes::{budget, window_of};
use super::tree::{Tree, Window};

/// The density at which each operation has one variable for its work, in thousandths.
pub const NEEDED: u64 = 1000;

/// Plants all groups. `density` is the number of variables for the work of an
/// operation, in thousandths. Above [`NEEDED`], each of these variables is used
/// by one stage of the operation. Below it, only this share of the tiles holds
/// variables other than weights.
pub fn build(settings: &Settings, model: &Model, tree: &Tree, density: u64) -> Vec<Group> {
    let mut planter = Planter {
        settings,
        model,
        tree,
        groups: Vec::new(),
        layer_bytes: settings.bytes_per_layer_tile,
        ordinals: ordinals(model),
        density,
    };
    planter.weights();
    planter.outputs();
    planter.work_memory();
    planter.constants();
    planter.bodies();
    planter.reaching();
    planter.compiler_made();
    planter.groups
}

/// Returns, by operation, the number of operations of its layer, or of those outside the layers,
/// that come before it.
fn ordinals(model: &Model) -> Vec<u64> {
    let mut counts = HashMap::new();
    let ops = model.ops.iter().map(|op| {
        let count = counts.entry(op.made_for).or_insert(0);
        *count += 1;
        *count - 1
    });
    ops.collect()
}

struct Planter<'a> {
    settings: &'a Settings,
    model: &'a Model,
    tree: &'a Tree,
    groups: Vec<Group>,
    layer_bytes: u64,
    ordinals: Vec<u64>,
    density: u64,
}

impl Planter<'_> {
    /// Adds a group with these uses, and returns its number.
    fn put(&mut self, uses: impl IntoIterator<Item = Use>, mut group: Group) -> usize {
        group.uses.extend(uses);
        assert!(
            !group.places.is_empty() && !group.uses.is_empty(),
            "{group:?}"
        );
        group.uses.sort_unstable();
        group.uses.dedup();
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Adds a group of an operation, and returns its number.
    fn put_of(
        &mut self,
        op: usize,
        what: &str,
        (role, bytes): (Role, u64),
        uses: impl IntoIterator<Item = Use>,
    ) -> usize {
        let group = self.of_op(op, what, role, bytes);
        self.put(uses, group)
    }

    /// Creates a group with the places of an operation, and with a name that begins with the name
    /// of the operation.
    fn of_op(&self, op: usize, what: &str, role: Role, bytes: u64) -> Group {
        let key = self.groups.len() as u64;
        let is_mirrored = role == Role::Activation && self.settings.is_mirrored(role, key);
        Group {
            name: self.named(op, what),
            window: self
                .window(key, role)
                .mirrored_if(is_mirrored, self.settings.tiles),
            is_mirrored,
            bytes: bytes.max(4),
            places: self.model.ops[op].places,
            key,
            layer: self.model.part(op).layer(),
            ..Group::new(op, role)
        }
    }

    /// Creates a group on all tiles of every IPU.
    fn on_every_ipu(&self, op: usize, name: String, role: Role, bytes: u64) -> Group {
        Group {
            name,
            window: self.everywhere(),
            bytes,
            places: Places::EVERY,
            is_float: true,
            ..Group::new(op, role)
        }
    }

    /// Returns the bytes of activations and temporaries for one sample in the part of the model to
    /// which an operation belongs.
    fn rest_of(&self, op: usize) -> u64 {
        budget(self.settings, self.model.part(op)).1
    }

    /// Returns the use of a group by a stage of an operation, the one with this number.
    fn at(&self, op: usize, number: usize, access: Access) -> Option<Use> {
        let stage = self.tree.op_stages[op].get(number);
        stage.map(|&stage| (stage, access))
    }

    fn computing(&self, op: usize) -> impl DoubleEndedIterator<Item = Use> + Clone {
        let stages = self.tree.op_stages[op].iter();
        let computing = stages.filter(|stage| self.tree.stages[**stage].compute_set.is_some());
        computing.map(|&stage| (stage, Access::Compute))
    }

    fn last_compute(&self, op: usize) -> Option<Use> {
        self.computing(op).next_back()
    }

    /// Returns the use of a group by a compute set of `op`: the one with this number, where
    /// counting starts again after the last one.
    fn compute(&self, op: usize, number: usize) -> Option<Use> {
        self.computing(op).cycle().nth(number)
    }

    /// Returns the uses by which an operation reads a variable: a call copies the variable into an
    /// argument, all other operations compute with it.
    fn read(&self, op: usize, number: usize) -> Vec<Use> {
        let uses = match self.model.ops[op].call {
            Some(_) => [self.at(op, 0, Access::Source), None],
            None if self.settings.graph.is_some() => {
                [self.compute(op, number), self.last_compute(op)]
            }
            None => [self.compute(op, number), None],
        };
        uses.into_iter().flatten().collect()
    }

    /// Returns the use by which an operation writes a variable: a call copies it from a result.
    fn written(&self, op: usize) -> Option<Use> {
        match self.model.ops[op].call {
            Some(_) => self.at(op, 1, Access::Destination),
            None => self.last_compute(op),
        }
    }

    fn gradients_of(&self, forward: usize) -> impl Iterator<Item = usize> {
        let ops = self.model.order.iter().copied();
        ops.filter(move |&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Backward && op.partner == Some(forward)
        })
    }

    /// Returns the name of a variable of an operation. The variables of operations that the
    /// framework's compiler made have no name that identifies the layer.
    fn named(&self, op: usize, what: &str) -> String {
        let Op { name, op_type, .. } = &self.model.ops[op];
        let name = if name.is_empty() { op_type } else { name };
        format!("{name}/{what}")
    }

    fn everywhere(&self) -> Window {
        Window::all(self.settings.tiles)
    }

    /// Returns the places of all these operations together.
    fn places_of<'a>(&self, ops: impl IntoIterator<Item = &'a usize>) -> Places {
        let places = ops.into_iter().map(|&op| self.model.ops[op].places);
        places.collect()
    }

    fn window(&self, index: u64, role: Role) -> Window {
        let hash = self.settings.random.hash([topic::VARIABLE, index, 2, 0]);
        let percent = match role {
            Role::Weight => 10,
            Role::Activation => 25,
            _ => 45,
        };
        let is_partial = hash % 100 < percent && !self.settings.is_even();
        let window = window_of(self.settings.tiles, hash, is_partial);
        let count = u64::from(window.count) * self.density.min(NEEDED) / NEEDED;
        Window {
            count: count.max(1) as u32,
            ..window
        }
    }
}
