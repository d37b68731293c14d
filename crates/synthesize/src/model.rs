//! The operations of the planted model, in execution order.

use super::places::Places;
use super::templates::Kind;
use super::tensors::{Constant, Weight};

/// Which part of the model an operation belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Before the first layer.
    Embedding,
    /// The forward pass of a layer.
    #[default]
    Forward,
    /// After the last layer, with the loss.
    Head,
    /// The backward pass of a layer, or of embedding and head.
    Backward,
    /// Weight updates.
    Optimiser,
    /// Made by the compiler for every IPU.
    Compiler,
}

impl Phase {
    /// Whether it is a part of the forward pass.
    pub fn is_forward(self) -> bool {
        matches!(self, Self::Embedding | Self::Forward | Self::Head)
    }
}

/// One operation of the model.
#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Its name in the framework; empty when the framework's compiler made it.
    pub name: String,
    pub op_type: String,
    pub kind: Kind,
    /// Which part of the model it is.
    pub phase: Phase,
    /// The layer that it was made for.
    pub made_for: Option<u32>,
    /// Names of its input tensors.
    pub inputs: Vec<String>,
    /// Names of its output tensors.
    pub outputs: Vec<String>,
    /// Share of the activations of its layer.
    pub activation: u32,
    /// The function whose body it stands in.
    pub function: Option<usize>,
    /// The call site, for a call.
    pub call: Option<usize>,
    /// The forward operation of a backward one.
    pub partner: Option<usize>,
    /// Program stages; 0 for an operation that only lent its name to a call.
    pub stages: u32,
    /// The shapes of its stages, where they are not drawn.
    pub shapes: Vec<Shape>,
    /// The places that it computes for; none for a global operation.
    pub places: Places,
    /// By stage of a global operation: the weights that it works on.
    pub works_on: Vec<Vec<usize>>,
    /// Its reads of other operations of the main program.
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

/// A read of the output of another operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The operation that makes it.
    pub from: usize,
    pub part: usize,
    /// Whether the gradient of the operation takes it too.
    pub is_saved: bool,
    /// Whether a gradient flows back for it.
    pub has_gradient: bool,
}

impl Read {
    /// The output of an operation.
    pub fn next(from: usize) -> Self {
        Self {
            from,
            part: 0,
            is_saved: false,
            has_gradient: true,
        }
    }

    /// A read that is needed in the backward pass too.
    pub fn saved(from: usize) -> Self {
        Self {
            is_saved: true,
            ..Self::next(from)
        }
    }

    /// A read whose gradient is that of the way around.
    pub fn residual(from: usize) -> Self {
        Self {
            has_gradient: false,
            ..Self::next(from)
        }
    }
}

/// What the host sends for each micro-batch.
#[derive(Debug, Clone)]
pub struct Input {
    pub name: String,
    /// Operations of the forward pass that read it.
    pub users: Vec<usize>,
    /// Bytes on a tile, where they are not drawn.
    pub bytes: Option<u64>,
}

/// The programs of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Compute,
    Exchanged,
    Copy,
}

impl Shape {
    /// Programs of such a stage.
    pub fn programs(self) -> usize {
        match self {
            Shape::Compute | Shape::Copy => 1,
            Shape::Exchanged => 3,
        }
    }
}

/// An outlined body.
#[derive(Debug, Clone, Default)]
pub struct Function {
    pub ops: Vec<usize>,
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    pub function: usize,
    /// The layer it stands in; the first for a call inside a body.
    pub layer: u32,
    /// For a call inside a body: the operations that stood there, in the order
    /// of the function's.
    pub stood_here: Vec<usize>,
}

/// The planted model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// All operations; those of functions after the first call.
    pub ops: Vec<Op>,
    /// Execution order of what stands in the main program.
    pub order: Vec<usize>,
    pub functions: Vec<Function>,
    /// Call sites, in execution order.
    pub calls: Vec<Call>,
    /// Forward operations by layer and template; an outlined one is the same
    /// in every layer.
    pub forward: Vec<Vec<usize>>,
    pub weights: Vec<Weight>,
    /// Constants that several places use.
    pub constants: Vec<Constant>,
    /// The operation that makes the mask.
    pub mask: Option<usize>,
    /// What the host sends beside weights.
    pub inputs: Vec<Input>,
    /// The operation that advances the random state.
    pub advances_seed: Option<usize>,
}

impl Model {
    /// The weights that an optimiser updates.
    pub fn trained(&self) -> Vec<usize> {
        let all = 0..self.weights.len();
        all.filter(|&weight| self.weights[weight].is_trained)
            .collect()
    }
}
