//! The options of the command line, and their meaning.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, ValueEnum};

use super::graph_file::ForwardPass;
use super::pipelined::{Pipelined, PipelinedOptions};
use super::settings::{Mode, Outlined, Settings};

/// Writes a synthetic `profile.pop` and `debug.cbor`.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// A ready set of values; options given beside it win.
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// The forward pass of a real model, as graphs/write.py writes it, in place of layers
    /// that are all alike. Compressed if the name ends in .gz. Tensors have the bytes that they
    /// have on each of 1,472 tiles.
    #[arg(long)]
    pub graph: Option<PathBuf>,
    /// Layers of the model.
    #[arg(long)]
    pub layers: Option<u32>,
    /// Training adds the backward pass and an optimiser.
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// How the steps of an outlined body that several layers call are listed.
    #[arg(long, value_enum)]
    pub outlined: Option<Outlined>,
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
    /// All that no preset has.
    #[command(flatten)]
    pub settings: Settings,
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
        self.pipelined.settle(self.settings.execution, is_outlined)
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
        let settings = &self.settings;
        let layers = self.layers.unwrap_or(defaults.layers).max(1);
        let bytes = self.bytes_per_layer_tile;
        let bytes = bytes.unwrap_or(defaults.bytes_per_layer_tile);
        Ok(Settings {
            layers: graph.as_ref().map_or(layers, ForwardPass::layers),
            mode: self.mode.unwrap_or(defaults.mode),
            outlined: self.outlined.unwrap_or(defaults.outlined),
            vars_per_layer_tile: match &graph {
                Some(_) => 1,
                None => settings.vars_per_layer_tile.max(1),
            },
            bytes_per_layer_tile: match self.overflow {
                true => bytes.max(2 * settings.bytes_per_tile / u64::from(layers)),
                false => bytes,
            },
            variables: self.variables.or(defaults.variables),
            classes: self.classes.unwrap_or(defaults.classes),
            steps: self.steps.unwrap_or(defaults.steps),
            contexts: self.contexts.unwrap_or(defaults.contexts),
            execution: settings.execution && self.pipelined.pipelined.is_none(),
            graph: graph.map(Arc::new),
            ..settings.clone()
        })
    }
}
