//! Where parameters are, and what is made of them alone.

use super::{Level, Levels, Phase, Reach};
use crate::model::{NO_NODE, TensorKind};

impl Levels<'_> {
    /// Is a weight whose name says a level used where that cannot be? Then others share it.
    pub(super) fn is_used_beyond(&self, level: Level, nodes: &[u32]) -> bool {
        let nodes = nodes.iter().map(|&node| node as usize);
        let mut forward = nodes.filter(|&node| self.phases[node] == Phase::Forward);
        forward.any(|node| match self.seeds[node] {
            Some(seed) => seed != level,
            None => {
                self.before[node].is_some_and(|before| before > level)
                    || self.after[node].is_some_and(|after| after < level)
                    || self.is_cast_elsewhere(node, level)
            }
        })
    }

    /// Does a node use parameters alone, for layers at other levels?
    fn is_cast_elsewhere(&self, node: usize, level: Level) -> bool {
        let forward = |&to: &usize| self.phases[to] == Phase::Forward;
        let mut consumers = self.consumers(node).filter(forward).peekable();
        let is_elsewhere = |to: usize| self.seeds[to].is_some_and(|seed| seed != level);
        self.incoming[node].is_empty() && consumers.peek().is_some() && consumers.all(is_elsewhere)
    }

    /// A tensor that is made of parameters alone, such as a weight that is cast, goes with what
    /// uses it, where that is in one place.
    pub(super) fn made_of_parameters(&mut self) {
        let mut is_made = vec![false; self.found.len()];
        for node in self.open(Phase::Forward) {
            let mut producers = self.producers(node);
            let mut inputs = self.inputs(node);
            let has_inputs = !self.parameters[node].is_empty() || !self.incoming[node].is_empty();
            is_made[node] = has_inputs
                && producers.all(|from| is_made[from])
                && inputs.all(|edge| edge.from != NO_NODE || edge.bytes == 0)
                && self.parameters[node]
                    .iter()
                    .all(|&parameter| self.is_weight(parameter));
        }
        let open: Vec<usize> = self.open(Phase::Forward).collect();
        for node in open.into_iter().rev().filter(|&node| is_made[node]) {
            let consumers = self.consumers(node);
            let forward = consumers.filter(|&to| self.phases[to] == Phase::Forward);
            let after = forward.fold(Reach::Unknown, |found, to| found.join(self.found[to]));
            if let Reach::At(_) = after {
                self.found[node] = after;
            }
        }
    }

    /// Is it a weight, and nothing that the host gives? Where no context says so, any
    /// parameter is one.
    fn is_weight(&self, parameter: u32) -> bool {
        let (set, _) = self.model.flow.parameters[parameter as usize];
        !self.tells_weights || self.model.label_of(set).kind == TensorKind::Variable
    }

    /// Parameters are where the nodes of a phase use them or, without one, any.
    pub(super) fn place_parameters(&mut self, phase: Option<Phase>) {
        let in_phase = |of_node: Phase| phase.is_none_or(|phase| of_node == phase);
        for (number, (_, nodes)) in self.model.flow.parameters.iter().enumerate() {
            let nodes = nodes.iter().map(|&node| node as usize);
            if self.parameter_found[number].is_unknown() && !self.is_open_to_updates(nodes.clone())
            {
                let users = nodes.filter(|&node| in_phase(self.phases[node]));
                let found = users.map(|node| self.found[node]);
                let all = found.clone().fold(Reach::Unknown, Reach::join);
                let levels = found.filter_map(Reach::level);
                if all == Reach::Several && phase.is_some() {
                    self.shared[number] = levels.collect();
                }
                self.parameter_found[number] = all;
            }
        }
    }

    /// Do updates alone use it, some of which nothing places yet? Those that a name places
    /// tell nothing of what all share, such as a learning rate.
    fn is_open_to_updates(&self, nodes: impl Iterator<Item = usize>) -> bool {
        let mut nodes = nodes.filter(|&node| !self.is_outside[node]).peekable();
        let is_update = |&operation: &u32| self.model.operations[operation as usize].is_update;
        let operations = |node: usize| self.model.flow.nodes[node].operations.iter();
        let mut is_open = false;
        nodes.peek().is_some()
            && nodes.all(|node| {
                is_open |= self.found[node].is_unknown();
                operations(node).all(is_update)
            })
            && is_open
    }

    /// A node that no data of a layer flows through, and that changes a parameter which
    /// several levels use, works for all of them: every IPU has a state of its own.
    pub(super) fn advance_state(&mut self) {
        for node in self.open(Phase::Forward) {
            // A parameter of its own, such as a constant, tells nothing.
            let users = |parameter: u32| self.model.flow.parameters[parameter as usize].1.len();
            let parameters = self.parameters[node].iter().copied();
            let mut shared = parameters
                .filter(|&parameter| users(parameter) > 1)
                .peekable();
            let is_several = |parameter| self.parameter_found[parameter as usize] == Reach::Several;
            if shared.peek().is_some() && shared.all(is_several) && self.found[node].is_unknown() {
                self.found[node] = Reach::Everywhere;
            }
        }
    }
}
