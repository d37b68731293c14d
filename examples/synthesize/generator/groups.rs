//! Variables of user data. A *group* is one unlowered variable: it has at most
//! one lowered variable on each tile.

use super::model::{Model, Op, Phase, layer_scale};
use super::options::{Framework, Settings};
use super::random::topic;
use super::tree::{Tree, Window};

/// What a group is for; decides on its category, lifetime and users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Parameters and optimiser state: always live.
    Weight,
    /// Output of a forward operation, kept until its last use.
    Activation,
    /// Gradient of weights, kept until the update.
    Gradient,
    /// Work memory of single program stages.
    Work,
    /// What an exchange receives.
    Message,
    /// Rearranged copies for an exchange.
    Rearrangement,
    /// Output edges before an exchange.
    OutputEdge,
    /// Constants: always live.
    Constant,
}

/// How a program stage uses a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its compute set reads or writes it.
    Compute,
    /// Its exchange sends it.
    Source,
    /// Its exchange receives it.
    Destination,
}

/// One unlowered variable.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Tiles that hold a part of it.
    pub window: Window,
    /// Bytes on an average tile of the window.
    pub bytes: u64,
    /// The layer that it was made for.
    pub layer: Option<u32>,
    /// The operation that it was made for.
    pub op: usize,
    /// Program stages that use it.
    pub uses: Vec<(usize, Access)>,
}

/// A part of the model that gets its own share of variables.
struct Section {
    layer: Option<u32>,
    name: String,
    forward: Vec<usize>,
    backward: Vec<usize>,
    update: Option<usize>,
    /// Groups without messages.
    count: u64,
    /// Bytes of weights, bytes of everything else, on an average tile.
    bytes: (u64, u64),
}

/// Plants all groups, with `per_layer` of them for an average layer.
pub fn build(settings: &Settings, model: &Model, tree: &Tree, per_layer: u64) -> Vec<Group> {
    let mut planter = Planter {
        settings,
        model,
        tree,
        groups: Vec::new(),
        layer_bytes: settings.bytes_per_layer_tile,
    };
    for section in sections(settings, model, per_layer) {
        planter.section(&section);
    }
    planter.messages();
    planter.groups
}

fn sections(settings: &Settings, model: &Model, per_layer: u64) -> Vec<Section> {
    let bytes = settings.bytes_per_layer_tile;
    let of = |layer: Option<u32>, phases: &[Phase]| -> Vec<usize> {
        let wanted = |op: &&usize| {
            let op: &Op = &model.ops[**op];
            op.made_for == layer && op.function.is_none() && phases.contains(&op.phase)
        };
        model.order.iter().filter(wanted).copied().collect()
    };
    let update = |layer| of(layer, &[Phase::Optimiser]).first().copied();
    let outside = |name: &str, phase, weights, rest| Section {
        layer: None,
        name: name.to_owned(),
        forward: of(None, &[phase]),
        backward: of(None, &[Phase::Backward]),
        update: update(None),
        count: per_layer,
        bytes: (bytes * weights / 1000, bytes * rest / 1000),
    };
    let table = match settings.framework {
        Framework::Tensorflow => 150,
        Framework::Poplar => 600,
        _ => 700,
    };
    let mut sections = vec![outside("embedding", Phase::Embedding, table, 300)];
    for layer in 0..settings.layers {
        let (weights, rest) = layer_scale(settings, layer);
        sections.push(Section {
            layer: Some(layer),
            name: format!("Layer{layer}"),
            forward: of(Some(layer), &[Phase::Forward]),
            backward: of(Some(layer), &[Phase::Backward]),
            update: update(Some(layer)),
            count: per_layer * (weights + rest) / 2000,
            bytes: (bytes * 2 / 5 * weights / 1000, bytes * 3 / 5 * rest / 1000),
        });
    }
    sections.push(outside("head", Phase::Head, 200, 250));
    sections
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

struct Planter<'a> {
    settings: &'a Settings,
    model: &'a Model,
    tree: &'a Tree,
    groups: Vec<Group>,
    layer_bytes: u64,
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
                role: Role::Weight,
                window,
                bytes: (section.bytes.0 / 2 / count).max(4),
                layer: section.layer,
                op: update,
                uses: self.compute(update, number as usize),
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
        if random.chance(share, [topic::SHARED, index as u64, 0, 0]) {
            self.share(section, role, index, &mut uses);
        }
        uses.sort_unstable_by_key(|&(stage, access)| (stage, access as u8));
        uses.dedup();
        self.groups.push(Group {
            name: format!("{}/{role:?}{number}", self.prefix(section, op)),
            role,
            window,
            bytes: (bytes * jitter / 1000 * spread.min(2500) / 1000).max(4),
            layer: section.layer,
            op,
            uses,
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
        };
        if !partial {
            return Window {
                first: 0,
                count: tiles,
            };
        }
        let count = (tiles / 4 + (hash >> 8) as u32 % (tiles / 2)).max(1);
        Window {
            first: (hash >> 40) as u32 % (tiles - count + 1),
            count,
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

    fn users(
        &self,
        section: &Section,
        role: Role,
        op: usize,
        number: usize,
    ) -> Vec<(usize, Access)> {
        let mut uses = self.compute(op, number);
        let partners = |op: usize| {
            let same = move |&&grad: &&usize| self.model.ops[grad].partner == Some(op);
            section.backward.iter().filter(same).copied()
        };
        match role {
            Role::Weight => {
                partners(op).for_each(|grad| uses.extend(self.compute(grad, number)));
                uses.extend(
                    section
                        .update
                        .iter()
                        .flat_map(|&up| self.compute(up, number)),
                );
            }
            Role::Activation => {
                uses.extend(
                    self.following(op)
                        .iter()
                        .flat_map(|&next| self.compute(next, 0)),
                );
                uses.extend(partners(op).flat_map(|grad| self.compute(grad, 0)));
            }
            Role::Gradient => {
                uses.extend(
                    section
                        .update
                        .iter()
                        .flat_map(|&up| self.compute(up, number)),
                );
            }
            Role::Work => uses.extend(self.compute(op, number + 1)),
            Role::Message | Role::Rearrangement | Role::OutputEdge | Role::Constant => {}
        }
        uses
    }

    /// The operation executed after `op`.
    fn following(&self, op: usize) -> Option<usize> {
        let at = self.model.order.iter().position(|&other| other == op)?;
        self.model.order.get(at + 1).copied()
    }

    /// Adds uses by one to three other layers: tied weights, activations
    /// handed on or skipping layers, gradients handed back, shared buffers.
    fn share(&self, section: &Section, role: Role, index: usize, uses: &mut Vec<(usize, Access)>) {
        let random = self.settings.random;
        let hash = random.hash([topic::SHARED, index as u64, 1, 0]);
        let layers = self.settings.layers;
        let own = section.layer.unwrap_or(0);
        let others: Vec<u32> = match role {
            Role::Weight => vec![(own + 1 + hash as u32 % layers) % layers],
            Role::Constant => (1..4).map(|step| (own + step * 7) % layers).collect(),
            Role::Gradient => own.checked_sub(1).into_iter().collect(),
            _ if hash % 10 < 7 => vec![own + 1],
            _ => vec![own + 2 + (hash >> 8) as u32 % 3],
        };
        for other in others.into_iter().filter(|&layer| layer < layers) {
            let ops: Vec<usize> = self.ops_of(other, role);
            if let Some(&op) = ops.get((hash >> 16) as usize % ops.len().max(1)) {
                uses.extend(self.compute(op, hash as usize >> 24));
            }
        }
    }

    fn ops_of(&self, layer: u32, role: Role) -> Vec<usize> {
        let phase = match role {
            Role::Gradient => Phase::Backward,
            _ => Phase::Forward,
        };
        let wanted = |op: &&usize| {
            let op = &self.model.ops[**op];
            op.layer == Some(layer) && op.phase == phase && op.function.is_none()
        };
        self.model.order.iter().filter(wanted).copied().collect()
    }

    /// What each exchange receives, and work memory of outlined bodies.
    fn messages(&mut self) {
        for stage in 0..self.tree.stages.len() {
            let model = self.model;
            let own = &self.tree.stages[stage];
            let (op, compute) = (own.op, own.compute_set.is_some());
            if model.ops[op].function.is_some() {
                self.body_buffer(stage, op);
            }
            let Some(exchange) = self.tree.stages[stage].exchange else {
                continue;
            };
            let mut uses = vec![(stage, Access::Destination)];
            if compute {
                uses.push((stage, Access::Compute));
            }
            let hash = self
                .settings
                .random
                .below(200, [topic::EXCHANGE, stage as u64, 5, 0]);
            self.groups.push(Group {
                name: format!("message-{stage}-{}", model.ops[op].name),
                role: Role::Message,
                window: self.tree.exchanges[exchange].window,
                bytes: 16 + self.layer_bytes * (hash + 20) / 100_000,
                layer: model.ops[op].made_for,
                op,
                uses,
            });
        }
        self.send();
    }

    fn body_buffer(&mut self, stage: usize, op: usize) {
        if self.tree.stages[stage].compute_set.is_none() {
            return;
        }
        let index = self.groups.len();
        let window = self.window(index, Role::Work);
        self.groups.push(Group {
            name: format!("{}/body{stage}", self.model.ops[op].name),
            role: Role::Work,
            window,
            bytes: 16 + self.layer_bytes / 30,
            layer: self.model.ops[op].made_for,
            op,
            uses: vec![(stage, Access::Compute)],
        });
    }

    /// Each exchange sends something that its operation uses.
    fn send(&mut self) {
        let mut by_op: Vec<Vec<usize>> = vec![Vec::new(); self.model.ops.len()];
        for (index, group) in self.groups.iter().enumerate() {
            if group.role != Role::Message {
                let ops = group
                    .uses
                    .iter()
                    .map(|&(stage, _)| self.tree.stages[stage].op);
                ops.for_each(|op| by_op[op].push(index));
            }
        }
        for (stage, own) in self.tree.stages.iter().enumerate() {
            let choices = &by_op[own.op];
            if own.exchange.is_some() && !choices.is_empty() {
                let hash = self
                    .settings
                    .random
                    .hash([topic::EXCHANGE, stage as u64, 6, 0]);
                let group = choices[hash as usize % choices.len()];
                self.groups[group].uses.push((stage, Access::Source));
            }
        }
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
