//! What people read while the tool runs: everything goes to standard error.

use crate::progress::{Progress, bars};
use crate::report::printable;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes messages, as many as the user asked for. That nobody reads them is
/// no error.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    level: i8,
}

impl Messages {
    /// `quiet` leaves only errors; each `verbose` adds more.
    pub fn new(quiet: bool, verbose: u8) -> Self {
        let level = if quiet { -1 } else { verbose.min(2) as i8 };
        Self { level }
    }

    /// Something is wrong with the input, but not so that it cannot be used.
    pub fn warning(&self, text: impl Display) {
        self.write(0, format_args!("warning: {text}\n"));
    }

    /// A result for people.
    pub fn summary(&self, text: impl Display) {
        self.write(0, format_args!("{text}\n"));
    }

    /// What was read and found (`-v`).
    pub fn info(&self, text: impl Display) {
        self.write(1, format_args!("{text}\n"));
    }

    /// How long things took (`-vv`).
    pub fn detail(&self, text: impl Display) {
        self.write(2, format_args!("{text}\n"));
    }

    /// Does `work`; what takes long shows how far it is, if anybody can see
    /// it. Messages are for before and after: `work` must write none.
    pub fn while_showing<T>(&self, work: impl FnOnce(&Progress) -> T) -> T {
        bars::during(self.level < 0, work)
    }

    fn write(&self, level: i8, text: std::fmt::Arguments<'_>) {
        if self.level >= level {
            let _ = io::stderr().lock().write_fmt(text);
        }
    }
}

/// Reports why the run ended; not even `-q` silences it.
pub fn error(error: &anyhow::Error) {
    // It may hold names from a file, but also line ends of its own.
    let text = format!("{error:#}");
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    let _ = writeln!(io::stderr().lock(), "error: {}", lines.join("\n"));
}
