//! Plants the variables of user data.

use std::collections::HashMap;

use super::groups::{Access, Group, Role};
use super::model::Model;
use super::random::topic;
use super::settings::Settings;
use super::sizes::window_of;
use super::tree::{Tree, Window};

/// As many variables as the model needs: one for the work of each operation.
pub const NEEDED: u64 = 1000;

/// Plants all groups. With a `density` above [`NEEDED`] the work memory of an
/// operation consists of so many thousandths of a variable, each used by a stage
/// of it; with one below, so many thousandths of the tiles hold what is not a
/// weight.
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

pub(super) struct Planter<'a> {
    pub(super) settings: &'a Settings,
    pub(super) model: &'a Model,
    pub(super) tree: &'a Tree,
    pub(super) groups: Vec<Group>,
    pub(super) layer_bytes: u64,
    pub(super) ordinals: Vec<u64>,
    density: u64,
}

impl Planter<'_> {
    /// How many variables the work memory of an operation consists of.
    pub(super) fn work_variables(&self, op: usize) -> u64 {
        let about = [topic::VARIABLE, op as u64, 0, 3];
        let part = self.settings.random.chance(self.density % 1000, about);
        (self.density / 1000 + u64::from(part)).max(1)
    }

    pub(super) fn window(&self, index: usize, role: Role) -> Window {
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
    pub(super) fn compute(&self, op: usize, number: usize) -> Vec<(usize, Access)> {
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
