//! Temporaries of the norm over all gradients.

use super::Planter;
use crate::groups::{Access, Group, Role};
use crate::model::Phase;
use crate::places::Places;
use crate::templates::Kind;
use crate::tree::Window;

/// A stage of an operation.
type At = (usize, usize);

/// The stages of a norm.
struct Norm {
    /// By trained weight: the sum of squares of its gradient.
    squares: Vec<At>,
    gather: At,
    broadcast: At,
    scales: Vec<At>,
}

impl Planter<'_> {
    /// A copy of each gradient in 32 bits and its partial sums are needed where
    /// the gradient is. What is gathered from them, and the norm itself, is small
    /// and needed on every IPU: each adds up its own and gets the result.
    pub(super) fn reaching(&mut self) {
        let Some(norm) = self.norm() else {
            return;
        };
        for (weight, &squares) in self.model.trained().into_iter().zip(&norm.squares) {
            self.partial_sums(weight, squares, norm.gather);
        }
        self.gathered(&norm);
    }

    fn norm(&self) -> Option<Norm> {
        let is_norm = |&op: &usize| {
            let op = &self.model.ops[op];
            op.phase == Phase::Optimiser && op.kind == Kind::Norm
        };
        let ops: Vec<usize> = self.model.order.iter().copied().filter(is_norm).collect();
        let weights = self.model.trained().len();
        if !self.settings.norms_each_gradient() {
            let op = *ops.first()?;
            let sets = self.model.ops[op].works_on.len() / 2 - 1;
            // One compute set is of all.
            let of_weight = |weight: usize| (op, if sets == 1 { 0 } else { weight });
            return Some(Norm {
                squares: (0..weights).map(of_weight).collect(),
                gather: (op, sets),
                broadcast: (op, sets + 1),
                scales: (sets + 2..2 * sets + 2).map(|stage| (op, stage)).collect(),
            });
        }
        let first = |ops: &[usize]| ops.iter().map(|&op| (op, 0)).collect();
        let sum = *ops.get(weights)?;
        Some(Norm {
            squares: first(&ops[..weights]),
            gather: (sum, 0),
            broadcast: (sum, 1),
            scales: first(&ops[weights + 1..]),
        })
    }

    fn partial_sums(&mut self, weight: usize, (norm, squares): At, gather: At) {
        let group = self.group_of_weight(weight);
        self.put(Group {
            name: self.named(norm, "cast"),
            is_float: true,
            uses: self.at(norm, squares, Access::Compute),
            ..self.like(group, 2, norm, Role::Work)
        });
        let group = &self.groups[group];
        let mut uses = self.at(norm, squares, Access::Compute);
        uses.extend(self.at(gather.0, gather.1, Access::Source));
        let partial = Group {
            name: self.named(norm, "partial"),
            window: group.window,
            bytes: 8,
            places: group.places,
            is_float: true,
            is_carried: true,
            uses,
            ..Group::new(norm, Role::Work)
        };
        self.put(partial);
    }

    fn gathered(&mut self, norm: &Norm) {
        let one_tile = Window::all(1);
        let (op, gather) = norm.gather;
        let gathered = [Access::Destination, Access::Compute]
            .iter()
            .flat_map(|&access| self.at(op, gather, access));
        let mut gathered = self.everywhere_needed(op, "gathered", gathered.collect());
        gathered.window = one_tile;
        gathered.bytes = 4 * self.model.trained().len() as u64;
        self.put(gathered);
        let mut result = self.at(op, gather, Access::Compute);
        result.extend(self.at(op, norm.broadcast.1, Access::Source));
        let mut result = self.everywhere_needed(op, "norm", result);
        result.window = one_tile;
        self.put(result);
        let mut broadcast = self.at(op, norm.broadcast.1, Access::Destination);
        let scales = norm.scales.iter();
        broadcast.extend(scales.flat_map(|&(op, scale)| self.at(op, scale, Access::Compute)));
        let broadcast = self.everywhere_needed(op, "broadcast", broadcast);
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
            is_carried: true,
            uses,
            ..Group::new(norm, Role::Message)
        }
    }
}
