//! A finished run, and checks of it. Each check returns the run, so that several follow each other.

use std::fmt::Display;

use super::sections;
use serde_json::Value;

/// How a run ended, and its output. All of it is printed if a check fails.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of the case, with the inputs that its options do not identify.
    pub of: String,
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Checks the exit code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}: {self:?}", self.of);
        self
    }

    /// Checks that standard error has this text.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "{}: {text:?} in {self:?}", self.of);
        self
    }

    /// Checks that standard output has this text.
    #[track_caller]
    pub fn prints(&self, text: &str) -> &Self {
        assert!(self.out.contains(text), "{}: {text:?} in {self:?}", self.of);
        self
    }

    /// Checks that there is no result, and that the last line is an error with all these parts.
    #[track_caller]
    pub fn refuses(&self, code: i32, parts: &[&str]) -> &Self {
        self.exits(code);
        assert_eq!(self.out, "", "{}: {self:?}", self.of);
        let line = self.err.lines().last().expect("a message");
        let has_all = parts.iter().all(|part| line.contains(part));
        let is_it = line.starts_with("error: ") && has_all;
        assert!(is_it, "{}: {parts:?} in {self:?}", self.of);
        self
    }

    /// Checks that a warning has all these parts.
    #[track_caller]
    pub fn warns(&self, parts: &[&str]) -> &Self {
        let is_it = |line: &str| {
            line.starts_with("warning: ") && parts.iter().all(|part| line.contains(part))
        };
        let is_said = self.err.lines().any(is_it);
        assert!(is_said, "{}: {parts:?} in {self:?}", self.of);
        self
    }

    /// Returns a section of standard output.
    #[track_caller]
    pub fn section(&self, name: &str) -> String {
        let mut sections = sections(&self.out).into_iter();
        let found = sections.find(|section| section.0 == name);
        let found = found.unwrap_or_else(|| panic!("{}: no {name} in {self:?}", self.of));
        found.1
    }

    /// Returns the JSON report, which standard output has alone or in its own section.
    #[track_caller]
    pub fn report(&self) -> Value {
        let section = self.out.split_once("# export-json\n");
        let text = section.map_or(&*self.out, |(_, text)| text);
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        match values.next() {
            Some(Ok(report)) => report,
            other => panic!("{}: {other:?} in {self:?}", self.of),
        }
    }

    /// Returns the bytes on the fullest tile of the split that `--solve` printed alone.
    #[track_caller]
    pub fn peak(&self) -> i64 {
        let stages = self.report();
        let stages = stages.as_array().expect("stages").iter();
        let peaks = stages.map(|stage| stage["mem"]["max_tile_mem"].as_i64().expect("bytes"));
        peaks.max().expect("a stage")
    }
}

/// A subject of checks, which is printed if one of them fails before the end of its scope.
pub struct Checking<T: Display>(pub T);

impl<T: Display> Drop for Checking<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("checking {}", self.0);
        }
    }
}
