//! What can be asked for on the command line, and what it comes to.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::features::Features;
use super::pipelined::{Pipelined, PipelinedOptions};
use super::random::Random;

/// Writes a synthetic `profile.pop` and `debug.cbor`.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Directory for the two files; made when missing.
    #[arg(long)]
    pub out: PathBuf,
    /// A ready set of values; options given beside it win.
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Which software the model claims to come from.
    #[arg(long, value_enum)]
    pub framework: Option<Framework>,
    /// Layers of the model.
    #[arg(long)]
    pub layers: Option<u32>,
    /// Tiles of the one IPU.
    #[arg(long)]
    pub tiles: Option<u32>,
    /// Memory of a tile, in bytes.
    #[arg(long)]
    pub bytes_per_tile: Option<u64>,
    /// Training adds the backward pass and an optimiser.
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// How the steps of an outlined body that several layers call are listed.
    #[arg(long, value_enum)]
    pub outlined: Option<Outlined>,
    /// Lets outlined bodies call functions themselves.
    #[arg(long, requires = "outlined")]
    pub nested: bool,
    /// Variables of user data that an average layer has on an average tile.
    #[arg(long)]
    pub vars_per_layer_tile: Option<u32>,
    /// Bytes of user data that an average layer has on an average tile.
    #[arg(long)]
    pub bytes_per_layer_tile: Option<u64>,
    /// Lowered variables in all; overrides --vars-per-layer-tile.
    #[arg(long)]
    pub variables: Option<u64>,
    /// Part of the user variables that operations of several layers use.
    #[arg(long)]
    pub shared_fraction: Option<f64>,
    /// Equivalence classes to aim at; never fewer than the model needs.
    #[arg(long)]
    pub classes: Option<usize>,
    /// Liveness steps to aim at; never fewer than the model needs.
    #[arg(long)]
    pub steps: Option<usize>,
    /// Debug contexts to aim at; never fewer than the model needs.
    #[arg(long)]
    pub contexts: Option<usize>,
    /// Makes the model outgrow its IPU: total above bytes per tile, the rest
    /// recorded as overflowed.
    #[arg(long)]
    pub overflow: bool,
    /// Seed of every choice.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also writes to this file, as JSON, which bytes were planted for which
    /// layer, tile and category, and what each range of layers needs. For
    /// models of a few tiles and layers.
    #[arg(long)]
    pub planted: Option<PathBuf>,
    /// Adds an execution, and lets the main loop run twice only, so that it has
    /// few steps.
    #[arg(long)]
    pub execution: bool,
    /// Leaves out the cycle estimates of compute sets.
    #[arg(long)]
    pub no_cycle_estimates: bool,
    /// Page size of the SQLite file; small pages keep small files small.
    #[arg(long)]
    pub page_size: Option<u32>,
    /// What a model with known places has.
    #[command(flatten)]
    pub features: Features,
    /// A pipelined compilation of such a model.
    #[command(flatten)]
    pub pipelined: PipelinedOptions,
}

/// Ready sets of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The scale of the largest public BERT profiles: 1 GB and 10^7 variables.
    Big,
}

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
    /// User variables of an average layer on an average tile.
    pub vars_per_layer_tile: u32,
    /// User bytes of an average layer on an average tile.
    pub bytes_per_layer_tile: u64,
    /// Lowered variables to aim at.
    pub variables: Option<u64>,
    /// Part of the user variables that several layers use.
    pub shared_fraction: f64,
    /// Whether weights are among what several layers use.
    pub shares_weights: bool,
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
    /// Whether there is an execution. That of a pipelined compilation leaves the
    /// model as it is.
    pub execution: bool,
    /// The pipelined compilation that is wanted instead of that for one IPU.
    pub pipelined: Option<Pipelined>,
    /// Whether compute sets have cycle estimates.
    pub cycle_estimates: bool,
    /// Where to write what was planted.
    pub planted: Option<PathBuf>,
    /// What a model with known places has.
    pub features: Features,
}

/// What a preset sets.
struct Defaults {
    layers: u32,
    mode: Mode,
    outlined: Outlined,
    bytes_per_layer_tile: u64,
    variables: Option<u64>,
    shared_fraction: f64,
    shares_weights: bool,
    classes: usize,
    steps: usize,
    contexts: usize,
}

const SMALL: Defaults = Defaults {
    layers: 12,
    mode: Mode::Inference,
    outlined: Outlined::None,
    bytes_per_layer_tile: 60_000,
    variables: None,
    shared_fraction: 0.25,
    shares_weights: true,
    classes: 0,
    steps: 0,
    contexts: 0,
};

/// The shared fraction is that of user variables without weights; of all
/// variables it is a quarter. Each layer has weights of its own, as in a BERT:
/// weights of two layers would have to be on one IPU, and with many of them no
/// split would fit.
const BIG: Defaults = Defaults {
    layers: 48,
    mode: Mode::Training,
    outlined: Outlined::Once,
    bytes_per_layer_tile: 82_000,
    variables: Some(10_000_000),
    shared_fraction: 0.44,
    shares_weights: false,
    classes: 100_000,
    steps: 20_000,
    contexts: 1_000_000,
};

impl Options {
    /// Fills in the preset and the defaults.
    pub fn settle(&self) -> Settings {
        let defaults = match self.preset {
            Some(Preset::Big) => BIG,
            None => SMALL,
        };
        let shared_fraction = self.shared_fraction.unwrap_or(defaults.shared_fraction);
        Settings {
            out: self.out.clone(),
            framework: self.framework.unwrap_or(Framework::Popart),
            layers: self.layers.unwrap_or(defaults.layers).max(1),
            tiles: self.tiles.unwrap_or(1472).max(4),
            bytes_per_tile: self.bytes_per_tile.unwrap_or(638_976),
            mode: self.mode.unwrap_or(defaults.mode),
            outlined: self.outlined.unwrap_or(defaults.outlined),
            nested: self.nested,
            vars_per_layer_tile: self.vars_per_layer_tile.unwrap_or(40).max(1),
            bytes_per_layer_tile: self.layer_bytes(&defaults),
            variables: self.variables.or(defaults.variables),
            shared_fraction: shared_fraction.clamp(0.0, 1.0),
            shares_weights: defaults.shares_weights,
            classes: self.classes.unwrap_or(defaults.classes),
            steps: self.steps.unwrap_or(defaults.steps),
            contexts: self.contexts.unwrap_or(defaults.contexts),
            random: Random(self.seed.unwrap_or(1)),
            page_size: self.page_size.unwrap_or(4096),
            execution: self.execution && self.pipelined.pipelined.is_none(),
            pipelined: self.pipelined.settle(self.execution),
            cycle_estimates: !self.no_cycle_estimates,
            planted: self.planted.clone(),
            features: self.features.clone(),
        }
    }

    fn layer_bytes(&self, defaults: &Defaults) -> u64 {
        let wanted = self
            .bytes_per_layer_tile
            .unwrap_or(defaults.bytes_per_layer_tile);
        let layers = u64::from(self.layers.unwrap_or(defaults.layers).max(1));
        match self.overflow {
            true => wanted.max(2 * self.bytes_per_tile.unwrap_or(638_976) / layers),
            false => wanted,
        }
    }
}

impl Settings {
    /// Whether there is a backward pass and an optimiser.
    pub fn training(&self) -> bool {
        self.mode == Mode::Training
    }

    /// Whether every variable and piece of code is planted for known places.
    pub fn has_places(&self) -> bool {
        self.features.places
    }

    /// Whether outlined bodies take part in the backward pass.
    pub fn outlines_backward(&self) -> bool {
        self.outlined != Outlined::None && self.features.outline_backward
    }

    /// Where interleaved memory starts: after the first third, as on a Mk2 tile.
    pub fn plain_bytes(&self) -> u64 {
        self.bytes_per_tile / 3 / 16_384 * 16_384
    }

    /// About how many variables a tile will have.
    pub fn variables_per_tile(&self) -> u64 {
        let layers = u64::from(self.layers) * u64::from(self.vars_per_layer_tile);
        self.variables
            .map_or(layers * 10 / 3, |all| all / u64::from(self.tiles))
    }
}
