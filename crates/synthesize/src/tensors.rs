//! Defines weights and constants, and their names.

use super::places::Places;
use super::settings::{Framework, Settings};
use super::templates;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Before the layers.
    In,
    Layer(u32),
    /// After the layers.
    Out,
}

impl Part {
    pub fn places(self) -> Places {
        match self {
            Part::In => Places::IN,
            Part::Layer(layer) => Places::layer(layer),
            Part::Out => Places::OUT,
        }
    }

    pub fn layer(self) -> Option<u32> {
        match self {
            Part::Layer(layer) => Some(layer),
            Part::In | Part::Out => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Weight {
    pub name: String,
    pub part: Part,
    /// Its number in this part, which is the same in every layer.
    pub slot: usize,
    /// Its share of the bytes of weights of its part.
    pub share: u32,
    pub places: Places,
    pub users: Vec<usize>,
    pub gradients: Vec<usize>,
    pub is_trained: bool,
    /// Bytes on a tile, unless they follow from its share.
    pub bytes: Option<u64>,
}

impl Weight {
    /// Returns whether an operation of the forward pass computes with the weight, and training
    /// changes it.
    pub fn is_trained_for(&self, op: usize) -> bool {
        self.is_trained && self.users.contains(&op)
    }
}

/// A tensor that no operation makes and that training does not change: an input of the model, or a
/// constant that several places use.
#[derive(Debug, Clone)]
pub struct Given {
    pub name: String,
    /// The operations of the forward pass that read it.
    pub users: Vec<usize>,
    /// Bytes on a tile, unless they follow from the bytes of a layer.
    pub bytes: Option<u64>,
}

/// The tensors that belong to a weight and that the host copies, each by itself.
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

    pub fn name(self, framework: Framework, weight: &str) -> String {
        let kind = match self {
            State::Value => return weight.to_owned(),
            State::First => "first",
            State::Second => "second",
            State::Accumulator => "accumulator",
        };
        templates::of(framework).named(kind, weight)
    }
}

/// Variables that are copied from or to the host by themselves, and constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TensorOf {
    Weight(usize, State),
    Constant(usize),
    LearningRate,
    Seed,
    Input,
    Loss,
}

impl TensorOf {
    /// Returns whether the host sends the tensor before the first micro-batch.
    pub fn is_uploaded(self) -> bool {
        matches!(self, Self::Weight(..) | Self::LearningRate | Self::Seed)
    }
}

pub const SEED: &str = "randomSeed___fromHost";
