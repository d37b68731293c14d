//! The example of a CI job: valid YAML, whole steps, and existing options. Its scripts and the
//! action run on the fixtures.

use super::action::{PullRequest, Values, filled_in, outputs, run_action, run_script};
use crate::support::{copy, piped, root, run_fixture, skip, try_finish};
use clap::CommandFactory;
use popliner::app::Options;
use regex::Regex;
use serde_yaml_ng::Value;
use std::path::{Path, PathBuf};

/// The action of this repository, as the example names it.
const ACTION: &str = concat!("OWNER/popliner@v", env!("CARGO_PKG_VERSION"));

fn workflow() -> Value {
    let path = root().join("examples/ci/github-actions.yml");
    let text = std::fs::read_to_string(path).expect("the example");
    serde_yaml_ng::from_str(&text).expect("YAML")
}

/// Returns all steps of all jobs.
fn steps(workflow: &Value) -> Vec<&Value> {
    let jobs = workflow["jobs"].as_mapping().expect("jobs").values();
    let steps = jobs.flat_map(|job| job["steps"].as_sequence().expect("steps"));
    steps.collect()
}

/// Returns the scripts, with the names of their steps.
fn scripts(workflow: &Value) -> Vec<(&str, &str)> {
    let scripts = steps(workflow).into_iter().filter_map(|step| {
        let name = step["name"].as_str().unwrap_or_default();
        Some((name, step["run"].as_str()?))
    });
    scripts.collect()
}

/// Returns the commands of a script that start popliner, with continued lines joined.
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
        assert!(
            action.is_none_or(|it| it == ACTION || is_pinned(it)),
            "{step:?}"
        );
    }
}

/// Returns the options of popliner in the scripts and in the inputs of the action.
fn options_used(workflow: &Value) -> Vec<String> {
    let quoted = r#"(?m)(?:["'(]|^|\badd )--([a-z][a-z0-9-]*)"#;
    let quoted = Regex::new(quoted).expect("a regex");
    let mut used = Vec::new();
    let mut take = |text: &str| {
        let found = quoted.captures_iter(text).map(|found| found[1].to_owned());
        used.extend(found);
    };
    for (_, script) in scripts(workflow) {
        take(script);
        for command in commands(script) {
            command.split_whitespace().for_each(&mut take);
        }
    }
    for step in steps(workflow) {
        take(step["with"]["options"].as_str().unwrap_or_default());
    }
    let script = std::fs::read_to_string(root().join("action/run.sh")).expect("a script");
    take(&script);
    used
}

#[test]
fn popliner_has_every_option_that_is_used() {
    let command = Options::command();
    let known: Vec<&str> = command
        .get_arguments()
        .filter_map(|a| a.get_long())
        .collect();
    let used = options_used(&workflow());
    for option in &used {
        assert!(known.contains(&option.as_str()), "--{option} is no option");
    }
    for option in [
        "solve",
        "export-markdown",
        "export-json",
        "emit",
        "compare",
        "reserve",
        "fit",
        "against",
        "objective",
        "max-step-ms",
    ] {
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
        // Braces are for lists and for values that GitHub fills in.
        for part in parts.filter(|part| !part.starts_with('{')) {
            let variable = part.split('"').next().expect("a part");
            let is_set = set.contains_key(variable) || variable.starts_with("GITHUB_");
            assert!(is_set, "{variable} in {name}");
        }
    }
}

/// Returns the variables of the workflow, for this number of IPUs.
fn set(ipus: &str) -> Values {
    let workflow = workflow();
    let set = workflow["env"].as_mapping().expect("variables").iter();
    let set = set.filter_map(|(name, value)| Some((name.as_str()?, value.as_str()?)));
    let mut set: Values = set.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    set.insert("NUM_IPUS".to_owned(), ipus.to_owned());
    set
}

/// Runs a step as GitHub does, a script or the action, and returns its exit code. `None` if the
/// test is skipped.
fn run_step(step: &Value, folder: &Path, ipus: &str) -> Option<i32> {
    let mut set = set(ipus);
    let run = match step["run"].as_str() {
        None => run_action(&given_to_action(step, folder, &set), folder)?,
        Some(script) => {
            let file = format!("outputs-{}", step["id"].as_str().unwrap_or_default());
            let file = folder.join(file);
            let _ = std::fs::remove_file(&file);
            set.insert("GITHUB_OUTPUT".to_owned(), file.display().to_string());
            run_script(script, folder, &set)?
        }
    };
    let is_refused = run.code > 1;
    assert_eq!(run.err.contains("error:"), is_refused, "{}", run.err);
    Some(run.code)
}

/// Returns the inputs of the action, with variables and outputs of earlier steps filled in.
fn given_to_action(step: &Value, folder: &Path, set: &Values) -> Values {
    assert_eq!(step["uses"], ACTION);
    let known = |expression: &str| match expression.split('.').collect::<Vec<_>>()[..] {
        ["env", name] => set[name].clone(),
        ["steps", id, "outputs", name] => {
            let outputs = outputs(&folder.join(format!("outputs-{id}")));
            outputs.get(name).cloned().unwrap_or_default()
        }
        _ => panic!("{expression}"),
    };
    let given = step["with"].as_mapping().expect("inputs").iter();
    let given = given.map(|(name, value)| (name.as_str().unwrap(), value.as_str().unwrap()));
    let given = given.map(|(name, value)| (name.to_owned(), filled_in(value, known)));
    given.collect()
}

/// Makes a folder with a downloaded profile.
fn downloaded(fixture: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let report: PathBuf = folder.path().join("report/training");
    std::fs::create_dir_all(&report).expect("a folder");
    copy(fixture, &report);
    folder
}

fn step<'a>(workflow: &'a Value, name: &str) -> &'a Value {
    let mut steps = steps(workflow).into_iter();
    steps.find(|step| step["name"] == name).expect("a step")
}

/// Runs the steps that choose the options and check the model with them.
fn check(workflow: &Value, folder: &Path, ipus: &str) -> Option<i32> {
    let choose = "Choose what to keep free and what to compare with";
    assert_eq!(run_step(step(workflow, choose), folder, ipus)?, 0);
    run_step(step(workflow, "Check that the model fits"), folder, ipus)
}

#[test]
fn the_job_passes_when_the_model_fits_and_posts_the_report() {
    let workflow = workflow();
    let folder = downloaded("popart-bert-inference");
    let run = |name: &str| run_step(step(&workflow, name), folder.path(), "5");
    let Some(code) = check(&workflow, folder.path(), "5") else {
        return;
    };
    assert_eq!(code, 0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    let summary = read("summary.md");
    assert!(
        summary == read("prediction.md") && summary.contains('|'),
        "{summary}"
    );
    assert!(read("prediction.layers-per-ipu.yml").contains("\nlayers_per_ipu: ["));
    // The next run compares with this one.
    assert_eq!(run("Keep the report of the main branch"), Some(0));
    assert_eq!(check(&workflow, folder.path(), "5"), Some(0));
    let results = read("prediction.txt");
    assert!(results.contains("# compare-layers\n"), "{results}");
}

#[test]
fn the_job_fails_when_the_model_does_not_fit_and_still_has_a_report() {
    let workflow = workflow();
    // The example keeps a tenth of each tile free.
    let folder = downloaded("training-pipeline");
    let Some(code) = check(&workflow, folder.path(), "4") else {
        return;
    };
    assert_eq!(code, 1);
    let report = std::fs::read_to_string(folder.path().join("prediction.md"));
    assert!(report.expect("a report").contains("does not fit"));
    let empty = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(empty.path().join("report")).expect("a folder");
    assert_eq!(check(&workflow, empty.path(), "4"), Some(3));
}

/// A step of this model takes 322.4 ms on 5 IPUs.
#[test]
fn the_job_fails_when_a_step_takes_longer_than_its_budget() {
    let workflow = workflow();
    for (budget, code, verdict) in [("322", 1, "over"), ("323", 0, "within")] {
        let folder = downloaded("popart-bert-inference");
        let mut check = step(&workflow, "Check that the model fits").clone();
        let options = check["with"]["options"].as_str().expect("options");
        let options = options.replace("${{ env.MAX_STEP_MS }}", budget);
        check["with"]["options"] = options.into();
        let Some(found) = run_step(&check, folder.path(), "5") else {
            return;
        };
        let summary = std::fs::read_to_string(folder.path().join("summary.md"));
        let (summary, said) = (
            summary.expect("a summary"),
            format!("A step is {verdict} the {budget} ms"),
        );
        assert_eq!(found, code, "{summary}");
        assert!(
            summary.contains("## The model fits on 5 IPUs") && summary.contains(&said),
            "{summary}"
        );
    }
}

const KEEP: &str = "Keep the reserve that the prediction needed";

/// Is jq on the path? GitHub's machines have it. Skips if not.
#[track_caller]
fn has_jq() -> bool {
    let found = try_finish(piped("jq").arg("--version")).is_some();
    if !found {
        skip("there is no jq on the path");
    }
    found
}

/// Returns a step of the example without its reserve, since the tiles of this model have no tenth
/// to spare.
fn without_reserve(workflow: &Value, name: &str) -> Value {
    let mut step = step(workflow, name).clone();
    let script = step["run"].as_str().expect("a script");
    step["run"] = script.replace("$RESERVE", "0").into();
    step
}

/// Jobs pass artifacts from one folder to the next.
#[test]
fn the_compiled_pipeline_is_checked_and_says_which_reserve_is_enough() {
    let workflow = workflow();
    let folder = downloaded("training-pipeline");
    let path = |name: &str| folder.path().join(name);
    let run = |name: &str| run_step(step(&workflow, name), folder.path(), "4");
    let choose = "Choose what to keep free and what to compare with";
    let choose = without_reserve(&workflow, choose);
    if run_step(&choose, folder.path(), "4").is_none() {
        return;
    }
    assert_eq!(run("Check that the model fits"), Some(0));
    std::fs::remove_file(path("summary.md")).expect("a summary");
    let configuration = "prediction.layers-per-ipu.yml";
    let split = std::fs::read_to_string(path(configuration)).expect("a split");
    assert!(split.contains("\nlayers_per_ipu: ["), "{split}");
    let compile = &step(&workflow, "Compile the pipeline and record the profile")["run"];
    let compile = compile.as_str().expect("a script");
    assert!(compile.contains(&format!("prediction/{configuration}")));
    for folder in ["prediction", "pipeline/training"] {
        std::fs::create_dir_all(path(folder)).expect("a folder");
    }
    copy("training-pipelined", &path("pipeline/training"));
    let report = "prediction/prediction.json";
    std::fs::rename(path("prediction.json"), path(report)).expect("a report");
    assert_eq!(run("Check that the compiled pipeline fits"), Some(0));
    let summary = std::fs::read_to_string(path("summary.md")).expect("a summary");
    assert!(
        summary.contains("## The compiled model fits on 4 IPUs"),
        "{summary}"
    );
    assert!(summary.contains("Against the prediction:"), "{summary}");
    if !has_jq() {
        return;
    }
    assert_eq!(run(KEEP), Some(0));
    // The next prediction uses this reserve in place of a tenth.
    assert_eq!(check(&workflow, folder.path(), "4"), Some(0));
    let report = std::fs::read_to_string(path("prediction.json")).expect("a report");
    assert!(report.contains("\"--reserve=1204\""), "{report}");
}

#[test]
fn a_compiled_pipeline_that_does_not_fit_fails_the_job() {
    let workflow = workflow();
    let folder = downloaded("training-pipeline");
    let path = |name: &str| folder.path().join(name);
    let report = path("prediction/prediction.json");
    let report = report.to_str().expect("a plain path");
    for folder in ["prediction", "pipeline"] {
        std::fs::create_dir_all(path(folder)).expect("a folder");
    }
    let [profile, _] = copy("training-pipelined", &path("pipeline"));
    let options = ["--layers-per-ipu=1,2,2,1", "-q", "--export-json", report];
    assert_eq!(run_fixture("training-pipeline", &options).code, 0);
    let check = step(&workflow, "Check that the compiled pipeline fits");
    let overflow = "UPDATE memory_by_tile SET overflowed_including_gaps = 8 WHERE tile = 20";
    let connection = rusqlite::Connection::open(profile).expect("a profile");
    connection.execute_batch(overflow).expect("an update");
    drop(connection);
    let Some(code) = run_step(check, folder.path(), "4") else {
        return;
    };
    assert_eq!(code, 1);
    assert!(path("fit.md").is_file());
    if has_jq() {
        let keep = step(&workflow, KEEP);
        assert_eq!(run_step(keep, folder.path(), "4"), Some(0));
        let kept = std::fs::read_to_string(path("reserve.txt"));
        assert_eq!(kept.expect("a number"), "1204\n");
    }
}

/// In every run, the prediction and the verdict on the compiled pipeline have separate comments on
/// the pull request.
#[test]
fn neither_comment_replaces_the_other() {
    let workflow = workflow();
    let folder = downloaded("training-pipeline");
    let path = |name: &str| folder.path().join(name);
    let Some(pull_request) = PullRequest::new(folder.path()) else {
        return;
    };
    std::fs::create_dir_all(path("prediction")).expect("a folder");
    std::fs::create_dir_all(path("pipeline")).expect("a folder");
    copy("training-pipelined", &path("pipeline"));
    for _ in 0..2 {
        for name in [
            "Check that the model fits",
            "Check that the compiled pipeline fits",
        ] {
            let given = given_to_action(step(&workflow, name), folder.path(), &set("4"));
            let run = run_action(&given, folder.path()).expect("bash");
            assert_eq!(run.code, 0, "{run:?}");
            assert_eq!(pull_request.comment(&given, folder.path()), "");
            let _ = std::fs::copy(path("prediction.json"), path("prediction/prediction.json"));
        }
    }
    let posted = pull_request.posted();
    let [prediction, verdict] = posted.as_slice() else {
        panic!("{posted:?}");
    };
    assert!(
        prediction.contains("\n## The model fits on 4 IPUs\n"),
        "{prediction}"
    );
    assert!(
        verdict.contains("\n## The compiled model fits on 4 IPUs\n"),
        "{verdict}"
    );
}
