//! The command: parses, runs, and turns the outcome into an exit code.

use clap::Parser;
use popliner::cli::Options;
use popliner::run::{Exit, Results, run};
use popliner::{interrupt, messages};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut options = Options::parse();
    let arguments = std::env::args_os().skip(1);
    options.arguments = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    // Without it, Ctrl-C still ends the run; a temporary file could stay.
    let _ = interrupt::install();
    let mut out = Results::new(BufWriter::new(io::stdout().lock()));
    let outcome = run(&options, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    let exit = outcome.unwrap_or_else(|error| {
        messages::error(&error);
        Exit::of(&error)
    });
    exit.into()
}
