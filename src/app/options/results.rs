//! Defines the options that request results.

use super::{
    effects::one_ipu_results,
    values::{List, ShortHelp, tiles},
};
use crate::{analysis::JudgedSplit, report::Format, report::emit::EmitForm};
use clap::{Args, ValueEnum};

/// Options that request results on standard output, and their format.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Print at most eight configurations that fit on up to --num-ipus IPUs: how many IPUs, which
    /// schedule, what to recompute and where to split. None is worse than another in IPUs, time
    /// and memory at once. The first one is recommended, and is the answer of --solve. As TSV, CSV
    /// or JSON, each comes with the command that gives it. The exit code says whether the model
    /// fits
    #[arg(long, short_help = "The configurations to consider, best first")]
    pub plan: bool,

    /// Find the best split points and print one JSON object for each stage; the exit code says
    /// whether the model fits
    #[arg(long, short_help = "The best split; exit code 0 if it fits")]
    pub solve: bool,

    /// Find the best split points, as --solve does, and print them as configuration: for
    /// Graphcore's examples (YAML), Optimum (JSON), PopTorch, PopART or
    /// Keras (Python), pipeline_stages of BERT for TensorFlow (JSON), pipeline_splits (YAML), or
    /// mmcv's split_edges (Python).
    /// May be given several times
    #[arg(
        long,
        value_name = "FORM",
        short_help = "The split as configuration to paste"
    )]
    pub emit: Vec<EmitForm>,

    /// Print a row for each number of IPUs up to --num-ipus: whether the model fits, and the memory
    /// and pipeline of its best split
    #[arg(long, short_help = "The best split for each number of IPUs")]
    pub sweep: bool,

    /// Explain on standard error what takes each stage's memory, and what changes if you move a
    /// layer over a cut or compile another pipeline
    #[arg(long, short_help = "What takes each stage's memory")]
    pub explain: bool,

    /// Judge this split and compare it with the best one. Give the first layer of each stage
    /// but stage 0, such as 3,10,17: the names of layers, modules (model.encoder.layer[3]) or
    /// operations, or a list from a configuration file; write a comma in a name as '\,'
    #[arg(long, value_name = "LAYER,...", value_parser = JudgedSplit::first_layers)]
    pub splits: Option<JudgedSplit>,

    /// Judge the split with these numbers of layers on the IPUs, such as 3,7,7,7 or [3 7 -1 -1],
    /// and compare it with the best one. -1 is an even share of the remaining layers. A 0 at the
    /// start is an IPU that runs only In, the operations before the layers, and a 0 at the end an
    /// IPU that runs only Out, the operations after them. Also a list that has the IPU of each
    /// layer, such as [0,0,1,1], or the path of a JSON file with layers_per_ipu
    #[arg(
        long,
        value_name = "COUNTS",
        value_parser = JudgedSplit::layers_per_ipu,
        conflicts_with = "splits",
        allow_hyphen_values = true
    )]
    pub layers_per_ipu: Option<JudgedSplit>,

    /// Judge a profile as it was compiled, for any number of IPUs. For each IPU, print its
    /// fullest tile, the tiles over the limit, and what they hold. The exit code says whether all
    /// IPUs fit. DEBUG is only used to find the layers of each IPU
    #[arg(long, conflicts_with_all = one_ipu_results(),
          short_help = "Does a compiled pipeline fit?")]
    pub fit: bool,

    /// The format of the results. With --solve, tsv and csv have a table of the stages, with the
    /// bytes over each cut, and a table of the layers
    #[arg(long, default_value = "auto")]
    pub format: Format,

    /// Show as much as possible of a profile that contradicts itself, for example because rows
    /// are missing, or with a DEBUG that is damaged or from another compilation. If the bytes in
    /// doubt could turn the verdict, there is none, and the exit code is 3
    #[arg(long)]
    pub allow_incomplete: bool,
}

impl ResultArgs {
    /// Returns the forms of configuration that `--emit` requests, without duplicates and in a fixed
    /// order.
    pub fn forms(&self) -> Vec<EmitForm> {
        let mut forms = EmitForm::value_variants().to_vec();
        forms.retain(|form| self.emit.contains(form));
        forms
    }

    /// Returns whether `--solve`, `--emit`, `--splits` or `--layers-per-ipu` is given, so that the
    /// exit code tells whether the model fits. With `--compare` alone, the exit code tells whether
    /// the model still fits.
    pub fn wants_verdict(&self) -> bool {
        self.solve || !self.emit.is_empty() || self.judged().is_some()
    }

    /// Returns the split of `--splits` or `--layers-per-ipu`, which is judged beside the best
    /// split; `None` if neither was given.
    pub fn judged(&self) -> Option<&JudgedSplit> {
        self.splits.as_ref().or(self.layers_per_ipu.as_ref())
    }
}

/// Options that request tables of the model and of the memory that the compiler recorded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Tables of the model")]
pub struct TableArgs {
    /// Print a row for each operation: its layer and why, its name, its bytes summed over tiles,
    /// the places that it is assigned to and by which rule, and its pass (forward, backward,
    /// update, or both)
    #[arg(long)]
    pub operation_breakdown: bool,

    /// Print a row for each layer with the bytes that it needs, summed over tiles. In, the
    /// operations before the layers, comes first; Out, the operations after them, comes last
    /// (None in the classic memory model). MB are 1,000,000 bytes
    #[arg(long)]
    pub layer_breakdown: bool,

    /// Print the bytes of the whole model as one stage, and what the compiler
    /// recorded for the 10 fullest tiles
    #[arg(long)]
    pub memory_totals: bool,

    /// Tiles that --memory-totals shows instead of the fullest, such as 0,7,16-19
    #[arg(long, value_name = "LIST", value_parser = tiles)]
    pub tiles: Option<List<u32>>,

    /// Print a matrix of layers: the bytes of the variables that both layers use
    #[arg(long)]
    pub memory_affinity: bool,

    /// Print a matrix of layers: the bytes of the variables that the row's layer makes and the
    /// column's layer uses up
    #[arg(long)]
    pub interlayer_communication: bool,

    /// Compare what the operations explain with what the compiler recorded:
    /// programs, code, and the tile and step with the most memory
    #[arg(long)]
    pub diagnose: bool,
}
