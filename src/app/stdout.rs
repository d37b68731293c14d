//! Writes results to standard output in sections that a program can distinguish, until the reader
//! closes the pipe.

use crate::{
    escape,
    report::terminal::TextStyle,
    report::{Format, Table},
    wording::join,
};
#[cfg(unix)]
use std::fs::File;
use std::{
    io::{self, ErrorKind, Write},
    path::Path,
};

/// A writer to standard output. Once the reader at the other end of the pipe is gone, all further
/// bytes are dropped. A closed pipe is not an error, since the exit code must still tell whether
/// the model fits.
pub struct ResultWriter<W>(pub W);

/// Returns `done`, the result of a write to standard output, except if the write failed because the
/// reader closed the pipe. That is no error, so `Ok(instead)` is returned.
///
/// # Errors
/// If standard output cannot be written to for another reason.
pub fn unless_closed<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(instead),
        done => done.map_err(|error| {
            let text = format!(
                "standard output cannot be written to: {error}; free space, or send the results \
                 elsewhere"
            );
            io::Error::new(error.kind(), text)
        }),
    }
}

/// Returns whether standard output goes to the file at `path`.
#[cfg(unix)]
pub fn is_file(path: &Path) -> bool {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|fd| File::from(fd).metadata());
    let (Ok(stdout), Ok(other)) = (stdout, path.metadata()) else {
        return false;
    };
    stdout.is_file() && (stdout.dev(), stdout.ino()) == (other.dev(), other.ino())
}

/// Returns whether standard output goes to the file at `path`. Always returns `false` on systems
/// other than Unix, where the program cannot find out.
#[cfg(not(unix))]
pub fn is_file(_: &Path) -> bool {
    false
}

impl<W: Write> Write for ResultWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Writes results one after the other. If there are several results, a line `# name` precedes each
/// result. No line of a result looks like that: rows of a table have at least two columns, and
/// comments in a configuration have at least two words. In JSON, all results become one value: the
/// only result, or an object with one field per result.
pub struct Sections<'a, W> {
    out: &'a mut W,
    format: Format,
    /// Style of tables that are aligned for people: units of amounts, width of lines, and colours.
    look: TextStyle,
    /// Whether there are several results, so that a line with the name of the result precedes each
    /// result.
    has_names: bool,
    /// In JSON, one entry per result so far, in the order of output: the name and the JSON text of
    /// the result. Empty in other formats.
    values: Vec<(String, String)>,
}

impl<'a, W: Write> Sections<'a, W> {
    /// Creates a writer for `count` results. `look` is the style of tables, which is used if
    /// `format` aligns tables for people.
    pub fn new(out: &'a mut W, format: Format, look: TextStyle, count: usize) -> Self {
        Self {
            out,
            format,
            look,
            has_names: count > 1,
            values: Vec::new(),
        }
    }

    /// Writes each table as a result, in the requested format.
    pub fn tables(&mut self, tables: &[Table]) -> io::Result<()> {
        for table in tables {
            self.add(table.name, table.text(self.format, &self.look)?)?;
        }
        Ok(())
    }

    /// Writes the text of a result, such as a configuration. In JSON with several results, the text
    /// becomes a JSON string, unless it is the result of `--solve` or `--export-json`, which is
    /// JSON already and is inserted unchanged.
    pub fn text(&mut self, name: &str, text: String) -> io::Result<()> {
        match self.format {
            Format::Json if !self.has_names => self.out.write_all(text.as_bytes()),
            Format::Json if !["solve", "export-json"].contains(&name) => {
                self.add(name, escape::json(serde_json::to_string(&text)?))
            }
            _ => self.add(name, text),
        }
    }

    /// Writes the text of the result `name`, such as `solve`. If there are several results, a line
    /// with the name comes first. In JSON, only stores the text; [`finish`](Self::finish) later
    /// writes all results as one value.
    fn add(&mut self, name: &str, text: String) -> io::Result<()> {
        if self.format == Format::Json {
            self.values.push((name.replace('-', "_"), text));
            return Ok(());
        }
        if self.has_names {
            writeln!(self.out, "# {name}")?;
        }
        self.out.write_all(text.as_bytes())
    }

    /// Flushes standard output. In JSON, first writes all results, several as the fields of one
    /// object; in other formats, they are already written.
    pub fn finish(self) -> io::Result<()> {
        match &self.values[..] {
            [] => {}
            [(_, only)] if !self.has_names => self.out.write_all(only.as_bytes())?,
            several => {
                let fields = several
                    .iter()
                    .map(|(name, text)| format!("\"{name}\": {}", text.trim_end()));
                writeln!(self.out, "{{\n{}\n}}", join(fields, ",\n"))?;
            }
        }
        self.out.flush()
    }

    /// Flushes the results, so that they appear before anything that is printed on standard error
    /// afterwards.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that accepts a fixed number of writes and then fails, as a closed pipe does.
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
        let mut results = ResultWriter(Pipe(1));
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
