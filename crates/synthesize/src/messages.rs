//! Variables of exchanges and of outlined bodies.

use super::groups::{Access, Group, Role};
use super::planter::Planter;
use super::random::topic;

impl Planter<'_> {
    /// What each exchange receives, and work memory of outlined bodies.
    pub(super) fn messages(&mut self) {
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
                window: self.tree.exchanges[exchange].window,
                bytes: 16 + self.layer_bytes * (hash + 20) / 100_000,
                layer: model.ops[op].made_for,
                uses,
                ..Group::new(op, Role::Message)
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
            window,
            bytes: 16 + self.layer_bytes / 30,
            layer: self.model.ops[op].made_for,
            uses: vec![(stage, Access::Compute)],
            ..Group::new(op, Role::Work)
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
