//! Finds the level (In, one of the layers, or Out) of each parameter, and of operations that data
//! flowing through the layers does not place: casts of weights, updates of weights, and operations
//! that advance a random state.

use super::{Levels, Phase, Reach, ends};
use crate::model::{NO_NODE, TensorKind};

impl Levels<'_> {
    /// Gives a level (In, a layer or Out) to nodes of the forward pass that use only parameters,
    /// such as a cast of a weight: the level of all nodes that use the results, if this is a single
    /// level.
    pub fn made_of_parameters(&mut self) {
        // If no debug context marks weights, they cannot be told from inputs that the host writes.
        // So any parameter is taken to be a weight.
        let has_labels = self.model.has_weight_labels();
        let is_weight = |&parameter: &usize| {
            let (set, _) = self.model.flow.parameters[parameter];
            !has_labels || self.model.label_of(set).kind == TensorKind::Variable
        };
        let mut is_made = vec![false; self.found.len()];
        for node in self.open(Phase::Forward) {
            is_made[node] = self.parameters[node].iter().all(is_weight)
                && self.inputs(node).all(|edge| edge.from != NO_NODE)
                && self.producers(node).all(|from| is_made[from]);
        }
        for node in (0..is_made.len()).rev().filter(|&node| is_made[node]) {
            let after = self.join(self.consumers(node).map(|to| self.found[to]));
            if let Reach::At(_) = after {
                self.found[node] = after;
            }
        }
    }

    /// Gives parameters the levels (In, a layer or Out) of the nodes that use them. If
    /// `is_forward`, only nodes of the forward pass count, and a parameter that they use at several
    /// levels is shared by these levels. Otherwise all nodes count, but only for parameters that
    /// still have no level.
    pub fn place_parameters(&mut self, is_forward: bool) {
        for (number, (_, nodes)) in self.model.flow.parameters.iter().enumerate() {
            let users = nodes
                .iter()
                .map(|&node| node as usize)
                .filter(|&node| !is_forward || self.is_forward(node));
            let found = users.clone().map(|node| self.found[node]);
            match self.join(found.clone()) {
                Reach::Unknown => {}
                _ if !is_forward && !self.parameter_found[number].is_unknown() => {}
                _ if self.is_of_updates(users) => {}
                Reach::Several if is_forward => {
                    self.shared[number] = found.filter_map(Reach::level).collect();
                    self.parameter_found[number] = Reach::Shared(number);
                }
                all => self.parameter_found[number] = all,
            }
        }
    }

    /// Returns whether only updates and copies from or to the host use a parameter, as with a
    /// learning rate. All updates may share such a parameter, so its users do not show its level
    /// (In, a layer or Out).
    fn is_of_updates(&self, mut nodes: impl Iterator<Item = usize>) -> bool {
        let is_update = |&operation: &u32| {
            let operation = &self.model.operations[operation as usize];
            operation.is_update
                || self.model.operation_groups[operation.group as usize].only_streams()
        };
        nodes.all(|node| self.model.flow.nodes[node].operations.iter().all(is_update))
    }

    /// Puts operations that advance a state, such as a random state, on every IPU, where each IPU
    /// has its own copy of the state. A node (steps of one operation) of the forward pass advances
    /// a state if both conditions hold:
    /// - The flow of data gives it no level (In, a layer or Out).
    /// - It uses parameters together with other nodes, and each of these parameters is used by
    ///   several levels.
    pub fn advance_state(&mut self) {
        for node in self.open(Phase::Forward) {
            // Only parameters with several users may be a state that operations advance, such as a
            // random state. Parameters that only this node uses, such as constants, do not matter
            // here.
            let mut shared = self.parameters[node]
                .iter()
                .filter(|&&parameter| self.model.flow.parameters[parameter].1.len() > 1)
                .peekable();
            let is_shared = |&parameter: &usize| !self.shared[parameter].is_empty();
            if self.found[node].is_unknown() && shared.peek().is_some() && shared.all(is_shared) {
                self.found[node] = Reach::Everywhere;
            }
        }
    }

    /// Finds the levels (In, layers, Out) of nodes after the forward pass that still have none:
    /// - If the results of a node reach updates of parameters, the node is at the level of these
    ///   parameters.
    /// - If the results reach no update (a gradient that only the host reads), or if several levels
    ///   share the parameters, [`between`](Self::between) chooses a level from In up to the nearest
    ///   one from which gradients flow to the node.
    pub fn updates(&mut self) {
        let mut descend = vec![Reach::Unknown; self.found.len()];
        for node in (0..self.found.len()).rev() {
            descend[node] = match (self.phases[node], self.seeds[node]) {
                (Phase::Forward, _) | (Phase::Backward, Some(_)) => Reach::Unknown,
                // The name of an update of weights contains only one layer, even if several places
                // (In, layers, Out) share the updated parameter. So the levels that share the
                // parameter are combined with the level of this layer.
                (Phase::Late, Some(_)) => {
                    let shared = self
                        .parameters_of(node)
                        .filter(|found| matches!(found, Reach::Shared(_)));
                    self.join(shared.chain([self.found[node]]))
                }
                (phase, None) => {
                    // A parameter that is used at several levels (In, layers, Out) after the
                    // forward pass does not show at which of them a node that uses it is. So it is
                    // ignored.
                    let parameters = self
                        .parameters_of(node)
                        .filter(|&found| found != Reach::Several);
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
            if self.found[node].is_unknown() && !self.is_forward(node) {
                self.found[node] = match (descend, self.before[node]) {
                    (Reach::Unknown | Reach::Shared(_), Some(before)) => {
                        self.between(node, before, 0)
                    }
                    (found, _) => found,
                };
            }
        }
    }

    /// Iterates over the nodes (steps of one operation) after `node` that make or use gradients
    /// which `node` uses too. As `node` may change the gradients in place, these nodes may use its
    /// results. Single numbers, such as the scale of all gradients, do not count as gradients.
    fn later_users(&self, node: usize) -> impl Iterator<Item = usize> {
        let number = self.model.min_tensor_bytes();
        self.inputs(node)
            .filter(move |edge| edge.bytes >= number && self.is_made_later(edge))
            .flat_map(ends)
            .filter(move |&to| to > node)
    }

    /// Gives a level (In, a layer or Out) to each node of the data flow that still has none: the
    /// common level of its parameters and of the nodes with which it shares variables, or `Several`
    /// if these differ.
    pub fn without_direction(&mut self) {
        for node in 0..self.found.len() {
            if self.found[node].is_unknown() {
                let others = self
                    .inputs(node)
                    .chain(self.outgoing(node))
                    .flat_map(ends)
                    .map(|other| self.found[other]);
                self.found[node] = self.join(self.parameters_of(node).chain(others));
            }
        }
    }
}
