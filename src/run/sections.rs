//! Standard output, in sections that a program can tell apart.

use crate::report::{Format, Split, Table, json};
use std::io::{self, Write};

/// Writes one result after the other. When there are several, a line
/// `# name` stands before each: no row of a table looks like that, since a
/// row has at least two columns, and no comment in a configuration, since it
/// has at least two words.
pub(super) struct Sections<'a, W> {
    out: &'a mut W,
    format: Format,
    /// Are there several?
    named: bool,
}

impl<'a, W: Write> Sections<'a, W> {
    pub(super) fn new(out: &'a mut W, format: Format, count: usize) -> Self {
        let named = count > 1;
        Self { out, format, named }
    }

    pub(super) fn table(&mut self, table: &Table) -> io::Result<()> {
        self.name(table.name)?;
        table.write(self.format, self.out)
    }

    pub(super) fn stages(&mut self, split: &Split) -> io::Result<()> {
        self.name("solve")?;
        json::write_stages(split, self.out)
    }

    pub(super) fn text(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.name(name)?;
        self.out.write_all(bytes)
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        match self.named {
            true => writeln!(self.out, "# {name}"),
            false => Ok(()),
        }
    }
}
