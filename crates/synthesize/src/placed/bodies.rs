//! Variables of outlined bodies: arguments, work memory, results. Every layer
//! that calls a body needs them.

use super::Planter;
use crate::groups::{Access, Group, Role};
use crate::templates;
use crate::tensors::Part;

impl Planter<'_> {
    pub(super) fn bodies(&mut self) {
        for function in 0..self.model.functions.len() {
            let ops = self.model.functions[function].ops.clone();
            for &op in &ops {
                let bytes = self.layer_bytes / 12 * u64::from(self.model.ops[op].activation) / 10;
                match self.model.ops[op].call {
                    None => self.work_of(op, bytes),
                    Some(_) => self.inner_result(op, &ops),
                }
            }
            self.arguments(function, &ops);
            if self.is_of_layers(function) {
                self.argument_weights(function, ops[0]);
            }
        }
    }

    /// The calls of a function.
    fn callers(&self, function: usize) -> Vec<usize> {
        let ops = self.model.ops.iter().enumerate();
        let calls = ops.filter(|(_, op)| {
            op.call
                .is_some_and(|site| self.model.calls[site].function == function)
        });
        calls.map(|(op, _)| op).collect()
    }

    /// Whether layers call it, and not other bodies.
    fn is_of_layers(&self, function: usize) -> bool {
        let callers = self.callers(function);
        callers
            .iter()
            .all(|&op| self.model.ops[op].function.is_none())
    }

    /// Each call copies the input in and the result out.
    fn arguments(&mut self, function: usize, ops: &[usize]) {
        let callers = self.callers(function);
        let computing = |op: &&usize| !self.compute(**op, 0).is_empty();
        let first = *ops.iter().find(computing).unwrap_or(&ops[0]);
        let last = *ops.iter().rev().find(computing).unwrap_or(&ops[0]);
        let mut input = self.compute(first, 0);
        let mut result = self.last_compute(last);
        for &call in &callers {
            input.extend(self.at(call, 0, Access::Destination));
            input.extend(self.at(call, 0, Access::Compute));
            result.extend(self.at(call, 1, Access::Source));
        }
        let bytes = self.layer_bytes / 15;
        for (what, owner, uses) in [("in", first, input), ("result", last, result)] {
            self.put(Group {
                name: self.named(owner, what),
                uses,
                ..self.of_op(owner, Role::Work, bytes)
            });
        }
    }

    /// The weights of the layer come in as arguments too. They are as large as
    /// those of the layer that lent its operations to the body.
    fn argument_weights(&mut self, function: usize, first: usize) {
        let layer = self.model.ops[first].made_for.unwrap_or(0);
        let callers = self.callers(function);
        let templates = templates::of(self.settings.framework).layer.iter();
        let slots: Vec<usize> = templates
            .enumerate()
            .filter(|(_, template)| template.outlined && template.weight > 0)
            .map(|(slot, _)| slot)
            .collect();
        for slot in slots {
            let mut weights = self.model.weights.iter();
            let wanted = Part::Layer(layer);
            let Some(weight) =
                weights.position(|weight| weight.part == wanted && weight.slot == slot)
            else {
                continue;
            };
            let uses = callers
                .iter()
                .flat_map(|&call| self.at(call, 0, Access::Destination));
            let mut uses: Vec<_> = uses.collect();
            uses.extend(self.compute(first, slot));
            let group = self.group_of_weight(weight);
            self.put(Group {
                name: self.named(first, "weights"),
                places: self.model.ops[first].places,
                uses,
                ..self.like(group, 1, first, Role::Work)
            });
        }
    }

    /// The result of a call inside a body stays in the body.
    fn inner_result(&mut self, call: usize, ops: &[usize]) {
        let after = ops.iter().skip_while(|&&op| op != call).nth(1);
        let mut uses = self.at(call, 1, Access::Destination);
        uses.extend(after.map_or(Vec::new(), |&op| self.read(op, 0)));
        self.put(Group {
            name: self.named(call, "result"),
            uses,
            ..self.of_op(call, Role::Work, self.layer_bytes / 20)
        });
        self.put(Group {
            name: self.named(call, "argument"),
            uses: [Access::Source, Access::Destination]
                .iter()
                .flat_map(|&access| self.at(call, 0, access))
                .collect(),
            ..self.of_op(call, Role::Work, self.layer_bytes / 20)
        });
    }
}
