//! Where operations without a layer run, by the data that flows through them
//! (docs/model.md, "Positions").

mod parameters;
mod phases;
mod updates;

use crate::model::{FlowEdge, Model, NO_NODE};
use rustc_hash::FxHashMap;

/// A position in the order in which layers run first: In is 0, and Out comes after all
/// of them.
pub(super) type Level = u32;

/// How far it is known where something runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing.
    #[default]
    Unknown,
    /// There.
    At(Level),
    /// At those levels that share a parameter, by its position in
    /// [`Flow::parameters`](crate::model::Flow).
    Shared(u32),
    /// At several levels: it reaches over the model.
    Several,
    /// On every IPU: it advances what several levels use, such as a random state.
    Everywhere,
}

impl Reach {
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Reach::Unknown, other) | (other, Reach::Unknown) => other,
            (a, b) if a == b => a,
            _ => Reach::Several,
        }
    }

    /// Where it is, if that is known and one place.
    fn level(self) -> Option<Level> {
        match self {
            Reach::At(level) => Some(level),
            _ => None,
        }
    }

    pub(super) fn is_unknown(self) -> bool {
        self == Reach::Unknown
    }
}

/// Which way levels run where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// From In up to Out.
    Forward,
    /// From Out down to In.
    Backward,
    /// After the start of the backward pass, but of no layer's backward pass: updates, and what is
    /// recomputed.
    Late,
}

/// The levels of all nodes.
pub(super) struct Levels<'a> {
    model: &'a Model,
    out: Level,
    /// By node: the level that names say, or what it uses.
    seeds: Vec<Option<Level>>,
    phases: Vec<Phase>,
    tells_weights: bool,
    /// By node: does it neither compute nor move data of the model?
    is_outside: Vec<bool>,
    /// By node: the edges that lead to it or have no direction, and its parameters.
    incoming: Vec<Vec<u32>>,
    parameters: Vec<Vec<u32>>,
    /// By parameter, as in [`Flow::parameters`](crate::model::Flow): where it is.
    parameter_found: Vec<Reach>,
    /// The levels of those that several levels share, ascending; of others none.
    shared: Vec<Vec<Level>>,
    /// By node, from what comes before it and from what comes after it, in its phase.
    before: Vec<Option<Level>>,
    after: Vec<Option<Level>>,
    /// The first step of the highest layer before the start of the backward pass.
    last_layer: u32,
    found: Vec<Reach>,
}

impl<'a> Levels<'a> {
    /// Finds them, and by parameter the levels that share it. `levels` has by operation
    /// the level that its name says, and `parameter_level` by use set that of the
    /// weight's name.
    pub(super) fn find(
        model: &'a Model,
        (levels, out): (&[Option<Level>], Level),
        parameter_level: impl Fn(u32) -> Option<Level>,
    ) -> (Vec<Reach>, Vec<Vec<Level>>) {
        let mut levels = Self::new(model, (levels, out));
        // Layers with names tell of the others, before these are placed.
        levels.spread(Phase::Forward);
        let parameters = model.flow.parameters.iter();
        let named = parameters.map(|(set, nodes)| {
            let level = parameter_level(*set).filter(|&level| !levels.is_used_beyond(level, nodes));
            level.map_or(Reach::Unknown, Reach::At)
        });
        levels.parameter_found = named.collect();
        levels.seed_by_use(Phase::Forward);
        levels.spread(Phase::Forward);
        levels.forward();
        levels.made_of_parameters();
        levels.place_parameters(Some(Phase::Forward));
        levels.advance_state();
        levels.seed_by_use(Phase::Backward);
        levels.spread(Phase::Backward);
        levels.backward();
        levels.place_parameters(None);
        levels.updates();
        levels.place_parameters(None);
        levels.without_direction();
        (levels.found, levels.shared)
    }

    fn new(model: &'a Model, (levels, out): (&[Option<Level>], Level)) -> Self {
        let flow = &model.flow;
        let none = || vec![Vec::new(); flow.nodes.len()];
        let (mut incoming, mut parameters) = (none(), none());
        for (number, edge) in (0u32..).zip(&flow.edges) {
            for &node in &edge.to {
                incoming[node as usize].push(number);
            }
        }
        for (number, (_, nodes)) in (0u32..).zip(&flow.parameters) {
            for &node in nodes {
                parameters[node as usize].push(number);
            }
        }
        let is_of_model = |&operation: &u32| {
            let group = model.operations[operation as usize].group;
            !model.operation_groups[group as usize].only_streams()
        };
        let outside =
            |operations: &[u32]| !operations.is_empty() && !operations.iter().any(is_of_model);
        let seed = |operations: &[u32]| {
            let levels = operations
                .iter()
                .map(|&operation| levels[operation as usize]);
            let mut named = levels.flatten();
            let level = named.next()?;
            named.all(|other| other == level).then_some(level)
        };
        let nodes = || flow.nodes.iter();
        let seeds: Vec<Option<Level>> = nodes().map(|node| seed(&node.operations)).collect();
        let mut levels = Self {
            model,
            out,
            phases: Vec::new(),
            tells_weights: model.tells_weights(),
            is_outside: nodes().map(|node| outside(&node.operations)).collect(),
            incoming,
            parameters,
            parameter_found: Vec::new(),
            shared: vec![Vec::new(); flow.parameters.len()],
            before: vec![None; flow.nodes.len()],
            after: vec![None; flow.nodes.len()],
            last_layer: 0,
            found: seeds
                .iter()
                .map(|seed| seed.map_or(Reach::Unknown, Reach::At))
                .collect(),
            seeds,
        };
        levels.find_phases();
        levels.last_layer = levels.first_of_last_layer();
        levels
    }

    fn edge(&self, number: u32) -> &'a FlowEdge {
        &self.model.flow.edges[number as usize]
    }

    /// The edges that lead to a node or have no direction.
    fn inputs(&self, node: usize) -> impl Iterator<Item = &'a FlowEdge> + '_ {
        self.incoming[node].iter().map(|&edge| self.edge(edge))
    }

    /// The edges that begin at a node.
    fn outgoing(&self, node: usize) -> &'a [FlowEdge] {
        let edges = &self.model.flow.edges;
        let node = node as u32;
        let rest = &edges[edges.partition_point(|edge| edge.from < node)..];
        &rest[..rest.partition_point(|edge| edge.from == node)]
    }

    fn producers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.inputs(node).map(|edge| edge.from);
        let from = from
            .filter(|&from| from != NO_NODE)
            .map(|from| from as usize);
        from.filter(|&from| !self.is_outside[from])
    }

    fn consumers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.outgoing(node).iter();
        let to = edges.flat_map(|edge| edge.to.iter().map(|&to| to as usize));
        to.filter(|&to| !self.is_outside[to])
    }

    /// Gives the nodes of a phase the nearest levels before and after them.
    fn spread(&mut self, phase: Phase) {
        let nodes = 0..self.found.len();
        for node in nodes.clone().filter(|&node| self.phases[node] == phase) {
            self.before[node] = self.nearest(self.producers(node), phase, true);
        }
        for node in nodes.rev().filter(|&node| self.phases[node] == phase) {
            self.after[node] = self.nearest(self.consumers(node), phase, false);
        }
    }

    /// The nearest level in a phase, of nodes that all come before another one or after it.
    fn nearest(
        &self,
        nodes: impl Iterator<Item = usize>,
        phase: Phase,
        is_before: bool,
    ) -> Option<Level> {
        // Levels run up in the forward pass, and down in the backward pass.
        let is_below = is_before == (phase == Phase::Forward);
        let known = if is_before { &self.before } else { &self.after };
        let in_phase = nodes.filter(|&node| self.phases[node] == phase);
        let levels = in_phase.filter_map(|node| self.seeds[node].or(known[node]));
        if is_below { levels.max() } else { levels.min() }
    }

    /// The nodes of a phase that no name places.
    fn open(&self, phase: Phase) -> impl Iterator<Item = usize> + use<> {
        let is_open = |node: &usize| {
            self.phases[*node] == phase && self.seeds[*node].is_none() && !self.is_outside[*node]
        };
        let open: Vec<usize> = (0..self.found.len()).filter(is_open).collect();
        open.into_iter()
    }

    /// A node without a name runs where its parameters are and, in the backward pass,
    /// where the variables of the forward pass are that it uses: where these all agree,
    /// and nothing that it uses comes from beyond.
    fn seed_by_use(&mut self, phase: Phase) {
        for node in self.open(phase) {
            let parameters = self.parameters_of(node);
            let is_backward = phase == Phase::Backward;
            let stash = self.stash(node).filter(|_| is_backward);
            // Users that several share do not tell them apart.
            let single = parameters
                .chain(stash)
                .filter(|&found| found != Reach::Several);
            let found = single.fold(Reach::Unknown, Reach::join);
            self.before[node] = self.nearest(self.producers(node), phase, true);
            if let Reach::At(level) = found
                && !(is_backward && self.before[node].is_some_and(|before| level > before))
            {
                self.seeds[node] = Some(level);
                self.found[node] = found;
            }
        }
    }

    /// Where the parameters are that a node uses.
    fn parameters_of(&self, node: usize) -> impl Iterator<Item = Reach> + '_ {
        let parameters = self.parameters[node].iter();
        parameters.map(|&parameter| self.parameter_found[parameter as usize])
    }

    /// Where the variables of the forward pass are used there that a node uses.
    fn stash(&self, node: usize) -> impl Iterator<Item = Reach> + '_ {
        let edges = self.inputs(node);
        edges.map(|edge| self.forward_ends(edge).fold(Reach::Unknown, Reach::join))
    }

    /// Where the forward pass makes and uses the variables of an edge.
    fn forward_ends(&self, edge: &'a FlowEdge) -> impl Iterator<Item = Reach> + '_ {
        let all = edge.to.iter().chain([&edge.from]);
        let all = all
            .filter(|&&node| node != NO_NODE)
            .map(|&node| node as usize);
        let forward = all.filter(|&node| self.phases[node] == Phase::Forward);
        forward.map(|node| self.found[node])
    }

    /// Can a node run at a level, by the shared parameters that it uses and, after the
    /// forward pass, by what that makes or uses there?
    fn can_be_at(&self, node: usize, level: Level) -> bool {
        let mut shared = self.parameters[node]
            .iter()
            .map(|&parameter| &self.shared[parameter as usize]);
        let is_of_level = |edge| {
            let mut ends = self.forward_ends(edge).peekable();
            let is_there = |found: Reach| found.level().is_none_or(|found| found == level);
            ends.peek().is_none() || ends.any(is_there)
        };
        shared.all(|levels| levels.is_empty() || levels.contains(&level))
            && (self.phases[node] == Phase::Forward || self.inputs(node).all(is_of_level))
    }

    /// Does a node use what the forward pass makes or uses in In?
    fn uses_stash_of_in(&self, node: usize) -> bool {
        let mut found = self.inputs(node).flat_map(|edge| self.forward_ends(edge));
        self.can_be_at(node, 0) && found.any(|found| found == Reach::At(0))
    }

    fn forward(&mut self) {
        for node in self.open(Phase::Forward) {
            let first = self.model.flow.nodes[node].first;
            self.found[node] = match (self.before[node], self.after[node]) {
                (None, None) => Reach::Unknown,
                (None, Some(_)) => Reach::At(0),
                (Some(_), None) if first > self.last_layer => Reach::At(self.out),
                // A head between layers goes with the layer before it.
                (Some(before), None) => Reach::At(before),
                (Some(low), Some(high)) => self.between(node, (low, high)),
            };
        }
    }

    /// Where a node is between two levels.
    fn between(&self, node: usize, (low, high): (Level, Level)) -> Reach {
        if low <= high {
            Reach::At(self.most(node, (low, high)).unwrap_or(low))
        } else {
            Reach::Several
        }
    }

    /// Between the levels of a node's interval, that with the maximum of bytes among what
    /// the node uses and makes, and of equals the one before it; `None` where it has none
    /// of any.
    fn most(&self, node: usize, (low, high): (Level, Level)) -> Option<Level> {
        let mut bytes: FxHashMap<Level, u64> = FxHashMap::default();
        let mut add = |found: Reach, more: u64| {
            if let Reach::At(level) = found
                && (low..=high).contains(&level)
            {
                *bytes.entry(level).or_default() += more;
            }
        };
        for edge in self.inputs(node) {
            if edge.from != NO_NODE {
                add(self.found[edge.from as usize], edge.bytes);
            }
        }
        for edge in self.outgoing(node) {
            let mut levels: Vec<Reach> = Vec::new();
            for &to in &edge.to {
                let found = self.found[to as usize];
                if !levels.contains(&found) {
                    levels.push(found);
                    add(found, edge.bytes);
                }
            }
        }
        let most = bytes
            .into_iter()
            .filter(|&(level, bytes)| bytes > 0 && self.can_be_at(node, level));
        let before = self.before[node];
        let most = most.max_by_key(|&(level, bytes)| (bytes, Some(level) == before, level));
        most.map(|(level, _)| level)
    }

    /// Places the backward pass of layers and ends.
    fn backward(&mut self) {
        for node in self.open(Phase::Backward) {
            self.found[node] = match (self.before[node], self.after[node]) {
                // It is where the last of them is made.
                (Some(before), _) if self.sums_gradients(node) => Reach::At(before),
                // The backward pass of Out, or of a head between layers.
                (None, Some(after)) => {
                    Reach::At(self.most(node, (after, self.out)).unwrap_or(self.out))
                }
                // Next to In, it is part of In if it uses what In keeps.
                (Some(_), Some(0)) if self.uses_stash_of_in(node) => Reach::At(0),
                (Some(high), Some(low)) => self.between(node, (low, high)),
                // The gradient of a weight leads to nothing but an accumulator: `updates`.
                (_, None) => Reach::Unknown,
            };
        }
    }

    /// Does a node join gradients that nothing uses later? A norm leaves them to the updates.
    fn sums_gradients(&self, node: usize) -> bool {
        // Where no context tells the passes, the backward pass of Out is of the forward phase.
        let is_gradient = |from: usize| {
            self.phases[from] == Phase::Backward || self.found[from] == Reach::At(self.out)
        };
        let mut edges = self.inputs(node);
        edges.all(|edge| edge.to.last() == Some(&(node as u32)))
            && self.producers(node).min() != self.producers(node).max()
            && self.producers(node).all(is_gradient)
    }
}
