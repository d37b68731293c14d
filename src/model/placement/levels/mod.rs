//! Finds where operations without a layer run, by the data that flows through them (docs/model.md,
//! "Positions").

mod parameters;
mod phases;

use crate::model::{FlowEdge, FlowNode, Model, NO_NODE, ascending};
use rustc_hash::{FxHashMap, FxHashSet};

/// A level: index into the list of In, the layers in the order in which they first run, and Out.
pub type Level = u32;

/// The level (In, a layer or Out) of a node of the data flow, of an operation or of a parameter.
#[derive(Clone, Copy, PartialEq)]
pub enum Reach {
    /// No level (In, a layer or Out) is found yet.
    Unknown,
    /// Exactly one level (In, a layer or Out).
    At(Level),
    /// All levels that share a parameter, which is given as an index into
    /// [`DataFlow::parameters`](crate::model::DataFlow).
    Shared(usize),
    /// No single level, because the operation works on variables of several levels.
    Several,
    /// Every IPU, because the operation advances a state that several levels use, such as a random
    /// state.
    Everywhere,
}

impl Reach {
    /// Returns the level if there is exactly one; otherwise `None`.
    fn level(self) -> Option<Level> {
        match self {
            Reach::At(level) => Some(level),
            _ => None,
        }
    }

    pub fn is_unknown(self) -> bool {
        self == Reach::Unknown
    }
}

/// Whether data flows up or down through the levels (In, layers, Out) when a node of the data flow
/// runs.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// Data flows up from In over the layers to Out.
    Forward,
    /// Data flows down from Out over the layers to In.
    Backward,
    /// The node runs after the start of the backward pass, but is not part of any layer's backward
    /// pass, such as an update or a recomputed operation.
    Late,
}

/// One entry per node of the forward pass with a level: the level, the bytes (over all tiles) of
/// the largest tensor that the node uses, and the bytes of the largest tensor that the node makes.
type ForwardSizes = FxHashSet<(Level, u64, u64)>;

/// The levels (In, a layer or Out) of all nodes of the data flow. They are filled in step by step.
pub struct Levels<'a> {
    model: &'a Model,
    out: Level,
    /// One entry per node of the data flow: its seed. This is the level that names give or, in the
    /// backward pass, the level that the variables used by the node give; `None` if neither gives a
    /// level.
    seeds: Vec<Option<Level>>,
    phases: Vec<Phase>,
    /// One entry per node of the data flow: indices of the edges whose variables the node uses.
    incoming: Vec<Vec<usize>>,
    /// One entry per node of the data flow: indices of the parameters that the node uses.
    parameters: Vec<Vec<usize>>,
    /// One entry per parameter of [`DataFlow::parameters`](crate::model::DataFlow): its level,
    /// which at first only names determine.
    parameter_found: Vec<Reach>,
    /// One entry per parameter of the data flow: the levels that share it, ascending; empty unless
    /// several levels share it.
    shared: Vec<Vec<Level>>,
    /// One entry per node of the data flow: the nearest level from which data flows to the node in
    /// the phase of the node, if there is one.
    before: Vec<Option<Level>>,
    /// One entry per node of the data flow: the nearest level to which data flows from the node in
    /// the phase of the node, if there is one.
    after: Vec<Option<Level>>,
    found: Vec<Reach>,
    forward_sizes: ForwardSizes,
}

impl<'a> Levels<'a> {
    /// Returns one entry per operation, its level; and one entry per parameter, the levels that
    /// share it (ascending; empty unless several levels share it). `levels` has one entry per
    /// operation: the level in its name. `out` is the highest level. `weight_level` returns the
    /// level in the name of the weight that the variables of a use set hold.
    pub fn find(
        model: &'a Model,
        (levels, out): (&[Option<Level>], Level),
        weight_level: impl Fn(u32) -> Option<Level>,
    ) -> (Vec<Reach>, Vec<Vec<Level>>) {
        let at = |level: Option<Level>| level.map_or(Reach::Unknown, Reach::At);
        let flow = &model.flow;
        let none = || vec![None; flow.nodes.len()];
        let seed = |node: &FlowNode| {
            node.operations
                .iter()
                .find_map(|&operation| levels[operation as usize])
        };
        let seeds: Vec<Option<Level>> = flow.nodes.iter().map(seed).collect();
        let by_name = flow.parameters.iter().map(|own| at(weight_level(own.0)));
        let mut levels = Self {
            model,
            out,
            phases: Vec::new(),
            incoming: by_node(model, flow.edges.iter().map(|edge| &edge.to)),
            parameters: by_node(model, flow.parameters.iter().map(|own| &own.1)),
            parameter_found: by_name.collect(),
            shared: vec![Vec::new(); flow.parameters.len()],
            before: none(),
            after: none(),
            found: seeds.iter().map(|&seed| at(seed)).collect(),
            seeds,
            forward_sizes: ForwardSizes::default(),
        };
        levels.phases = levels.phases();
        levels.spread(Phase::Forward);
        levels.forward();
        levels.made_of_parameters();
        levels.place_parameters(true);
        levels.advance_state();
        levels.forward_sizes = levels.forward_sizes();
        levels.spread(Phase::Backward);
        levels.backward();
        levels.place_parameters(false);
        levels.updates();
        levels.without_direction();
        (levels.of_operations(), levels.shared)
    }

    /// Iterates over the edges of the data flow whose variables `node` uses.
    fn inputs(&self, node: usize) -> impl Iterator<Item = &'a FlowEdge> + '_ {
        let edges = &self.model.flow.edges;
        self.incoming[node].iter().map(|&edge| &edges[edge])
    }

    /// Returns the edges of the data flow whose variables `node` writes.
    fn outgoing(&self, node: usize) -> &'a [FlowEdge] {
        let edges = &self.model.flow.edges;
        let node = node as u32;
        let rest = &edges[edges.partition_point(|edge| edge.from < node)..];
        &rest[..rest.partition_point(|edge| edge.from == node)]
    }

    fn is_forward(&self, node: usize) -> bool {
        self.phases[node] == Phase::Forward
    }

    fn producers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.inputs(node).map(|edge| edge.from);
        from.filter(|&from| from != NO_NODE)
            .map(|from| from as usize)
    }

    fn consumers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.outgoing(node)
            .iter()
            .flat_map(|edge| edge.to.iter().map(|&to| to as usize))
    }

    /// Combines the levels of nodes or parameters, ignoring unknown levels. Returns the common
    /// level if all are equal, otherwise `Several`. A shared parameter counts as equal to each
    /// level that shares it.
    fn join(&self, all: impl Iterator<Item = Reach>) -> Reach {
        let both = |a, b| match (a, b) {
            (Reach::Unknown, other) | (other, Reach::Unknown) => other,
            (shared @ Reach::Shared(parameter), Reach::At(level))
            | (Reach::At(level), shared @ Reach::Shared(parameter))
                if self.shared[parameter].contains(&level) =>
            {
                shared
            }
            (a, b) if a == b => a,
            _ => Reach::Several,
        };
        all.fold(Reach::Unknown, both)
    }

    /// Finds the nearest levels before and after each node of `phase`. In the backward phase, also
    /// gives a seed (a level) to nodes without one, by the variables that they use.
    fn spread(&mut self, phase: Phase) {
        let nodes: Vec<usize> = (0..self.found.len())
            .filter(|&node| self.phases[node] == phase)
            .collect();
        for &node in &nodes {
            self.before[node] = self.nearest(self.producers(node), phase, true);
            if phase == Phase::Backward && self.seeds[node].is_none() {
                self.seed_by_use(node);
            }
        }
        for &node in nodes.iter().rev() {
            self.after[node] = self.nearest(self.consumers(node), phase, false);
        }
    }

    /// Returns the level nearest to a node of `phase`, looking at `nodes`, which are the producers
    /// of the node (if `is_before`) or its consumers. For those of `nodes` without a level, the
    /// nearest level beyond them counts. Returns `None` if there is no level in this direction.
    fn nearest(
        &self,
        nodes: impl Iterator<Item = usize>,
        phase: Phase,
        is_before: bool,
    ) -> Option<Level> {
        // Levels rise in the forward pass and fall in the backward pass.
        let is_below = is_before == (phase == Phase::Forward);
        let known = if is_before { &self.before } else { &self.after };
        let levels = nodes
            .filter(|&node| self.phases[node] == phase)
            .filter_map(|node| self.seeds[node].or(known[node]));
        if is_below { levels.max() } else { levels.min() }
    }

    /// Returns the nodes of `phase` without a seed (a level by name or use), ascending.
    fn open(&self, phase: Phase) -> Vec<usize> {
        (0..self.found.len())
            .filter(|&node| self.phases[node] == phase && self.seeds[node].is_none())
            .collect()
    }

    /// Gives a node of the backward pass a seed (a level): the common level of its parameters and
    /// of the variables of the forward pass that it uses. The node gets no seed if these levels
    /// differ, or if the level is above the nearest level before the node.
    fn seed_by_use(&mut self, node: usize) {
        let stash = self
            .inputs(node)
            .map(|edge| self.join(self.forward_ends(edge)));
        let used = self.parameters_of(node).chain(stash);
        // Parameters and variables that have several levels are ignored.
        let single = used.filter(|found| found.level().is_some());
        let found = self.join(single);
        if let Reach::At(level) = found
            && self.before[node].is_none_or(|before| level <= before)
        {
            self.seeds[node] = Some(level);
            self.found[node] = found;
        }
    }

    /// Iterates over the levels of the parameters that `node` uses.
    fn parameters_of(&self, node: usize) -> impl Iterator<Item = Reach> + '_ {
        self.parameters[node]
            .iter()
            .map(|&parameter| self.parameter_found[parameter])
    }

    /// Iterates over the levels (In, a layer or Out) of the nodes of the forward pass that make or
    /// use the variables of `edge`.
    fn forward_ends(&self, edge: &'a FlowEdge) -> impl Iterator<Item = Reach> + '_ {
        ends(edge)
            .filter(|&node| self.is_forward(node))
            .map(|node| self.found[node])
    }

    fn forward(&mut self) {
        // The first node of the forward phase that has the highest level of all seeds in this
        // phase.
        let last_layer = (0..self.found.len())
            .filter(|&node| self.is_forward(node) && self.seeds[node].is_some())
            .rev()
            .max_by_key(|&node| self.seeds[node]);
        let called = self.called();
        for node in self.open(Phase::Forward) {
            self.found[node] = match (self.before[node], self.after[node]) {
                (None, None) => Reach::Unknown,
                (None, Some(_)) if self.shares_with_in(node) => Reach::At(0),
                // A node before all layers whose results only the first layer uses, such as a mask,
                // is in In.
                (None, Some(1)) => Reach::At(0),
                (None, Some(after)) => Reach::At(called[node].min(after)),
                (Some(_), None) if Some(node) > last_layer => Reach::At(self.out),
                // A node with a level before it but none after it, such as a head between layers,
                // belongs to the layer before it.
                (Some(before), None) => Reach::At(before),
                (Some(low), Some(high)) => self
                    .parameters_of(node)
                    .filter_map(Reach::level)
                    .find(|level| (low..=high).contains(level))
                    .map_or_else(|| self.between(node, low, high), Reach::At),
            };
        }
        // A node after the last layer may use data that no layer makes, such as the model's input.
        // If only Out uses its results, the node is in Out.
        let out = Reach::At(self.out);
        for node in self.open(Phase::Forward).into_iter().rev() {
            let is_late = self.found[node].is_unknown() && Some(node) > last_layer;
            let users = self.join(self.consumers(node).map(|user| self.found[user]));
            if is_late && users == out {
                self.found[node] = out;
            }
        }
    }

    /// Returns one entry per node of the data flow: the layer of the next forward node, from the
    /// node itself on, that has a layer in its name. The entry is In for nodes up to the first such
    /// forward node, and if no such forward node follows.
    fn called(&self) -> Vec<Level> {
        let forward = |node: usize| self.seeds[node].filter(|_| self.is_forward(node));
        let nodes = 0..self.seeds.len();
        let first = nodes.clone().find(|&node| forward(node).is_some());
        let mut called = vec![0; self.seeds.len()];
        let mut next = 0;
        for node in nodes.rev().take_while(|&node| Some(node) > first) {
            next = forward(node).unwrap_or(next);
            called[node] = next;
        }
        called
    }

    /// Returns whether `node` uses a parameter that a forward node in In uses too, such as the
    /// weight of an embedding that encoder and decoder share.
    fn shares_with_in(&self, node: usize) -> bool {
        let mut users = self.parameters[node]
            .iter()
            .flat_map(|&own| &self.model.flow.parameters[own].1);
        let is_in = |user: usize| self.is_forward(user) && self.found[user] == Reach::At(0);
        users.any(|&user| is_in(user as usize))
    }

    /// Finds the levels of the nodes of the backward phase without a seed (a level by name or use).
    fn backward(&mut self) {
        for node in self.open(Phase::Backward) {
            self.found[node] = match (self.before[node], self.after[node]) {
                // A sum of gradients is at the level where the last of the gradients is made.
                (Some(before), _) if self.sums_gradients(node) => Reach::At(before),
                // A node directly before In in the backward pass is in In if it uses tensors kept
                // from In's forward pass.
                (Some(_), Some(0)) if self.uses_stash_of_in(node) => Reach::At(0),
                // A node without a level before it is in the backward pass of Out or of a head
                // between layers.
                (before, Some(after)) => self.between(node, before.unwrap_or(self.out), after),
                // A node without a level after it is placed by `Levels::updates`. An example is the
                // gradient of a weight whose result only goes to an accumulator.
                (_, None) => Reach::Unknown,
            };
        }
    }

    /// Returns a level from `before` to `after`, both inclusive; in the backward pass, `before` is
    /// the higher level. The first of these that exists is taken: the only level with a forward
    /// node whose gradient `node` may be; the level that makes or uses the most bytes of the
    /// variables of `node`; the level `before`. Returns `Several` if there is no level from
    /// `before` to `after`.
    fn between(&self, node: usize, before: Level, after: Level) -> Reach {
        let levels = match self.phases[node] {
            Phase::Forward => before..=after,
            _ => after..=before,
        };
        if levels.is_empty() {
            return Reach::Several;
        }
        let makers = self.inputs(node).filter_map(|edge| {
            let found = self.found.get(edge.from as usize)?;
            Some((found.level()?, edge.bytes))
        });
        let users = self.outgoing(node).iter().flat_map(|edge| {
            let levels = edge
                .to
                .iter()
                .filter_map(|&to| self.found[to as usize].level());
            ascending(levels)
                .into_iter()
                .map(|level| (level, edge.bytes))
        });
        let mut bytes = FxHashMap::<_, u64>::default();
        for (level, more) in makers.chain(users) {
            *bytes.entry(level).or_default() += more;
        }
        let can_be = |level: &Level| levels.contains(level) && self.can_be_at(node, *level);
        bytes.retain(|level, _| can_be(level));
        let mirrors = |level: &Level| self.mirrors(node, *level);
        let mut mirrored: Vec<Level> = bytes.keys().copied().filter(mirrors).collect();
        if mirrored.is_empty() {
            // The gradient of a pooling may use and make no variable of its layer, so all levels
            // are tried.
            let levels = levels.clone().filter(mirrors);
            mirrored = levels.filter(can_be).collect();
        }
        if let [level] = mirrored[..] {
            return Reach::At(level);
        }
        let most = bytes
            .into_iter()
            .max_by_key(|&(level, bytes)| (bytes, level));
        Reach::At(most.map_or(before, |(level, _)| level))
    }

    /// Returns whether `node` can run at `level`. Every shared parameter that it uses must be
    /// shared by `level`. After the forward pass, the forward nodes that make or use its input
    /// variables must also allow `level`.
    fn can_be_at(&self, node: usize, level: Level) -> bool {
        let is_elsewhere = |found| match found {
            Reach::Shared(parameter) => !self.shared[parameter].contains(&level),
            _ => false,
        };
        let is_of_level = |edge| {
            let mut ends = self.forward_ends(edge).peekable();
            // A `node` of the forward pass is itself one of `ends` and has no level yet, so it
            // allows each level.
            ends.peek().is_none()
                || ends.any(|found| found.level().is_none_or(|found| found == level))
        };
        !self.parameters_of(node).any(is_elsewhere) && self.inputs(node).all(is_of_level)
    }

    /// Returns whether `node` uses variables that nodes of In make or use in the forward pass,
    /// which are stashed for the backward pass.
    fn uses_stash_of_in(&self, node: usize) -> bool {
        let mut found = self.inputs(node).flat_map(|edge| self.forward_ends(edge));
        found.any(|found| found == Reach::At(0))
    }

    /// Returns whether `node` sums gradients: it uses only variables that nodes of the backward
    /// phase make and that no later node uses. A norm of gradients does not match, because updates
    /// use the gradients later.
    fn sums_gradients(&self, node: usize) -> bool {
        let is_gradient = |from: usize| self.phases[from] == Phase::Backward;
        self.inputs(node)
            .all(|edge| edge.to.last() == Some(&(node as u32)))
            && self.producers(node).all(is_gradient)
    }

    /// Returns one entry per operation: the combined level of its forward nodes or, if it has no
    /// forward node, of all its nodes.
    fn of_operations(&self) -> Vec<Reach> {
        let backward_start = self.model.backward_start.unwrap_or(u32::MAX);
        let mut found = vec![Reach::Unknown; self.model.operations.len()];
        let mut is_forward = vec![false; found.len()];
        for (node, &at) in self.model.flow.nodes.iter().zip(&self.found) {
            for operation in node.operations.iter().map(|&operation| operation as usize) {
                // A recomputed operation runs again after the forward pass, but only its first run
                // counts.
                if node.first < backward_start || !is_forward[operation] {
                    found[operation] = self.join([found[operation], at].into_iter());
                    is_forward[operation] |= node.first < backward_start && !at.is_unknown();
                }
            }
        }
        found
    }
}

/// Returns one entry per node of the data flow: the indices of those `lists` that contain the node,
/// ascending.
fn by_node<'a>(model: &Model, lists: impl Iterator<Item = &'a Box<[u32]>>) -> Vec<Vec<usize>> {
    let mut by_node = vec![Vec::new(); model.flow.nodes.len()];
    for (number, nodes) in (0..).zip(lists) {
        for &node in nodes {
            by_node[node as usize].push(number);
        }
    }
    by_node
}

/// Iterates over the nodes of the data flow that write or use the variables of `edge`.
fn ends(edge: &FlowEdge) -> impl Iterator<Item = usize> + '_ {
    edge.to
        .iter()
        .chain([&edge.from])
        .filter(|&&node| node != NO_NODE)
        .map(|&node| node as usize)
}
