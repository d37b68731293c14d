//! Outputs of operations, and the work memory of each.

use super::Planter;
use crate::groups::{Access, Group, Role};
use crate::model::Phase;
use crate::places::Places;
use crate::tree::Mark;

/// An operation of a graph has work memory of so many parts of what it makes.
const WORK: u64 = 10;

impl Planter<'_> {
    /// The outputs of all operations of both passes.
    pub(super) fn outputs(&mut self) {
        for &op in &self.model.order.clone() {
            let this = &self.model.ops[op];
            let is_pass = !matches!(this.phase, Phase::Optimiser | Phase::Compiler);
            let parts = this.parts;
            for part in (0..parts).filter(|_| is_pass && this.hands_on) {
                self.output(op, part);
            }
        }
        self.inputs();
    }

    /// An output is needed where it is made and where it is used.
    fn output(&mut self, op: usize, part: usize) {
        let this = &self.model.ops[op];
        let per_mille = if this.phase == Phase::Backward {
            240
        } else {
            480
        };
        let bytes = match this.sizes.get(part) {
            Some(&bytes) => bytes,
            None if self.model.mask == Some(op) => self.layer_bytes / 12,
            None => self.rest_of(op) * per_mille / 1000 * self.activation_share(op) / 1000,
        };
        let mut uses = self.written(op);
        let mut places = this.places;
        let rewriting: Vec<usize> = self.rewriting(op).copied().collect();
        for &again in &rewriting {
            uses.extend(self.written(again));
            places |= self.model.ops[again].places;
        }
        // What is rewritten in place goes on under the name of what rewrites it.
        let in_place = rewriting
            .into_iter()
            .filter(|&op| !self.model.ops[op].hands_on);
        for writer in [op].into_iter().chain(in_place) {
            for user in self.users_of_output(writer, part) {
                uses.extend(self.read(user, 0));
                places |= self.model.ops[user].places;
            }
        }
        let is_loss = self.is_last_of_forward(op);
        let name = match part {
            0 => self.named(op, "out"),
            _ => self.named(op, &format!("out_{part}")),
        };
        self.put(Group {
            name,
            places,
            uses,
            mark: is_loss.then_some(Mark::Loss),
            ..self.of_op(op, Role::Activation, bytes)
        });
    }

    fn rewriting(&self, op: usize) -> impl Iterator<Item = &usize> {
        let order = self.model.order.iter();
        order.filter(move |&&other| self.model.ops[other].rewrites == Some(op))
    }

    fn is_last_of_forward(&self, op: usize) -> bool {
        let mut order = self.model.order.iter().rev();
        let last = order.find(|op| self.model.ops[**op].phase.is_forward());
        last == Some(&op)
    }

    /// The operations that take an output, in both passes, and those of the
    /// backward pass that need what the forward pass made.
    fn users_of_output(&self, op: usize, part: usize) -> Vec<usize> {
        let mut users: Vec<usize> = match self.model.ops[op].tensors.is_empty() {
            true => self.gradients_of(op).collect(),
            // Gradients read what their operations have read.
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

    /// The inputs of the model.
    fn inputs(&mut self) {
        for input in &self.model.inputs {
            let first = input.users[0];
            let users = input.users.iter().copied();
            let again = users.clone().filter(|_| input.bytes.is_some());
            let users = users.chain(again.flat_map(|op| self.gradients_of(op)));
            let bytes = input.bytes.unwrap_or(self.layer_bytes / 60);
            self.put(Group {
                name: input.name.clone(),
                uses: users.flat_map(|op| self.compute(op, 0)).collect(),
                mark: Some(Mark::Input),
                ..self.of_op(first, Role::Activation, bytes)
            });
        }
    }

    /// Work memory of each operation of both passes, what its exchanges send and
    /// receive, and some other small variables of its own.
    pub(super) fn work_memory(&mut self) {
        for &op in &self.model.order.clone() {
            let this = &self.model.ops[op];
            if this.call.is_none() && this.works_on.is_empty() && this.phase != Phase::Compiler {
                let bytes = match this.sizes.is_empty() {
                    true => {
                        let share = self.activation_share(op).min(400);
                        self.rest_of(op) * 300 / 1000 * share / 300
                    }
                    false => this.sizes.iter().sum::<u64>() / WORK,
                };
                self.work_of(op, bytes);
            }
        }
    }

    /// Adds the work memory of one operation.
    pub(super) fn work_of(&mut self, op: usize, bytes: u64) {
        let work_variables = self.work_variables(op);
        let work = self.put(Group {
            name: self.named(op, "work"),
            uses: self.last_compute(op),
            ..self.of_op(op, Role::Work, bytes / work_variables)
        });
        if self.ordinals[op] % 4 == 1 {
            self.put(Group {
                name: self.named(op, "edge"),
                uses: self.last_compute(op),
                ..self.of_op(op, Role::OutputEdge, bytes / 40)
            });
        }
        if self.ordinals[op] % 7 == 2 {
            self.put(Group {
                name: self.named(op, "constant"),
                uses: self.last_compute(op),
                ..self.of_op(op, Role::Constant, bytes / 50)
            });
        }
        for variable in 1..work_variables {
            let uses = self.compute(op, variable as usize);
            self.put(Group {
                name: self.named(op, &format!("work_{variable}")),
                uses,
                ..self.of_op(op, Role::Work, bytes / work_variables)
            });
        }
        for number in 0..self.tree.op_stages[op].len() {
            self.exchange_of(op, number, work, bytes / 15);
        }
    }

    /// Adds the variables that the exchange of a stage sends and receives.
    /// Where few variables are wanted, it sends the work memory.
    fn exchange_of(&mut self, op: usize, number: usize, work: usize, bytes: u64) {
        let stage = &self.tree.stages[self.tree.op_stages[op][number]];
        let Some(exchange) = stage.exchange else {
            return;
        };
        let (is_computing, window) = (
            stage.compute_set.is_some(),
            self.tree.exchanges[exchange].window,
        );
        // The data that is sent has come from another tile in the same
        // exchange: nothing else of this stage has made it before.
        let mut source = self.at(op, number, Access::Source);
        source.extend(self.at(op, number, Access::Destination));
        if self.settings.wants_few_variables() && !self.ordinals[op].is_multiple_of(5) {
            self.groups[work].uses.extend(source);
        } else {
            self.put(Group {
                name: self.named(op, "rearranged"),
                window,
                uses: source,
                ..self.of_op(op, Role::Rearrangement, bytes / 2)
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
            ..self.of_op(op, Role::Message, bytes)
        });
    }

    /// Operations that the compiler makes for every IPU have variables that
    /// nothing else uses.
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
                ..self.of_op(op, Role::Weight, bytes)
            });
            self.work_of(op, bytes / 3);
        }
    }
}
