//! Standard output: results in sections that a program can distinguish, until the reader closes the
//! pipe.

use crate::escape;
use crate::report::terminal::{self, TextStyle};
use crate::report::{Format, Report, Split, Table, stage_table, write_stages};
#[cfg(unix)]
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use thiserror::Error;

/// Standard output cannot be written to.
#[derive(Debug, Error)]
#[error("standard output cannot be written to: {0}; free space, or send the results elsewhere")]
struct Unprintable(io::Error);

/// Writes results. If the reader closes the pipe, the rest is dropped: that is no error, and the
/// exit code still gives the verdict.
#[derive(Debug)]
pub(super) struct Results<W>(pub(super) W);

/// Returns the result of writing, or `instead` if the reader closed the pipe.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn unless_closed<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(instead),
        done => done.map_err(|error| io::Error::new(error.kind(), Unprintable(error))),
    }
}

/// Does standard output go to the file at this path?
#[cfg(unix)]
pub(super) fn is_file(path: &Path) -> bool {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|fd| File::from(fd).metadata());
    let (Ok(stdout), Ok(other)) = (stdout, path.metadata()) else {
        return false;
    };
    stdout.is_file() && (stdout.dev(), stdout.ino()) == (other.dev(), other.ino())
}

/// Does standard output go to the file at this path? Always false here, since it cannot be checked.
#[cfg(not(unix))]
pub(super) fn is_file(_: &Path) -> bool {
    false
}

impl<W: Write> Write for Results<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Writes results one after the other. If there are several, each follows a line `# name`. No row
/// of a table looks like such a line, since rows have at least two columns, and neither does a
/// comment in a configuration, since it has at least two words. As JSON, all results are one value:
/// the only result, or an object with a field for each.
pub(super) struct Sections<'a, W> {
    out: &'a mut W,
    format: Format,
    /// The style of tables for people.
    look: TextStyle,
    /// Are there several results?
    named: bool,
    /// For JSON: the results so far, each with its name.
    values: Vec<(String, String)>,
}

impl<'a, W: Write> Sections<'a, W> {
    pub(super) fn new(out: &'a mut W, (format, look): (Format, TextStyle), count: usize) -> Self {
        let named = count > 1;
        Self {
            out,
            format,
            look,
            named,
            values: Vec::new(),
        }
    }

    pub(super) fn table(&mut self, table: &Table) -> io::Result<()> {
        if self.format == Format::Json {
            return self.value(table.name, |out| table.write(Format::Json, out));
        }
        self.name(table.name)?;
        self.write(table)
    }

    /// Writes the stages: as JSON in the original tool's format by default, or as a table.
    pub(super) fn stages(&mut self, report: &Report, split: &Split) -> io::Result<()> {
        if self.format == Format::Json {
            return self.value("solve", |out| write_stages(split, out));
        }
        self.name("solve")?;
        match self.format {
            Format::Auto | Format::Json => write_stages(split, self.out),
            Format::Table => self.write(&stage_table(report)),
            Format::Tsv | Format::Csv => self.write(&stage_table(report).without("Time")),
        }
    }

    fn write(&mut self, table: &Table) -> io::Result<()> {
        match self.format {
            Format::Table => writeln!(self.out, "{}", terminal::for_people(table, &self.look)),
            format => table.write(format, self.out),
        }
    }

    pub(super) fn text(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.format == Format::Json && self.named {
            let text = String::from_utf8_lossy(bytes);
            return self.value(name, |out| match name {
                // The report is JSON already.
                "export-json" => out.write_all(bytes),
                _ => out.write_all(escape::json(serde_json::to_string(&text)?).as_bytes()),
            });
        }
        self.name(name)?;
        self.out.write_all(bytes)
    }

    /// Keeps a result until [`finish`](Self::finish) writes all of them as one JSON value.
    fn value(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        self.values.push((name.replace('-', "_"), text));
        Ok(())
    }

    /// Writes all results as one value, if they are JSON.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let values = std::mem::take(&mut self.values);
        match &values[..] {
            [] => {}
            [(_, only)] if !self.named => write!(self.out, "{only}")?,
            several => {
                let fields = several
                    .iter()
                    .map(|(name, text)| format!("\"{name}\": {}", text.trim_end()));
                let fields: Vec<String> = fields.collect();
                writeln!(self.out, "{{\n{}\n}}", fields.join(",\n"))?;
            }
        }
        self.out.flush()
    }

    /// Flushes the results, so that they appear before anything on standard error.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        if self.named {
            writeln!(self.out, "# {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe that is closed after this number of writes.
    struct Pipe(usize);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(match self.0 {
                0 => ErrorKind::BrokenPipe.into(),
                _ => ErrorKind::OutOfMemory.into(),
            })
        }
    }

    #[test]
    fn a_closed_pipe_swallows_the_rest_and_other_errors_stay() {
        let mut results = Results(Pipe(1));
        let error = results.flush().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("standard output cannot be written to")
        );
        for _ in 0..3 {
            assert!(results.write_all(b"stage").is_ok());
        }
        assert!(results.flush().is_ok());
    }
}
