//! Writes messages for people to standard error while the tool runs.

use super::Options;
use crate::{
    message::FileWarnings,
    progress::Progress,
    report::terminal::{self, Screen, Severity, TextStyle},
    report::{Report, ScreenPart, Section, Units, printable},
    wording::{capital, join},
};
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use std::{
    fmt::Display,
    io::{self, Write},
};
use terminal_size::terminal_size;

/// Writes messages to standard error. Options `-q` and `-v` set the level up to which messages are
/// written. Failing to write a message is not an error.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    level: i8,
    /// Style of text on standard error: units of amounts, width of lines, and colours.
    pub look: TextStyle,
}

impl Messages {
    /// Creates the writer of messages for `options`. With `-q`, it writes only errors and warnings;
    /// each `-v` adds a level.
    pub fn new(options: &Options) -> Self {
        Self {
            level: if options.quiet {
                -1
            } else {
                options.verbose.min(2) as i8
            },
            look: look(options.units, &io::stderr()),
        }
    }

    /// Writes a warning, even with `-q`.
    pub fn warn(&self, warning: impl Display) {
        let head = self.look.toned(Severity::Notable, "warning:");
        self.write(-1, format!("{head} {}", printable(&warning.to_string())));
    }

    /// Writes warnings about files, each with the path of its file, even with `-q`.
    pub fn warn_of_files(&self, warnings: &FileWarnings) {
        for (file, warning) in warnings {
            self.warn(format_args!("{file}: {warning}"));
        }
    }

    /// Writes the sections of `report` for which `is_wanted` returns `true` to standard error.
    /// Sections that prove the answer ([`ScreenPart::Proof`]) are only written with `-v`.
    pub fn sections(&self, report: &Report, is_wanted: impl Fn(&Section) -> bool) {
        for (section, line) in terminal::sections(report, &self.look, is_wanted) {
            // A line of the report is not capitalized, since its first word may be the name of a
            // layer.
            self.write(i8::from(section.part == ScreenPart::Proof), line);
        }
    }

    /// Writes a result for people, such as the verdict, unless `-q` is set.
    pub fn summary(&self, text: impl Display) {
        self.write(0, capital(&text.to_string()));
    }

    /// Writes text that the user may copy, such as commands, without breaking its lines. Writes
    /// nothing if the text is empty, or with `-q`.
    pub fn verbatim(&self, text: &str) {
        if self.level >= 0 && !text.is_empty() {
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// Writes a fact about the files or the model, if `-v` is set.
    pub fn info(&self, text: impl Display) {
        self.write(1, capital(&text.to_string()));
    }

    /// Writes a detail of the run, such as how long a task took, if `-vv` is set.
    pub fn detail(&self, text: impl Display) {
        self.write(2, text);
    }

    /// Runs `work` and returns its result. A terminal shows the progress of long tasks meanwhile,
    /// so `work` must write no messages. With `-vv`, writes how long each task took.
    pub fn while_showing<T>(&self, work: impl FnOnce(&Progress) -> T) -> T {
        let progress = if self.level < 0 {
            Progress::new()
        } else {
            Progress::on_terminal()
        };
        let done = work(&progress);
        for (what, took) in progress.ended() {
            self.detail(format!("{what} took {took:.2?}"));
        }
        done
    }

    /// Writes text, broken into lines of the terminal's width, if the options request messages of
    /// this `level`: -1 for warnings, 0 for results, 1 for messages of `-v`, 2 for messages of
    /// `-vv`.
    fn write(&self, level: i8, text: impl Display) {
        if self.level >= level {
            let _ = writeln!(
                io::stderr().lock(),
                "{}",
                self.look.fitted(&text.to_string())
            );
        }
    }
}

/// Writes the error that ended the run, even with `-q`.
pub fn error(error: &anyhow::Error) {
    let look = look(Units::default(), &io::stderr());
    // Names from a file may contain control characters, so each line of the error is made
    // printable. The line ends were written by the program itself, so they are kept.
    let lines = join(format!("{error:#}").split('\n').map(printable), "\n");
    let head = look.toned(Severity::Bad, "error:");
    let text = look.fitted(&format!("{head} {lines}"));
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Width in columns that the program assumes if the width of the terminal is unknown.
const USUAL_WIDTH: usize = 80;

/// Returns the style of text on `stream`: units, width, colours. The environment variable `COLUMNS`
/// sets the width, even if the stream is not a terminal. The variables `NO_COLOR`, `CLICOLOR` and
/// `TERM` decide whether colours are used; the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set
/// tells whether the locale uses UTF-8.
pub fn look(units: Units, stream: &impl RawStream) -> TextStyle {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|&columns| columns > 0);
    let width = terminal_size().map_or(USUAL_WIDTH, |(width, _)| width.0.into());
    TextStyle {
        units,
        screen: stream.is_terminal().then(|| Screen {
            width: columns.unwrap_or(width),
            colour: AutoStream::choice(stream) != ColorChoice::Never,
            unicode: ["LC_ALL", "LC_CTYPE", "LANG"]
                .into_iter()
                .filter_map(std::env::var_os)
                .find(|value| !value.is_empty())
                .is_some_and(|locale| {
                    let locale = locale.to_string_lossy().to_ascii_lowercase();
                    locale.contains("utf-8") || locale.contains("utf8")
                }),
        }),
        columns,
    }
}
