//! Defines which results each option affects.
//!
//! An option that affects only some results is in a list in this file. If none of these results is
//! requested, the option would be ignored silently, so it is refused as wrong usage. `--help`
//! prints the lists, and a test compares them with the behaviour of the command.

use crate::wording::joined;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Clap ids of the options that request a result about one profile, so that an option that names
/// several profiles conflicts with them. Separated by spaces.
pub const ONE_PROFILE: &str = "list_layers operation_breakdown layer_breakdown memory_totals \
     memory_affinity interlayer_communication diagnose save_to_file";

/// Clap ids of the options of the original tool, a Python program that accepted these options in
/// any combination. Separated by spaces.
const ORIGINAL: &str = "profile debug solve num_ipus operation_breakdown layer_breakdown \
     memory_totals memory_affinity interlayer_communication layer_name_regex inputs_regex_layer_0 \
     save_to_file load_from_file verbose";

/// Options that affect the same results, and the options that request these results. All names are
/// clap ids, separated by spaces.
#[derive(Debug)]
pub struct Effect {
    /// The options that affect only some results. Each would be ignored unless an option that
    /// requests these results ([`on`](Self::on)) is given too.
    pub options: &'static str,
    /// Options that request the results which [`options`](Self::options) affect. If any of
    /// `options` is given, at least one of these must be given too.
    pub on: &'static str,
}

impl Effect {
    /// All options that affect only some results, in the order in which `--help` lists them.
    pub const ALL: [Self; 6] = [
        // Options that affect only results about splits.
        Self {
            options: "num_ipus untie schedule recompute accumulator optimizer_state amp \
                 micro_batches replicas ipu_link_bandwidth streaming_bandwidth objective pin \
                 together cut_before solver",
            on: "solve emit sweep plan explain splits layers_per_ipu compare",
        },
        // `--micro-batch` affects only results that show each stage of a split.
        Self {
            options: "micro_batch",
            on: "solve emit plan explain splits layers_per_ipu compare",
        },
        // Options that affect only results that compare bytes with the memory limit of a tile.
        Self {
            options: "reserve mem_per_tile",
            on: "solve emit sweep plan explain splits layers_per_ipu compare export_json \
                 export_markdown export_html fit",
        },
        // `--module-root` affects only configurations (`--emit`).
        Self {
            options: "module_root",
            on: "emit",
        },
        // `--format` affects only results that are printed as tables.
        Self {
            options: "format",
            on: "solve sweep plan compare operation_breakdown layer_breakdown memory_totals \
                 memory_affinity interlayer_communication diagnose list_layers fit",
        },
        // `--tiles` affects only the table with a row for each tile.
        Self {
            options: "tiles",
            on: "memory_totals",
        },
    ];
}

/// Returns the clap ids of the options whose results need a profile of one IPU. The option `--fit`,
/// which is also for profiles of several IPUs, conflicts with these options.
pub fn one_ipu_results() -> impl Iterator<Item = &'static str> {
    words("solve emit sweep plan explain splits layers_per_ipu").chain(words(ONE_PROFILE))
}

pub fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_whitespace()
}

/// Returns whether the option with the clap id `id` was given on the command line.
pub fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// An option that affects none of the requested results, so that it would be ignored.
#[derive(Debug, Clone)]
pub struct NoEffect {
    /// The error message. It names the ignored option, and the options that request the results
    /// that the ignored option affects.
    pub message: String,
    /// Whether the original tool, the Python program before popliner, would have accepted the
    /// command line.
    pub is_original: bool,
}

impl NoEffect {
    /// Returns the first option that affects no requested result; `None` if every option affects a
    /// result. `is_plan` tells whether the command prints a plan because no result was requested.
    pub(super) fn find(command: &Command, matches: &ArgMatches, is_plan: bool) -> Option<Self> {
        let is_fit = is_given(matches, "fit");
        let is_given = |id: &str| match id {
            "plan" if is_plan => true,
            // With `--fit`, the option `--compare` compares a compilation with its prediction, so
            // it requests no result about splits.
            "compare" if is_fit => false,
            id => is_given(matches, id),
        };
        let (option, on) = Effect::ALL
            .into_iter()
            .filter(|effect| !words(effect.on).any(is_given))
            .find_map(|Effect { options, on }| {
                Some((words(options).find(|id| is_given(id))?, on))
            })?;
        let is_original = command
            .get_arguments()
            .map(|arg| arg.get_id().as_str())
            .all(|id| !is_given(id) || words(ORIGINAL).any(|own| own == id));
        let what = if is_original {
            "changes none of these results"
        } else {
            "acts on none of the requested results"
        };
        let (option, on) = (listed(option, "or"), listed(on, "or"));
        Some(Self {
            message: format!("{option} {what}; give it with {on}, or leave it out"),
            is_original,
        })
    }
}

/// Writes the section of `--help` that lists each group of options with the results that it
/// affects.
pub fn help() -> String {
    let mut text =
        "Options that act only on certain results, and are refused without one of them:\n"
            .to_owned();
    for Effect { options, on } in Effect::ALL {
        text += &format!("  {}:\n    {}\n", listed(options, "and"), listed(on, "and"));
    }
    text
}

/// Lists the options with the clap ids `ids` in a sentence, with the word `last` before the last
/// option. Options are written as on the command line: `--num-ipus` for `num_ipus`.
pub fn listed(ids: &'static str, last: &str) -> String {
    let options: Vec<String> = words(ids)
        .map(|id| format!("--{}", id.replace('_', "-")))
        .collect();
    joined(&options, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Options;

    #[test]
    fn every_name_is_that_of_an_option() {
        let command = Options::described();
        let effects = Effect::ALL.iter();
        let lists = effects.flat_map(|effect| [effect.options, effect.on]);
        for id in lists
            .chain([ORIGINAL])
            .flat_map(words)
            .chain(one_ipu_results())
        {
            let mut all = command.get_arguments();
            assert!(all.any(|arg| arg.get_id() == id), "{id}");
        }
    }

    #[test]
    fn every_option_is_listed_once() {
        let mut options: Vec<_> = Effect::ALL
            .iter()
            .flat_map(|effect| words(effect.options))
            .collect();
        options.sort_unstable();
        let twice = options.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None);
    }
}
