//! Defines which results each option affects.
//!
//! An option that affects only some results says so where it is declared: its `group` is one of the
//! lists below. Without any of these results it would be ignored silently, so it is refused as
//! wrong usage. `--help` prints the lists, and a test compares them with the behaviour of the
//! command.

use crate::wording::joined;
use clap::parser::ValueSource;
use clap::{ArgGroup, ArgMatches, Command};
use thiserror::Error;

/// Options that request a result and need a profile that was compiled for one IPU.
pub(super) const ONE_IPU_RESULTS: &str = "solve emit sweep plan explain check_splits \
     layers_per_ipu compare operation_breakdown layer_breakdown memory_totals memory_affinity \
     interlayer_communication diagnose list_layers save_to_file";

/// Group of options that affect only results about splits. The words after `on` are the options
/// that request these results.
pub(super) const ON_SPLITS: &str =
    "on solve emit sweep plan explain check_splits layers_per_ipu compare";
/// Group of options that affect only results with the stages of a split. The words after `on` are
/// the options that request these results.
pub(super) const ON_STAGES: &str = "on solve emit plan explain check_splits layers_per_ipu compare";
/// Group of options that affect only results with a fixed number of replicas. `--plan` is not among
/// these: it derives the number of replicas from the number of IPUs.
pub(super) const ON_REPLICAS: &str = "on solve emit explain check_splits layers_per_ipu compare";
/// Group of options that affect only results with optimizer state that may be outside the IPUs.
pub(super) const ON_STREAMING: &str = "on optimizer_state plan";
/// Group of options that affect only results in which bytes are compared with the limit of a tile.
pub(super) const ON_LIMITS: &str = "on solve emit sweep plan explain check_splits layers_per_ipu \
     compare export_json export_markdown export_html fit";
/// Group of options that affect only configurations of `--emit`, with the names of modules.
pub(super) const ON_EMIT: &str = "on emit";
/// Group of options that affect only results that are printed as tables.
pub(super) const ON_TABLES: &str = "on solve sweep plan compare operation_breakdown \
     layer_breakdown memory_totals memory_affinity interlayer_communication diagnose list_layers \
     fit";
/// Group of options that affect only results with a row for each tile.
pub(super) const ON_TILES: &str = "on memory_totals";
/// Group of options that affect only the verdict of `--fit` on a compiled profile.
pub(super) const ON_FIT: &str = "on fit";

/// All groups, in the order of `--help`.
const GROUPS: [&str; 9] = [
    ON_SPLITS,
    ON_STREAMING,
    ON_STAGES,
    ON_REPLICAS,
    ON_LIMITS,
    ON_EMIT,
    ON_TABLES,
    ON_TILES,
    ON_FIT,
];

/// Options of the original tool, which accepted them in any combination.
const ORIGINAL: &str = "profile debug solve num_ipus operation_breakdown layer_breakdown \
     memory_totals memory_affinity interlayer_communication layer_name_regex inputs_regex_layer_0 \
     save_to_file load_from_file verbose";

/// Returns the clap groups to which options are added. The options of a group affect the same
/// results.
pub(super) fn groups() -> impl Iterator<Item = ArgGroup> {
    GROUPS
        .map(|id| ArgGroup::new(id).multiple(true))
        .into_iter()
}

/// A set of options, and the results or other options that they affect. All names are ids of clap.
#[derive(Debug)]
pub struct Effect {
    /// The options that have the effect.
    pub options: Vec<String>,
    /// The options that are affected. At least one of them must be given.
    pub on: Vec<&'static str>,
}

impl Effect {
    /// Returns the effects of all options that do not affect every result. `command` must be built,
    /// so that its groups have their options.
    pub fn all(command: &Command) -> Vec<Self> {
        let effects = GROUPS.iter().filter_map(|on| {
            let group = command.get_groups().find(|group| group.get_id() == on)?;
            Some(Self {
                options: group.get_args().map(ToString::to_string).collect(),
                on: words(on).skip(1).collect(),
            })
        });
        effects.collect()
    }
}

/// Splits a list of clap ids at white space.
pub(super) fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_whitespace()
}

/// Returns whether the option with the clap id `id` was given on the command line.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The error about an option that affects no requested result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} acts on none of the requested results; give it with {on}, or leave it out")]
pub struct NoEffect {
    /// The option as it is written on the command line.
    pub option: String,
    /// The options that it affects, as a list for the message.
    pub on: String,
    /// Whether the original tool would have accepted the command line.
    pub is_original: bool,
}

impl NoEffect {
    /// Finds the first option that affects no requested result. `is_plan` says that the command
    /// line requests no result, and so gets a plan.
    pub(super) fn find(command: &Command, matches: &ArgMatches, is_plan: bool) -> Option<Self> {
        let is_given = |id: &str| is_given(matches, id) || is_plan && id == "plan";
        let (option, on) = Effect::all(command).into_iter().find_map(|effect| {
            let is_idle = !effect.on.iter().any(|id| is_given(id));
            let option = effect
                .options
                .into_iter()
                .find(|id| is_idle && is_given(id))?;
            Some((option, effect.on))
        })?;
        let mut ids = command.get_arguments().map(|arg| arg.get_id().as_str());
        Some(Self {
            option: written(&option),
            on: listed(&on, "or"),
            is_original: ids.all(|id| !is_given(id) || words(ORIGINAL).any(|own| own == id)),
        })
    }
}

/// Writes the section of `--help` about options that affect only some results.
pub(super) fn help(command: &Command) -> String {
    let mut text =
        "Options that act only on certain results, and are refused without one of them:\n"
            .to_owned();
    for Effect { options, on } in Effect::all(command) {
        let (options, on) = (listed(&options, "and"), listed(&on, "and"));
        text.push_str(&format!("  {options}:\n    {on}\n"));
    }
    text
}

/// Writes an option as on the command line, from its clap id.
fn written(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

/// Lists options in a sentence as on the command line, with the word `last` before the last option.
fn listed(ids: &[impl AsRef<str>], last: &str) -> String {
    let names: Vec<String> = ids.iter().map(|id| written(id.as_ref())).collect();
    joined(&names, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Options;

    #[test]
    fn every_name_is_that_of_an_option() {
        let command = Options::described();
        let lists = GROUPS.iter().flat_map(|on| words(on).skip(1));
        for id in lists.chain([ONE_IPU_RESULTS, ORIGINAL].into_iter().flat_map(words)) {
            let mut all = command.get_arguments();
            assert!(all.any(|arg| arg.get_id() == id), "{id}");
        }
    }
}
