//! Cases that a first run may meet. Each row has the files, the options, the exit code, and the
//! words of the message that name the cause and the way out.
//!
//! Warnings must be on standard error and in the report. [`sound_models_are_not_warned_of`] checks
//! that sound models cause none of them.

mod files;
mod layer_rows;
mod rows;

use std::fs;
use std::path::PathBuf;

use crate::support::models::{every_kind, generate, share};
use crate::support::{ONE_IPU_FIXTURES, Run, Words, debug, each, popliner, profile, root};
use files::Files;
use popliner::analysis::{Analysis, Request};
use popliner::memory::PipelineOptions;
use rows::rows;
use serde_json::Value;
use tempfile::TempDir;

/// The kind of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The error that ended the run, with its exit code.
    Error(i32),
    /// A warning beside an answer, on standard error and in the report.
    Warning,
    /// A line beside an answer.
    Note,
}
use Kind::{Error, Note, Warning};

/// A case.
struct Row {
    what: &'static str,
    files: Files,
    options: &'static str,
    kind: Kind,
    /// Parts of the message.
    says: Vec<&'static str>,
}

impl Row {
    /// Reads a case: its name, the kind of the message, the options, and parts of the message.
    fn new(case: &'static str, files: Files) -> Self {
        let mut lines = case.lines().map(str::trim);
        let (what, run) = lines
            .next()
            .and_then(|line| line.split_once(": "))
            .expect("a name");
        let (kind, options) = run.split_once(" of ").expect("options");
        let kind = match kind {
            "warning" => Warning,
            "note" => Note,
            error => Error(error.trim_start_matches("error ").parse().expect("a code")),
        };
        let says = lines.collect();
        Self {
            what,
            files,
            options,
            kind,
            says,
        }
    }
}

#[test]
fn each_case_ends_and_says_what_it_must() {
    each(&rows(), |row| {
        let folder = TempDir::new().expect("a folder");
        let path = (row.files)(folder.path()).display().to_string();
        let report = folder.path().join("of-this-run.json");
        let export = format!("--export-json={}", report.display());
        let export = (row.kind == Warning).then_some(&*export);
        let arguments = [&[&*path][..], &row.options.words()].concat();
        let run = popliner(arguments.into_iter().chain(export));
        let run = Run {
            of: row.what.to_owned(),
            ..run
        };
        let has_all = |text: &str| row.says.iter().all(|part| text.contains(part));
        if let Error(code) = row.kind {
            let is_refused = (run.code, &*run.out) == (code, "");
            let is_right = is_refused && run.err.starts_with("error: ") && has_all(&run.err);
            assert!(is_right, "{:?}: {run:?}", row.says);
            return;
        }
        let is_it = |line: &&str| line.starts_with("warning: ") == (row.kind == Warning);
        let lines = run.err.lines().filter(is_it).filter(|line| has_all(line));
        assert!(
            run.code < 2 && lines.count() == 1,
            "{:?}: {run:?}",
            row.says
        );
        if row.kind == Warning {
            let text = fs::read(&report).expect("a report");
            let report: Value = serde_json::from_slice(&text).expect("JSON");
            let warnings = report["warnings"].as_array().expect("warnings").iter();
            let found = warnings.filter(|warning| warning.as_str().is_some_and(has_all));
            assert_eq!(found.count(), 1, "{}: {report}", row.what);
        }
    });
}

/// The generator's models cause no warning of [`rows`] about recordings and layers, with default
/// options.
#[test]
fn sound_models_are_not_warned_of() {
    let silent = |files: &[PathBuf; 2], what: &str| {
        let analysis = Analysis::read(&files[0], &files[1]).expect(what);
        let layers = analysis.layers(&Request::default()).expect(what);
        let pipeline = PipelineOptions::default().choose(&analysis.model);
        let memory = layers.memory().expect(what);
        let memory = memory.in_pipeline(pipeline).expect(what);
        let of_files = analysis.warnings.iter().map(|(_, warning)| warning.clone());
        let all = of_files.chain(layers.warnings.clone());
        let all = all.chain(memory.recording_warning());
        // Small models of plain Poplar, and of TensorFlow with outlined bodies, have many
        // operations without a layer: each weight is one.
        let is_known = what.contains("poplar") || what.contains("\"tensorflow\"");
        let is_small = |warning: &str| is_known && warning.contains("got a layer");
        let all = all.map(|warning| warning.to_string());
        let all: Vec<String> = all.filter(|warning| !is_small(warning)).collect();
        assert_eq!(all, [""; 0], "{what}");
    };
    for name in ONE_IPU_FIXTURES {
        let files = [profile(name), debug(name)].map(|file| root().join(file));
        silent(&files, name);
    }
    each(&every_kind(2 / share(2) as u64), |options| {
        let folder = TempDir::new().expect("a folder");
        let files = generate(folder.path(), options);
        silent(&files, &format!("{options:?}"));
    });
}
