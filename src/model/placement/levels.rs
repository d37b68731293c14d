//! Where operations without a layer run, by the data that flows through them
//! (docs/model.md, "Positions").

use super::touches::SetBytes;
use crate::model::{FlowEdge, FlowNode, Model, NO_NODE, TensorKind};
use rustc_hash::FxHashMap;

/// A position in the order in which layers run first: In is 0, and Out comes after all
/// of them.
pub(super) type Level = u32;

/// What is known of where something runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Found {
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

impl Found {
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Found::Unknown, other) | (other, Found::Unknown) => other,
            (a, b) if a == b => a,
            _ => Found::Several,
        }
    }

    pub(super) fn is_unknown(self) -> bool {
        self == Found::Unknown
    }
}

/// Where the parameters are that descend from a node.
#[derive(Debug, Clone, Copy, Default)]
struct Descend {
    /// Those of one level each.
    found: Found,
    /// The first that several levels share, as a position in
    /// [`Flow::parameters`](crate::model::Flow).
    shared: Option<u32>,
}

impl Descend {
    fn at(found: Found) -> Self {
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

/// Which way levels run where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// From In up to Out.
    Forward,
    /// From Out down to In.
    Backward,
    /// After the turn, but of no layer's backward pass: updates, and what is
    /// recomputed.
    Late,
}

/// The levels that the layers of a node have by name: the first and the last.
type Seed = Option<(Level, Level)>;

/// The levels of all nodes.
pub(super) struct Levels<'a> {
    model: &'a Model,
    bytes: &'a [SetBytes],
    out: Level,
    seeds: Vec<Seed>,
    phases: Vec<Phase>,
    /// By node: does it neither compute nor move data of the model?
    is_outside: Vec<bool>,
    /// By node: the edges that lead to it, those without a producer apart, and its
    /// parameters.
    incoming: Vec<Vec<u32>>,
    undirected: Vec<Vec<u32>>,
    parameters: Vec<Vec<u32>>,
    /// By parameter, as in [`Flow::parameters`](crate::model::Flow): where it is.
    parameter_found: Vec<Found>,
    /// The levels of those that several levels share, ascending; of others none.
    shared: Vec<Vec<Level>>,
    /// By node, from what comes before it and from what comes after it, in its phase.
    before: Vec<Option<Level>>,
    after: Vec<Option<Level>>,
    /// The first step of the highest layer before the turn.
    last_layer: u32,
    found: Vec<Found>,
}

impl<'a> Levels<'a> {
    /// Finds them, and by parameter the levels that share it. `levels` has by operation
    /// the level that its name says, and `parameter_level` by user set that of the
    /// weight's name.
    pub(super) fn find(
        model: &'a Model,
        bytes: &'a [SetBytes],
        (levels, out): (&[Option<Level>], Level),
        parameter_level: impl Fn(u32) -> Option<Level>,
    ) -> (Vec<Found>, Vec<Vec<Level>>) {
        let mut own = Self::new(model, bytes, (levels, out));
        let parameters = model.flow.parameters.iter();
        own.parameter_found = parameters
            .map(|&(set, _)| parameter_level(set).map_or(Found::Unknown, Found::At))
            .collect();
        own.seed_by_use(Phase::Forward);
        own.spread(Phase::Forward);
        own.forward();
        own.made_of_parameters();
        own.place_parameters(Phase::Forward);
        own.advance_state();
        own.seed_by_use(Phase::Backward);
        own.spread(Phase::Backward);
        own.backward();
        own.place_parameters(Phase::Late);
        own.updates();
        own.place_parameters(Phase::Late);
        own.without_direction();
        (own.found, own.shared)
    }

    fn new(
        model: &'a Model,
        bytes: &'a [SetBytes],
        (levels, out): (&[Option<Level>], Level),
    ) -> Self {
        let flow = &model.flow;
        let none = || vec![Vec::new(); flow.nodes.len()];
        let (mut incoming, mut undirected, mut parameters) = (none(), none(), none());
        for (number, edge) in (0u32..).zip(&flow.edges) {
            for &node in &edge.to {
                match edge.from {
                    NO_NODE => undirected[node as usize].push(number),
                    _ => incoming[node as usize].push(number),
                }
            }
        }
        for (number, (_, nodes)) in (0u32..).zip(&flow.parameters) {
            for &node in nodes {
                parameters[node as usize].push(number);
            }
        }
        let is_of_model = |&operation: &u32| {
            let own = &model.operations[operation as usize];
            !own.is_tensor && !model.operation_groups[own.group as usize].only_streams()
        };
        let outside =
            |operations: &[u32]| !operations.is_empty() && !operations.iter().any(is_of_model);
        let seed = |operations: &[u32]| -> Seed {
            let own = operations.iter().filter_map(|&own| levels[own as usize]);
            Some((own.clone().min()?, own.max()?))
        };
        let nodes = || flow.nodes.iter();
        let mut own = Self {
            model,
            bytes,
            out,
            seeds: nodes().map(|node| seed(&node.operations)).collect(),
            phases: Vec::new(),
            is_outside: nodes().map(|node| outside(&node.operations)).collect(),
            incoming,
            undirected,
            parameters,
            parameter_found: Vec::new(),
            shared: vec![Vec::new(); flow.parameters.len()],
            before: vec![None; flow.nodes.len()],
            after: vec![None; flow.nodes.len()],
            last_layer: 0,
            found: vec![Found::Unknown; flow.nodes.len()],
        };
        own.find_phases();
        for (node, seed) in own.seeds.iter().enumerate() {
            if let &Some((low, high)) = seed {
                own.found[node] = if low == high {
                    Found::At(low)
                } else {
                    Found::Several
                };
            }
        }
        own.last_layer = own.first_of_last_layer();
        own
    }

    fn find_phases(&mut self) {
        let by_context = self.model.turn;
        let turn = by_context
            .or_else(|| self.turn_of_edges())
            .unwrap_or(u32::MAX);
        let phase = |(number, node): (usize, &FlowNode)| {
            let mut operations = node.operations.iter();
            let is_backward = |&own: &u32| self.model.operations[own as usize].is_backward;
            let is_nested = |&own: &u32| self.model.operations[own as usize].is_nested;
            match node.first {
                first if first < turn => Phase::Forward,
                _ if by_context.is_none() && self.ends_in_parameters(number) => Phase::Late,
                _ if by_context.is_none() => Phase::Backward,
                // In functions contexts do not tell.
                _ if operations.clone().any(is_backward) || operations.any(is_nested) => {
                    Phase::Backward
                }
                _ => Phase::Late,
            }
        };
        self.phases = self
            .model
            .flow
            .nodes
            .iter()
            .enumerate()
            .map(phase)
            .collect();
    }

    /// Does a node use parameters, and does nothing else outlive it? Then it is an update.
    fn ends_in_parameters(&self, node: usize) -> bool {
        !self.parameters[node].is_empty() && self.outgoing(node).is_empty()
    }

    /// The step at which data begins to flow down, by the edges between layers: before
    /// it most lead up, and after it most lead down.
    fn turn_of_edges(&self) -> Option<u32> {
        let nodes = &self.model.flow.nodes;
        let highest = |seed: &Seed| seed.map(|seed| seed.1);
        let mut reached: Vec<Option<Level>> = self.seeds.iter().map(highest).collect();
        let mut turns: Vec<(u32, i64)> = Vec::new();
        for node in 0..nodes.len() {
            // What was computed last shows the way; what is older may be kept for the
            // backward pass.
            let from = self.producers(node).filter(|&from| reached[from].is_some());
            let from = from.max().and_then(|from| reached[from]);
            let Some((low, _)) = self.seeds[node] else {
                reached[node] = from;
                continue;
            };
            let Some(from) = from else { continue };
            let way = i64::from(from > low) - i64::from(from < low);
            turns.push((nodes[node].first, way));
        }
        // All that leads down after a step, less what leads up there.
        let mut downs = 0;
        let mut best = (0, None);
        for (step, way) in turns.into_iter().rev() {
            downs += way;
            if downs > best.0 {
                best = (downs, Some(step));
            }
        }
        Some(self.end_of_forward(best.1?))
    }

    /// The first step of the backward pass of the layer that runs last, when data begins
    /// to flow down to other layers at `turn`: Out runs where most nodes without a layer
    /// come between two of that layer.
    fn end_of_forward(&self, turn: u32) -> u32 {
        let nodes = &self.model.flow.nodes;
        let before = nodes.partition_point(|node| node.first < turn);
        let seeds = &self.seeds[..before];
        let Some(top) = seeds.iter().flatten().map(|seed| seed.1).max() else {
            return turn;
        };
        let (mut open, mut widest) = (None, (0, turn));
        for node in 0..before {
            match seeds[node] {
                Some((_, level)) if level == top => {
                    if let Some(between) = open.replace(0).filter(|&own| own > widest.0) {
                        widest = (between, nodes[node].first);
                    }
                }
                Some(_) => open = None,
                None if !self.is_outside[node] => open = open.map(|own: u32| own + 1),
                None => {}
            }
        }
        match open {
            Some(between) if between > widest.0 => turn,
            _ => widest.1,
        }
    }

    /// The first step of the highest layer before the turn.
    fn first_of_last_layer(&self) -> u32 {
        let mut last = (0, 0);
        for (node, seed) in self.seeds.iter().enumerate() {
            if let (Some((_, high)), Phase::Forward) = (seed, self.phases[node])
                && *high > last.0
            {
                last = (*high, self.model.flow.nodes[node].first);
            }
        }
        last.1
    }

    fn edge(&self, number: u32) -> &'a FlowEdge {
        &self.model.flow.edges[number as usize]
    }

    /// The edges that begin at a node.
    fn outgoing(&self, node: usize) -> &'a [FlowEdge] {
        let edges = &self.model.flow.edges;
        let node = node as u32;
        let rest = &edges[edges.partition_point(|edge| edge.from < node)..];
        &rest[..rest.partition_point(|edge| edge.from == node)]
    }

    fn producers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.incoming[node].iter();
        let from = edges.map(|&edge| self.edge(edge).from as usize);
        from.filter(|&from| !self.is_outside[from])
    }

    fn consumers(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.outgoing(node).iter();
        let to = edges.flat_map(|edge| edge.to.iter().map(|&to| to as usize));
        to.filter(|&to| !self.is_outside[to])
    }

    /// What the nodes of a phase have before and after them: the nearest level on each
    /// side.
    fn spread(&mut self, phase: Phase) {
        let is_up = phase == Phase::Forward;
        let nodes = self.found.len();
        for node in (0..nodes).filter(|&node| self.phases[node] == phase) {
            self.before[node] = self.nearest_producer(node, phase);
        }
        for node in (0..nodes).rev().filter(|&node| self.phases[node] == phase) {
            let consumers = self.consumers(node);
            let own = consumers.filter(|&to| self.phases[to] == phase);
            let levels = own.filter_map(|to| match self.seeds[to] {
                Some((low, high)) => Some(if is_up { low } else { high }),
                None => self.after[to],
            });
            let nearest = if is_up { levels.min() } else { levels.max() };
            self.after[node] = nearest;
        }
    }

    /// The nearest level before a node in its phase, by what it uses.
    fn nearest_producer(&self, node: usize, phase: Phase) -> Option<Level> {
        let producers = self.producers(node);
        let own = producers.filter(|&from| self.phases[from] == phase);
        let levels = own.filter_map(|from| match self.seeds[from] {
            Some((low, high)) => Some(if phase == Phase::Forward { high } else { low }),
            None => self.before[from],
        });
        if phase == Phase::Forward {
            levels.max()
        } else {
            levels.min()
        }
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
            let own = self.parameters_of(node);
            let is_backward = phase == Phase::Backward;
            let stash = self.stash(node).filter(|_| is_backward);
            // What several share does not tell them apart.
            let single = own.chain(stash).filter(|&found| found != Found::Several);
            let found = single.fold(Found::Unknown, Found::join);
            self.before[node] = self.nearest_producer(node, phase);
            if let Found::At(level) = found
                && !(is_backward && self.before[node].is_some_and(|before| level > before))
            {
                self.seeds[node] = Some((level, level));
                self.found[node] = found;
            }
        }
    }

    /// Where the parameters are that a node uses.
    fn parameters_of(&self, node: usize) -> impl Iterator<Item = Found> + '_ {
        let parameters = self.parameters[node].iter();
        parameters.map(|&own| self.parameter_found[own as usize])
    }

    /// Where the variables of the forward pass are used there that a node uses.
    fn stash(&self, node: usize) -> impl Iterator<Item = Found> + '_ {
        let edges = self.incoming[node].iter().map(|&edge| self.edge(edge));
        edges.map(|edge| {
            let all = edge
                .to
                .iter()
                .chain([&edge.from])
                .map(|&node| node as usize);
            let forward = all.filter(|&node| self.phases[node] == Phase::Forward);
            forward.fold(Found::Unknown, |found, node| found.join(self.found[node]))
        })
    }

    /// Can a node run at a level, by the shared parameters that it uses?
    fn can_be_at(&self, node: usize, level: Level) -> bool {
        let mut shared = self.parameters[node]
            .iter()
            .map(|&own| &self.shared[own as usize]);
        shared.all(|levels| levels.is_empty() || levels.contains(&level))
    }

    /// Does a node use what the forward pass makes or uses at a level?
    fn uses_stash_of(&self, node: usize, level: Level) -> bool {
        let edges = self.incoming[node].iter().map(|&edge| self.edge(edge));
        let mut nodes = edges.flat_map(|edge| edge.to.iter().chain([&edge.from]));
        let is_there = |&other: &u32| {
            let other = other as usize;
            self.phases[other] == Phase::Forward && self.found[other] == Found::At(level)
        };
        self.can_be_at(node, level) && nodes.any(is_there)
    }

    fn forward(&mut self) {
        for node in self.open(Phase::Forward) {
            let first = self.model.flow.nodes[node].first;
            self.found[node] = match (self.before[node], self.after[node]) {
                (None, None) => Found::Unknown,
                (None, Some(_)) => Found::At(0),
                (Some(_), None) if first > self.last_layer => Found::At(self.out),
                // A head between layers goes with the layer before it.
                (Some(before), None) => Found::At(before),
                (Some(low), Some(high)) if low <= high => {
                    Found::At(self.most(node, (low, high)).unwrap_or(low))
                }
                _ => Found::Several,
            };
        }
    }

    /// What is made of parameters alone, such as a weight that is cast, goes with what
    /// uses it, where that is in one place.
    fn made_of_parameters(&mut self) {
        let mut is_made = vec![false; self.found.len()];
        for node in self.open(Phase::Forward) {
            let mut producers = self.producers(node);
            let is_input = |&edge: &u32| self.edge(edge).bytes > 0;
            let has_inputs = !self.parameters[node].is_empty() || !self.incoming[node].is_empty();
            is_made[node] = has_inputs
                && producers.all(|from| is_made[from])
                && !self.undirected[node].iter().any(is_input)
                && self.parameters[node].iter().all(|&own| self.is_weight(own));
        }
        let open: Vec<usize> = self.open(Phase::Forward).collect();
        for node in open.into_iter().rev().filter(|&node| is_made[node]) {
            let consumers = self.consumers(node);
            let forward = consumers.filter(|&to| self.phases[to] == Phase::Forward);
            let after = forward.fold(Found::Unknown, |found, to| found.join(self.found[to]));
            if let Found::At(_) = after {
                self.found[node] = after;
            }
        }
    }

    /// Is it a weight, and nothing that the host gives? Where no context says so, any
    /// parameter is one.
    fn is_weight(&self, parameter: u32) -> bool {
        let (set, _) = self.model.flow.parameters[parameter as usize];
        self.model.label_of(set).kind == TensorKind::Variable
            || !self
                .model
                .labels
                .iter()
                .any(|own| own.kind == TensorKind::Variable)
    }

    /// Parameters are where the nodes of the forward pass use them or, at last, any.
    fn place_parameters(&mut self, phase: Phase) {
        let in_phase = |own: Phase| own == phase || phase == Phase::Late;
        for (number, (_, nodes)) in self.model.flow.parameters.iter().enumerate() {
            if self.parameter_found[number].is_unknown() {
                let nodes = nodes.iter().map(|&node| node as usize);
                let own = nodes.filter(|&node| in_phase(self.phases[node]));
                let found = own.map(|node| self.found[node]);
                let all = found.clone().fold(Found::Unknown, Found::join);
                let levels = found.filter_map(|found| match found {
                    Found::At(level) => Some(level),
                    _ => None,
                });
                if all == Found::Several && phase == Phase::Forward {
                    self.shared[number] = levels.collect();
                }
                self.parameter_found[number] = all;
            }
        }
    }

    /// Between the levels of a node's interval, that with the maximum of bytes among what
    /// the node uses and makes, and of equals the one before it; `None` where it has none
    /// of any.
    fn most(&self, node: usize, (low, high): (Level, Level)) -> Option<Level> {
        let mut bytes: FxHashMap<Level, u64> = FxHashMap::default();
        let mut add = |found: Found, more: u64| {
            if let Found::At(level) = found
                && (low..=high).contains(&level)
                && self.can_be_at(node, level)
            {
                *bytes.entry(level).or_default() += more;
            }
        };
        for &edge in &self.incoming[node] {
            let edge = self.edge(edge);
            add(self.found[edge.from as usize], edge.bytes);
        }
        for edge in self.outgoing(node) {
            let mut levels: Vec<Found> = Vec::new();
            for &to in &edge.to {
                let found = self.found[to as usize];
                if !levels.contains(&found) {
                    levels.push(found);
                    add(found, edge.bytes);
                }
            }
        }
        for &parameter in &self.parameters[node] {
            let (set, _) = self.model.flow.parameters[parameter as usize];
            let bytes = self.bytes[set as usize].parameters;
            add(self.parameter_found[parameter as usize], bytes);
        }
        let most = bytes.into_iter().filter(|&(_, bytes)| bytes > 0);
        let before = self.before[node];
        let most = most.max_by_key(|&(level, bytes)| (bytes, Some(level) == before, level));
        most.map(|(level, _)| level)
    }

    /// What no data flows through, but what changes a parameter that several levels use,
    /// works for all of them: every IPU has a state of its own.
    fn advance_state(&mut self) {
        for node in self.open(Phase::Forward) {
            let is_state = !self.parameters[node].is_empty()
                && self
                    .parameters_of(node)
                    .all(|found| found == Found::Several)
                && self.incoming[node].is_empty()
                && self.undirected[node].is_empty()
                && self.outgoing(node).is_empty();
            if is_state && self.found[node].is_unknown() {
                self.found[node] = Found::Everywhere;
            }
        }
    }

    /// What runs in the backward pass, but for what follows that of the layers.
    fn backward(&mut self) {
        let out = self.out;
        for node in self.open(Phase::Backward) {
            self.found[node] = match (self.before[node], self.after[node]) {
                // The backward pass of Out, or of a head between layers.
                (None, Some(after)) => {
                    Found::At(self.most(node, (after, self.out)).unwrap_or(self.out))
                }
                // Next to an end, it is part of that which has what it uses.
                (Some(_), Some(0)) if self.uses_stash_of(node, 0) => Found::At(0),
                (Some(before), Some(_)) if before == out && self.uses_stash_of(node, out) => {
                    Found::At(out)
                }
                (Some(high), Some(low)) if low <= high => {
                    Found::At(self.most(node, (low, high)).unwrap_or(low))
                }
                (Some(_), Some(_)) => Found::Several,
                (_, None) => Found::Unknown,
            };
        }
    }

    /// What follows the backward pass of the layers is where the parameters are whose
    /// updates descend from it; without any, where its inputs are.
    fn updates(&mut self) {
        let mut descend = vec![Descend::default(); self.found.len()];
        for node in (0..self.found.len()).rev() {
            if self.phases[node] == Phase::Forward || self.is_outside[node] {
                continue;
            }
            descend[node] = match self.seeds[node] {
                Some(_) if self.phases[node] == Phase::Late => Descend::at(self.found[node]),
                Some(_) => Descend::default(),
                None => {
                    let own = self.parameters[node].iter().map(|&own| self.descend(own));
                    let consumers = self.consumers(node).chain(self.later_users(node));
                    let consumers = consumers.map(|to| descend[to]);
                    own.chain(consumers).fold(Descend::default(), Descend::join)
                }
            };
        }
        let open = self.open(Phase::Backward).chain(self.open(Phase::Late));
        let mut open: Vec<usize> = open.filter(|&node| self.found[node].is_unknown()).collect();
        open.sort_unstable();
        for node in open {
            self.found[node] = self.after_layers(node, descend[node]);
        }
    }

    /// Where a node is that no layer's backward pass follows.
    fn after_layers(&self, node: usize, descend: Descend) -> Found {
        let is_late = self.phases[node] == Phase::Late;
        let shared = descend.shared.map(|own| &self.shared[own as usize]);
        match (descend.found, shared) {
            (Found::At(level), Some(levels)) if !levels.contains(&level) => Found::Several,
            (Found::Unknown | Found::At(_), Some(_)) if is_late => {
                descend.shared.map_or(Found::Several, Found::Shared)
            }
            // The sum of gradients is where the last of them is made.
            _ if !is_late && self.sums_gradients(node) => self.after_inputs(node),
            (Found::Unknown, _) => self.after_inputs(node),
            (found, _) => found,
        }
    }

    /// What descends from a parameter: what only updates share, such as a learning rate,
    /// is nowhere.
    fn descend(&self, parameter: u32) -> Descend {
        match self.parameter_found[parameter as usize] {
            Found::Several => Descend {
                found: Found::Unknown,
                shared: Some(parameter).filter(|&own| !self.shared[own as usize].is_empty()),
            },
            found => Descend::at(found),
        }
    }

    /// Does a node join gradients, and use nothing else?
    fn sums_gradients(&self, node: usize) -> bool {
        let from_backward = |from| self.phases[from] == Phase::Backward;
        let mut producers: Vec<usize> = self.producers(node).collect();
        producers.dedup();
        self.before[node].is_some()
            && self.parameters[node].is_empty()
            && producers.len() > 1
            && producers.into_iter().all(from_backward)
    }

    /// The updates that use the same variables later: a node may change them in place.
    fn later_users(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.incoming[node].iter().map(|&edge| self.edge(edge));
        let backward = edges.filter(|edge| self.phases[edge.from as usize] != Phase::Forward);
        let users = backward.flat_map(|edge| edge.to.iter().map(|&to| to as usize));
        users.filter(move |&to| to > node && self.phases[to] == Phase::Late)
    }

    /// What changes no parameter is where its inputs are.
    fn after_inputs(&self, node: usize) -> Found {
        let last = self.before[node].unwrap_or(self.out);
        match self.before[node] {
            None if self.phases[node] == Phase::Late => {
                let found = self.producers(node).map(|from| self.found[from]);
                found.fold(Found::Unknown, Found::join)
            }
            before => match self.most(node, (0, last)).or(before) {
                Some(level) => Found::At(level),
                None => Found::Unknown,
            },
        }
    }

    /// Does a node run before the layers or after them in the forward pass, without a
    /// weight of theirs? Then the order of the program says more than what it shares.
    fn is_around_layers(&self, node: usize) -> bool {
        let is_forward = |own: &usize| self.phases[*own] == Phase::Forward;
        let layers = |own: &usize| self.seeds[*own].is_some() && is_forward(own);
        let all = 0..self.found.len();
        let (first, last) = (all.clone().find(layers), all.rev().find(layers));
        let is_between =
            first.is_some_and(|first| first < node) && last.is_some_and(|last| node < last);
        let of_layers =
            |found: Found| matches!(found, Found::At(level) if level > 0 && level < self.out);
        is_forward(&node)
            && !is_between
            && !self.is_outside[node]
            && !self.parameters_of(node).any(of_layers)
    }

    /// What is left is where the variables are that it uses with others.
    fn without_direction(&mut self) {
        for node in 0..self.found.len() {
            if !self.found[node].is_unknown() || self.is_around_layers(node) {
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
            self.found[node] = own.chain(others).fold(Found::Unknown, Found::join);
        }
    }
}
