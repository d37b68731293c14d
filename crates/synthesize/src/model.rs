//! The operations of the planted model, in execution order.

use super::places::Places;
use super::templates::Kind;
use super::tensors::{Given, Part, Weight};

/// Which part of the model an operation belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Before the first layer.
    Embedding,
    #[default]
    Forward,
    /// After the last layer, with the loss.
    Head,
    /// The backward pass of a layer, or of embedding and head.
    Backward,
    Optimiser,
    /// Made by the compiler for every IPU.
    Compiler,
}

impl Phase {
    pub fn is_forward(self) -> bool {
        matches!(self, Self::Embedding | Self::Forward | Self::Head)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Its name in the framework; empty when the framework's compiler made it.
    pub name: String,
    pub op_type: String,
    pub kind: Kind,
    pub phase: Phase,
    pub made_for: Option<u32>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub activation: u32,
    pub function: Option<usize>,
    pub call: Option<usize>,
    pub partner: Option<usize>,
    /// Program stages; 0 for an operation that only lent its name to a call.
    pub stages: u32,
    /// The shapes of its stages, where they are not drawn.
    pub shapes: Vec<Shape>,
    /// The places that it computes for; none for a global operation.
    pub places: Places,
    /// By stage of a global operation: the weights that it works on.
    pub works_on: Vec<Vec<usize>>,
    pub reads: Vec<Read>,
    /// How many outputs it has: gradients of several things, or one.
    pub parts: usize,
    /// Whether it hands its outputs on; not what makes the gradient of a weight
    /// alone.
    pub hands_on: bool,
    /// The operation whose output it writes again, in place.
    pub rewrites: Option<usize>,
    /// Bytes on a tile of each output; none where they are drawn.
    pub sizes: Vec<u64>,
    /// In a graph: the number of the tensor of each output.
    pub tensors: Vec<usize>,
    /// The number in a graph of the operation, or of the one that it is the gradient of.
    pub in_graph: Option<usize>,
}

impl Op {
    /// Whether it updates weights.
    pub fn is_update(&self) -> bool {
        self.phase == Phase::Optimiser && self.kind == Kind::Update
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub from: usize,
    pub part: usize,
    /// Whether the gradient of the operation takes it too.
    pub is_saved: bool,
    pub has_gradient: bool,
}

impl Read {
    pub fn next(from: usize) -> Self {
        Self {
            from,
            part: 0,
            is_saved: false,
            has_gradient: true,
        }
    }

    pub fn saved(from: usize) -> Self {
        Self {
            is_saved: true,
            ..Self::next(from)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Compute,
    Exchanged,
    Copy,
}

impl Shape {
    pub fn programs(self) -> usize {
        match self {
            Shape::Compute | Shape::Copy => 1,
            Shape::Exchanged => 3,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Call {
    pub function: usize,
    /// The layer it stands in; the first for a call inside a body.
    pub layer: u32,
    /// For a call inside a body: the operations that stood there, in the order
    /// of the function's.
    pub stood_here: Vec<usize>,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// All operations; those of functions after the first call.
    pub ops: Vec<Op>,
    /// Execution order of what stands in the main program.
    pub order: Vec<usize>,
    /// Outlined bodies: operations of each.
    pub functions: Vec<Vec<usize>>,
    pub calls: Vec<Call>,
    /// Forward operations by layer and template; an outlined one is the same
    /// in every layer.
    pub forward: Vec<Vec<usize>>,
    pub weights: Vec<Weight>,
    pub constants: Vec<Given>,
    pub mask: Option<usize>,
    /// Tensors that the host sends for each micro-batch.
    pub inputs: Vec<Given>,
    pub advances_seed: Option<usize>,
}

impl Model {
    /// The part of the model that an operation works for; In for what has none.
    pub fn part(&self, op: usize) -> Part {
        let op = &self.ops[op];
        match (op.made_for, op.phase, op.partner) {
            (Some(layer), ..) => Part::Layer(layer),
            (None, Phase::Head, _) => Part::Out,
            (None, Phase::Backward, Some(forward)) => self.part(forward),
            _ => Part::In,
        }
    }

    pub fn trained(&self) -> Vec<usize> {
        let weights = 0..self.weights.len();
        let trained = weights.filter(|&weight| self.weights[weight].is_trained);
        trained.collect()
    }
}
