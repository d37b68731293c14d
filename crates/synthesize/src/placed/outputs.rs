//! Plants the outputs of operations, and the work memory of each operation.

use super::Planter;
use crate::groups::{Access, Group, Role, Use};
use crate::model::Phase;
use crate::places::Places;
use crate::random::topic;
use crate::recompiled;
use crate::sizes;
use crate::tensors::TensorOf;

/// The work memory of an operation of a graph is its output divided by this number.
const WORK: u64 = 10;

impl Planter<'_> {
    pub(super) fn outputs(&mut self) {
        for &op in &self.model.order {
            let this = &self.model.ops[op];
            let is_pass = !matches!(this.phase, Phase::Optimiser | Phase::Compiler);
            for part in (0..this.parts).filter(|_| is_pass && this.hands_on) {
                self.output(op, part);
            }
        }
        for input in &self.model.inputs {
            let users = input.users.iter().copied();
            let again = users.clone().filter(|_| input.bytes.is_some());
            let users = users.chain(again.flat_map(|op| self.gradients_of(op)));
            let uses: Vec<Use> = users.flat_map(|op| self.compute(op, 0)).collect();
            let drawn = self.settings.batch * (self.layer_bytes / 60);
            let bytes = input.bytes.unwrap_or(drawn);
            let group = Group {
                name: input.name.clone(),
                mark: Some(TensorOf::Input),
                ..self.of_op(input.users[0], "in", Role::Activation, bytes)
            };
            self.put(uses, group);
        }
    }

    /// Plants an output of an operation. It is needed where it is made and where it is used.
    fn output(&mut self, op: usize, part: usize) {
        let this = &self.model.ops[op];
        let is_backward = this.phase == Phase::Backward;
        let per_mille = if is_backward { 240 } else { 480 };
        let batch = self.settings.batch;
        let bytes = match this.elements.get(part) {
            Some(&elements) => sizes::of_elements(batch * elements),
            None if self.model.mask == Some(op) => batch * (self.layer_bytes / 12),
            None => {
                batch * (self.rest_of(op) * per_mille / 1000 * self.activation_share(op) / 1000)
            }
        };
        let order = self.model.order.iter().copied();
        let rewriting = order.filter(|&other| self.model.ops[other].rewrites == Some(op));
        let writers: Vec<usize> = [op].into_iter().chain(rewriting).collect();
        let mut uses: Vec<Use> = writers.iter().flat_map(|&op| self.written(op)).collect();
        // What is rewritten in place goes on under the name of what rewrites it.
        let goes_on = |&&writer: &&usize| writer == op || !self.model.ops[writer].hands_on;
        let names = writers.iter().filter(goes_on);
        let users = names.flat_map(|&name| self.users_of_output(name, part));
        let users: Vec<usize> = users.collect();
        uses.extend(users.iter().flat_map(|&user| self.read(user, 0)));
        let mut order = self.model.order.iter().rev();
        let last = order.find(|op| self.model.ops[**op].phase.is_forward());
        let name = match part {
            0 => "out",
            _ => &format!("out_{part}"),
        };
        let group = Group {
            places: self.places_of(writers.iter().chain(&users)),
            mark: (last == Some(&op)).then_some(TensorOf::Loss),
            ..self.of_op(op, name, Role::Activation, bytes)
        };
        self.put(uses, group);
    }

    /// Returns the operations that use an output in both passes, and the operations of the backward
    /// pass that need results of the forward pass.
    fn users_of_output(&self, op: usize, part: usize) -> Vec<usize> {
        let mut users: Vec<usize> = match self.model.ops[op].tensors.is_empty() {
            true => self.gradients_of(op).collect(),
            // Gradients read the inputs that their operations have read.
            false => Vec::new(),
        };
        for &user in &self.model.order {
            let reads = self.model.ops[user].reads.iter();
            for read in reads.filter(|read| (read.from, read.part) == (op, part)) {
                users.push(user);
                if read.is_saved {
                    users.extend(self.gradients_of(user));
                }
            }
        }
        users
    }

    /// Returns the share of an operation in the activations of its part in the same pass, in
    /// thousandths.
    fn activation_share(&self, op: usize) -> u64 {
        let weight = |op: usize| u64::from(self.model.ops[op].activation).max(1);
        let phase = self.model.ops[op].phase;
        let same = |&other: &usize| {
            let other_phase = self.model.ops[other].phase;
            other_phase == phase && self.model.part(other) == self.model.part(op)
        };
        let order = self.model.order.iter().copied();
        let all: u64 = order.filter(same).map(weight).sum();
        1000 * weight(op) / all.max(1)
    }

    /// Plants, for each operation of both passes, its work memory, the data that its exchanges send
    /// and receive, and some small variables of its own.
    pub(super) fn work_memory(&mut self) {
        for &op in &self.model.order {
            let this = &self.model.ops[op];
            if this.call.is_none() && this.works_on.is_empty() && this.phase != Phase::Compiler {
                let share = self.activation_share(op).min(400);
                let drawn = self.rest_of(op) * 300 / 1000 * share / 300;
                self.work_of(op, |batch| match this.elements.is_empty() {
                    true => batch * drawn,
                    false => {
                        let outputs = this.elements.iter();
                        let bytes = outputs.map(|elements| sizes::of_elements(batch * elements));
                        bytes.sum::<u64>() / WORK
                    }
                });
            }
        }
    }

    /// Plants the work memory of an operation: `bytes` by the number of samples, if it can choose.
    pub(super) fn work_of(&mut self, op: usize, bytes: impl Fn(u64) -> u64) {
        let constant = bytes(1) / 50;
        let batch = recompiled::batch_of(self.settings, self.model, op);
        let bytes = recompiled::temporaries(self.settings, self.model, op, bytes(batch));
        let about = [topic::VARIABLE, op as u64, 0, 3];
        let more = self.settings.random.chance(self.density % 1000, about);
        let variables = (self.density / 1000 + u64::from(more)).max(1);
        let last = self.last_compute(op);
        let each = (Role::Work, bytes / variables);
        let work = self.put_of(op, "work", each, last);
        if self.ordinals[op] % 4 == 1 {
            self.put_of(op, "edge", (Role::OutputEdge, bytes / 40), last);
        }
        if self.ordinals[op] % 7 == 2 {
            self.put_of(op, "constant", (Role::Constant, constant), last);
        }
        for variable in 1..variables {
            let uses = self.compute(op, variable as usize);
            self.put_of(op, &format!("work_{variable}"), each, uses);
        }
        for number in 0..self.tree.op_stages[op].len() {
            self.exchange_of(op, number, work, bytes / 15);
        }
    }

    /// Adds the variables that the exchange of a stage sends and receives. If few variables are
    /// wanted, it sends the work memory.
    fn exchange_of(&mut self, op: usize, number: usize, work: usize, bytes: u64) {
        let stage = self.tree.op_stages[op][number];
        let Some(exchange) = self.tree.stages[stage].exchange else {
            return;
        };
        let window = self.tree.exchanges[exchange].window;
        // The data that is sent has come from another tile in the same
        // exchange: nothing else of this stage has made it before.
        let source = [(stage, Access::Source), (stage, Access::Destination)];
        // A layer should have fewer than twenty variables of user data on a tile.
        let wants_few =
            self.settings.variables_per_tile() * 3 < u64::from(self.settings.layers) * 200;
        if wants_few && !self.ordinals[op].is_multiple_of(5) {
            self.groups[work].uses.extend(source);
        } else {
            let group = self.of_op(op, "rearranged", Role::Rearrangement, bytes / 2);
            self.put(source, Group { window, ..group });
        }
        let is_computing = self.tree.stages[stage].compute_set.is_some();
        let computing = is_computing.then_some((stage, Access::Compute));
        let uses = [(stage, Access::Destination)].into_iter().chain(computing);
        let group = self.of_op(op, "message", Role::Message, bytes);
        self.put(uses, Group { window, ..group });
    }

    /// Plants the variables of the operations that the compiler makes for every IPU. No other
    /// operation uses them.
    pub(super) fn compiler_made(&mut self) {
        let bytes = self.layer_bytes * u64::from(self.settings.features.compiler_made) / 1000;
        let order = self.model.order.iter().copied();
        for op in order.filter(|&op| self.model.ops[op].phase == Phase::Compiler) {
            let group = Group {
                window: self.everywhere(),
                places: Places::EVERY,
                ..self.of_op(op, "buffer", Role::Weight, bytes)
            };
            self.put(self.compute(op, 0), group);
            self.work_of(op, |_| bytes / 3);
        }
    }
}
