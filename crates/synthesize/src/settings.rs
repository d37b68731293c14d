//! The settings of a model: the options with every default filled in.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;

use super::features::Features;
use super::graph_file::ForwardPass;
use super::random::Random;

/// Whose names and chains of contexts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

/// The options with every default filled in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory for the two files.
    pub out: PathBuf,
    /// Software that the model claims to come from.
    pub framework: Framework,
    /// Layers of the model, at least 1.
    pub layers: u32,
    /// Tiles of the IPU, at least 4.
    pub tiles: u32,
    /// Bytes of memory of a tile.
    pub bytes_per_tile: u64,
    /// Whether there is a backward pass.
    pub mode: Mode,
    /// Whether there are functions.
    pub outlined: Outlined,
    /// Whether functions call functions.
    pub nested: bool,
    /// User variables of an average layer on an average tile, at least.
    pub vars_per_layer_tile: u32,
    /// User bytes of an average layer on an average tile.
    pub bytes_per_layer_tile: u64,
    /// Lowered variables to aim at.
    pub variables: Option<u64>,
    /// Equivalence classes to aim at.
    pub classes: usize,
    /// Liveness steps to aim at.
    pub steps: usize,
    /// Debug contexts to aim at.
    pub contexts: usize,
    /// Source of every choice.
    pub random: Random,
    /// SQLite page size in bytes.
    pub page_size: u32,
    /// Whether there is an execution of the compilation for one IPU.
    pub execution: bool,
    /// Whether compute sets have cycle estimates.
    pub cycle_estimates: bool,
    /// Where to write what was planted.
    pub planted: Option<PathBuf>,
    /// Features beside its layers.
    pub features: Features,
    /// The forward pass of a real model, in place of layers that are all alike.
    pub graph: Option<Arc<ForwardPass>>,
}

impl Settings {
    /// Whether there is a backward pass and an optimiser.
    pub fn training(&self) -> bool {
        self.mode == Mode::Training
    }

    /// Whether what is large stands evenly on all tiles.
    pub fn is_even(&self) -> bool {
        self.features.bert_large || self.graph.is_some()
    }

    /// Whether outlined bodies take part in the backward pass.
    pub fn outlines_backward(&self) -> bool {
        self.outlined != Outlined::None && self.features.outline_backward
    }

    /// Whether the norm over all gradients has operations of its own for each, as PopART and
    /// TensorFlow make it.
    pub fn norms_each_gradient(&self) -> bool {
        self.framework != Framework::Poplar
    }

    /// Where interleaved memory starts: after the first third, as on a Mk2 tile.
    pub fn plain_bytes(&self) -> u64 {
        self.bytes_per_tile / 3 / 16_384 * 16_384
    }

    /// Variables of user data on a tile to aim at.
    pub fn user_variables_per_tile(&self) -> u64 {
        u64::from(self.layers) * u64::from(self.vars_per_layer_tile)
    }

    /// Whether a layer is to have fewer than twenty of user data on a tile.
    pub fn wants_few_variables(&self) -> bool {
        self.variables_per_tile() * 3 < u64::from(self.layers) * 200
    }

    /// About how many variables a tile will have.
    pub fn variables_per_tile(&self) -> u64 {
        let of_users = self.user_variables_per_tile() * 10 / 3;
        self.variables
            .map_or(of_users, |all| all / u64::from(self.tiles))
    }
}
