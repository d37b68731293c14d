//! A compilation for one IPU, as plainly as the simulation needs it.

use std::collections::BTreeMap;

use crate::liveness::{Ranges, Steps, Variable};
use crate::places::Places;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pass {
    Forward,
    Backward,
}

/// Everything that lives for a part of the time, and the steps of all places.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub layers: u32,
    pub tiles: u32,
    /// The first step of a micro-batch; those before run once.
    pub first: u32,
    /// The first backward step; none in inference.
    pub backward_start: Option<u32>,
    /// The first step after both passes; from it on all run once.
    pub update: u32,
    /// By position: its steps in the forward pass.
    pub forward: Vec<Option<Steps>>,
    pub backward: Vec<Option<Steps>>,
    pub classes: Vec<Ranges>,
    pub tensors: Vec<Tensor>,
    pub weights: Vec<Held>,
    /// By tile: bytes of what belongs to single operations and of everything
    /// else that is live at the same steps on any IPU.
    pub locals: Vec<BTreeMap<Local, u64>>,
    pub updates: Updates,
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
    pub category: usize,
}

impl Local {
    pub fn new(places: Places, variable: &Variable) -> Self {
        Self {
            places,
            class: variable.class,
            category: variable.category,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tensor {
    pub name: String,
    pub from_host: bool,
    /// All uses; the first one in time makes it.
    pub uses: Vec<Use>,
    /// With the tile of each.
    pub on_tiles: Vec<(u32, Variable)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub position: u32,
    pub steps: Steps,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Updates {
    pub all: Vec<Update>,
    /// By tile: variables among those of operations that only an update uses.
    pub made: Vec<BTreeMap<Local, Vec<(usize, u64)>>>,
    /// By tile: bytes of gradients among those, which accumulators take the place of.
    pub gradients: Vec<BTreeMap<Local, u64>>,
    pub is_tensorflow: bool,
}

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
    pub bytes: u64,
    pub on_tiles: Vec<u64>,
}

impl Graph {
    pub fn positions(&self) -> u32 {
        self.layers + 2
    }

    pub fn forward_end(&self) -> u32 {
        self.backward_start.unwrap_or(self.update)
    }

    pub fn pass(&self, usage: &Use) -> Pass {
        match self.backward_start {
            Some(backward_start) if usage.steps.0 >= backward_start => Pass::Backward,
            _ => Pass::Forward,
        }
    }
}

impl Tensor {
    pub fn maker(&self) -> Use {
        let first = self.uses.iter().min_by_key(|usage| usage.steps);
        *first.expect("a tensor has uses")
    }

    pub fn end(&self) -> u32 {
        let ends = self.uses.iter().map(|usage| usage.steps.1);
        ends.max().unwrap_or(0)
    }
}
