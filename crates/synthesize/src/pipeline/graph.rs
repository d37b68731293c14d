//! A compilation for one IPU, as plainly as the simulation needs it.

use std::collections::BTreeMap;

use crate::liveness::{Ranges, Steps, Variable};
use crate::places::Places;

/// Forward or backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pass {
    Forward,
    Backward,
}

/// Everything that lives for a part of the time, and the steps of all places.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    /// Layers; the positions are In, the layers, Out.
    pub layers: u32,
    /// Tiles of an IPU.
    pub tiles: u32,
    /// The first step of a micro-batch; those before run once.
    pub first: u32,
    /// The first backward step; none in inference.
    pub backward_start: Option<u32>,
    /// The first step after both passes; from it on all run once.
    pub update: u32,
    /// By position: its steps in the forward pass.
    pub forward: Vec<Option<Steps>>,
    /// By position: its steps in the backward pass.
    pub backward: Vec<Option<Steps>>,
    /// Live ranges by class.
    pub classes: Vec<Ranges>,
    /// The tensors that flow from operation to operation.
    pub tensors: Vec<Tensor>,
    /// The weights that get accumulators.
    pub weights: Vec<Held>,
    /// By tile: bytes of what belongs to single operations and of everything
    /// else that is live at the same steps on any IPU.
    pub locals: Vec<BTreeMap<Local, u64>>,
    /// Updates of weights.
    pub updates: Updates,
    /// Estimated cycles of each position.
    pub cycles: Cycles,
}

/// The cycles of each position by one run of each program. What several places do counts in
/// equal parts; what no place does, nowhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Cycles {
    pub forward: Vec<u64>,
    pub backward: Vec<u64>,
    pub update: Vec<u64>,
}

/// Variables of single operations that are live at the same steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Local {
    pub places: Places,
    pub class: u32,
    /// Position among the categories of variables.
    pub category: usize,
}

impl Local {
    /// Variables with these places, and with the class and category of `variable`.
    pub fn new(places: Places, variable: &Variable) -> Self {
        let &Variable {
            category, class, ..
        } = variable;
        Self {
            places,
            class,
            category,
        }
    }
}

/// A tensor that one operation makes and others use.
#[derive(Debug, Clone, Default)]
pub(super) struct Tensor {
    pub name: String,
    /// Whether the host sends it.
    pub from_host: bool,
    /// All uses; the first one in time makes it.
    pub uses: Vec<Use>,
    /// Its bytes on each tile.
    pub on_tiles: Vec<OnTile>,
}

/// A use of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// The place of the operation.
    pub position: u32,
    /// When it runs.
    pub steps: Steps,
}

/// The part of a tensor on a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnTile {
    pub tile: u32,
    pub variable: Variable,
}

/// All updates of a model.
#[derive(Debug, Clone, Default)]
pub(super) struct Updates {
    /// In the order of their steps.
    pub all: Vec<Update>,
    /// By tile: variables among those of operations that only an update uses.
    pub made: Vec<BTreeMap<Local, Vec<(usize, u64)>>>,
    /// By tile: bytes of gradients among those, which accumulators take the place of.
    pub gradients: Vec<BTreeMap<Local, u64>>,
    /// Has TensorFlow made the model?
    pub is_tensorflow: bool,
}

/// An operation that updates weights.
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub steps: Steps,
    pub state: Vec<Held>,
    pub weights: Vec<Held>,
}

/// A tensor that is always live in the compilation for one IPU.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub name: String,
    pub places: Places,
    /// Over all tiles.
    pub bytes: u64,
    /// By tile; none where it has no part.
    pub on_tiles: Vec<u64>,
}

impl Graph {
    /// How many positions there are.
    pub fn positions(&self) -> u32 {
        self.layers + 2
    }

    /// The first step after the forward pass.
    pub fn forward_end(&self) -> u32 {
        self.backward_start.unwrap_or(self.update)
    }

    /// The pass of a use.
    pub fn pass(&self, usage: &Use) -> Pass {
        match self.backward_start {
            Some(backward_start) if usage.steps.0 >= backward_start => Pass::Backward,
            _ => Pass::Forward,
        }
    }
}

impl Tensor {
    /// The use that makes it.
    pub fn maker(&self) -> Use {
        let first = self.uses.iter().min_by_key(|usage| usage.steps);
        *first.expect("a tensor has uses")
    }

    /// The last step of any use, and one more.
    pub fn end(&self) -> u32 {
        let ends = self.uses.iter().map(|usage| usage.steps.1);
        ends.max().unwrap_or(0)
    }
}
