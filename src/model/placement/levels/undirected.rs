//! What no data leads to or away from.

use super::{Levels, Phase, Reach};
use crate::model::NO_NODE;
use std::ops::RangeInclusive;

impl Levels<'_> {
    /// Does a node run before the layers or after them in the forward pass, without a
    /// weight of theirs? Then the order of the program says more than what it shares.
    /// `layers` has the nodes of these in the forward pass, from the first to the last.
    fn is_around_layers(&self, node: usize, layers: &RangeInclusive<usize>) -> bool {
        let of_layers =
            |found: Reach| matches!(found, Reach::At(level) if level > 0 && level < self.out);
        self.phases[node] == Phase::Forward
            && !layers.contains(&node)
            && !self.is_outside[node]
            && !self.parameters_of(node).any(of_layers)
    }

    /// What is left is where the variables are that it uses with others.
    pub(super) fn without_direction(&mut self) {
        let all = 0..self.found.len();
        let layers =
            |own: &usize| self.seeds[*own].is_some() && self.phases[*own] == Phase::Forward;
        // Without any, all nodes are around them.
        let first = all.clone().find(layers).unwrap_or(usize::MAX);
        let layers = first..=all.clone().rev().find(layers).unwrap_or(0);
        for node in all {
            if !self.found[node].is_unknown() || self.is_around_layers(node, &layers) {
                continue;
            }
            let own = self.parameters_of(node);
            let edges = self.undirected[node].iter().chain(&self.incoming[node]);
            let edges = edges
                .map(|&edge| self.edge(edge))
                .chain(self.outgoing(node));
            let others = edges.flat_map(|edge| {
                let from = Some(edge.from).filter(|&from| from != NO_NODE);
                from.into_iter().chain(edge.to.iter().copied())
            });
            let others = others.filter(|&other| !self.is_outside[other as usize]);
            let others = others.map(|other| self.found[other as usize]);
            self.found[node] = own.chain(others).fold(Reach::Unknown, Reach::join);
        }
    }
}
