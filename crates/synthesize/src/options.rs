//! The options of the command line, and their meaning.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, ValueEnum};

use super::features::Features;
use super::graph_file::ForwardPass;
use super::pipelined::{Pipelined, PipelinedOptions};
use super::random::Random;
use super::settings::{Framework, Mode, Outlined, Settings};

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
    /// The forward pass of a real model, as graphs/write.py writes it, in place of layers
    /// that are all alike. Compressed if the name ends in .gz. Tensors have the bytes that they
    /// have on each of 1,472 tiles.
    #[arg(long)]
    pub graph: Option<PathBuf>,
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
    /// Variables of user data that an average layer has on an average tile; never
    /// fewer than the model needs.
    #[arg(long)]
    pub vars_per_layer_tile: Option<u32>,
    /// Bytes of user data that an average layer has on an average tile.
    #[arg(long)]
    pub bytes_per_layer_tile: Option<u64>,
    /// Lowered variables in all; overrides --vars-per-layer-tile.
    #[arg(long)]
    pub variables: Option<u64>,
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
    /// Also writes to this file, as JSON, where each operation is at home and
    /// what each range of places needs. For models of a few tiles and layers.
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
    /// What it has beside its layers.
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

/// The values of a preset.
struct Defaults {
    layers: u32,
    mode: Mode,
    outlined: Outlined,
    bytes_per_layer_tile: u64,
    variables: Option<u64>,
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
    classes: 0,
    steps: 0,
    contexts: 0,
};

const BIG: Defaults = Defaults {
    layers: 48,
    mode: Mode::Training,
    outlined: Outlined::Once,
    bytes_per_layer_tile: 82_000,
    variables: Some(10_000_000),
    classes: 100_000,
    steps: 20_000,
    contexts: 1_000_000,
};

impl Options {
    /// The pipelined compilation that is wanted instead of that for one IPU.
    pub fn pipelined(&self) -> Option<Pipelined> {
        let is_outlined = self
            .outlined
            .is_some_and(|outlined| outlined != Outlined::None);
        self.pipelined.settle(self.execution, is_outlined)
    }

    /// Fills in the preset and the defaults, and reads the graph.
    ///
    /// # Errors
    ///
    /// The graph cannot be read.
    pub fn settle(&self) -> anyhow::Result<Settings> {
        let graph = self.graph.as_deref().map(ForwardPass::read).transpose()?;
        let defaults = match self.preset {
            Some(Preset::Big) => BIG,
            None => SMALL,
        };
        Ok(Settings {
            out: self.out.clone(),
            framework: self.framework.unwrap_or(Framework::Popart),
            layers: match &graph {
                Some(graph) => graph.positions().0.len() as u32,
                None => self.layers.unwrap_or(defaults.layers).max(1),
            },
            tiles: self.tiles.unwrap_or(1472).max(4),
            bytes_per_tile: self.bytes_per_tile.unwrap_or(638_976),
            mode: self.mode.unwrap_or(defaults.mode),
            outlined: self.outlined.unwrap_or(defaults.outlined),
            nested: self.nested,
            vars_per_layer_tile: match &graph {
                Some(_) => 1,
                None => self.vars_per_layer_tile.unwrap_or(40).max(1),
            },
            bytes_per_layer_tile: self.layer_bytes(&defaults),
            variables: self.variables.or(defaults.variables),
            classes: self.classes.unwrap_or(defaults.classes),
            steps: self.steps.unwrap_or(defaults.steps),
            contexts: self.contexts.unwrap_or(defaults.contexts),
            random: Random(self.seed.unwrap_or(1)),
            page_size: self.page_size.unwrap_or(4096),
            execution: self.execution && self.pipelined.pipelined.is_none(),
            cycle_estimates: !self.no_cycle_estimates,
            planted: self.planted.clone(),
            features: self.features.clone(),
            graph: graph.map(Arc::new),
        })
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
