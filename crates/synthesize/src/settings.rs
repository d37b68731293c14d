//! The settings of a model.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::graph_file::ForwardPass;
use super::random::Random;

/// The framework whose names and chains of contexts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PopART from an ONNX model: a BERT.
    Popart,
    /// PyTorch through PopTorch: a BERT.
    Poptorch,
    /// TensorFlow through XLA: a convolutional network.
    Tensorflow,
    /// Poplar and PopLibs alone: a multi-layer perceptron.
    Poplar,
}

/// Inference or training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Forward only.
    Inference,
    /// Forward, backward in reverse layer order, optimiser.
    Training,
}

/// Whether operations are outlined into functions, and how their steps appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Outlined {
    /// No functions.
    None,
    /// Functions; `depth_first_steps` lists a body under its first call.
    Once,
    /// Functions; `depth_first_steps` lists a body under every call.
    PerCall,
}

/// The options of a model, and its graph.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Directory for the two files; it is created if it does not exist.
    #[arg(long)]
    pub out: PathBuf,
    /// The software from which the model claims to come.
    #[arg(long, value_enum, default_value_t = Framework::Popart)]
    pub framework: Framework,
    /// Layers of the model.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub layers: u32,
    /// Tiles of the one IPU.
    #[arg(long, default_value_t = 1472, value_parser = clap::value_parser!(u32).range(4..))]
    pub tiles: u32,
    /// Memory of a tile, in bytes.
    #[arg(long, default_value_t = 638_976)]
    pub bytes_per_tile: u64,
    /// Training adds the backward pass and an optimiser.
    #[arg(long, value_enum, default_value_t = Mode::Inference)]
    pub mode: Mode,
    /// Samples in a micro-batch.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    pub batch: u64,
    /// Available memory proportion: the share of a tile that temporaries of a product or
    /// convolution may take.
    #[arg(long, default_value_t = DEFAULT_PROPORTION)]
    pub proportion: f64,
    /// Factor by which temporaries of products and convolutions are larger than those of other
    /// operations with the same outputs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..1000))]
    pub temporaries: u64,
    /// Puts some weights and activations on other tiles, with the same bytes on all together.
    #[arg(long, conflicts_with = "variables")]
    pub moved: bool,
    /// How the steps of an outlined body that several layers call are listed.
    #[arg(long, value_enum, default_value_t = Outlined::None)]
    pub outlined: Outlined,
    /// Lets outlined bodies call functions themselves.
    #[arg(long, requires = "outlined")]
    pub nested: bool,
    /// Variables of user data that an average layer has on an average tile; never
    /// fewer than the model needs.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    pub vars_per_layer_tile: u32,
    /// Bytes of user data that an average layer has on an average tile.
    #[arg(long, default_value_t = 60_000)]
    pub bytes_per_layer_tile: u64,
    /// Total number of lowered variables; overrides --vars-per-layer-tile.
    #[arg(long)]
    pub variables: Option<u64>,
    /// Number of equivalence classes to aim at; never fewer than the model needs.
    #[arg(long, default_value_t = 0)]
    pub classes: usize,
    /// Number of liveness steps to aim at; never fewer than the model needs.
    #[arg(long, default_value_t = 0)]
    pub steps: usize,
    /// Number of debug contexts to aim at; never fewer than the model needs.
    #[arg(long, default_value_t = 0)]
    pub contexts: usize,
    /// Seed of every choice.
    #[arg(long = "seed", default_value = "1", value_parser = |seed: &str| seed.parse().map(Random))]
    pub random: Random,
    /// Page size of the SQLite file; small pages keep small files small.
    #[arg(long, default_value_t = 4096)]
    pub page_size: u32,
    /// Adds an execution, and runs the main loop only twice, so that it has few steps.
    #[arg(long)]
    pub execution: bool,
    /// Leaves out the cycle estimates of compute sets.
    #[arg(long)]
    pub no_cycle_estimates: bool,
    #[command(flatten)]
    pub features: Features,
    /// The forward pass of a real model, in place of layers that are all alike.
    #[arg(skip)]
    pub graph: Option<ForwardPass>,
}

/// The available memory proportion of PopLibs if none is set.
pub const DEFAULT_PROPORTION: f64 = 0.6;

impl Settings {
    pub fn training(&self) -> bool {
        self.mode == Mode::Training
    }

    /// Returns a number for the way in which the model is compiled; 0 by default.
    pub fn compilation(&self) -> u64 {
        let proportion = self.proportion.to_bits() ^ DEFAULT_PROPORTION.to_bits();
        proportion ^ (self.batch - 1) << 1 ^ u64::from(self.moved)
    }

    /// Returns whether large variables are distributed evenly over all tiles.
    pub fn is_even(&self) -> bool {
        self.features.bert_large || self.graph.is_some()
    }

    /// Returns whether PopART compiles the model. PopART gives gradients no names.
    pub fn is_popart(&self) -> bool {
        matches!(self.framework, Framework::Popart | Framework::Poptorch)
    }

    /// Returns the number of variables of user data on a tile to aim at.
    pub fn user_variables_per_tile(&self) -> u64 {
        u64::from(self.layers) * u64::from(self.vars_per_layer_tile)
    }

    /// Returns the approximate number of variables that a tile will have.
    pub fn variables_per_tile(&self) -> u64 {
        let of_users = self.user_variables_per_tile() * 10 / 3;
        self.variables
            .map_or(of_users, |all| all / u64::from(self.tiles))
    }
}

/// Features of a model besides its layers.
#[derive(Debug, Clone, Args)]
pub struct Features {
    /// The operations that update the weights in training.
    #[arg(long, value_enum, default_value_t = Optimiser::Sgd)]
    pub optimiser: Optimiser,
    /// Where the names of weights and of their optimiser state identify their layer.
    #[arg(long, value_enum, default_value_t = Names::Operation)]
    pub names: Names,
    /// How contexts mark the backward pass and updates.
    #[arg(long, value_enum, default_value_t = Marks::Framework)]
    pub marks: Marks,
    /// Factor by which the elements of moments, and of steps of the optimiser, are wider than those
    /// of their weights.
    #[arg(long, default_value_t = 2)]
    pub moment_width: u64,
    /// Sums up the gradients of several micro-batches: each weight has an accumulator, and its
    /// gradient is freed after each micro-batch.
    #[arg(long)]
    pub accumulation: bool,
    /// Adds a norm over the gradients of all weights, which clips them: with operations for each
    /// gradient, as in PopART and TensorFlow, or in plain Poplar with one operation that has a
    /// compute set for each gradient.
    #[arg(long)]
    pub gradient_norm: bool,
    /// Outlines parts of the backward pass too.
    #[arg(long, requires = "outlined")]
    pub outline_backward: bool,
    /// Leaves out the layers in the contexts of calls, in TensorFlow and plain Poplar.
    #[arg(long)]
    pub anonymous_calls: bool,
    /// Writes the pairs of a PopART call inside an outlined body only on the calls that it
    /// replaced.
    #[arg(long)]
    pub pairs_on_replaced: bool,
    /// Lists pairs of contexts in no order.
    #[arg(long)]
    pub shuffle_pairs: bool,
    /// Memory that no variable explains, up to this percentage of a tile's memory.
    #[arg(long, default_value_t = 0)]
    pub gaps: u32,
    /// Memory of the variables and code that the compiler makes for every IPU, in thousandths of
    /// the memory of an average layer.
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
    /// The places that share a weight.
    #[arg(long, value_enum)]
    pub tied: Option<Tied>,
    /// Trains neither embedding nor the first half of the layers.
    #[arg(long)]
    pub frozen: bool,
    /// Adds a random state that every IPU advances and all layers use.
    #[arg(long)]
    pub random_state: bool,
    /// Gives weights and activations the sizes of BERT-Large in 16 bits, for 8 samples of 128
    /// tokens, evenly over the 1,472 tiles of an IPU. A model of fewer tiles has only the part on
    /// its tiles.
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

/// How contexts mark the operations of the backward pass, and updates of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Marks {
    /// As the framework does.
    Framework,
    /// Not at all. In TensorFlow and plain Poplar, gradients have the names of modules.
    None,
    /// As None, with names of JAX.
    Jax,
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
