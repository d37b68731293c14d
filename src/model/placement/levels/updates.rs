//! Updates, and all else that follows the backward pass of the layers.

use super::{Levels, Phase, Reach};
use crate::model::NO_NODE;

impl Levels<'_> {
    /// An operation after the backward pass of the layers is where the parameters are whose
    /// updates descend from it; without any, where its inputs are.
    pub(super) fn updates(&mut self) {
        let mut descend = vec![Reach::Unknown; self.found.len()];
        for node in (0..self.found.len()).rev() {
            if self.phases[node] == Phase::Forward || self.is_outside[node] {
                continue;
            }
            descend[node] = match self.seeds[node] {
                Some(_) if self.phases[node] == Phase::Late => self.found[node],
                Some(_) => Reach::Unknown,
                None => {
                    let parameters = self.parameters[node]
                        .iter()
                        .map(|&parameter| self.descend(parameter));
                    let consumers = self.consumers(node).chain(self.later_users(node));
                    let consumers = consumers.map(|to| descend[to]);
                    parameters
                        .chain(consumers)
                        .fold(Reach::Unknown, |all, found| self.join_shared(all, found))
                }
            };
        }
        for (node, descend) in descend.into_iter().enumerate() {
            let is_forward = self.phases[node] == Phase::Forward;
            let is_open = self.found[node].is_unknown() && self.seeds[node].is_none();
            if is_open && !is_forward && !self.is_outside[node] {
                self.found[node] = self.after_layers(node, descend);
            }
        }
    }

    /// Where a node is that no layer's backward pass follows.
    fn after_layers(&self, node: usize, descend: Reach) -> Reach {
        match descend {
            Reach::Unknown => self.after_inputs(node),
            Reach::Shared(_) if self.phases[node] != Phase::Late => self.after_inputs(node),
            found => found,
        }
    }

    /// Where updates are that descend from a parameter: what only updates share, such as a
    /// learning rate, is nowhere.
    fn descend(&self, parameter: u32) -> Reach {
        match self.parameter_found[parameter as usize] {
            Reach::Several if self.shared[parameter as usize].is_empty() => Reach::Unknown,
            Reach::Several => Reach::Shared(parameter),
            found => found,
        }
    }

    /// Both, where the levels that share a parameter are one place.
    fn join_shared(&self, a: Reach, b: Reach) -> Reach {
        match (a, b) {
            (shared @ Reach::Shared(parameter), Reach::At(level))
            | (Reach::At(level), shared @ Reach::Shared(parameter))
                if self.shared[parameter as usize].contains(&level) =>
            {
                shared
            }
            (shared @ Reach::Shared(_), Reach::Shared(_)) => shared,
            (a, b) => a.join(b),
        }
    }

    /// The nodes that use the same gradients later: a node may change them in place.
    fn later_users(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.inputs(node);
        let is_late = |from: u32| from != NO_NODE && self.phases[from as usize] != Phase::Forward;
        let backward = edges.filter(move |edge| is_late(edge.from));
        let users = backward.flat_map(|edge| edge.to.iter().map(|&to| to as usize));
        users.filter(move |&to| to > node)
    }

    /// An operation that changes no parameter, such as the gradient of a weight that the host reads, is
    /// between In and the nearest gradient that it uses, where most bytes are, else where its
    /// inputs are.
    fn after_inputs(&self, node: usize) -> Reach {
        match self.before[node] {
            None if self.phases[node] == Phase::Late => {
                let found = self.producers(node).map(|from| self.found[from]);
                found.fold(Reach::Unknown, Reach::join)
            }
            before => {
                let level = self.most(node, (0, before.unwrap_or(self.out)));
                level.or(before).map_or(Reach::Unknown, Reach::At)
            }
        }
    }

    /// Nodes that nothing else places are where the variables are that they share.
    pub(super) fn without_direction(&mut self) {
        for node in 0..self.found.len() {
            if !self.found[node].is_unknown() {
                continue;
            }
            let parameters = self.parameters_of(node);
            let edges = self.inputs(node).chain(self.outgoing(node));
            let others = edges.flat_map(|edge| {
                let from = Some(edge.from).filter(|&from| from != NO_NODE);
                from.into_iter().chain(edge.to.iter().copied())
            });
            let others = others.filter(|&other| !self.is_outside[other as usize]);
            let others = others.map(|other| self.found[other as usize]);
            self.found[node] = parameters.chain(others).fold(Reach::Unknown, Reach::join);
        }
    }
}
