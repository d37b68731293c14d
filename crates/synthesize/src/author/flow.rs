//! The flow from operation to operation. The forward pass is given; which
//! gradients there are, what each is made from, and where those of one output are
//! summed up follow from it.

use super::{Builder, Gradients};
use crate::model::{Op, Phase, Read};
use crate::templates::Kind;

impl Builder<'_> {
    /// Looks at the forward pass, which is complete.
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

    /// Whether the backward pass goes on from an operation.
    pub(super) fn passes_back(&self, forward: usize) -> bool {
        self.passed_back(forward).next().is_some()
    }

    pub(super) fn passed_back(&self, forward: usize) -> impl Iterator<Item = Read> + '_ {
        let reads = self.model.ops[forward].reads.iter().copied();
        reads.filter(|read| read.has_gradient && self.gradients.needed[read.from])
    }

    /// Hands the gradients of all that an operation has taken to what made it;
    /// `first` makes that of the output before it, `by` the others.
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

    /// As soon as all gradients of an output of a graph are there, an operation adds them up.
    /// It goes with what made the last of them.
    fn sum_up(&mut self, forward: usize, last: usize) {
        let made = self.gradients.made[forward].clone();
        if made.len() < 2 || made.len() < self.gradients.expected[forward] {
            return;
        }
        let name = &self.templates.names.sum;
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
