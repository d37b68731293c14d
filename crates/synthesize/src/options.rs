//! The options of the command line.

use std::path::PathBuf;

use clap::Parser;

use super::graph_file::ForwardPass;
use super::pipeline::{PipelineOptions, ProfileForm, Recompute, Schedule};
use super::settings::{Outlined, Settings};

/// Writes a synthetic `profile.pop` and `debug.cbor`.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// The forward pass of a real model, as graphs/write.py writes it, in place of layers
    /// that are all alike. Compressed if the name ends in .gz. Tensors have the bytes that they
    /// have on each of 1,472 tiles.
    #[arg(long)]
    graph: Option<PathBuf>,
    /// How often the program calls the model of the graph, one call after the other.
    #[arg(long, default_value_t = 1)]
    calls: usize,
    /// Each call after the first takes the result of the one before it, as the next token;
    /// otherwise all have inputs of their own.
    #[arg(long)]
    chained: bool,
    /// Makes the model outgrow its IPU: total above bytes per tile, the rest
    /// recorded as overflowed.
    #[arg(long)]
    overflow: bool,
    #[command(flatten)]
    settings: Settings,
    /// Writes the profile of a pipeline of PopART over several IPUs, with recomputed stages,
    /// instead of that of one: the positions before which there is a cut, where In is 0, the
    /// layers come from 1 on, and Out is the last. debug.cbor stays the same.
    #[arg(long, value_delimiter = ',')]
    pipelined: Option<Vec<u32>>,
}

/// A pipelined compilation to be written: the positions before which there is a cut, the pipeline,
/// and the form of its profile.
pub type Pipelined = (Vec<u32>, PipelineOptions, ProfileForm);

impl Options {
    /// Returns the settings of the requested model, with its graph, and the pipelined compilation
    /// that is written in place of one for one IPU, if it was requested.
    ///
    /// # Errors
    /// If the graph cannot be read.
    pub fn settle(self) -> anyhow::Result<(Settings, Option<Pipelined>)> {
        let mut settings = self.settings;
        let form = ProfileForm {
            execution: settings.execution,
            ..ProfileForm::PLAIN
        };
        let options = PipelineOptions {
            // In an outlined model, the bodies are listed at the call of one layer, so each IPU
            // goes through the steps of all others too.
            all_steps: settings.outlined != Outlined::None,
            ..PipelineOptions::new(Schedule::Popart, Recompute::Stage)
        };
        let pipelined = self.pipelined.map(|cuts| (cuts, options, form));
        settings.execution &= pipelined.is_none();
        if self.overflow {
            let most = 2 * settings.bytes_per_tile / u64::from(settings.layers);
            settings.bytes_per_layer_tile = settings.bytes_per_layer_tile.max(most);
        }
        if let Some(path) = self.graph {
            let graph = ForwardPass::read(&path)?.called(self.calls, self.chained);
            settings.layers = graph.positions().0.len() as u32;
            settings.vars_per_layer_tile = 1;
            settings.graph = Some(graph);
        }
        Ok((settings, pipelined))
    }
}
