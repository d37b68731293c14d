//! Cases that a first run may meet: the files, the options, the exit code, and the words of the
//! message that name the cause and the way out.
//!
//! Below the name of a case are the steps that make its files in an empty folder:
//!
//! | step | effect |
//! |---|---|
//! | `copy FIXTURE [FOLDER]` | copies `profile.pop` and `debug.cbor` of a fixture |
//! | `sql FILE STATEMENT` | changes a database, or makes one |
//! | `contexts drop_some`, `contexts recompute` | changes `debug.cbor` |
//! | `renamed FROM TO ...` | replaces parts of the names of operations |
//! | `outlined FRAMEWORK` | generates a model with calls |
//! | `$ COMMAND` | runs a command of the shell, which finds the fixtures in `$FIXTURES` |
//!
//! Then come one or more runs in this folder, each with its arguments and parts of its message, of
//! which the first may stand behind ` => `: `error CODE of ARGUMENTS` for the error that ends the run,
//! `warning of ARGUMENTS` for a warning beside an answer, on standard error and in the report, and
//! `note of ARGUMENTS` for a line beside an answer. [`sound_models_are_not_warned_of`] checks that
//! sound models cause no warning.

mod files;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::models::{every_kind, generate, share};
use crate::support::{
    ONE_IPU_FIXTURES, Run, Words, cases, command, debug, each, finish, profile, root,
};
use popliner::analysis::{Analysis, Request};
use popliner::memory::PipelineOptions;
use rows::ROWS;
use serde_json::Value;
use tempfile::TempDir;

/// Returns the kind of message of a run, and its arguments with the first part; `None` if the line is
/// a step or another part of a message.
fn as_run(line: &str) -> Option<(&str, &str)> {
    let (kind, arguments) = line.split_once(" of ")?;
    let is_kind = |kind: &str| matches!(kind, "warning" | "note") || kind.starts_with("error ");
    is_kind(kind).then_some((kind, arguments))
}

#[test]
fn each_case_ends_and_says_what_it_must() {
    let rows: Vec<_> = ROWS.into_iter().flat_map(cases).collect();
    each(&rows, |(what, lines)| {
        let folder = TempDir::new().expect("a folder");
        assert!(lines.iter().any(|line| as_run(line).is_some()), "{what}");
        for lines in lines.chunk_by(|_, next| as_run(next).is_none()) {
            match as_run(lines[0]) {
                Some((kind, run)) => {
                    let (arguments, first) = run.split_once(" => ").unwrap_or((run, ""));
                    let parts = [&[first], &lines[1..]].concat();
                    let of = format!("{what}: {arguments}");
                    check(folder.path(), kind, arguments, &parts, of);
                }
                None => lines
                    .iter()
                    .for_each(|step| files::make(folder.path(), step)),
            }
        }
    });
}

/// Checks that a run ends with a message of this kind, which has all `parts`.
fn check(folder: &Path, kind: &str, arguments: &str, parts: &[&str], of: String) {
    let mut arguments = arguments.words();
    arguments.extend((kind == "warning").then_some("--export-json=of-this-run.json"));
    let run = finish(command(arguments).current_dir(folder));
    let run = Run { of, ..run };
    let has_all = |text: &str| parts.iter().all(|part| text.contains(part));
    if let Some(code) = kind.strip_prefix("error ") {
        let code = code.parse().expect("a code");
        let mut lines = run.exits(code).err.lines();
        let is_refused = lines.any(|line| line.starts_with("error: ")) && run.out.is_empty();
        assert!(is_refused && has_all(&run.err), "{parts:?}: {run:?}");
        return;
    }
    let is_it = |line: &&str| line.starts_with("warning: ") == (kind == "warning");
    let lines = run.err.lines().filter(is_it).filter(|line| has_all(line));
    let may_lack_verdict = run.code == 3 && run.err.contains("so there is no verdict");
    let is_done = run.code < 2 || may_lack_verdict;
    assert!(is_done && lines.count() == 1, "{parts:?}: {run:?}");
    if kind == "warning" {
        let text = fs::read(folder.join("of-this-run.json")).expect("a report");
        let report: Value = serde_json::from_slice(&text).expect("JSON");
        let warnings = report["warnings"].as_array().expect("warnings").iter();
        let found = warnings.filter(|warning| warning.as_str().is_some_and(has_all));
        assert_eq!(found.count(), 1, "{}: {report}", run.of);
    }
}

/// The generator's models cause no warning of [`ROWS`] about recordings and layers, with default
/// options, and neither the profile nor its contexts contradict anything.
#[test]
fn sound_models_are_not_warned_of() {
    let silent = |files: &[PathBuf; 2], what: &str| {
        let analysis = Analysis::read(&files[0], &files[1]).expect(what);
        assert_eq!(analysis.model.contradictions, [], "{what}");
        let layers = analysis.layers(&Request::default()).expect(what);
        let pipeline = PipelineOptions::default().choose(&analysis.model);
        let memory = layers.memory().expect(what);
        let memory = memory.in_pipeline(pipeline).expect(what);
        let of_files = analysis.warnings.iter().map(|(_, warning)| warning.clone());
        let all = of_files.chain(layers.warnings.clone());
        let all = all.chain(memory.recording_warning());
        // Small models of plain Poplar, and of TensorFlow with outlined bodies, have many
        // operations without a layer, since each weight is an operation.
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
