//! The results that each option affects.
//!
//! An option that affects no requested result would be ignored silently, so it is refused as wrong
//! usage. `--help` lists the options from this table, and a test compares each row with the
//! behaviour of the command.

use super::command::is_given;
use crate::wording::joined;
use clap::{ArgMatches, Command};
use thiserror::Error;

/// Options, and the results or other options that they affect. All names are names of fields of
/// [`Options`](super::Options).
#[derive(Debug)]
pub struct Effect {
    /// The options.
    pub options: &'static [&'static str],
    /// At least one of these must be requested. The groups may be shared by several effects.
    pub on: &'static [&'static [&'static str]],
}

/// Tables of the model, its operations and layers.
pub(super) const TABLES: &[&str] = &[
    "operation_breakdown",
    "layer_breakdown",
    "memory_totals",
    "memory_affinity",
    "interlayer_communication",
    "diagnose",
    "list_layers",
];

/// Results about splits.
pub(super) const SPLITS: &[&str] = &[
    "solve",
    "emit",
    "sweep",
    "plan",
    "explain",
    "check_splits",
    "layers_per_ipu",
    "compare",
];

/// Results that show the stages of a split.
const SHOWN_SPLITS: &[&str] = &[
    "solve",
    "emit",
    "plan",
    "explain",
    "check_splits",
    "layers_per_ipu",
    "compare",
];

/// Options that affect only results about splits.
pub(super) const OF_SPLITS: &[&str] = &[
    "num_ipus",
    "schedule",
    "recompute",
    "accumulator",
    "optimizer_state",
    "solver",
    "pin",
    "together",
    "cut_after",
    "no_cut_after",
    "untie",
];

/// Every option that does not affect all results.
pub const EFFECTS: &[Effect] = &[
    Effect {
        options: OF_SPLITS,
        on: &[SPLITS],
    },
    Effect {
        options: &["objective"],
        on: &[&[
            "solve",
            "emit",
            "sweep",
            "plan",
            "explain",
            "check_splits",
            "layers_per_ipu",
            "compare",
        ]],
    },
    Effect {
        options: &["micro_batches", "ipu_link_bandwidth"],
        on: &[SHOWN_SPLITS, &["sweep"]],
    },
    Effect {
        options: &["streaming_bandwidth"],
        on: &[&["optimizer_state", "plan"]],
    },
    Effect {
        options: &["at_micro_batch", "micro_batch", "max_step_ms"],
        on: &[SHOWN_SPLITS],
    },
    // A plan chooses the number of replicas itself, from the number of IPUs.
    Effect {
        options: &["replicas"],
        on: &[&[
            "solve",
            "emit",
            "explain",
            "check_splits",
            "layers_per_ipu",
            "compare",
        ]],
    },
    Effect {
        options: &["mem_per_tile", "reserve"],
        on: &[
            SPLITS,
            &["export_json", "export_markdown", "export_html", "fit"],
        ],
    },
    Effect {
        options: &["module", "module_root", "module_in", "module_out"],
        on: &[&["emit"]],
    },
    Effect {
        options: &["format"],
        on: &[&["solve", "sweep", "plan", "compare"], TABLES, &["fit"]],
    },
    Effect {
        options: &["tiles"],
        on: &[&["memory_totals"]],
    },
    Effect {
        options: &["against"],
        on: &[&["fit"]],
    },
];

/// Options of the original tool, which accepted them in any combination.
const ORIGINAL: &[&str] = &[
    "profile",
    "debug",
    "solve",
    "num_ipus",
    "operation_breakdown",
    "layer_breakdown",
    "memory_totals",
    "memory_affinity",
    "interlayer_communication",
    "layer_name_regex",
    "inputs_regex_layer_0",
    "save_to_file",
    "load_from_file",
    "verbose",
];

/// An option that affects no requested result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} acts on none of the requested results; give it with {on}, or leave it out")]
pub struct Idle {
    /// The option as it is written on the command line.
    pub option: String,
    /// The options that it affects.
    pub on: String,
    /// Would the original tool have accepted the command line?
    pub is_original: bool,
}

impl Idle {
    /// Finds the first option without effect. A command line that requests nothing has a plan
    /// (`asks_nothing`).
    pub(super) fn find(
        command: &Command,
        matches: &ArgMatches,
        asks_nothing: bool,
    ) -> Option<Self> {
        let is_given = |id: &str| is_given(matches, id) || asks_nothing && id == "plan";
        let is_idle =
            |effect: &&Effect| !effect.on.iter().flat_map(|ids| *ids).any(|id| is_given(id));
        let (option, effect) = EFFECTS.iter().filter(is_idle).find_map(|effect| {
            let option = effect.options.iter().find(|id| is_given(id))?;
            Some((option, effect))
        })?;
        let mut given = command.get_arguments().map(|arg| arg.get_id().as_str());
        Some(Self {
            option: written(option),
            on: listed(&effect.on.concat(), "or"),
            is_original: given.all(|id| !is_given(id) || ORIGINAL.contains(&id)),
        })
    }
}

/// Writes the section of the help about these options.
pub(super) fn help() -> String {
    let mut text =
        "Options that act only on certain results, and are refused without one of them:\n"
            .to_owned();
    for effect in EFFECTS {
        let (options, on) = (
            listed(effect.options, "and"),
            listed(&effect.on.concat(), "and"),
        );
        text.push_str(&format!("  {options}:\n    {on}\n"));
    }
    text
}

/// Writes an option as on the command line.
fn written(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

/// Lists options in a sentence, with `last` before the last one.
fn listed(ids: &[&str], last: &str) -> String {
    let names: Vec<String> = ids.iter().map(|id| written(id)).collect();
    joined(&names, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::cli::Options;
    use clap::CommandFactory;

    #[test]
    fn every_name_is_that_of_an_option() {
        let command = Options::command();
        let of_effects = EFFECTS
            .iter()
            .flat_map(|effect| [effect.on, &[effect.options]].concat());
        for id in of_effects.chain([ORIGINAL]).flatten() {
            assert!(
                command.get_arguments().any(|arg| arg.get_id() == id),
                "{id}"
            );
        }
    }
}
