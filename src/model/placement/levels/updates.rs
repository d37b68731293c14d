//! Updates, and all else that follows the backward pass of the layers.

use super::{Levels, Phase, Reach};
use crate::model::NO_NODE;

/// Where the parameters are that descend from a node.
#[derive(Debug, Clone, Copy, Default)]
struct Descend {
    /// Those of one level each.
    found: Reach,
    /// The first that several levels share, as a position in
    /// [`Flow::parameters`](crate::model::Flow).
    shared: Option<u32>,
}

impl Descend {
    fn at(found: Reach) -> Self {
        Self {
            found,
            shared: None,
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            found: self.found.join(other.found),
            shared: self.shared.or(other.shared),
        }
    }
}

impl Levels<'_> {
    /// An operation after the backward pass of the layers is where the parameters are whose
    /// updates descend from it; without any, where its inputs are.
    pub(super) fn updates(&mut self) {
        let mut descend = vec![Descend::default(); self.found.len()];
        for node in (0..self.found.len()).rev() {
            if self.phases[node] == Phase::Forward || self.is_outside[node] {
                continue;
            }
            descend[node] = match self.seeds[node] {
                Some(_) if self.phases[node] == Phase::Late => Descend::at(self.found[node]),
                Some(_) => Descend::default(),
                None => {
                    let parameters = self.parameters[node]
                        .iter()
                        .map(|&parameter| self.descend(parameter));
                    let consumers = self.consumers(node).chain(self.later_users(node));
                    let consumers = consumers.map(|to| descend[to]);
                    parameters
                        .chain(consumers)
                        .fold(Descend::default(), Descend::join)
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
    fn after_layers(&self, node: usize, descend: Descend) -> Reach {
        let is_late = self.phases[node] == Phase::Late;
        let shared = descend
            .shared
            .map(|parameter| &self.shared[parameter as usize]);
        match (descend.found, shared) {
            (Reach::At(level), Some(levels)) if !levels.contains(&level) => Reach::Several,
            (Reach::Unknown | Reach::At(_), Some(_)) if is_late => {
                descend.shared.map_or(Reach::Several, Reach::Shared)
            }
            (Reach::Unknown, _) => self.after_inputs(node),
            (found, _) => found,
        }
    }

    /// The operations that descend from a parameter: what only updates share, such as a learning rate,
    /// is nowhere.
    fn descend(&self, parameter: u32) -> Descend {
        match self.parameter_found[parameter as usize] {
            Reach::Several => Descend {
                found: Reach::Unknown,
                shared: Some(parameter)
                    .filter(|&parameter| !self.shared[parameter as usize].is_empty()),
            },
            found => Descend::at(found),
        }
    }

    /// The nodes that use the same gradients later: a node may change them in place.
    fn later_users(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.inputs(node);
        let backward = edges.filter(|edge| self.phases[edge.from as usize] != Phase::Forward);
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
            self.found[node] = parameters.chain(others).fold(Reach::Unknown, Reach::join);
        }
    }
}
