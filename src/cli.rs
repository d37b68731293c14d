//! The command line, as one plain struct.

use crate::model::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder};
use clap::{ArgAction, Parser, ValueEnum};
use regex::Regex;
use std::path::PathBuf;

/// What `--help` ends with.
const AFTER_HELP: &str = "\
Exit codes:
  0  done, and with --solve the model fits
  1  the model does not fit
  2  wrong usage
  3  a file could not be read or understood

Results go to standard output; progress, warnings and summaries to standard error.";

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(name = "popliner", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Options {
    /// The profile that Poplar wrote (profile.pop)
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,

    /// The debug contexts of the same compilation; without it, debug.cbor is
    /// looked for beside the profile and one folder above
    #[arg(value_name = "DEBUG")]
    pub debug: Option<PathBuf>,

    /// Find the best split points and print one JSON object for each stage
    #[arg(long, help_heading = "Results")]
    pub solve: bool,

    /// How many IPUs there are: the most stages that a split may have
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Limits",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub num_ipus: usize,

    /// Bytes that a stage may take on each tile; without it, what the
    /// profile's target has
    #[arg(long, value_name = "BYTES", help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub mem_per_tile: Option<u64>,

    /// Regex that finds the layer in the names and inputs of operations; its
    /// capture groups are the layer's name
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_LAYER_REGEX,
          help_heading = "Layers", value_parser = parse_regex)]
    pub layer_name_regex: Regex,

    /// Regex for the inputs of operations that belong to the first layer
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_INPUTS_REGEX,
          help_heading = "Layers", value_parser = parse_regex)]
    pub inputs_regex_layer_0: Regex,

    /// Order of the layers: that of their first step, or by name with numbers
    /// compared as numbers
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "steps",
        help_heading = "Layers"
    )]
    pub layer_order: Order,

    /// Only report errors
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Messages")]
    pub quiet: bool,

    /// Say more about what is read and found; twice for still more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub verbose: u8,
}

/// Values of `--layer-order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// By name, with numbers compared as numbers.
    Natural,
    /// That of the first appearance in the program.
    Steps,
}

impl Options {
    /// How layers are to be found.
    pub fn layers(&self) -> LayerOptions {
        LayerOptions {
            layer_regex: self.layer_name_regex.clone(),
            inputs_regex: self.inputs_regex_layer_0.clone(),
            order: match self.layer_order {
                Order::Natural => LayerOrder::Natural,
                Order::Steps => LayerOrder::Steps,
            },
        }
    }
}

/// A regex, or the error that shows where it went wrong.
fn parse_regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        format!(
            "{error}\n(the dialect is https://docs.rs/regex: no look-around, no backreferences)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn regexes_of_another_dialect_are_refused_by_name() {
        let error = |pattern| parse_regex(pattern).unwrap_err();
        assert!(
            error(r"layer(?=\d)").contains("look-around"),
            "{}",
            error(r"a(?=b)")
        );
        assert!(error(r"(a)\1").contains("backreferences are not supported"));
        assert!(error("layer(").contains("unclosed group"));
    }
}
