//! Defines the operations of the planted model, in execution order.

use super::places::Places;
use super::templates::Kind;
use super::tensors::{Given, Part, Weight};

/// The part of the model to which an operation belongs.
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
    /// Returns the number of its pass: 0 forward, 1 backward, 2 update.
    pub fn pass(self) -> Option<usize> {
        match self {
            Self::Embedding | Self::Forward | Self::Head => Some(0),
            Self::Backward => Some(1),
            Self::Optimiser => Some(2),
            Self::Compiler => None,
        }
    }

    pub fn is_forward(self) -> bool {
        self.pass() == Some(0)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Name of the operation in the framework; empty if the framework's compiler made it.
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
    /// Number of program stages; 0 for an operation that only lent its name to a call.
    pub stages: u32,
    /// The shapes of its stages, unless they are drawn at random.
    pub shapes: Vec<Shape>,
    /// The places for which the operation computes; none for a global operation.
    pub places: Places,
    /// By stage of a global operation: the weights on which the stage works.
    pub works_on: Vec<Vec<usize>>,
    pub reads: Vec<Read>,
    /// Number of outputs: one, or the gradients of several tensors.
    pub parts: usize,
    /// Whether other operations use its outputs; false for an operation that makes only the
    /// gradient of a weight.
    pub hands_on: bool,
    /// The operation whose output it overwrites in place.
    pub rewrites: Option<usize>,
    /// Elements of each output for one sample; empty if its bytes are drawn at random.
    pub elements: Vec<u64>,
    /// In a graph: the number of the tensor of each output.
    pub tensors: Vec<usize>,
    /// In a graph: the number of the operation, or of the operation whose gradient it computes.
    pub in_graph: Option<usize>,
}

impl Op {
    /// Returns whether the operation updates weights.
    pub fn is_update(&self) -> bool {
        self.phase == Phase::Optimiser && self.kind == Kind::Update
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub from: usize,
    pub part: usize,
    /// Whether the gradient of the operation uses this input too.
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
    /// The layer of the call; the first layer for a call inside a body.
    pub layer: u32,
    /// For a call inside a body: the operations that it replaced, in the order of the function's
    /// operations.
    pub stood_here: Vec<usize>,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// All operations; the operations of functions come after the first call.
    pub ops: Vec<Op>,
    /// The operations of the main program, in execution order.
    pub order: Vec<usize>,
    /// By outlined body: its operations.
    pub functions: Vec<Vec<usize>>,
    pub calls: Vec<Call>,
    /// By layer, then by template: the forward operations. An outlined operation is the same in
    /// every layer.
    pub forward: Vec<Vec<usize>>,
    pub weights: Vec<Weight>,
    pub constants: Vec<Given>,
    pub mask: Option<usize>,
    /// The tensors that the host sends for each micro-batch.
    pub inputs: Vec<Given>,
    pub advances_seed: Option<usize>,
}

impl Model {
    /// Returns the part of the model for which an operation works; In for an operation without a
    /// part.
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
