//! Defines the options of messages, and the options about the command itself: a manual page,
//! completions, and a viewer of reports.

use crate::report::Units;
use clap::{ArgAction, Args, ValueEnum};

/// Options that choose how much is printed on standard error, and in which units.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct MessageArgs {
    /// Units of the amounts on standard error, rounded up to tenths; auto picks the largest unit
    /// that suits. Results on standard output are always in bytes
    #[arg(long, value_name = "UNITS", default_value = "bytes")]
    pub units: Units,

    /// Print only errors and warnings: the verdict may depend on them
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more about what is read and found; give it twice for even more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Options that print something about the command and need no profile.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The command itself")]
pub struct AboutArgs {
    /// Print a manual page, completions for a shell, or a page that opens reports; takes no
    /// PROFILE and no other option
    #[arg(long, value_name = "WHAT", exclusive = true)]
    pub generate: Option<Generate>,

    /// Print help: -h on one screen, --help with all options
    #[arg(short, long, action = ArgAction::Help)]
    pub help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,
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
