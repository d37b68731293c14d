//! Features of a model beside its layers.

use clap::{Args, ValueEnum};

/// Switches of what a model has beside its layers.
#[derive(Debug, Clone, Args)]
pub struct Features {
    /// What updates the weights in training.
    #[arg(long, value_enum, default_value_t = Optimiser::Sgd)]
    pub optimiser: Optimiser,
    /// Where weights and their optimiser state say which layer they are of.
    #[arg(long, value_enum, default_value_t = Names::Operation)]
    pub names: Names,
    /// By how much moments, and steps of the optimiser, are wider than their weights.
    #[arg(long, default_value_t = 2)]
    pub moment_width: u64,
    /// Sums up the gradients of several micro-batches: each weight has an
    /// accumulator, and its gradient is gone after each micro-batch.
    #[arg(long)]
    pub accumulation: bool,
    /// Adds a norm over the gradients of all weights, which clips them: with operations for
    /// each gradient, as PopART and TensorFlow have it, or in plain Poplar with one of a
    /// compute set for each.
    #[arg(long)]
    pub gradient_norm: bool,
    /// Outlines parts of the backward pass too.
    #[arg(long, requires = "outlined")]
    pub outline_backward: bool,
    /// Leaves out the layers in the contexts of calls, in TensorFlow and plain Poplar.
    #[arg(long)]
    pub anonymous_calls: bool,
    /// Leaves the pairs of a call inside an outlined body, in PopART, on the calls that it
    /// replaced alone.
    #[arg(long)]
    pub pairs_on_replaced: bool,
    /// Lists pairs of contexts in no order.
    #[arg(long)]
    pub shuffle_pairs: bool,
    /// Memory that no variable explains, up to so many per cent of a tile's.
    #[arg(long, default_value_t = 0)]
    pub gaps: u32,
    /// Memory of what the compiler makes for every IPU, in thousandths of an
    /// average layer's.
    #[arg(long, default_value_t = 0)]
    pub compiler_made: u32,
    /// Size of embedding and head.
    #[arg(long, value_enum, default_value_t = Ends::Medium)]
    pub ends: Ends,
    /// Adds a mask that is made before the layers and used by all of them.
    #[arg(long)]
    pub masks: bool,
    /// Adds constants that several layers use.
    #[arg(long)]
    pub constants: bool,
    /// Which places share a weight.
    #[arg(long, value_enum)]
    pub tied: Option<Tied>,
    /// Trains neither embedding nor the first half of the layers.
    #[arg(long)]
    pub frozen: bool,
    /// Adds a random state that every IPU advances and all layers use.
    #[arg(long)]
    pub random_state: bool,
    /// Gives weights and activations the sizes of BERT-Large in 16 bits, for 8 samples of 128
    /// tokens, evenly over the 1,472 tiles of an IPU. A model of fewer tiles has the part on
    /// these.
    #[arg(long)]
    pub bert_large: bool,
}

/// The operations that update the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Optimiser {
    /// An operation for each weight, without any state.
    Sgd,
    /// An operation for each weight, which has two moments.
    AdamEach,
    /// One operation for all, with a compute set for each weight.
    AdamSets,
    /// One operation for all, with one compute set over all weights.
    AdamFused,
}

impl Optimiser {
    pub fn has_moments(self) -> bool {
        self != Self::Sgd
    }
}

/// The names in which the layer of a weight can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// The names of its variables and of its update.
    Operation,
    /// The names of its variables only.
    Variable,
    /// Nowhere.
    None,
}

/// The size of embedding and head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ends {
    /// A tenth of a layer.
    Small,
    /// Half a layer or a whole one.
    Medium,
    /// Twice a layer.
    Large,
}

/// The places that share a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tied {
    /// Embedding and head.
    Ends,
    /// Two layers with another between them.
    Layers,
}
