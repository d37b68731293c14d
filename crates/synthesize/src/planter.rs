//! Plants the variables of user data.

use std::collections::HashMap;

use super::groups::{Group, Role};
use super::model::Model;
use super::places::Places;
use super::random::topic;
use super::sections::{Section, sections};
use super::settings::Settings;
use super::sizes::window_of;
use super::tree::{Tree, Window};

/// Plants all groups, with `per_layer` of them for an average layer.
pub fn build(settings: &Settings, model: &Model, tree: &Tree, per_layer: u64) -> Vec<Group> {
    let mut planter = Planter {
        settings,
        model,
        tree,
        groups: Vec::new(),
        layer_bytes: settings.bytes_per_layer_tile,
        ordinals: ordinals(model),
    };
    if settings.has_places() {
        planter.with_places();
        return planter.groups;
    }
    for section in sections(settings, model, per_layer) {
        planter.section(&section);
    }
    planter.messages();
    for (index, group) in planter.groups.iter_mut().enumerate() {
        let stages = group.uses.iter().map(|&(stage, _)| &tree.stages[stage]);
        let places = stages.map(|stage| stage.share.places);
        group.places = places.fold(Places::NONE, |all, own| all | own);
        group.key = index as u64;
    }
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

/// Share of the groups and of the bytes (beside weights), in thousandths.
const PLAN: &[(Role, u64, u64)] = &[
    (Role::Weight, 150, 0),
    (Role::Activation, 270, 480),
    (Role::Gradient, 120, 180),
    (Role::Work, 350, 270),
    (Role::Rearrangement, 50, 30),
    (Role::OutputEdge, 30, 20),
    (Role::Constant, 30, 20),
];

pub(super) struct Planter<'a> {
    pub(super) settings: &'a Settings,
    pub(super) model: &'a Model,
    pub(super) tree: &'a Tree,
    pub(super) groups: Vec<Group>,
    pub(super) layer_bytes: u64,
    pub(super) ordinals: Vec<u64>,
}

impl Planter<'_> {
    fn section(&mut self, section: &Section) {
        for &(role, count, bytes) in PLAN {
            if role == Role::Gradient && section.update.is_none() {
                continue;
            }
            let count = (section.count * count / 1000).max(1);
            let bytes = match role {
                Role::Weight => section.bytes.0,
                _ => section.bytes.1 * bytes / 1000,
            };
            for number in 0..count {
                self.group(section, role, number, (bytes / count).max(4));
            }
        }
        if let Some(update) = section.update {
            self.optimiser_state(section, update);
        }
    }

    /// Moments of the optimiser: always live, used by the update alone.
    fn optimiser_state(&mut self, section: &Section, update: usize) {
        let count = (section.count / 12).max(1);
        for number in 0..count {
            let index = self.groups.len();
            let window = self.window(index, Role::Weight);
            self.groups.push(Group {
                name: format!("{}/Accl___{number}", section.name),
                window,
                bytes: (section.bytes.0 / 2 / count).max(4),
                layer: section.layer,
                uses: self.compute(update, number as usize),
                ..Group::new(update, Role::Weight)
            });
        }
    }

    fn group(&mut self, section: &Section, role: Role, number: u64, bytes: u64) {
        let index = self.groups.len();
        let random = self.settings.random;
        let jitter = 500 + random.below(1000, [topic::SIZE, index as u64, 0, 1]);
        let op = self.owner(section, role, index, number);
        let window = self.window(index, role);
        let spread = u64::from(self.settings.tiles) * 1000 / u64::from(window.count);
        let mut uses = self.users(section, role, op, number as usize);
        let share = (self.settings.shared_fraction * 1200.0) as u64;
        let may_share = role != Role::Weight || self.settings.shares_weights;
        if may_share && random.chance(share, [topic::SHARED, index as u64, 0, 0]) {
            self.share(section, role, index, &mut uses);
        }
        uses.sort_unstable_by_key(|&(stage, access)| (stage, access as u8));
        uses.dedup();
        self.groups.push(Group {
            name: format!("{}/{role:?}{number}", self.prefix(section, op)),
            window,
            bytes: (bytes * jitter / 1000 * spread.min(2500) / 1000).max(4),
            layer: section.layer,
            uses,
            ..Group::new(op, role)
        });
    }

    fn prefix(&self, section: &Section, op: usize) -> String {
        match self.model.ops[op].name.as_str() {
            "" => format!("{}/{}", section.name, self.model.ops[op].op_type),
            name => name.to_owned(),
        }
    }

    /// The operation that a group is made for: by weight shares or activation
    /// shares; every operation with weights gets some first.
    fn owner(&self, section: &Section, role: Role, index: usize, number: u64) -> usize {
        let random = self.settings.random;
        let about = [topic::VARIABLE, index as u64, 0, 0];
        let ops = match role {
            Role::Gradient => &section.backward,
            Role::Work | Role::Rearrangement | Role::OutputEdge
                if !section.backward.is_empty() && random.chance(550, about) =>
            {
                &section.backward
            }
            _ => &section.forward,
        };
        let share = |op: &usize| match role {
            Role::Weight => u64::from(self.model.ops[*op].weight),
            _ => u64::from(self.model.ops[*op].activation).max(1),
        };
        let heavy: Vec<usize> = ops.iter().copied().filter(|op| share(op) > 0).collect();
        if role == Role::Weight && (number as usize) < heavy.len() {
            return heavy[number as usize];
        }
        pick(
            &heavy,
            share,
            random.hash([topic::VARIABLE, index as u64, 1, 0]),
        )
        .unwrap_or(section.forward[0])
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
        };
        window_of(tiles, hash, partial)
    }
}

/// One of `items`, each as likely as its share.
fn pick(items: &[usize], share: impl Fn(&usize) -> u64, hash: u64) -> Option<usize> {
    let total: u64 = items.iter().map(&share).sum();
    let mut left = hash % total.max(1);
    items
        .iter()
        .find(|item| {
            let own = share(item);
            let found = left < own;
            left = left.wrapping_sub(own);
            found
        })
        .copied()
}
