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
    /// Adds an operation that scales the gradients of all weights.
    #[arg(long)]
    pub loss_scaling: bool,
    /// Lets norm and scaling be one operation each, with one compute set over all gradients.
    #[arg(long)]
    pub whole_sets: bool,
    /// Outlines parts of the backward pass too.
    #[arg(long, requires = "outlined")]
    pub outline_backward: bool,
    /// Which calls have no context of their own that tells the layer, in
    /// TensorFlow and plain Poplar.
    #[arg(long, value_enum, default_value_t = Portion::None)]
    pub anonymous_calls: Portion,
    /// Where the pairs of a call inside an outlined body stand, in PopART.
    #[arg(long, value_enum, default_value_t = Pairs::OnClone)]
    pub pairs: Pairs,
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
    /// Lets the head take its input under the name that the last layer gave it.
    #[arg(long)]
    pub head_reads_layer: bool,
    /// Lets operations of a graph go by their types alone, as without PopTorch's scopes of
    /// modules.
    #[arg(long, requires = "graph")]
    pub scopes_off: bool,
    /// Adds a mask that is made before the layers and used by all of them.
    #[arg(long)]
    pub masks: bool,
    /// Adds constants that several layers use.
    #[arg(long)]
    pub constants: bool,
    /// Which places share a weight.
    #[arg(long, value_enum, default_value_t = Tied::None)]
    pub tied: Tied,
    /// Makes all layers equal, to the byte.
    #[arg(long)]
    pub equal_layers: bool,
    /// How large its weights and activations are.
    #[arg(long, value_enum, default_value_t = Sizes::Drawn)]
    pub sizes: Sizes,
    /// Forms of real models that it has, several separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub forms: Vec<Form>,
    /// What TensorFlow calls the updates of single weights.
    #[arg(long, value_enum, default_value_t = UpdateNames::Usual)]
    pub update_names: UpdateNames,
}

/// How large weights and activations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sizes {
    /// As the bytes of a layer and the seed have it, unevenly over the tiles.
    Drawn,
    /// Those of BERT-Large in 16 bits, for 8 samples of 128 tokens, evenly over the 1,472
    /// tiles of an IPU. A model of fewer tiles has what stands on so many of these.
    BertLarge,
}

/// A form of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Form {
    /// A late layer uses the embedding's output too.
    SkipIn,
    /// All layers use the embedding's output.
    SkipInAll,
    /// The late layers use the outputs of the early ones, the last that of the
    /// first.
    Unet,
    /// The layers of the second half use the output of one in the middle.
    EncoderMemory,
    /// A bias with a weight, made once before the layers and used by all.
    Bias,
    /// Several operations with weights and large activations before the layers.
    Stem,
    /// Heads with weight and loss between layers: each goes with the layer before.
    AuxHeads,
    /// What comes after the layers uses the outputs of all of them.
    Pyramid,
    /// Embedding and the first half of the layers are not trained.
    Frozen,
    /// Each layer has a small trained adapter, all else before the head is frozen.
    Adapters,
    /// All layers have the same weights.
    SharedAll,
    /// Each two layers have the same weights.
    SharedPairs,
    /// Two chains of layers that meet after the last one.
    Towers,
    /// A random state that every IPU advances and all layers use.
    RandomState,
    /// A layer stands in a loop.
    Repeat,
    /// Each layer's first weight is cast by an operation whose name tells nothing.
    Casts,
    /// Each layer has experts and a router that chooses from them; a loss of the routers of
    /// all layers is part of the model's.
    Experts,
    /// A layer in the middle uses the first weight of In too.
    EntryWeights,
    /// Every other layer is of another kind: it has a scan too.
    Hybrid,
}

/// What updates the weights.
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
    /// Whether each weight has two moments.
    pub fn has_moments(self) -> bool {
        self != Self::Sgd
    }
}

/// Where a weight's layer can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// In the names of its variables and of its update.
    Operation,
    /// In the names of its variables alone.
    Variable,
    /// Nowhere.
    None,
}

/// What updates are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UpdateNames {
    /// `update_` and `ResourceApply`.
    Usual,
    /// As optimisers outside of TensorFlow itself have it.
    Other,
}

/// How many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Portion {
    /// None of them.
    None,
    /// Every other one.
    Half,
    /// All of them.
    All,
}

/// Where the pairs of a call inside an outlined body stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pairs {
    /// On the call in the body, as well as on those that it replaced.
    OnClone,
    /// On the calls that it replaced alone.
    OnReplaced,
}

/// How large embedding and head are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ends {
    /// A tenth of a layer.
    Small,
    /// Half a layer or a whole one.
    Medium,
    /// Twice a layer.
    Large,
}

/// Which places share a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tied {
    /// None.
    None,
    /// Embedding and head.
    Ends,
    /// Two layers, one after the other.
    Neighbours,
    /// Two layers with another between them.
    Distant,
}
