//! Temporaries of the norm over all gradients.

use super::Planter;
use crate::groups::{Access, Group, Role};
use crate::model::Phase;
use crate::templates::Kind;
use crate::tree::Window;

type At = (usize, usize);

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
        let weight = self.group_of_weight(weight);
        let squares = self.at(norm, squares, Access::Compute);
        let cast = Group {
            name: self.named(norm, "cast"),
            is_float: true,
            ..self.like(weight, 2, norm, Role::Work)
        };
        self.put(squares, cast);
        let partial = Group {
            name: self.named(norm, "partial"),
            window: self.groups[weight].window,
            bytes: 8,
            places: self.groups[weight].places,
            is_float: true,
            is_carried: true,
            ..Group::new(norm, Role::Work)
        };
        let gathered = self.at(gather.0, gather.1, Access::Source);
        self.put(squares.into_iter().chain(gathered), partial);
    }

    fn gathered(&mut self, norm: &Norm) {
        let (op, gather) = norm.gather;
        let computed = self.at(op, gather, Access::Compute);
        let gathered = [self.at(op, gather, Access::Destination), computed];
        let result = [computed, self.at(op, norm.broadcast.1, Access::Source)];
        let scales = norm.scales.iter();
        let scales = scales.map(|&(op, scale)| self.at(op, scale, Access::Compute));
        let broadcast = [self.at(op, norm.broadcast.1, Access::Destination)];
        let broadcast = broadcast.into_iter().chain(scales).collect();
        let one_tile = Window::all(1);
        let bytes = 4 * self.model.trained().len() as u64;
        for (what, window, bytes, uses) in [
            ("gathered", one_tile, bytes, gathered.to_vec()),
            ("norm", one_tile, 4, result.to_vec()),
            ("broadcast", self.everywhere(), 4, broadcast),
        ] {
            let name = self.named(op, what);
            let group = Group {
                window,
                is_carried: true,
                ..self.on_every_ipu(op, name, Role::Message, bytes)
            };
            self.put(uses.into_iter().flatten(), group);
        }
    }
}
