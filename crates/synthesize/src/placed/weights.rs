//! Plants weights, their gradients and their optimiser state, the temporaries of the norm over all
//! gradients, and constants.

use super::Planter;
use crate::groups::{Access, Group, Role, Use};
use crate::model::{Op, Phase};
use crate::places::Places;
use crate::sizes::{self, budget};
use crate::templates::{self, Kind};
use crate::tensors::{self, SEED, State, TensorOf};
use crate::tree::Window;

impl Planter<'_> {
    pub(super) fn weights(&mut self) {
        for weight in 0..self.model.weights.len() {
            let group = self.weight(weight);
            if self.model.weights[weight].is_trained {
                self.gradient(weight, group);
                self.moments(weight, group);
                if self.settings.features.accumulation {
                    self.accumulator(weight, group);
                }
            }
        }
        if self.settings.training() {
            self.learning_rate();
        }
        if let Some(advance) = self.model.advances_seed {
            self.random_state(advance);
        }
    }

    /// Plants a weight, and returns the number of its group. A weight is needed where an operation
    /// computes with it; its upload and the optimiser run there too.
    fn weight(&mut self, weight: usize) -> usize {
        let planted = &self.model.weights[weight];
        let window = sizes::window(self.settings, weight);
        let tiles = u64::from(self.settings.tiles) * 1000 / u64::from(window.count);
        let drawn = || (self.bytes_of_weight(weight) * tiles.min(2500) / 1000).max(8);
        let users = planted.users.iter().copied();
        let readers = users.flat_map(|user| self.gradients_of(user).chain([user]));
        let reads = readers.flat_map(|op| self.read(op, planted.slot));
        let updates = self.stages_over(weight, Kind::Update);
        let uses: Vec<Use> = reads.chain(updates).collect();
        let group = Group {
            name: planted.name.clone(),
            window,
            is_mirrored: self.settings.is_mirrored(Role::Weight, weight as u64),
            bytes: planted.bytes.unwrap_or_else(drawn),
            places: planted.places,
            layer: planted.part.layer(),
            key: self.groups.len() as u64,
            mark: Some(TensorOf::Weight(weight, State::Value)),
            ..Group::new(planted.users[0], Role::Weight)
        };
        self.put(uses, group)
    }

    fn bytes_of_weight(&self, weight: usize) -> u64 {
        let planted = &self.model.weights[weight];
        let same = |other: &&tensors::Weight| other.part == planted.part;
        let weights = self.model.weights.iter().filter(same);
        let all: u64 = weights.map(|weight| u64::from(weight.share)).sum();
        budget(self.settings, planted.part).0 * u64::from(planted.share) / all
    }

    /// Plants the gradient of a weight. It is needed where the weight is, since it is made there.
    fn gradient(&mut self, weight: usize, group: usize) {
        let planted = &self.model.weights[weight];
        let gradients = planted.gradients.iter();
        let mut uses: Vec<Use> = gradients.flat_map(|&op| self.written(op)).collect();
        if !self.settings.features.accumulation {
            uses.extend(self.after_backward(weight));
        }
        let op = planted.gradients[0];
        let name = match self.model.ops[op].name.is_empty() {
            true => format!("Gradient___{}", planted.name),
            false => self.named(op, "gradient"),
        };
        let like = self.like(group, 1, op, Role::Gradient);
        self.put(uses, Group { name, ..like });
    }

    /// Returns the uses of a weight by the optimiser and by global operations over gradients.
    fn after_backward(&self, weight: usize) -> Vec<Use> {
        let kinds = [Kind::Update, Kind::Norm, Kind::Elementwise];
        let stages = kinds.map(|kind| self.stages_over(weight, kind));
        stages.concat()
    }

    /// Creates a group for a part of a weight that the host copies, on the tiles of the weight.
    fn state(&self, state: State, weight: usize, like: Group) -> Group {
        let name = &self.model.weights[weight].name;
        Group {
            name: state.name(self.settings.framework, name),
            mark: Some(TensorOf::Weight(weight, state)),
            ..like
        }
    }

    /// Plants the sum of the gradients of a weight. It is needed where the weight is.
    fn accumulator(&mut self, weight: usize, group: usize) {
        let gradients = &self.model.weights[weight].gradients;
        let uses = gradients.iter().flat_map(|&op| self.written(op));
        let uses: Vec<Use> = uses.chain(self.after_backward(weight)).collect();
        let like = self.like(group, 1, gradients[0], Role::Weight);
        self.put(uses, self.state(State::Accumulator, weight, like));
    }

    /// Plants the moments of a weight. They are needed where the weight is: an IPU updates its own
    /// weights.
    fn moments(&mut self, weight: usize, group: usize) {
        if !self.settings.features.optimiser.has_moments() {
            return;
        }
        let uses = self.stages_over(weight, Kind::Update);
        let update = self.tree.stages[uses[0].0].op;
        let width = self.settings.features.moment_width;
        let like = |planter: &Self, role| Group {
            is_float: width > 1,
            ..planter.like(group, width, update, role)
        };
        for state in [State::First, State::Second] {
            let group = self.state(state, weight, like(self, Role::Weight));
            self.put(uses.clone(), group);
        }
        let name = self.named(update, "step");
        let like = like(self, Role::Work);
        self.put(uses, Group { name, ..like });
    }

    /// Creates a group with the tiles, places and elements of another group.
    pub(super) fn like(&self, other: usize, times: u64, op: usize, role: Role) -> Group {
        let group = &self.groups[other];
        Group {
            window: group.window,
            bytes: group.bytes * times,
            places: group.places,
            layer: group.layer,
            key: group.key,
            like: Some((other, times)),
            ..Group::new(op, role)
        }
    }

    pub(super) fn group_of_weight(&self, weight: usize) -> usize {
        let mark = TensorOf::Weight(weight, State::Value);
        let mut groups = self.groups.iter();
        let found = groups.position(|group| group.mark == Some(mark));
        found.expect("every weight has one")
    }

    /// Returns the uses of a weight or its gradient by compute sets, of the operations of this kind
    /// between the backward pass and the next step.
    pub(super) fn stages_over(&self, weight: usize, kind: Kind) -> Vec<Use> {
        let ops = self.model.order.iter();
        let mut stages = Vec::new();
        for &op in ops.filter(|&&op| self.model.ops[op].kind == kind) {
            let author_op = &self.model.ops[op];
            let middle = author_op.works_on.len() / 2;
            for (number, works_on) in author_op.works_on.iter().enumerate() {
                // The two stages in the middle add up the partial results of gradients.
                let is_between =
                    kind == Kind::Norm && middle > 0 && [number, number + 1].contains(&middle);
                if works_on.contains(&weight) && !is_between {
                    stages.extend(self.at(op, number, Access::Compute));
                }
            }
        }
        stages
    }

    fn learning_rate(&mut self) {
        let ops = self.model.order.iter().copied();
        let updates = ops.filter(|&op| self.model.ops[op].is_update());
        let updates: Vec<usize> = updates.collect();
        let stages = updates.iter().flat_map(|&op| &self.tree.op_stages[op]);
        let uses = stages.map(|&stage| (stage, Access::Compute));
        let names = &templates::of(self.settings.framework).names;
        let name = names["learning_rate"].clone();
        let group = Group {
            mark: Some(TensorOf::LearningRate),
            ..self.on_every_ipu(updates[0], name, Role::Weight, 4)
        };
        self.put(uses, group);
    }

    fn random_state(&mut self, advance: usize) {
        let slot = templates::of(self.settings.framework).shared_slot();
        let layers = self.model.forward.iter().map(|ops| ops[slot]);
        let users = layers.flat_map(|user| self.gradients_of(user).chain([user]));
        let uses = users.chain([advance]).flat_map(|op| self.compute(op, 0));
        let uses: Vec<Use> = uses.collect();
        let group = Group {
            mark: Some(TensorOf::Seed),
            ..self.on_every_ipu(advance, SEED.to_owned(), Role::Weight, 16)
        };
        self.put(uses, group);
    }

    /// Plants the constants. A constant is copied to each place that uses it.
    pub(super) fn constants(&mut self) {
        for (number, constant) in self.model.constants.iter().enumerate() {
            let users = constant.users.iter();
            let uses: Vec<Use> = users.flat_map(|&user| self.compute(user, 0)).collect();
            let group = Group {
                name: constant.name.clone(),
                window: self.everywhere(),
                bytes: constant.bytes.unwrap_or(self.layer_bytes / 25),
                places: self.places_of(&constant.users),
                key: self.groups.len() as u64,
                mark: Some(TensorOf::Constant(number)),
                ..Group::new(constant.users[0], Role::Constant)
            };
            self.put(uses, group);
        }
    }

    /// Plants the temporaries of the norm. A 32-bit copy of each gradient and its partial sums are needed
    /// where the gradient is. The gathered sums and the norm itself are needed on every IPU that
    /// has a gradient: it adds up its own gradients and gets the result.
    pub(super) fn reaching(&mut self) {
        let adds_up = |op: &Op| {
            let is_norm = op.phase == Phase::Optimiser && op.kind == Kind::Norm;
            is_norm && op.works_on.len() > 1
        };
        let mut ops = self.model.order.iter().copied();
        let Some(op) = ops.find(|&op| adds_up(&self.model.ops[op])) else {
            return;
        };
        // The two stages in the middle, after squares and before scales.
        let broadcast = self.model.ops[op].works_on.len() / 2;
        let gather = broadcast - 1;
        let mut scales = Vec::new();
        for weight in self.model.trained() {
            let stages = self.stages_over(weight, Kind::Norm);
            self.partial_sums(weight, stages[0], self.at(op, gather, Access::Source));
            scales.push(stages.get(1).copied());
        }
        let computed = self.at(op, gather, Access::Compute);
        let gathered = vec![self.at(op, gather, Access::Destination), computed];
        let result = vec![computed, self.at(op, broadcast, Access::Source)];
        scales.push(self.at(op, broadcast, Access::Destination));
        let trained = self.model.trained();
        let places = trained.iter();
        let places = places.map(|&weight| self.model.weights[weight].places);
        let places: Places = places.collect();
        let (one, all) = (Window::all(1), self.everywhere());
        let sums = 4 * trained.len() as u64;
        for (what, window, bytes, uses) in [
            ("gathered", one, sums, gathered),
            ("norm", one, 4, result),
            ("broadcast", all, 4, scales),
        ] {
            let name = self.named(op, what);
            let group = Group {
                name,
                window,
                bytes,
                places,
                is_float: true,
                is_carried: true,
                ..Group::new(op, Role::Message)
            };
            self.put(uses.into_iter().flatten(), group);
        }
    }

    fn partial_sums(&mut self, weight: usize, squares: Use, gathered: Option<Use>) {
        let weight = self.group_of_weight(weight);
        let norm = self.tree.stages[squares.0].op;
        let cast = Group {
            name: self.named(norm, "cast"),
            is_float: true,
            ..self.like(weight, 2, norm, Role::Work)
        };
        self.put([squares], cast);
        let partial = Group {
            name: self.named(norm, "partial"),
            window: self.groups[weight].window,
            bytes: 8,
            places: self.groups[weight].places,
            is_float: true,
            is_carried: true,
            ..Group::new(norm, Role::Work)
        };
        self.put([squares].into_iter().chain(gathered), partial);
    }
}
