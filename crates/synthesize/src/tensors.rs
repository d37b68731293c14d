//! Weights and constants, and their names.

use super::places::Places;
use super::settings::{Framework, Settings};
use super::templates::{self, named};

/// The part of the model that a tensor was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Before the layers.
    In,
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

    /// The number of the layer, of a layer.
    pub fn layer(self) -> Option<u32> {
        match self {
            Part::Layer(layer) => Some(layer),
            Part::In | Part::Out => None,
        }
    }
}

/// A weight.
#[derive(Debug, Clone)]
pub struct Weight {
    pub name: String,
    /// The part that it was made for.
    pub part: Part,
    /// Its number in this part, the same in every layer.
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
    /// Bytes on a tile, where they do not follow from its share.
    pub bytes: Option<u64>,
}

impl Weight {
    /// Whether an operation of the forward pass computes with it, and training changes it.
    pub fn is_trained_for(&self, op: usize) -> bool {
        self.is_trained && self.users.contains(&op)
    }
}

/// A constant that several places use.
#[derive(Debug, Clone)]
pub struct Constant {
    pub name: String,
    /// Operations that compute with it.
    pub users: Vec<usize>,
    /// Bytes on a tile, where they are not those of a layer's constant.
    pub bytes: Option<u64>,
}

/// The parts of a weight that the host copies, each as a tensor of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Value,
    /// The optimiser's first moment.
    First,
    /// The optimiser's second moment.
    Second,
    /// The sum of its gradients.
    Accumulator,
}

impl State {
    /// The parts that a weight has.
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

    /// The name that it has for a weight.
    pub fn name(self, framework: Framework, weight: &str) -> String {
        let names = &templates::of(framework).names;
        match self {
            State::Value => weight.to_owned(),
            State::First => named(&names.first, weight),
            State::Second => named(&names.second, weight),
            State::Accumulator => named(&names.accumulator, weight),
        }
    }
}

/// Which tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TensorOf {
    /// A weight or its moments.
    Weight(usize, State),
    /// A constant of several places.
    Constant(usize),
    LearningRate,
    Seed,
}

impl TensorOf {
    /// Whether the host sends it.
    pub fn is_uploaded(self) -> bool {
        !matches!(self, TensorOf::Constant(_))
    }
}

/// The name of the random state.
pub const SEED: &str = "randomSeed___fromHost";
