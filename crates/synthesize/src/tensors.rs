//! Weights and constants of a model with known places, and what they are called.

use super::features::{Ends, Names};
use super::forms::Form;
use super::model::{Builder, layer_scale};
use super::options::{Framework, Settings};
use super::places::Places;
use super::random::topic;
use super::tree::Window;

/// The part of the model that a tensor was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Before the layers.
    In,
    /// A layer.
    Layer(u32),
    /// After the layers.
    Out,
}

impl Part {
    /// Its place.
    pub fn places(self) -> Places {
        match self {
            Part::In => Places::IN,
            Part::Layer(layer) => Places::layer(layer),
            Part::Out => Places::OUT,
        }
    }
}

/// A weight.
#[derive(Debug, Clone)]
pub struct Weight {
    /// Its name.
    pub name: String,
    /// The part that it was made for.
    pub part: Part,
    /// What it is in this part: the same number in every layer.
    pub slot: usize,
    /// Its share of the bytes of weights of its part.
    pub share: u32,
    /// The places that compute with it.
    pub places: Places,
    /// Operations that compute with it in the forward pass.
    pub users: Vec<usize>,
    /// Operations that write its gradient.
    pub gradients: Vec<usize>,
    /// Whether an optimiser updates it.
    pub is_trained: bool,
}

/// A constant that several places use.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Operations that compute with it.
    pub users: Vec<usize>,
}

/// What the host copies of a weight, each part as a tensor of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The weight itself.
    Value,
    /// The optimiser's first moment.
    First,
    /// The optimiser's second moment.
    Second,
    /// What sums up its gradients.
    Accumulator,
}

impl State {
    /// What a weight has of these.
    pub fn of(settings: &Settings, weight: &Weight) -> Vec<State> {
        let mut all = vec![State::Value];
        if weight.is_trained && settings.features.optimiser.has_moments() {
            all.extend([State::First, State::Second]);
        }
        if weight.is_trained && settings.features.accumulation {
            all.push(State::Accumulator);
        }
        all
    }

    /// The name that it has for a weight. PopART puts its mark in front.
    pub fn name(self, framework: Framework, weight: &str) -> String {
        let (popart, tensorflow, poplar) = match self {
            State::Value => return weight.to_owned(),
            State::First => ("Accl1___", "/Adam", "/m"),
            State::Second => ("Accl2___", "/Adam_1", "/v"),
            State::Accumulator => ("Accum___", "/Accumulator", "/accumulator"),
        };
        match framework {
            Framework::Popart | Framework::Poptorch => format!("{popart}{weight}"),
            Framework::Tensorflow => format!("{weight}{tensorflow}"),
            Framework::Poplar => format!("{weight}{poplar}"),
        }
    }
}

/// Bytes of weights, and of everything else, that a part has on an average tile.
pub fn budget(settings: &Settings, part: Part) -> (u64, u64) {
    let bytes = settings.bytes_per_layer_tile;
    let (weights, rest) = match (part, settings.features.ends) {
        (Part::Layer(_), _) if settings.features.equal_layers => (400, 600),
        (Part::Layer(layer), _) => {
            let (weights, rest) = layer_scale(settings, layer);
            (weights * 2 / 5, rest * 3 / 5)
        }
        (Part::In, _) if settings.features.forms.contains(&Form::Stem) => (700, 1100),
        (_, Ends::Small) => (40, 60),
        (Part::In, Ends::Medium) => (450, 200),
        (Part::Out, Ends::Medium) => (200, 250),
        (Part::In, Ends::Large) => (1300, 500),
        (Part::Out, Ends::Large) => (900, 900),
    };
    (bytes * weights / 1000, bytes * rest / 1000)
}

/// Tiles of a weight; its gradient and its moments have the same.
pub fn window(settings: &Settings, weight: usize) -> Window {
    let tiles = settings.tiles;
    let hash = settings
        .random
        .hash([topic::VARIABLE, weight as u64, 0, 20]);
    if settings.features.equal_layers || hash % 100 >= 15 {
        return Window {
            first: 0,
            count: tiles,
        };
    }
    let count = (tiles / 4 + (hash >> 8) as u32 % (tiles / 2)).max(1);
    Window {
        first: (hash >> 40) as u32 % (tiles - count + 1),
        count,
    }
}

impl Builder<'_> {
    /// Plants a weight of `op`; `name` is what it is called where names tell
    /// something. Its number stands in [`Builder::weight_of`].
    pub(super) fn plant_weight(
        &mut self,
        op: usize,
        part: Part,
        slot: usize,
        share: u32,
        name: &str,
    ) -> usize {
        let index = self.model.weights.len();
        self.model.weights.push(Weight {
            name: self.tensor_name(index, name),
            part,
            slot,
            share,
            places: Places::NONE,
            users: Vec::new(),
            gradients: Vec::new(),
            is_trained: false,
        });
        self.use_weight(index, op, part, slot);
        index
    }

    /// Lets `op`, in a part of the model, compute with a weight.
    pub(super) fn use_weight(&mut self, weight: usize, op: usize, part: Part, slot: usize) {
        let is_trained = self.is_trained(part, slot);
        let own = &mut self.model.weights[weight];
        own.is_trained |= is_trained;
        own.users.push(op);
        own.places |= part.places();
        self.weight_of.insert((part, slot), weight);
    }

    /// Exporters number weights that have no name.
    fn tensor_name(&self, index: usize, name: &str) -> String {
        match (self.settings.features.names, self.framework()) {
            (Names::Operation | Names::Variable, _) => name.to_owned(),
            (_, Framework::Tensorflow) => format!("Variable_{index}"),
            (_, Framework::Poplar) => format!("weights_{index}"),
            _ => format!("onnx::MatMul_{}", 1000 + 7 * index),
        }
    }
}
