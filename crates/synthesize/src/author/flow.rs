//! Derives the data flow of the backward pass from the forward pass: which gradients there are,
//! from what each gradient is made, and where the gradients of one output are summed up.

use super::{Builder, Gradients};
use crate::model::{Op, Phase, Read};
use crate::templates::Kind;

impl Builder<'_> {
    /// Finds which gradients are needed, from the complete forward pass.
    pub(super) fn find_gradients(&mut self) {
        let count = self.model.ops.len();
        let mut gradients = Gradients {
            needed: vec![false; count],
            expected: vec![0; count],
            made: vec![Vec::new(); count],
        };
        let weights = self.model.weights.iter().filter(|weight| weight.is_trained);
        for &user in weights.flat_map(|weight| &weight.users) {
            gradients.needed[user] = true;
        }
        for &op in &self.model.order {
            for read in self.model.ops[op].reads.iter().filter(|r| r.has_gradient) {
                gradients.needed[op] |= gradients.needed[read.from];
                gradients.expected[read.from] += 1;
            }
        }
        self.gradients = gradients;
    }

    /// Returns whether the backward pass continues from an operation.
    pub(super) fn passes_back(&self, forward: usize) -> bool {
        self.passed_back(forward).next().is_some()
    }

    pub(super) fn passed_back(&self, forward: usize) -> impl Iterator<Item = Read> + '_ {
        let reads = self.model.ops[forward].reads.iter().copied();
        reads.filter(|read| read.has_gradient && self.gradients.needed[read.from])
    }

    /// Passes the gradients of all inputs of an operation to the operations that made these inputs.
    /// `first` makes the gradient for the output before it, `by` all others.
    pub(super) fn hand_back(&mut self, forward: usize, by: usize, first: usize) {
        let reads: Vec<Read> = self.passed_back(forward).collect();
        for (part, read) in reads.iter().enumerate() {
            let from = if part == 0 { first } else { by };
            let gradient = Read {
                part,
                ..Read::next(from)
            };
            self.gradients.made[read.from].push(gradient);
        }
        self.model.ops[by].parts = reads.len().max(1);
        for read in reads {
            self.sum_up(read.from, by);
        }
    }

    /// Adds up all gradients of an output of a graph, as soon as all are made. The sum belongs to
    /// the operation that made the last of them.
    fn sum_up(&mut self, forward: usize, last: usize) {
        let made = self.gradients.made[forward].clone();
        if made.len() < 2 || made.len() < self.gradients.expected[forward] {
            return;
        }
        let name = &self.templates.names["sum"];
        let last_op = &self.model.ops[last];
        let op = Op {
            op_type: "Sum".into(),
            made_for: last_op.made_for,
            places: last_op.places,
            inputs: self.names_of(&made),
            outputs: vec![format!("Gradient___{}", self.model.ops[forward].outputs[0])],
            sizes: self.model.ops[forward].sizes.clone(),
            reads: made,
            ..self.outside(Phase::Backward, name, Kind::Elementwise, 4)
        };
        let sum = self.run(op);
        self.gradients.made[forward] = vec![Read::next(sum)];
    }
}
