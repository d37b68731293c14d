//! Weights, their gradients and their optimiser state, constants.

use super::Planter;
use crate::groups::{Access, Group, Role};
use crate::model::Phase;
use crate::places::Places;
use crate::sizes::{self, budget};
use crate::templates::{self, Kind};
use crate::tensors::{self, SEED, State, TensorOf};
use crate::tree::Mark;

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
        self.random_state();
    }

    /// A weight is needed where something computes with it; its upload and the
    /// optimiser come to it.
    fn weight(&mut self, weight: usize) -> usize {
        let planted = &self.model.weights[weight];
        let window = sizes::window(self.settings, weight);
        let tiles = u64::from(self.settings.tiles) * 1000 / u64::from(window.count);
        let drawn = || (self.bytes_of_weight(weight) * tiles.min(2500) / 1000).max(8);
        let bytes = planted.bytes.unwrap_or_else(drawn);
        let mut uses = Vec::new();
        for &user in &planted.users {
            uses.extend(self.read(user, planted.slot));
            for gradient in self.gradients_of(user) {
                uses.extend(self.read(gradient, planted.slot));
            }
        }
        uses.extend(self.updates_of(weight));
        self.put(Group {
            name: planted.name.clone(),
            window,
            bytes,
            places: planted.places,
            layer: planted.part.layer(),
            key: self.groups.len() as u64,
            mark: Some(Mark::Tensor(TensorOf::Weight(weight, State::Value))),
            uses,
            ..Group::new(planted.users[0], Role::Weight)
        })
    }

    fn bytes_of_weight(&self, weight: usize) -> u64 {
        let planted = &self.model.weights[weight];
        let same = |other: &&tensors::Weight| other.part == planted.part;
        let weights = self.model.weights.iter().filter(same);
        let all: u64 = weights.map(|weight| u64::from(weight.share)).sum();
        budget(self.settings, planted.part).0 * u64::from(planted.share) / all
    }

    /// A gradient is needed where its weight is: it is made there.
    fn gradient(&mut self, weight: usize, group: usize) {
        let planted = &self.model.weights[weight];
        let mut uses = Vec::new();
        for &gradient in &planted.gradients {
            uses.extend(self.written(gradient));
        }
        if !self.settings.features.accumulation {
            uses.extend(self.after_backward(weight));
        }
        let op = planted.gradients[0];
        let name = if self.model.ops[op].name.is_empty() {
            format!("Gradient___{}", planted.name)
        } else {
            self.named(op, "gradient")
        };
        self.put(Group {
            name,
            uses,
            ..self.like(group, 1, op, Role::Gradient)
        });
    }

    /// The uses of a weight by the optimiser and by global operations over
    /// gradients.
    fn after_backward(&self, weight: usize) -> Vec<(usize, Access)> {
        let kinds = [Kind::Update, Kind::Norm, Kind::Elementwise];
        let stages = kinds.map(|kind| self.stages_over(weight, kind));
        stages.concat()
    }

    /// The sum of gradients is needed where its weight is.
    fn accumulator(&mut self, weight: usize, group: usize) {
        let planted = &self.model.weights[weight];
        let gradients = planted.gradients.iter();
        let mut uses: Vec<(usize, Access)> = gradients
            .flat_map(|&gradient| self.written(gradient))
            .collect();
        uses.extend(self.after_backward(weight));
        let state = State::Accumulator;
        self.put(Group {
            name: state.name(self.settings.framework, &planted.name),
            mark: Some(Mark::Tensor(TensorOf::Weight(weight, state))),
            uses,
            ..self.like(group, 1, planted.gradients[0], Role::Weight)
        });
    }

    /// Moments are needed where their weight is: an IPU updates its own weights.
    fn moments(&mut self, weight: usize, group: usize) {
        let planted = &self.model.weights[weight];
        let uses = self.updates_of(weight);
        let update = self.tree.stages[uses[0].0].op;
        let width = self.settings.features.moment_width;
        let moments = State::of(self.settings, planted).into_iter();
        for state in moments.filter(|state| matches!(state, State::First | State::Second)) {
            self.put(Group {
                name: state.name(self.settings.framework, &planted.name),
                is_float: width > 1,
                mark: Some(Mark::Tensor(TensorOf::Weight(weight, state))),
                uses: uses.clone(),
                ..self.like(group, width, update, Role::Weight)
            });
        }
        if self.settings.features.optimiser.has_moments() {
            self.put(Group {
                name: self.named(update, "step"),
                is_float: width > 1,
                uses,
                ..self.like(group, width, update, Role::Work)
            });
        }
    }

    /// A group with the tiles, places and elements of another.
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

    /// The group of a weight.
    pub(super) fn group_of_weight(&self, weight: usize) -> usize {
        let mark = Mark::Tensor(TensorOf::Weight(weight, State::Value));
        let mut groups = self.groups.iter();
        let found = groups.position(|group| group.mark == Some(mark));
        found.expect("every weight has one")
    }

    /// The stages of the optimiser that update a weight.
    fn updates_of(&self, weight: usize) -> Vec<(usize, Access)> {
        self.stages_over(weight, Kind::Update)
    }

    /// The compute sets over a weight or its gradient, of operations of a kind
    /// that stand between the backward pass and the next step.
    pub(super) fn stages_over(&self, weight: usize, kind: Kind) -> Vec<(usize, Access)> {
        let ops = self.model.order.iter();
        let mut stages = Vec::new();
        for &op in ops.filter(|&&op| self.model.ops[op].kind == kind) {
            let author_op = &self.model.ops[op];
            let middle = author_op.works_on.len() / 2;
            for (number, works_on) in author_op.works_on.iter().enumerate() {
                // The two in the middle add up what was made of gradients.
                let is_between =
                    kind == Kind::Norm && middle > 0 && [number, number + 1].contains(&middle);
                if works_on.contains(&weight) && !is_between {
                    stages.extend(self.at(op, number, Access::Compute));
                }
            }
        }
        stages
    }

    /// Every IPU needs the learning rate.
    fn learning_rate(&mut self) {
        let ops = self.model.order.iter().copied();
        let updates = ops.filter(|&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Optimiser && op.kind == Kind::Update
        });
        let updates: Vec<usize> = updates.collect();
        let stages = updates.iter().flat_map(|&op| &self.tree.op_stages[op]);
        self.put(Group {
            name: templates::of(self.settings.framework)
                .names
                .learning_rate
                .clone(),
            window: self.everywhere(),
            bytes: 4,
            places: Places::EVERY,
            is_float: true,
            mark: Some(Mark::Tensor(TensorOf::LearningRate)),
            uses: stages.map(|&stage| (stage, Access::Compute)).collect(),
            ..Group::new(updates[0], Role::Weight)
        });
    }

    /// Every IPU has a random state of its own.
    fn random_state(&mut self) {
        let Some(advance) = self.model.advances_seed else {
            return;
        };
        let slot = templates::of(self.settings.framework).shared_slot();
        let layers = self.model.forward.iter().map(|ops| ops[slot]);
        let users = layers.flat_map(|user| self.gradients_of(user).chain([user]));
        let users: Vec<usize> = users.chain([advance]).collect();
        self.put(Group {
            name: SEED.to_owned(),
            window: self.everywhere(),
            bytes: 16,
            places: Places::EVERY,
            is_float: true,
            mark: Some(Mark::Tensor(TensorOf::Seed)),
            uses: users.iter().flat_map(|&op| self.compute(op, 0)).collect(),
            ..Group::new(advance, Role::Weight)
        });
    }

    /// A constant is copied to each place that uses it.
    pub(super) fn constants(&mut self) {
        for (number, constant) in self.model.constants.iter().enumerate() {
            let users = constant.users.iter();
            let places = users.clone().map(|&user| self.model.ops[user].places);
            self.put(Group {
                name: constant.name.clone(),
                window: self.everywhere(),
                bytes: constant.bytes.unwrap_or(self.layer_bytes / 25),
                places: places.fold(Places::NONE, |all, one| all | one),
                key: self.groups.len() as u64,
                mark: Some(Mark::Tensor(TensorOf::Constant(number))),
                uses: users.flat_map(|&user| self.compute(user, 0)).collect(),
                ..Group::new(constant.users[0], Role::Constant)
            });
        }
    }
}
