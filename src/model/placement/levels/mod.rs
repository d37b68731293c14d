//! Finds where operations without a layer run, by the data that flows through them (docs/model.md,
//! "Positions").

mod parameters;
mod phases;

use crate::model::{FlowEdge, FlowNode, Layering, Model, NO_NODE, ascending};
use rustc_hash::{FxHashMap, FxHashSet};

/// A level: an index into the list of In, the layers in the order in which they first run, and Out.
/// In the forward pass, data flows from lower to higher levels.
pub type Level = u32;

/// The level (In, a layer or Out) of a node of the data flow, of an operation or of a parameter; or
/// why it has no single level.
#[derive(Clone, Copy, PartialEq)]
pub enum Reach {
    /// No level (In, a layer or Out) has been found yet for the node or parameter.
    Unknown,
    /// The node or parameter is at exactly one level (In, a layer or Out).
    At(Level),
    /// The node or operation is at all levels (In, layers, Out) that share one parameter. The
    /// parameter is given as an index into [`DataFlow::parameters`](crate::model::DataFlow).
    Shared(usize),
    /// The operation works on variables of several levels (In, layers, Out), so it is at no single
    /// level.
    Several,
    /// The operation runs on every IPU, because it advances a state that several levels (In,
    /// layers, Out) use, such as a random state.
    Everywhere,
}

impl Reach {
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

/// The pass in which a node of the data flow (steps of one operation) runs.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// The node is in the forward pass, in which data flows up from In over the layers to Out.
    Forward,
    /// The node is in the backward pass, in which data flows down from Out over the layers to In.
    Backward,
    /// The node (steps of one operation) runs after the start of the backward pass, but belongs to
    /// no layer's backward pass. Examples are updates of weights and recomputed operations.
    Late,
}

/// For each node of the forward pass: its level (In, a layer or Out), the bytes over all tiles of
/// the largest tensor that the node uses, and those of the largest that it makes. The gradient of
/// the node makes a tensor of the first size and uses one of the second size.
type ForwardSizes = FxHashSet<(Level, u64, u64)>;

/// The levels (In, a layer or Out) of the nodes of the data flow, as far as they have been found.
pub struct Levels<'a> {
    model: &'a Model,
    out: Level,
    /// One entry per node of the data flow (steps of one operation): its seed, that is, a level
    /// from which the levels of other nodes are derived. The seed of a node comes from the name of
    /// its operation or, in the backward pass, from the variables that the node uses.
    seeds: Vec<Option<Level>>,
    phases: Vec<Phase>,
    /// One entry per node of the data flow (steps of one operation): the edges whose variables the
    /// node uses.
    incoming: Vec<Vec<&'a FlowEdge>>,
    /// One entry per node of the data flow (steps of one operation): the parameters, such as
    /// weights, that the node uses, as indices.
    parameters: Vec<Vec<usize>>,
    /// One entry per parameter of [`DataFlow::parameters`](crate::model::DataFlow): its level (In,
    /// a layer or Out). At first, it comes from the name of a weight; later, from the nodes that
    /// use the parameter ([`place_parameters`](Self::place_parameters)).
    parameter_found: Vec<Reach>,
    /// One entry per parameter of the data flow: the levels (In, layers, Out) that share the
    /// parameter, ascending; empty unless several levels share it.
    shared: Vec<Vec<Level>>,
    /// One entry per node of the data flow (steps of one operation): the nearest level (In, a layer
    /// or Out) from which data flows to the node in the same pass, if there is one.
    before: Vec<Option<Level>>,
    /// One entry per node of the data flow (steps of one operation): the nearest level (In, a layer
    /// or Out) to which data flows from the node in the same pass, if there is one.
    after: Vec<Option<Level>>,
    found: Vec<Reach>,
    forward_sizes: ForwardSizes,
}

impl<'a> Levels<'a> {
    /// Finds the level of each operation, and the levels that share each parameter (ascending;
    /// empty unless several levels share it). Levels are In, the layers in the order in which they
    /// run, and Out. `layers` has the layer in the name of each operation, as an index into In, the
    /// layers in the order of the layering, and Out. `level_of` maps such an index to a level.
    pub fn find(
        model: &'a Model,
        layering: &Layering,
        layers: &[Option<u32>],
        level_of: &[Level],
    ) -> (Vec<Reach>, Vec<Vec<Level>>) {
        let level = |layer: u32| level_of[layer as usize];
        let at = |level: Option<Level>| level.map_or(Reach::Unknown, Reach::At);
        let flow = &model.flow;
        let none = || vec![None; flow.nodes.len()];
        let seed = |node: &FlowNode| {
            let mut operations = node.operations.iter();
            operations
                .find_map(|&operation| layers[operation as usize])
                .map(level)
        };
        let seeds: Vec<Option<Level>> = flow.nodes.iter().map(seed).collect();
        let by_name = (flow.parameters.iter())
            .map(|&(set, _)| at(layering.layer_in(model.label_of(set)).map(level)));
        let mut levels = Self {
            model,
            out: level_of.len() as u32 - 1,
            phases: Vec::new(),
            incoming: by_node(model, flow.edges.iter().map(|edge| (edge, &edge.to))),
            parameters: by_node(model, flow.parameters.iter().map(|own| &own.1).enumerate()),
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

    fn inputs(&self, node: usize) -> impl Iterator<Item = &'a FlowEdge> {
        self.incoming[node].iter().copied()
    }

    fn outgoing(&self, node: usize) -> &'a [FlowEdge] {
        let edges = &self.model.flow.edges;
        let node = node as u32;
        let rest = &edges[edges.partition_point(|edge| edge.from < node)..];
        &rest[..rest.partition_point(|edge| edge.from == node)]
    }

    fn is_forward(&self, node: usize) -> bool {
        self.phases[node] == Phase::Forward
    }

    /// Returns whether the variables of `edge`, an edge of the data flow, are written by a node
    /// outside the forward pass.
    fn is_made_later(&self, edge: &FlowEdge) -> bool {
        edge.from != NO_NODE && !self.is_forward(edge.from as usize)
    }

    fn producers(&self, node: usize) -> impl Iterator<Item = usize> {
        let from = self.inputs(node).map(|edge| edge.from as usize);
        from.filter(|&from| from != NO_NODE as usize)
    }

    fn consumers(&self, node: usize) -> impl Iterator<Item = usize> {
        self.outgoing(node)
            .iter()
            .flat_map(|edge| edge.to.iter().map(|&to| to as usize))
    }

    /// Combines the levels (In, layers, Out) of several nodes or parameters into one; unknown
    /// levels are ignored. `Shared` (the levels that share a parameter) combined with one of these
    /// levels remains `Shared`. Any other two different levels give `Several`.
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

    /// For each node (steps of one operation) of the forward or the backward pass, finds the level
    /// (In, a layer or Out) from which data flows to the node, and the level to which data flows
    /// from it; of several, the nearest one. In the backward pass, also derives the levels of nodes
    /// from the variables that they use.
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

    /// Returns the level (In, a layer or Out) nearest to a node of the data flow: before the node
    /// if `is_before`, and otherwise after it. `nodes` are accordingly the producers or the
    /// consumers of the node. If one of them has no level, the nearest level before the producer or
    /// after the consumer is used.
    fn nearest(
        &self,
        nodes: impl Iterator<Item = usize>,
        phase: Phase,
        is_before: bool,
    ) -> Option<Level> {
        // In the forward pass, data flows from lower to higher levels (In, layers, Out). So the
        // nearest level before a node is the highest one, and the nearest level after it is the
        // lowest one. In the backward pass, it is the other way round.
        let is_below = is_before == (phase == Phase::Forward);
        let known = if is_before { &self.before } else { &self.after };
        let levels = nodes
            .filter(|&node| self.phases[node] == phase)
            .filter_map(|node| self.seeds[node].or(known[node]));
        if is_below { levels.max() } else { levels.min() }
    }

    /// Returns the nodes of the forward or backward pass to which neither names nor variables give
    /// a level (In, a layer or Out), ascending.
    fn open(&self, phase: Phase) -> Vec<usize> {
        (0..self.found.len())
            .filter(|&node| self.phases[node] == phase && self.seeds[node].is_none())
            .collect()
    }

    /// Gives a node of the backward pass (steps of one operation) the level (In, a layer or Out) of
    /// the parameters and of the forward pass's variables that it uses, if they agree. In the
    /// backward pass, data only flows from higher to lower levels. So the level is not given if the
    /// node gets data from a lower one.
    fn seed_by_use(&mut self, node: usize) {
        let stash = self
            .inputs(node)
            .map(|edge| self.join(self.forward_ends(edge)));
        let used = self.parameters_of(node).chain(stash);
        // A parameter or variable that is used at several levels (In, layers, Out) does not show at
        // which of them this node is, so it is ignored.
        let found = self.join(used.filter(|found| found.level().is_some()));
        if let Reach::At(level) = found
            && self.before[node].is_none_or(|before| level <= before)
        {
            self.seeds[node] = Some(level);
            self.found[node] = found;
        }
    }

    fn parameters_of(&self, node: usize) -> impl Iterator<Item = Reach> {
        self.parameters[node]
            .iter()
            .map(|&parameter| self.parameter_found[parameter])
    }

    fn forward_ends(&self, edge: &'a FlowEdge) -> impl Iterator<Item = Reach> {
        ends(edge)
            .filter(|&node| self.is_forward(node))
            .map(|node| self.found[node])
    }

    fn forward(&mut self) {
        // The node (steps of one operation) at which the forward pass reaches the last layer. Only
        // nodes after it may be in Out, which has the operations after the last layer.
        let last_layer = (0..self.found.len())
            .filter(|&node| self.is_forward(node) && self.seeds[node].is_some())
            .rev()
            .max_by_key(|&node| self.seeds[node]);
        let called = self.called();
        for node in self.open(Phase::Forward) {
            // Returns whether an operation in In (the operations before the first layer) uses one
            // of the node's parameters too, such as the weight of an embedding that encoder and
            // decoder share.
            let shares_with_in = || {
                self.parameters[node]
                    .iter()
                    .flat_map(|&own| &self.model.flow.parameters[own].1)
                    .map(|&user| user as usize)
                    .any(|user| self.is_forward(user) && self.found[user] == Reach::At(0))
            };
            self.found[node] = match (self.before[node], self.after[node]) {
                (None, None) => Reach::Unknown,
                (None, Some(_)) if shares_with_in() => Reach::At(0),
                // A node that gets no data from layers, and whose results the first layer uses,
                // such as a mask, is in In (the operations before the first layer).
                (None, Some(1)) => Reach::At(0),
                (None, Some(after)) => Reach::At(called[node].min(after)),
                (Some(_), None) if Some(node) > last_layer => Reach::At(self.out),
                // A node of the forward pass that leads to no layer, such as a head between layers,
                // belongs to the layer before it.
                (Some(before), None) => Reach::At(before),
                (Some(low), Some(high)) => self
                    .parameters_of(node)
                    .filter_map(Reach::level)
                    .find(|level| (low..=high).contains(level))
                    .map_or_else(|| self.between(node, low, high), Reach::At),
            };
        }
        // An operation that runs after the last layer may get no data from any layer, if it uses
        // only the model's input. If its results go only to Out (the operations after the last
        // layer), it is in Out too.
        let out = Reach::At(self.out);
        for node in self.open(Phase::Forward).into_iter().rev() {
            if self.found[node].is_unknown()
                && Some(node) > last_layer
                && self.join(self.consumers(node).map(|user| self.found[user])) == out
            {
                self.found[node] = out;
            }
        }
    }

    /// Returns one entry per node of the data flow (steps of one operation): the layer in the name
    /// of the node or, if there is none, of the next node of the forward pass that has one. The
    /// entry is 0 (In) if there is no such node, or if no earlier node of the forward pass has a
    /// layer in its name.
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

    /// Finds the levels (In, layers, Out) of those nodes of the backward pass (steps of one
    /// operation) whose level neither the operation's name nor the variables show.
    fn backward(&mut self) {
        for node in self.open(Phase::Backward) {
            let uses_stash_of_in = || {
                self.inputs(node)
                    .flat_map(|edge| self.forward_ends(edge))
                    .any(|found| found == Reach::At(0))
            };
            self.found[node] = match (self.before[node], self.after[node]) {
                // A sum of gradients is at the level (In, a layer or Out) where the last of the
                // summed gradients is made.
                (Some(before), _) if self.sums_gradients(node) => Reach::At(before),
                // If data flows from a node of the backward pass only to In (the operations before
                // the first layer), the node is in In too if it uses tensors that the forward pass
                // of In stashed.
                (Some(_), Some(0)) if uses_stash_of_in() => Reach::At(0),
                // If no gradient flows to a node, the backward pass begins with it: in Out (the
                // operations after the last layer), or at an earlier layer whose output has a loss
                // of its own. So its level is searched from Out down to the level to which its
                // results flow.
                (before, Some(after)) => self.between(node, before.unwrap_or(self.out), after),
                // A node from which no data flows to In or a layer, such as the gradient of a
                // weight that only goes to an accumulator, is placed by `Levels::updates`.
                (_, None) => Reach::Unknown,
            };
        }
    }

    /// Chooses the level (In, a layer or Out) of `node` (steps of one operation). It is one from
    /// `before`, from which data flows to the node, to `after`, to which data flows from it. The
    /// first of these levels that exists is taken:
    ///
    /// 1. the only level with a node of the forward pass whose gradient `node` may be, by the sizes
    ///    of tensors ([`mirrors`](Self::mirrors));
    /// 2. the level that makes or uses the most bytes of the node's variables;
    /// 3. the level `before`.
    ///
    /// If data flows against the direction of the pass, the node has no single level, and `Several`
    /// is returned.
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
            // By the sizes of tensors, the node is not the gradient of an operation at any level
            // (In, layers, Out) with which it shares variables. So the other levels between its
            // producers and its users are searched too: the gradient of a pooling, for example, may
            // share no variable with the layer of the pooling.
            mirrored = levels.clone().filter(mirrors).filter(can_be).collect();
        }
        if let [level] = mirrored[..] {
            return Reach::At(level);
        }
        let most = bytes
            .into_iter()
            .max_by_key(|&(level, bytes)| (bytes, level));
        Reach::At(most.map_or(before, |(level, _)| level))
    }

    /// Returns whether a node of the data flow can be at `level` (In, a layer or Out). It cannot if
    /// it uses a parameter that only other levels share, or a variable that the forward pass makes
    /// and uses only at other levels.
    fn can_be_at(&self, node: usize, level: Level) -> bool {
        let is_elsewhere =
            |found| matches!(found, Reach::Shared(own) if !self.shared[own].contains(&level));
        let is_of_level = |edge| {
            let mut ends = self.forward_ends(edge).peekable();
            // A node of the forward pass that makes or uses the same variable, but is at no single
            // level (In, a layer or Out) or at none yet, may run at any level. So it does not rule
            // out `level`.
            ends.peek().is_none()
                || ends.any(|found| found.level().is_none_or(|found| found == level))
        };
        !self.parameters_of(node).any(is_elsewhere) && self.inputs(node).all(is_of_level)
    }

    /// Returns whether `node` sums gradients: it uses only variables that the backward pass makes
    /// and that no later node uses. A norm of gradients is no such sum, because updates use the
    /// gradients after the norm.
    fn sums_gradients(&self, node: usize) -> bool {
        self.inputs(node)
            .all(|edge| edge.to.last() == Some(&(node as u32)))
            && self
                .producers(node)
                .all(|from| self.phases[from] == Phase::Backward)
    }

    /// Returns the level (In, a layer or Out) of each operation: the common level of its nodes
    /// (series of its steps) in the forward pass or, if there are none, of all its nodes.
    fn of_operations(&self) -> Vec<Reach> {
        let backward_start = self.model.backward_start.unwrap_or(u32::MAX);
        let mut found = vec![Reach::Unknown; self.model.operations.len()];
        let mut is_forward = vec![false; found.len()];
        for (node, &at) in self.model.flow.nodes.iter().zip(&self.found) {
            for operation in node.operations.iter().map(|&operation| operation as usize) {
                // A recomputed operation runs again after the forward pass, but it has the level
                // (In, a layer or Out) of its first run.
                if node.first < backward_start || !is_forward[operation] {
                    found[operation] = self.join([found[operation], at].into_iter());
                    is_forward[operation] |= node.first < backward_start && !at.is_unknown();
                }
            }
        }
        found
    }
}

/// Groups `items` by node of the data flow (steps of one operation). Each item is given with the
/// indices of its nodes. Returns one entry per node: its items.
fn by_node<'a, T: Clone>(
    model: &Model,
    items: impl Iterator<Item = (T, &'a Box<[u32]>)>,
) -> Vec<Vec<T>> {
    let mut by_node = vec![Vec::new(); model.flow.nodes.len()];
    for (item, nodes) in items {
        for &node in nodes {
            by_node[node as usize].push(item.clone());
        }
    }
    by_node
}

fn ends(edge: &FlowEdge) -> impl Iterator<Item = usize> {
    edge.to
        .iter()
        .chain([&edge.from])
        .filter(|&&node| node != NO_NODE)
        .map(|&node| node as usize)
}
