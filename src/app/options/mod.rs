//! Defines the options of the command: one struct, with a group of options for each heading of the
//! help.
//!
//! An option is one field in one of these groups. Its comment is its text in `--help`, `short_help`
//! its text in `-h`, and `group` the results that it affects, if it does not affect all
//! ([`effects`]). What an option changes in a split goes on into a field of the request
//! (`request.rs`).

mod about;
mod command_line;
mod effects;
mod help;
mod layers;
mod pipeline;
mod request;
mod results;
mod search;
mod values;

pub use about::{AboutArgs, Generate, MessageArgs};
pub use command_line::CommandLine;
pub use effects::{Effect, NoEffect};
pub use layers::{InputArgs, LayerArgs, SavedModelArgs};
pub use pipeline::{PipelineArgs, TimeArgs};
pub use results::{ExportArgs, ModuleArgs, ResultArgs, TableArgs};
pub use search::{LimitArgs, SearchArgs};

use crate::report::Format;
use clap::Parser;

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(name = "popliner", version, max_term_width = 100)]
#[command(arg_required_else_help = true)]
#[command(disable_help_flag = true, disable_version_flag = true, groups = effects::groups())]
pub struct Options {
    /// The arguments that name the files to read.
    #[command(flatten)]
    pub input: InputArgs,

    /// Options that request results, such as `--solve` and `--plan`.
    #[command(flatten)]
    pub results: ResultArgs,

    /// Options that limit the IPUs and the memory of a stage.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Options that choose the layers of the model and the operations that belong to them.
    #[command(flatten)]
    pub layers: LayerArgs,

    /// Options that name report files to write, and an earlier report to compare with.
    #[command(flatten)]
    pub exports: ExportArgs,

    /// Options that give the names of modules in the model's code, for `--emit`.
    #[command(flatten)]
    pub modules: ModuleArgs,

    /// Options of the pipeline that the model will be compiled for, which adds to the memory of the
    /// layers.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Options with the numbers, other than the cycles of layers, that the time of a step depends
    /// on.
    #[command(flatten)]
    pub time: TimeArgs,

    /// Options that say which split is the best one, and which splits are allowed.
    #[command(flatten)]
    pub search: SearchArgs,

    /// Options that request tables of the model and of the memory that the compiler recorded.
    #[command(flatten)]
    pub tables: TableArgs,

    /// Options about a model that an earlier run saved.
    #[command(flatten)]
    pub saved: SavedModelArgs,

    /// Options that choose how much is printed on standard error.
    #[command(flatten)]
    pub messages: MessageArgs,

    /// Options that print something about the command and need no profile.
    #[command(flatten)]
    pub about: AboutArgs,

    /// The arguments of the command line as they were given, for the report.
    #[arg(skip)]
    pub arguments: Vec<String>,

    /// The arguments that suggested commands repeat, each option with its value as one argument.
    #[arg(skip)]
    pub repeated: Vec<String>,

    /// The argument that gives the split to judge, with its value; empty if none is judged.
    #[arg(skip)]
    pub judged: Vec<String>,

    /// The first option that affects no requested result, if there is one.
    #[arg(skip)]
    pub no_effect: Option<NoEffect>,

    /// Whether the command line requests no result. Then the answer is whether the model fits on
    /// one IPU, and a plan if it does not.
    #[arg(skip)]
    pub is_bare: bool,
}

impl Options {
    /// Returns whether any requested result needs the best split.
    pub fn wants_split(&self) -> bool {
        self.results.wants_verdict()
            || self.results.plan
            || self.results.explain
            || self.exports.compare.is_some()
    }

    /// Returns whether any requested result needs more of the report than the split.
    pub fn wants_report(&self) -> bool {
        let files = [
            &self.exports.export_json,
            &self.exports.export_markdown,
            &self.exports.export_html,
            &self.exports.compare,
        ];
        files.iter().any(|file| file.is_some())
            || self.results.explain
            || self.results.solve && matches!(self.results.format, Format::Tsv | Format::Csv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Options::described().debug_assert();
    }
}
