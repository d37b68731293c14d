//! Temporaries of the norm over all gradients.

use super::super::groups::{Access, Group, Role};
use super::super::model::Phase;
use super::super::places::Places;
use super::super::planter::Planter;
use super::super::templates::Kind;
use super::super::tree::Window;

impl Planter<'_> {
    /// A copy of each gradient in 32 bits and its partial sums are needed where
    /// the gradient is. What is gathered from them, and the norm itself, is small
    /// and needed on every IPU: each adds up its own and gets the result.
    pub(super) fn reaching(&mut self) {
        let mut order = self.model.order.iter().copied();
        let norm = order.find(|&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Optimiser && op.kind == Kind::Norm
        });
        let Some(norm) = norm else {
            return;
        };
        let sets = self.model.ops[norm].works_on.len() / 2 - 1;
        for (number, weight) in self.model.trained().into_iter().enumerate() {
            let number = if sets == 1 { 0 } else { number };
            self.partial_sums(norm, weight, number, sets);
        }
        self.gathered(norm, sets);
    }

    fn partial_sums(&mut self, norm: usize, weight: usize, number: usize, gather: usize) {
        let group = self.group_of_weight(weight);
        self.put(Group {
            name: self.named(norm, "cast"),
            is_float: true,
            uses: self.at(norm, number, Access::Compute),
            ..self.like(group, 2, norm, Role::Work)
        });
        let group = &self.groups[group];
        let mut uses = self.at(norm, number, Access::Compute);
        uses.extend(self.at(norm, gather, Access::Source));
        let partial = Group {
            name: self.named(norm, "partial"),
            window: group.window,
            bytes: 8,
            places: group.places,
            is_float: true,
            uses,
            ..Group::new(norm, Role::Work)
        };
        self.put(partial);
    }

    fn gathered(&mut self, norm: usize, gather: usize) {
        let one_tile = Window { first: 0, count: 1 };
        let gathered = [Access::Destination, Access::Compute]
            .iter()
            .flat_map(|&access| self.at(norm, gather, access));
        let mut gathered = self.everywhere_needed(norm, "gathered", gathered.collect());
        gathered.window = one_tile;
        gathered.bytes = 4 * self.model.trained().len() as u64;
        self.put(gathered);
        let mut result = self.at(norm, gather, Access::Compute);
        result.extend(self.at(norm, gather + 1, Access::Source));
        let mut result = self.everywhere_needed(norm, "norm", result);
        result.window = one_tile;
        self.put(result);
        let mut broadcast = self.at(norm, gather + 1, Access::Destination);
        let stages = &self.tree.op_stages[norm][gather + 2..];
        broadcast.extend(stages.iter().map(|&stage| (stage, Access::Compute)));
        let broadcast = self.everywhere_needed(norm, "broadcast", broadcast);
        self.put(broadcast);
    }

    /// A number on all tiles.
    fn everywhere_needed(&self, norm: usize, what: &str, uses: Vec<(usize, Access)>) -> Group {
        Group {
            name: self.named(norm, what),
            window: self.everywhere(),
            bytes: 4,
            places: Places::EVERY,
            is_float: true,
            uses,
            ..Group::new(norm, Role::Message)
        }
    }
}
