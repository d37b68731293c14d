//! Updates, and other operations after the backward pass of the layers.

use super::{Levels, Phase, Reach, ends};
use crate::model::NO_NODE;
use crate::model::passes::NUMBER_BYTES;

impl Levels<'_> {
    /// Puts an operation after the backward pass of the layers where the parameters are whose
    /// updates depend on it. An operation that changes no parameter, such as the gradient of a
    /// weight that the host reads, is between In and the nearest gradient that it uses.
    pub(super) fn updates(&mut self) {
        let mut descend = vec![Reach::Unknown; self.found.len()];
        for node in (0..self.found.len()).rev() {
            descend[node] = match (self.phases[node], self.seeds[node]) {
                (Phase::Forward, _) | (Phase::Backward, Some(_)) => Reach::Unknown,
                // A name gives only one of the levels that share a parameter.
                (Phase::Late, Some(_)) => {
                    let shared = self.parameters_of(node);
                    let shared = shared.filter(|found| matches!(found, Reach::Shared(_)));
                    self.join(shared.chain([self.found[node]]))
                }
                (phase, None) => {
                    // A parameter that is at several levels only after the forward pass decides
                    // nothing.
                    let parameters = self.parameters_of(node);
                    let parameters = parameters.filter(|&found| found != Reach::Several);
                    match self.join(parameters) {
                        found @ (Reach::At(_) | Reach::Shared(_)) if phase == Phase::Backward => {
                            found
                        }
                        found => {
                            let later = self.consumers(node).chain(self.later_users(node));
                            self.join(later.map(|to| descend[to]).chain([found]))
                        }
                    }
                }
            };
        }
        for (node, descend) in descend.into_iter().enumerate() {
            if self.found[node].is_unknown() && self.phases[node] != Phase::Forward {
                self.found[node] = match (descend, self.before[node]) {
                    (Reach::Unknown | Reach::Shared(_), Some(before)) => {
                        self.between(node, before, 0)
                    }
                    (found, _) => found,
                };
            }
        }
    }

    /// The nodes that use the same gradients later: a node may change gradients in place, but not a
    /// number that scales all of them.
    fn later_users(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let number = NUMBER_BYTES * u64::from(self.model.target.num_tiles);
        let edges = self.inputs(node).filter(move |edge| edge.bytes >= number);
        let is_late = |from: u32| from != NO_NODE && self.phases[from as usize] != Phase::Forward;
        let backward = edges.filter(move |edge| is_late(edge.from));
        backward.flat_map(ends).filter(move |&to| to > node)
    }

    /// Puts nodes without a place where the variables are that they share with other nodes.
    pub(super) fn without_direction(&mut self) {
        for node in 0..self.found.len() {
            if self.found[node].is_unknown() {
                let edges = self.inputs(node).chain(self.outgoing(node));
                let others = edges.flat_map(ends).map(|other| self.found[other]);
                self.found[node] = self.join(self.parameters_of(node).chain(others));
            }
        }
    }
}
