//! Defines the options of the command: one struct, with a group of options for each heading of the
//! help that lists more than four options.
//!
//! An option is one field of the struct or of one of these groups. The comment of the field is the
//! option's text in `--help`, `short_help` its text in `-h`. If the option affects only some
//! results, `effects.rs` names them. `Options::request` copies the options that affect a split into
//! a [`Request`]. Two functions in `src/analysis/request.rs` use this request after the model is
//! read: `Level::pipelines` makes the pipelines to try, from options such as `--recompute`, and
//! `Level::question` makes the input of the solver, a `SearchRequest`.

mod command_line;
mod effects;
mod help;
mod layers;
mod results;
mod split;
mod values;

pub use command_line::CommandLine;
pub use effects::{Effect, NoEffect};
pub use layers::LayerArgs;
pub use results::{ResultArgs, TableArgs};
pub use split::{PipelineArgs, SearchArgs, TimeArgs};
pub use values::OfProfile;

use crate::{
    analysis::Request,
    memory::PipelineOptions,
    model::Rules,
    report::emit::{MODEL, module_name},
    report::{Detail, Format, Units},
    search::{IpuCount, Reserve, SearchOptions, Solver},
    time::StepOptions,
};
use clap::{ArgAction, Parser, ValueEnum};
use std::path::PathBuf;
use values::{List, ShortHelp, mem_per_tile};

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Options {
    /// The profile that Poplar wrote (profile.pop), the report folder with it, or a
    /// model that --save-to-file wrote
    #[arg(short_help = "Poplar's report folder, or profile.pop in it")]
    pub profile: PathBuf,

    /// The debug contexts of the compilation that wrote PROFILE; by default, debug.cbor beside
    /// the profile or one folder above
    #[arg(short_help = "debug.cbor, if it is not beside the profile")]
    pub debug: Option<PathBuf>,

    /// Options that request results, such as `--solve` and `--plan`.
    #[command(flatten)]
    pub results: ResultArgs,

    /// How many IPUs you have, for all replicas together; or auto for the fewest on which the
    /// model fits, up to 64 (only powers of 2 for PopTorch). The default is auto, or the number of
    /// IPUs of a given split; 16 with --solver greedy or --memory-model classic
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        short_help = "How many IPUs you have, or auto",
        help_heading = "Limits"
    )]
    pub num_ipus: Option<IpuCount>,

    /// Memory of each tile to keep free, in bytes or per cent (such as 8192 or
    /// 5%). A profile of one IPU cannot show the code for exchange between IPUs
    /// and for host exchange at the ends of a pipeline: start with 5% and compare
    /// with a compilation for all IPUs
    #[arg(
        long,
        value_name = "AMOUNT",
        default_value = "0",
        short_help = "Memory of each tile to keep free, such as 5%",
        help_heading = "Limits"
    )]
    pub reserve: Reserve,

    /// The memory limit of a stage on each tile, in bytes; by default, the memory of the profile's
    /// tiles. A list, such as 600000,638976,500000, has one amount for each IPU
    #[arg(long, value_name = "BYTES", value_parser = mem_per_tile, help_heading = "Limits")]
    pub mem_per_tile: Option<List<u64>>,

    /// Which memory to count: everything that the compiler recorded (full), or what the original
    /// tool counted (classic), which is too little for most models
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "full",
        conflicts_with = "fit",
        help_heading = "Limits"
    )]
    pub memory_model: Rules,

    /// Options that choose the layers of the model and the operations that belong to them.
    #[command(flatten)]
    pub layers: LayerArgs,

    /// Write the report as one page for the browser, with charts; it works without a network
    #[arg(
        long,
        value_name = "FILE",
        short_help = "A page for the browser",
        help_heading = "Exports"
    )]
    pub export_html: Option<PathBuf>,

    /// Compare with an earlier report, which --export-json wrote with --solve: print the
    /// verdicts, stages, and layers that changed, and exit with 1 if the model fitted and no
    /// longer does. With --fit, compare the compilation with the report that predicted it, stage
    /// by stage, and say which --reserve would have been enough; the exit code is that of --fit
    #[arg(
        long,
        value_name = "FILE",
        short_help = "What changed since an earlier report",
        help_heading = "Exports"
    )]
    pub compare: Option<PathBuf>,

    /// Write the whole report as JSON, for programs; its schema is
    /// schema/report-v1.schema.json. '-' is standard output
    #[arg(
        long,
        value_name = "FILE",
        short_help = "The whole report, for programs",
        help_heading = "Exports"
    )]
    pub export_json: Option<PathBuf>,

    /// Write a summary in Markdown, for a pull request or an issue
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_markdown: Option<PathBuf>,

    /// Name of the model in your code, which configurations put before the names of its modules
    #[arg(long, value_name = "NAME", default_value = MODEL, value_parser = module_name,
          help_heading = "Names for --emit")]
    pub module_root: String,

    /// Options of the pipeline that the model will be compiled for, which adds to the memory of the
    /// layers.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Options for the predicted time of a step, such as the number of micro-batches.
    #[command(flatten)]
    pub time: TimeArgs,

    /// Options that say which split is the best one, and which splits are allowed.
    #[command(flatten)]
    pub search: SearchArgs,

    /// Options that request tables of the model and of the memory that the compiler recorded.
    #[command(flatten)]
    pub tables: TableArgs,

    /// Save the analysed model: it loads in a fraction of the time, and you can try other layers,
    /// limits and constraints on it
    #[arg(long, value_name = "FILE", help_heading = "Saved models")]
    pub save_to_file: Option<PathBuf>,

    /// Refuse PROFILE unless --save-to-file wrote it. A saved model also loads without this
    /// option
    #[arg(long, conflicts_with = "fit", help_heading = "Saved models")]
    pub load_from_file: bool,

    /// Units of the amounts on standard error, rounded up to tenths; auto picks the largest unit
    /// that suits. Results on standard output are always in bytes
    #[arg(long, default_value = "bytes", help_heading = "Messages")]
    pub units: Units,

    /// Print only errors and warnings: the verdict may depend on them
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Messages")]
    pub quiet: bool,

    /// Print more about what is read and found; give it twice for even more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub verbose: u8,

    /// Print a manual page, completions for a shell, or a page that opens reports; takes no
    /// PROFILE and no other option
    #[arg(
        long,
        value_name = "WHAT",
        exclusive = true,
        help_heading = "The command itself"
    )]
    pub generate: Option<Generate>,

    /// Print help: -h on one screen, --help with all options
    #[arg(short, long, action = ArgAction::Help, help_heading = "The command itself")]
    pub help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = "The command itself")]
    pub version: Option<bool>,

    /// The arguments of the command line as they were given, for the report.
    #[arg(skip)]
    pub arguments: Vec<String>,

    /// The arguments of the user that suggested commands repeat, such as `--pin=3=0`: each option
    /// and its value are one argument.
    #[arg(skip)]
    pub repeated: Vec<String>,

    /// The argument (`--splits` or `--layers-per-ipu`) with the split that the user wants judged;
    /// empty if there is none.
    #[arg(skip)]
    pub judged: Vec<String>,

    /// The first option that affects no requested result, if there is one.
    #[arg(skip)]
    pub no_effect: Option<NoEffect>,

    /// Whether the command line requests no result. Then the answer is whether the model fits on
    /// one IPU, and a plan if it does not.
    #[arg(skip)]
    pub is_bare: bool,

    /// The first option of `ONE_PROFILE` (options that request a result about one profile) that the
    /// user gave; `None` if there is none.
    #[arg(skip)]
    pub of_one_profile: Option<String>,
}

impl Options {
    /// Returns whether any requested result, such as `--solve` or `--plan`, needs the best split.
    pub fn wants_split(&self) -> bool {
        self.results.wants_verdict()
            || self.results.plan
            || self.results.explain
            || self.compare.is_some()
    }

    /// Returns whether any requested result, such as an export, needs the whole report and not only
    /// the split.
    pub fn wants_report(&self) -> bool {
        let files = [
            &self.export_json,
            &self.export_markdown,
            &self.export_html,
            &self.compare,
        ];
        files.iter().any(|file| file.is_some())
            || self.results.explain
            || self.results.solve && matches!(self.results.format, Format::Tsv | Format::Csv)
    }

    /// Converts the command-line options into a request: how to find layers, which split to find,
    /// and in which pipeline. Values that depend on the model, such as the number of IPUs without
    /// `--num-ipus`, are chosen after the model is read.
    pub(crate) fn request(&self) -> Request {
        let rules = self.memory_model;
        let (pipeline, time, search) = (&self.pipeline, &self.time, &self.search);
        let detail = self.detail();
        // Readers of an exported page can try other splits, except after the greedy search, which
        // evaluates only the split that it finds.
        let what_if = detail == Detail::Page && self.wants_split() && search.solver == Solver::Ilp;
        Request {
            options: SearchOptions {
                reserve: self.reserve,
                solver: search.solver,
                pipeline: PipelineOptions {
                    schedule: pipeline.schedule,
                    recompute: pipeline.recompute,
                    accumulator: pipeline.accumulator,
                    state: pipeline.optimizer_state,
                    replicas: time.replicas,
                },
                step: StepOptions {
                    micro_batches: time.micro_batches,
                    link_bandwidth: time.ipu_link_bandwidth,
                    micro_batch: time.micro_batch.first().map(|own| own.value),
                    streaming_bandwidth: time.streaming_bandwidth,
                    ..StepOptions::default()
                },
                split: self.wants_split(),
                sweep: self.results.sweep,
                plan: self.results.plan,
                moves: self.results.explain,
                counts: detail == Detail::Page
                    || self.results.emit.iter().any(|form| form.has_counts()),
                what_if,
                proportions: pipeline.amp.iter().map(|own| own.value).collect(),
            },
            rules,
            layers: self.layers.options(rules),
            placement: self.layers.placement(),
            memory_per_tile: self.mem_per_tile.clone().unwrap_or_default(),
            ipus: self.num_ipus,
            goal: search.objective,
            constraints: [&search.pin[..], &search.together, &search.cut_before].concat(),
            judged: self.results.judged().cloned(),
            detail,
            arguments: self.arguments.clone(),
        }
    }

    /// Returns how much of the report the requested results need: only the split, all tables, or
    /// everything that a page shows.
    fn detail(&self) -> Detail {
        if self.export_html.is_some() || self.export_json.is_some() {
            Detail::Page
        } else if self.wants_report() {
            Detail::Full
        } else {
            Detail::Split
        }
    }
}

/// Values of `--generate`: the file that the command prints instead of reading a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// A manual page.
    Man,
    /// Completions for bash.
    CompleteBash,
    /// Completions for zsh.
    CompleteZsh,
    /// Completions for fish.
    CompleteFish,
    /// A page that opens reports of --export-json.
    Viewer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Options::described().debug_assert();
    }
}
