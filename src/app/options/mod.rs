//! The options of the command: one struct, with a group of options for each heading of the help.
//!
//! An option is one field in one of these groups. Its comment is its text in `--help`, `short_help`
//! its text in `-h`, and `group` the results that it affects, if it does not affect all
//! ([`effects`]). [`Options::request`] makes a request of them.

mod about;
mod command_line;
mod effects;
mod help;
mod layers;
mod pipeline;
mod results;
mod search;
mod values;

pub use about::{About, Generate, MessageOptions};
pub use command_line::CommandLine;
pub use effects::{Effect, NoEffect};
pub use layers::{Input, Layers, SavedModel};
pub use pipeline::{Pipeline, Time};
pub use results::{Exports, ModelTables, Modules, Results};
pub use search::{Limits, Search};
pub use values::OrAuto;

use crate::analysis::Request;
use crate::report::Detail;
use crate::search::{SearchOptions, Solver};
use clap::Parser;
use effects::ON_FIT;
use std::path::PathBuf;

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(name = "popliner", version, max_term_width = 100)]
#[command(disable_help_flag = true, disable_version_flag = true, groups = effects::groups())]
pub struct Options {
    /// The files to read.
    #[command(flatten)]
    pub input: Input,

    /// The answers.
    #[command(flatten)]
    pub results: Results,

    /// Limits of a stage, and the search.
    #[command(flatten)]
    pub limits: Limits,

    /// How layers are found, and what belongs to them.
    #[command(flatten)]
    pub layers: Layers,

    /// Files to write, and an earlier one to compare with.
    #[command(flatten)]
    pub exports: Exports,

    /// Names of the modules in the model's code.
    #[command(flatten)]
    pub modules: Modules,

    /// The pipeline, which adds to the memory of the layers.
    #[command(flatten)]
    pub pipeline: Pipeline,

    /// Numbers that a step depends on beside the cycles of the layers.
    #[command(flatten)]
    pub time: Time,

    /// Which split is the best one.
    #[command(flatten)]
    pub search: Search,

    /// Compare the compilation of --fit, stage by stage, with the report that --export-json
    /// wrote when the split was predicted, and say which --reserve would have been enough
    #[arg(long, value_name = "FILE", group = ON_FIT, help_heading = "Compiled pipelines")]
    pub against: Option<PathBuf>,

    /// Tables of the model and its recording.
    #[command(flatten)]
    pub tables: ModelTables,

    /// A model that was read before.
    #[command(flatten)]
    pub saved: SavedModel,

    /// Messages and progress.
    #[command(flatten)]
    pub messages: MessageOptions,

    /// Options that need no profile.
    #[command(flatten)]
    pub about: About,

    /// The arguments as they were given, for the report.
    #[arg(skip)]
    pub arguments: Vec<String>,

    /// The arguments that suggested commands repeat.
    #[arg(skip)]
    pub repeated: Vec<String>,

    /// The first option that affects no requested result.
    #[arg(skip)]
    pub no_effect: Option<NoEffect>,

    /// Does the command line request no result? Then the answer is whether the model fits on one
    /// IPU, and a plan if it does not.
    #[arg(skip)]
    pub is_bare: bool,
}

impl Options {
    /// Is a split requested?
    pub fn wants_split(&self) -> bool {
        self.results.wants_verdict()
            || self.results.plan
            || self.results.explain
            || self.exports.compare.is_some()
    }

    /// Does any result need the report?
    pub fn wants_report(&self) -> bool {
        let exports = [
            &self.exports.export_json,
            &self.exports.export_csv,
            &self.exports.export_markdown,
            &self.exports.export_html,
        ];
        exports.iter().any(|file| file.is_some())
            || self.exports.compare.is_some()
            || self.results.explain
    }

    /// Is a report written in which readers can try other splits? The greedy search evaluates only
    /// its own split.
    pub fn tries_splits(&self) -> bool {
        let has_tools = self.exports.export_html.is_some() || self.exports.export_json.is_some();
        has_tools && self.wants_split() && self.search.solver == Solver::Ilp
    }

    /// Returns the request of these options, which does not depend on the model. What it means for
    /// the model, `analysis/request.rs` resolves.
    pub(crate) fn request(&self) -> Request {
        let rules = self.limits.memory_model;
        Request {
            options: SearchOptions {
                reserve: self.limits.reserve,
                solver: self.search.solver,
                pipeline: self.pipeline.options(self.time.replicas),
                step: self.time.options(),
                at_micro_batch: self.time.at_micro_batch,
                split: self.wants_split(),
                sweep: self.results.sweep,
                plan: self.results.plan,
                moves: self.results.explain,
                what_if: self.tries_splits(),
            },
            rules,
            layers: self.layers.options(rules),
            // A template for module names is written for the layers of the regex.
            keeps_layers: self.modules.module.is_some(),
            placement: self.layers.placement(),
            memory_per_tile: self.limits.mem_per_tile.clone().unwrap_or_default(),
            ipus: self.limits.num_ipus,
            goal: self.search.objective,
            constraints: self.search.constraints(),
            judged: self.results.judged().cloned(),
            detail: self.detail(),
            arguments: self.arguments.clone(),
        }
    }

    /// Returns the detail that the requested results need.
    fn detail(&self) -> Detail {
        if self.exports.export_html.is_some() || self.exports.export_json.is_some() {
            Detail::Page
        } else if self.wants_report() {
            Detail::Full
        } else {
            Detail::Split
        }
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
