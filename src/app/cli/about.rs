//! The options of messages, and of the command itself.

use super::Generate;
use crate::report::Units;
use clap::{ArgAction, Args};

/// Messages and progress.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct MessageOptions {
    /// In what units standard error gives amounts, rounded up to tenths; auto
    /// takes the largest that goes with them. Results on standard output are in
    /// bytes
    #[arg(long, value_name = "UNITS", default_value = "bytes")]
    pub units: Units,

    /// Say only errors and warnings: a verdict may hang on any of these
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more about what is read and found; twice for still more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Options that need no profile.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The command itself")]
pub struct About {
    /// Print a manual page, completions for a shell, or a page that opens reports; needs no
    /// PROFILE, and nothing else goes with it
    #[arg(long, value_name = "WHAT", exclusive = true)]
    pub generate: Option<Generate>,

    /// Print help: -h on one screen, --help with all options
    #[arg(short, long, action = ArgAction::Help)]
    pub help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,
}
