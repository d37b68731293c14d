//! Plants the variables of a model, each for the places that need it.
//!
//! Each group is made for something: a weight of a layer, the output of an
//! operation, an argument of a body. Its places follow from that, and not from
//! the operations that happen to use it: those of the computation that needs
//! it. A global operation (uploads, a norm over all gradients, the
//! optimiser) needs its own temporaries for each weight where the weight is.

mod bodies;
mod outputs;
mod reaching;
mod weights;

use std::collections::HashMap;

use super::groups::{Access, Group, Role};
use super::model::{Model, Op, Phase};
use super::random::topic;
use super::settings::Settings;
use super::sizes::{budget, window_of};
use super::tensors::Part;
use super::tree::{Tree, Window};

/// The density at which each operation has one variable for its work.
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
    planter.plant();
    planter.groups
}

/// By operation: how many of its layer, or of those outside the layers, come
/// before it.
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
    /// Plants all groups.
    fn plant(&mut self) {
        self.weights();
        self.outputs();
        self.work_memory();
        self.constants();
        self.bodies();
        self.reaching();
        self.compiler_made();
    }

    /// Adds a group; gives its number.
    fn put(&mut self, mut group: Group) -> usize {
        assert!(
            !group.places.is_empty() && !group.uses.is_empty(),
            "{group:?}"
        );
        let order = |&(stage, access): &(usize, Access)| (stage, access as u8);
        group.uses.sort_unstable_by_key(order);
        group.uses.dedup();
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// A group of an operation with that operation's places, without uses.
    fn of_op(&self, op: usize, role: Role, bytes: u64) -> Group {
        let key = self.groups.len() as u64;
        Group {
            window: self.window(key as usize, role),
            bytes: bytes.max(4),
            places: self.model.ops[op].places,
            key,
            layer: self.part(op).layer(),
            ..Group::new(op, role)
        }
    }

    /// The part of the model that an operation works for; In for what has none.
    fn part(&self, op: usize) -> Part {
        let op = &self.model.ops[op];
        match (op.made_for, op.phase, op.partner) {
            (Some(layer), ..) => Part::Layer(layer),
            (None, Phase::Head, _) => Part::Out,
            (None, Phase::Backward, Some(forward)) => self.part(forward),
            _ => Part::In,
        }
    }

    /// Bytes of activations and temporaries of the part of an operation.
    fn rest_of(&self, op: usize) -> u64 {
        budget(self.settings, self.part(op)).1
    }

    /// The stage of an operation that comes `number`-th, with an access.
    fn at(&self, op: usize, number: usize, access: Access) -> Vec<(usize, Access)> {
        let stages = &self.tree.op_stages[op];
        stages
            .get(number)
            .map_or(Vec::new(), |&stage| vec![(stage, access)])
    }

    /// The last stage of an operation that computes.
    fn last_compute(&self, op: usize) -> Vec<(usize, Access)> {
        let stages = self.tree.op_stages[op].iter().rev();
        let mut computing = stages.filter(|stage| self.tree.stages[**stage].compute_set.is_some());
        computing
            .next()
            .map_or(Vec::new(), |&stage| vec![(stage, Access::Compute)])
    }

    /// How an operation reads a variable: a call copies it into an argument, others
    /// compute with it.
    fn read(&self, op: usize, number: usize) -> Vec<(usize, Access)> {
        if self.model.ops[op].call.is_some() {
            return self.at(op, 0, Access::Source);
        }
        let mut uses = self.compute(op, number);
        if self.settings.graph.is_some() {
            uses.extend(self.last_compute(op));
        }
        uses
    }

    /// How an operation writes a variable: a call copies it from a result.
    fn written(&self, op: usize) -> Vec<(usize, Access)> {
        match self.model.ops[op].call {
            Some(_) => self.at(op, 1, Access::Destination),
            None => self.last_compute(op),
        }
    }

    /// The backward operations of a forward one.
    fn gradients_of(&self, forward: usize) -> impl Iterator<Item = usize> {
        let ops = self.model.order.iter().copied();
        ops.filter(move |&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Backward && op.partner == Some(forward)
        })
    }

    /// The name of an operation's variables: operations of the framework's
    /// compiler have no name that tells the layer.
    fn named(&self, op: usize, what: &str) -> String {
        let op: &Op = &self.model.ops[op];
        match op.name.as_str() {
            "" => format!("{}/{what}", op.op_type),
            name => format!("{name}/{what}"),
        }
    }

    fn everywhere(&self) -> Window {
        Window::all(self.settings.tiles)
    }

    /// How many variables the work memory of an operation consists of.
    fn work_variables(&self, op: usize) -> u64 {
        let about = [topic::VARIABLE, op as u64, 0, 3];
        let part = self.settings.random.chance(self.density % 1000, about);
        (self.density / 1000 + u64::from(part)).max(1)
    }

    fn window(&self, index: usize, role: Role) -> Window {
        let tiles = self.settings.tiles;
        let hash = self
            .settings
            .random
            .hash([topic::VARIABLE, index as u64, 2, 0]);
        let partial = match role {
            Role::Weight => hash % 100 < 10,
            Role::Activation => hash % 100 < 25,
            _ => hash % 100 < 45,
        } && !self.settings.is_even();
        let window = window_of(tiles, hash, partial);
        let count = u64::from(window.count) * self.density.min(NEEDED) / NEEDED;
        Window {
            count: count.max(1) as u32,
            ..window
        }
    }

    /// A use by a compute set of `op`: the `number`-th, counted round.
    fn compute(&self, op: usize, number: usize) -> Vec<(usize, Access)> {
        let with_set = |stage: &&usize| self.tree.stages[**stage].compute_set.is_some();
        let stages: Vec<usize> = self.tree.op_stages[op]
            .iter()
            .filter(with_set)
            .copied()
            .collect();
        match stages.len() {
            0 => Vec::new(),
            count => vec![(stages[number % count], Access::Compute)],
        }
    }
}
