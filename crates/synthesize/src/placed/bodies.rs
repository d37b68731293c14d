//! Plants the variables of outlined bodies: arguments, work memory, results. Every layer that calls
//! a body needs them.

use super::Planter;
use crate::groups::{Access, Group, Role, Use};
use crate::templates;
use crate::tensors::{Part, Weight};

impl Planter<'_> {
    pub(super) fn bodies(&mut self) {
        for (number, ops) in self.model.functions.iter().enumerate() {
            for &op in ops {
                let bytes = self.layer_bytes / 12 * u64::from(self.model.ops[op].activation) / 10;
                match self.model.ops[op].call {
                    None => self.work_of(op, |batch| batch * bytes),
                    Some(_) => self.inner_result(op, ops),
                }
            }
            let callers = (0..self.model.ops.len()).filter(|&op| {
                let call = self.model.ops[op].call;
                call.is_some_and(|site| self.model.calls[site].function == number)
            });
            let callers: Vec<usize> = callers.collect();
            self.arguments(&callers, ops);
            let is_of_layers = |&op: &usize| self.model.ops[op].function.is_none();
            if callers.iter().all(is_of_layers) {
                self.argument_weights(&callers, ops[0]);
            }
        }
    }

    /// Plants the copies of the input and of the result that each call makes.
    fn arguments(&mut self, callers: &[usize], ops: &[usize]) {
        let computing = |op: &&usize| self.compute(**op, 0).is_some();
        let first = *ops.iter().find(computing).unwrap_or(&ops[0]);
        let last = *ops.iter().rev().find(computing).unwrap_or(&ops[0]);
        let input = callers.iter().flat_map(|&call| {
            [Access::Destination, Access::Compute].map(|access| self.at(call, 0, access))
        });
        let input: Vec<_> = input.chain([self.compute(first, 0)]).collect();
        let result = callers.iter().map(|&call| self.at(call, 1, Access::Source));
        let result: Vec<_> = result.chain([self.last_compute(last)]).collect();
        let work = (Role::Work, self.settings.batch * (self.layer_bytes / 15));
        self.put_of(first, "in", work, input.into_iter().flatten());
        self.put_of(last, "result", work, result.into_iter().flatten());
    }

    /// Plants the arguments for the weights of the calling layer. They are as large as the weights
    /// of the layer that lent its operations to the body.
    fn argument_weights(&mut self, callers: &[usize], first: usize) {
        let part = Part::Layer(self.model.ops[first].made_for.unwrap_or(0));
        let templates = &templates::of(self.settings.framework).layer;
        for (slot, template) in templates.iter().enumerate() {
            let mut weights = self.model.weights.iter();
            let is_it = |weight: &Weight| weight.part == part && weight.slot == slot;
            let weight = weights.position(is_it);
            let Some(weight) = weight.filter(|_| template.outlined && template.weight > 0) else {
                continue;
            };
            let calls = callers.iter();
            let uses = calls.flat_map(|&call| self.at(call, 0, Access::Destination));
            let uses: Vec<Use> = uses.chain(self.compute(first, slot)).collect();
            let group = Group {
                name: self.named(first, "weights"),
                places: self.model.ops[first].places,
                ..self.like(self.group_of_weight(weight), 1, first, Role::Work)
            };
            self.put(uses, group);
        }
    }

    /// Plants the result of a call inside a body, which stays in the body.
    fn inner_result(&mut self, call: usize, ops: &[usize]) {
        let after = ops.iter().skip_while(|&&op| op != call).nth(1);
        let read = after.map_or(Vec::new(), |&op| self.read(op, 0));
        let made = self.at(call, 1, Access::Destination);
        let argument = [Access::Source, Access::Destination].map(|access| self.at(call, 0, access));
        let work = (Role::Work, self.settings.batch * (self.layer_bytes / 20));
        self.put_of(call, "result", work, made.into_iter().chain(read));
        self.put_of(call, "argument", work, argument.into_iter().flatten());
    }
}
