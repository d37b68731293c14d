//! The command: parses, runs, and turns the outcome into an exit code.

use popliner::cli::Command;
use popliner::run::{Exit, Results, run};
use popliner::{generate, interrupt, messages};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = std::env::args_os();
    let command = Command::parse_from(line).unwrap_or_else(|error| error.exit());
    // Without it, Ctrl-C still ends the run; a temporary file could stay.
    let _ = interrupt::install();
    let mut out = Results::new(BufWriter::new(io::stdout().lock()));
    let outcome = answer(&command, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    let exit = outcome.unwrap_or_else(|error| {
        messages::error(&error);
        Exit::of(&error)
    });
    exit.into()
}

fn answer(command: &Command, out: &mut impl Write) -> anyhow::Result<Exit> {
    match command {
        Command::Run(options) => run(options, out),
        Command::Generate(what) => {
            out.write_all(&generate::text(*what)?)?;
            Ok(Exit::Done)
        }
    }
}
