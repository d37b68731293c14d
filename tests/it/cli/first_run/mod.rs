//! Cases that a first run may meet. Each row has the files, the options, the exit code, and the
//! words of the message that name the cause and the way out.
//!
//! Warnings must be on standard error and in the report. [`sound_models_are_not_warned_of`] checks
//! that sound models cause none of them.

mod files;
mod layer_rows;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::each;
use crate::support::models::{every_kind, generate, share};
use crate::support::{ONE_IPU_FIXTURES, debug, popliner, profile, root};
use files::Files;
use popliner::analysis::{Analysis, Request};
use popliner::memory::PipelineOptions;
use rows::rows;
use tempfile::TempDir;

/// The kind of the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The error that ended the run; standard output is empty.
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
    options: &'static [&'static str],
    kind: Kind,
    says: &'static [&'static str],
}

#[test]
fn each_case_ends_and_says_what_it_must() {
    let failures: Vec<String> = each(&rows(), failure).into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a case, and describes its failure.
fn failure(row: &Row) -> Option<String> {
    let folder = TempDir::new().expect("a folder");
    let report = folder.path().join("of this run.json");
    let path = (row.files)(folder.path());
    let mut arguments = vec![path.to_str().expect("a plain path").to_string()];
    arguments.extend(row.options.iter().map(|&option| option.to_string()));
    if row.kind == Warning {
        arguments.push(format!("--export-json={}", report.display()));
    }
    let run = popliner(&arguments);
    let has_all = |text: &str| row.says.iter().all(|part| text.contains(part));
    let is_right = match row.kind {
        Error(code) => {
            let is_refused = (run.code, &*run.out) == (code, "");
            is_refused && run.err.starts_with("error: ") && has_all(&run.err)
        }
        Warning | Note => {
            let is_it = |line: &&str| line.starts_with("warning: ") == (row.kind == Warning);
            let lines = run.err.lines().filter(is_it).filter(|line| has_all(line));
            run.code < 2 && lines.count() == 1
        }
    };
    let is_reported = row.kind != Warning || {
        let warnings = warnings_in(&report);
        warnings.iter().filter(|warning| has_all(warning)).count() == 1
    };
    let (what, says, err) = (row.what, row.says, &run.err);
    (!is_right || !is_reported).then(|| format!("{what}: {says:?}, code {} and\n{err}", run.code))
}

/// Returns the warnings of a report, if there is one.
fn warnings_in(report: &Path) -> Vec<String> {
    let text = fs::read(report).unwrap_or_default();
    let report: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    let warnings = report.and_then(|report| report["warnings"].as_array().cloned());
    let texts = warnings.unwrap_or_default().into_iter();
    texts
        .filter_map(|text| text.as_str().map(String::from))
        .collect()
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
        let is_known = ["poplar", "\"tensorflow\""]
            .iter()
            .any(|name| what.contains(name));
        let is_small = |warning: &str| is_known && warning.contains("got a layer");
        let all = all
            .map(|warning| warning.to_string())
            .filter(|warning| !is_small(warning));
        let all: Vec<String> = all.collect();
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
