//! What operations hand on, and what each works with alone.

use super::super::groups::{Access, Group, Role};
use super::super::model::Phase;
use super::super::model_parts::shared_slot;
use super::super::places::Places;
use super::super::planter::Planter;
use super::super::templates::{self, Kind};
use super::super::tensors::Part;
use super::super::tree::Mark;

impl Planter<'_> {
    /// The outputs of all operations of both passes.
    pub(super) fn outputs(&mut self) {
        for &op in &self.model.order.clone() {
            let is_pass = !matches!(self.model.ops[op].phase, Phase::Optimiser | Phase::Compiler);
            if is_pass && !self.is_weight_gradient(op) {
                self.output(op);
            }
        }
        self.input();
    }

    /// In layers a gradient of a weight has an operation of its own.
    fn is_weight_gradient(&self, op: usize) -> bool {
        let mut weights = self.model.weights.iter();
        let is_one = weights.any(|weight| weight.gradients.contains(&op));
        is_one && self.model.ops[op].call.is_none() && matches!(self.part(op), Part::Layer(_))
    }

    /// An output is needed where it is made and where it is used.
    fn output(&mut self, op: usize) {
        let own = &self.model.ops[op];
        let users = self.users_of_output(op);
        let per_mille = if own.phase == Phase::Backward {
            240
        } else {
            480
        };
        let bytes = if self.model.mask == Some(op) {
            self.layer_bytes / 12
        } else {
            self.rest_of(op) * per_mille / 1000 * self.activation_share(op) / 1000
        };
        let mut uses = self.written(op);
        let mut places = own.places;
        for user in users {
            uses.extend(self.read(user, 0));
            places |= self.model.ops[user].places;
        }
        let is_loss = self.is_last_of_head(op);
        self.put(Group {
            name: self.named(op, "out"),
            places,
            uses,
            mark: is_loss.then_some(Mark::Loss),
            ..self.of_op(op, Role::Activation, 0, bytes)
        });
    }

    fn is_last_of_head(&self, op: usize) -> bool {
        let mut order = self.model.order.iter().rev();
        let last = order.find(|op| self.model.ops[**op].phase == Phase::Head);
        last == Some(&op)
    }

    /// The operation that comes next (past gradients of weights, which read it
    /// too but hand nothing on), those of the backward pass that need what the
    /// forward pass made, the layers that a mask is for, and the residual
    /// connection around the first half of the next layer.
    fn users_of_output(&self, op: usize) -> Vec<usize> {
        let model = self.model;
        let mut users: Vec<usize> = self.gradients_of(op).collect();
        if model.mask == Some(op) {
            let slot = shared_slot(self.settings.framework);
            let layers = model.forward.iter().map(|ops| ops[slot]);
            users.extend(layers.flat_map(|user| self.gradients_of(user).chain([user])));
            return users;
        }
        let at = model.order.iter().position(|&other| other == op);
        let after = at.map_or(&[][..], |at| &model.order[at + 1..]);
        let is_pass = |op: &&usize| {
            let own = &model.ops[**op];
            !matches!(own.phase, Phase::Optimiser | Phase::Compiler) && model.mask != Some(**op)
        };
        for &next in after.iter().filter(is_pass) {
            users.push(next);
            if !self.is_weight_gradient(next) {
                break;
            }
        }
        users.extend(self.residual(op));
        users.extend(self.residual_sum(op));
        users
    }

    /// What sums the gradients of the two ways around a residual connection: it
    /// takes that of the addition, and what comes last in the layer.
    fn residual_sum(&self, op: usize) -> Option<usize> {
        let own = &self.model.ops[op];
        let layer = own.made_for.filter(|_| own.phase == Phase::Backward)?;
        let adds = self.addition()?;
        let forward = self.model.forward[layer as usize][adds];
        let is_sum = |sum: &usize| {
            let sum = &self.model.ops[*sum];
            sum.op_type == "Sum" && sum.made_for == Some(layer)
        };
        let sums = self.model.order.iter().copied().find(is_sum);
        sums.filter(|_| own.partner == Some(forward))
    }

    /// The slot of the addition of a layer's residual connection.
    fn addition(&self) -> Option<usize> {
        let templates = templates::of(self.settings.framework).iter();
        let mut slots = templates.enumerate();
        let adds =
            slots.find(|(_, template)| template.kind == Kind::Elementwise && !template.outlined);
        adds.map(|(slot, _)| slot)
    }

    /// What adds the input of a layer to what it made of it: takes the output of
    /// the last operation before the layer.
    fn residual(&self, op: usize) -> Option<usize> {
        let layer = match (self.part(op), self.model.ops[op].phase) {
            (Part::Layer(layer), Phase::Forward) => layer + 1,
            (Part::In, Phase::Embedding) => 0,
            _ => return None,
        };
        let next = self.model.forward.get(layer as usize)?;
        let at = self.model.order.iter().position(|&other| other == op)?;
        let after = self.model.order[at + 1..].iter();
        let after = after.copied().find(|&op| self.model.mask != Some(op));
        let adds = self.addition()?;
        (after == Some(next[0])).then_some(next[adds])
    }

    /// Share of an operation in what its part holds, in thousandths.
    fn activation_share(&self, op: usize) -> u64 {
        1000 * self.weight_of_output(op) / self.sum_of_outputs(op).max(1)
    }

    fn weight_of_output(&self, op: usize) -> u64 {
        u64::from(self.model.ops[op].activation).max(1)
    }

    /// Over the operations of the same part and pass.
    fn sum_of_outputs(&self, op: usize) -> u64 {
        let phase = self.model.ops[op].phase;
        let same = |&&other: &&usize| {
            self.model.ops[other].phase == phase && self.part(other) == self.part(op)
        };
        let order = self.model.order.iter().filter(same);
        order.map(|&op| self.weight_of_output(op)).sum()
    }

    /// The input of the model.
    fn input(&mut self) {
        let mut order = self.model.order.iter().copied();
        let first = order.find(|&op| self.model.ops[op].phase == Phase::Embedding);
        let first = first.expect("an embedding");
        self.put(Group {
            name: "input".to_owned(),
            uses: self.compute(first, 0),
            mark: Some(Mark::Input),
            ..self.of_op(first, Role::Activation, 7, self.layer_bytes / 60)
        });
    }

    /// Work memory of each operation of both passes, what its exchanges send and
    /// receive, and some other small variables of its own.
    pub(super) fn work_memory(&mut self) {
        for &op in &self.model.order.clone() {
            let own = &self.model.ops[op];
            if own.call.is_none() && own.works_on.is_empty() && own.phase != Phase::Compiler {
                let share = self.activation_share(op).min(400);
                self.work_of(op, self.rest_of(op) * 300 / 1000 * share / 300);
            }
        }
    }

    /// The same for one operation.
    pub(super) fn work_of(&mut self, op: usize, bytes: u64) {
        let work = self.put(Group {
            name: self.named(op, "work"),
            uses: self.last_compute(op),
            ..self.of_op(op, Role::Work, 1, bytes)
        });
        if self.ordinals[op] % 4 == 1 {
            self.put(Group {
                name: self.named(op, "edge"),
                uses: self.last_compute(op),
                ..self.of_op(op, Role::OutputEdge, 2, bytes / 40)
            });
        }
        if self.ordinals[op] % 7 == 2 {
            self.put(Group {
                name: self.named(op, "constant"),
                uses: self.last_compute(op),
                ..self.of_op(op, Role::Constant, 3, bytes / 50)
            });
        }
        for number in 0..self.tree.op_stages[op].len() {
            self.exchange_of(op, number, work, bytes / 15);
        }
    }

    /// What the exchange of a stage sends and receives. Where few variables are
    /// wanted, it sends the work memory.
    fn exchange_of(&mut self, op: usize, number: usize, work: usize, bytes: u64) {
        let stage = &self.tree.stages[self.tree.op_stages[op][number]];
        let Some(exchange) = stage.exchange else {
            return;
        };
        let (is_computing, window) = (
            stage.compute_set.is_some(),
            self.tree.exchanges[exchange].window,
        );
        let source = self.at(op, number, Access::Source);
        if self.settings.vars_per_layer_tile < 20 && !self.ordinals[op].is_multiple_of(5) {
            self.groups[work].uses.extend(source);
        } else {
            self.put(Group {
                name: self.named(op, "rearranged"),
                window,
                uses: source,
                ..self.of_op(op, Role::Rearrangement, 4, bytes / 2)
            });
        }
        let mut uses = self.at(op, number, Access::Destination);
        if is_computing {
            uses.extend(self.at(op, number, Access::Compute));
        }
        self.put(Group {
            name: self.named(op, "message"),
            window,
            uses,
            ..self.of_op(op, Role::Message, 5, bytes)
        });
    }

    /// What the compiler makes for every IPU has variables that nothing else
    /// uses.
    pub(super) fn compiler_made(&mut self) {
        let bytes = self.layer_bytes * u64::from(self.settings.features.compiler_made) / 1000;
        for &op in &self.model.order.clone() {
            if self.model.ops[op].phase != Phase::Compiler {
                continue;
            }
            self.put(Group {
                name: self.named(op, "buffer"),
                window: self.everywhere(),
                places: Places::EVERY,
                uses: self.compute(op, 0),
                ..self.of_op(op, Role::Weight, 0, bytes)
            });
            self.work_of(op, bytes / 3);
        }
    }
}
