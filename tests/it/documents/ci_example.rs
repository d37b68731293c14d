//! The example of a CI job: YAML that can be read, steps that are whole, options
//! that the command has; and its scripts are run on the fixtures.

use crate::support::{copy, piped, root, skip, try_finish};
use clap::CommandFactory;
use popliner::app::Options;
use serde_yaml_ng::Value;
use std::path::{Path, PathBuf};

fn workflow() -> Value {
    let path = root().join("examples/ci/github-actions.yml");
    let text = std::fs::read_to_string(path).expect("the example");
    serde_yaml_ng::from_str(&text).expect("YAML")
}

/// All steps of all jobs.
fn steps(workflow: &Value) -> Vec<&Value> {
    let jobs = workflow["jobs"].as_mapping().expect("jobs").values();
    let steps = jobs.flat_map(|job| job["steps"].as_sequence().expect("steps"));
    steps.collect()
}

/// The scripts, with the names of their steps.
fn scripts(workflow: &Value) -> Vec<(&str, &str)> {
    let scripts = steps(workflow).into_iter().filter_map(|step| {
        let name = step["name"].as_str().unwrap_or_default();
        Some((name, step["run"].as_str()?))
    });
    scripts.collect()
}

/// The commands of a script that start popliner, continued lines joined.
fn commands(script: &str) -> Vec<String> {
    let joined = script.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let commands = lines.filter(|line| line.starts_with("popliner "));
    commands.map(String::from).collect()
}

#[test]
fn every_job_and_step_says_what_it_does() {
    let workflow = workflow();
    for event in ["pull_request", "push", "workflow_dispatch"] {
        assert!(workflow["on"].get(event).is_some(), "{event}");
    }
    let jobs = workflow["jobs"].as_mapping().expect("jobs");
    for (name, job) in jobs {
        assert!(!job["runs-on"].is_null(), "{name:?}");
        if let Some(needed) = job["needs"].as_str() {
            assert!(jobs.contains_key(needed), "{name:?} needs {needed}");
        }
    }
    for step in steps(&workflow) {
        let has = |key: &str| step[key].is_string();
        assert!(has("uses") != has("run"), "{step:?}");
        let action = step["uses"].as_str();
        let is_pinned = |action: &str| action.starts_with("actions/") && action.contains("@v");
        assert!(action.is_none_or(is_pinned), "{step:?}");
    }
}

#[test]
fn popliner_has_every_option_that_is_used() {
    let command = Options::command();
    let known: Vec<&str> = command
        .get_arguments()
        .filter_map(|a| a.get_long())
        .collect();
    let workflow = workflow();
    let mut used = Vec::new();
    for (_, script) in scripts(&workflow) {
        for command in commands(script) {
            let words = command.split_whitespace();
            used.extend(words.filter_map(|w| Some(w.strip_prefix("--")?.to_string())));
        }
        // The words that are kept in a variable until they are used.
        let words = script.split(['(', ' ', ')', '\n']);
        let kept = words.skip_while(|word| *word != "compare=");
        used.extend(
            kept.filter_map(|word| word.strip_prefix("--compare").map(|_| "compare".into())),
        );
    }
    for option in &used {
        assert!(known.contains(&option.as_str()), "--{option} is no option");
    }
    for option in ["solve", "export-markdown", "export-json", "emit", "compare"] {
        assert!(
            used.iter().any(|used| used == option),
            "--{option} is not used"
        );
    }
}

#[test]
fn the_variables_that_scripts_use_are_set() {
    let workflow = workflow();
    let set = workflow["env"].as_mapping().expect("variables");
    for (name, script) in scripts(&workflow) {
        let parts = script.split("\"$").skip(1);
        // Braces are for lists and for what GitHub fills in.
        for part in parts.filter(|part| !part.starts_with('{')) {
            let variable = part.split('"').next().expect("a part");
            let is_set = set.contains_key(variable) || variable.starts_with("GITHUB_");
            assert!(is_set || variable == "profile", "{variable} in {name}");
        }
    }
}

/// Runs a script as GitHub does, with popliner in the path; the exit code.
/// `None` after saying that the test is skipped.
fn run_step(script: &str, folder: &Path, ipus: &str) -> Option<i32> {
    let workflow = workflow();
    let set = workflow["env"].as_mapping().expect("variables").iter();
    let set = set.filter_map(|(name, value)| Some((name.as_str()?, value.as_str()?)));
    let binary = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binary.parent().expect("a folder").display());
    let mut bash = piped("bash");
    bash.args(["-eo", "pipefail", "-c", script])
        .current_dir(folder);
    bash.envs(set).env("NUM_IPUS", ipus).env("PATH", path);
    bash.env("GITHUB_STEP_SUMMARY", folder.join("summary.md"));
    let Some(run) = try_finish(&mut bash) else {
        skip("there is no bash");
        return None;
    };
    assert!(!run.err.contains("error:"), "{}", run.err);
    Some(run.code)
}

/// A folder as it is after a profile was downloaded.
fn downloaded(fixture: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let report: PathBuf = folder.path().join("report/training");
    std::fs::create_dir_all(&report).expect("a folder");
    copy(fixture, &report);
    folder
}

fn script<'a>(workflow: &'a Value, name: &str) -> &'a str {
    let mut scripts = scripts(workflow).into_iter();
    let found = scripts.find(|(step, _)| *step == name);
    found.expect("a step of this name").1
}

#[test]
fn the_job_passes_when_the_model_fits_and_posts_the_report() {
    let workflow = workflow();
    let folder = downloaded("popart-bert-inference");
    let run = |step: &str| run_step(script(&workflow, step), folder.path(), "5");
    let Some(code) = run("Check that the model fits") else {
        return;
    };
    assert_eq!(code, 0);
    assert_eq!(run("Print the split as configuration"), Some(0));
    assert_eq!(run("Post the report to the summary"), Some(0));
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).expect("a summary");
    let report = std::fs::read_to_string(folder.path().join("report.md")).expect("a report");
    assert!(summary == report && summary.contains('|'), "{summary}");
    // The next run compares with this one.
    assert_eq!(run("Keep the report of the main branch"), Some(0));
    assert_eq!(run("Check that the model fits"), Some(0));
    let results = std::fs::read_to_string(folder.path().join("results.txt")).expect("results");
    assert!(results.contains("# compare-layers\n"), "{results}");
}

#[test]
fn the_job_fails_when_the_model_does_not_fit_and_still_has_a_report() {
    let workflow = workflow();
    let folder = downloaded("impossible");
    let check = script(&workflow, "Check that the model fits");
    let Some(code) = run_step(check, folder.path(), "4") else {
        return;
    };
    assert_eq!(code, 1);
    assert!(folder.path().join("report.md").is_file());
    let empty = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(empty.path().join("report")).expect("a folder");
    assert_eq!(run_step(check, empty.path(), "4"), Some(3));
}
