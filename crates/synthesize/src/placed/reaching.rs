//! Plants the temporaries of the norm over all gradients.

use super::Planter;
use crate::groups::{Access, Group, Role, Use};
use crate::model::{Op, Phase};
use crate::places::Places;
use crate::templates::Kind;
use crate::tree::Window;

impl Planter<'_> {
    /// Plants these temporaries. A 32-bit copy of each gradient and its partial sums are needed
    /// where the gradient is. The gathered sums and the norm itself are needed on every IPU that
    /// has a gradient: it adds up its own gradients and gets the result.
    pub(super) fn reaching(&mut self) {
        let adds_up = |op: &Op| {
            let is_norm = op.phase == Phase::Optimiser && op.kind == Kind::Norm;
            is_norm && op.works_on.len() > 1
        };
        let mut ops = self.model.order.iter().copied();
        let Some(op) = ops.find(|&op| adds_up(&self.model.ops[op])) else {
            return;
        };
        // The two stages in the middle, after squares and before scales.
        let broadcast = self.model.ops[op].works_on.len() / 2;
        let gather = broadcast - 1;
        let mut scales = Vec::new();
        for weight in self.model.trained() {
            let stages = self.stages_over(weight, Kind::Norm);
            self.partial_sums(weight, stages[0], self.at(op, gather, Access::Source));
            scales.push(stages.get(1).copied());
        }
        let computed = self.at(op, gather, Access::Compute);
        let gathered = vec![self.at(op, gather, Access::Destination), computed];
        let result = vec![computed, self.at(op, broadcast, Access::Source)];
        scales.push(self.at(op, broadcast, Access::Destination));
        let trained = self.model.trained();
        let places = trained.iter();
        let places = places.map(|&weight| self.model.weights[weight].places);
        let places: Places = places.collect();
        let (one, all) = (Window::all(1), self.everywhere());
        let sums = 4 * trained.len() as u64;
        for (what, window, bytes, uses) in [
            ("gathered", one, sums, gathered),
            ("norm", one, 4, result),
            ("broadcast", all, 4, scales),
        ] {
            let name = self.named(op, what);
            let group = Group {
                name,
                window,
                bytes,
                places,
                is_float: true,
                is_carried: true,
                ..Group::new(op, Role::Message)
            };
            self.put(uses.into_iter().flatten(), group);
        }
    }

    fn partial_sums(&mut self, weight: usize, squares: Use, gathered: Option<Use>) {
        let weight = self.group_of_weight(weight);
        let norm = self.tree.stages[squares.0].op;
        let cast = Group {
            name: self.named(norm, "cast"),
            is_float: true,
            ..self.like(weight, 2, norm, Role::Work)
        };
        self.put([squares], cast);
        let partial = Group {
            name: self.named(norm, "partial"),
            window: self.groups[weight].window,
            bytes: 8,
            places: self.groups[weight].places,
            is_float: true,
            is_carried: true,
            ..Group::new(norm, Role::Work)
        };
        self.put([squares].into_iter().chain(gathered), partial);
    }
}
