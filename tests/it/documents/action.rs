//! The action for GitHub workflows: what it says of itself, and its script, which is
//! run as a workflow would.

use crate::support::{Run, copy, piped, root, skip, try_finish};
use serde_yaml_ng::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Names with values: inputs, variables or outputs.
pub type Values = BTreeMap<String, String>;

fn action() -> Value {
    let text = std::fs::read_to_string(root().join("action.yml")).expect("the action");
    serde_yaml_ng::from_str(&text).expect("YAML")
}

/// The names that the action takes, with their defaults where they have some.
fn inputs(action: &Value) -> BTreeMap<&str, Option<&str>> {
    let inputs = action["inputs"].as_mapping().expect("inputs").iter();
    let inputs = inputs.map(|(name, input)| (name.as_str().unwrap(), input["default"].as_str()));
    inputs.collect()
}

fn steps(action: &Value) -> &[Value] {
    action["runs"]["steps"].as_sequence().expect("steps")
}

/// A value as GitHub gives it to a step: expressions are replaced by what they are.
pub fn filled_in(value: &str, known: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").expect("an end");
        text += before;
        text += &known(expression.trim());
        rest = after;
    }
    text + rest
}

/// What a step wrote to the file of its outputs: `name=value`, or `name<<END` and
/// lines up to `END`.
pub fn outputs(file: &Path) -> Values {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines();
    let mut found = Values::new();
    while let Some(line) = lines.next() {
        if let Some((name, end)) = line.split_once("<<") {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
            found.insert(name.to_owned(), value.join("\n"));
        } else {
            let (name, value) = line.split_once('=').expect("a value");
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found
}

/// Runs a script in bash as GitHub does, with popliner on the path. `None` after
/// saying that the test is skipped.
pub fn run_script(script: &str, folder: &Path, variables: &Values) -> Option<Run> {
    let binary = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binary.parent().expect("a folder").display());
    let mut bash = piped("bash");
    bash.args(["-eo", "pipefail", "-c", script]);
    bash.current_dir(folder).envs(variables).env("PATH", path);
    let run = try_finish(&mut bash);
    if run.is_none() {
        skip("there is no bash");
    }
    run
}

/// Runs the action with these inputs in a folder, where it leaves `summary.md` and
/// the file `outputs`.
pub fn run_action(given: &Values, folder: &Path) -> Option<Run> {
    let action = action();
    let defaults = inputs(&action);
    let known = |expression: &str| {
        let name = expression.strip_prefix("inputs.").expect("an input");
        let default = defaults[name];
        let value = given.get(name).map(String::as_str).or(default);
        value.unwrap_or_else(|| panic!("{name}")).to_owned()
    };
    for name in given.keys() {
        assert!(defaults.contains_key(name.as_str()), "{name} is no input");
    }
    let step = steps(&action).last().expect("a step");
    let variables = step["env"].as_mapping().expect("variables").iter();
    let mut variables: Values = variables
        .map(|(name, value)| (name.as_str().unwrap(), value.as_str().unwrap()))
        .map(|(name, value)| (name.to_owned(), filled_in(value, known)))
        .collect();
    let path = |name: &str| folder.join(name).display().to_string();
    variables.insert("GITHUB_STEP_SUMMARY".to_owned(), path("summary.md"));
    variables.insert("GITHUB_OUTPUT".to_owned(), path("outputs"));
    let here = root().display().to_string();
    variables.insert("GITHUB_ACTION_PATH".to_owned(), here);
    run_script(step["run"].as_str().expect("a script"), folder, &variables)
}

/// A folder with the files of a fixture.
fn with_files(fixture: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy(fixture, folder.path());
    folder
}

fn values(given: &[(&str, &str)]) -> Values {
    let given = given.iter();
    given.map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

#[test]
fn no_input_is_a_part_of_a_script() {
    let action = action();
    for step in steps(&action) {
        assert!(!step["run"].as_str().expect("a script").contains("${{"));
    }
    let used = std::fs::read_to_string(root().join("action.yml")).expect("the action");
    for (name, default) in inputs(&action) {
        let uses = used.matches(&format!("inputs.{name} }}}}")).count();
        assert_eq!(uses, 1, "{name}");
        let is_required = action["inputs"][name]["required"] == true;
        assert_eq!(default.is_none(), is_required, "{name}");
    }
}

#[test]
fn a_model_that_fits_passes_and_its_report_is_posted() {
    let folder = with_files("popart-bert-inference");
    let options = "--reserve 1%\n\n  --layer-name-regex=(?i)layer *(\\d+)\r\n--explain";
    let given = [
        ("profile", "profile.pop"),
        ("debug", "debug.cbor"),
        ("num-ipus", "4"),
    ];
    let mut given = values(&given);
    given.insert("options".to_owned(), options.to_owned());
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    let summary = read(folder.path(), "summary.md");
    assert!(summary.contains("fits"), "{summary}");
    assert_eq!(summary, read(folder.path(), "popliner-report.md"));
    let report = read(folder.path(), "popliner-report.json");
    for argument in ["--reserve=1%", "--layer-name-regex=(?i)layer *(\\\\d+)"] {
        assert!(report.contains(&format!("\"{argument}\"")), "{argument}");
    }
    assert!(read(folder.path(), "popliner-report.txt").starts_with('['));
    let outputs = outputs(&folder.path().join("outputs"));
    assert_eq!(outputs, values(&[("fits", "true"), ("exit-code", "0")]));
}

#[test]
fn a_model_that_does_not_fit_fails_and_its_report_is_posted() {
    let folder = with_files("impossible");
    let given = values(&[("profile", "."), ("report", "own name")]);
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 1, "{run:?}");
    let summary = read(folder.path(), "summary.md");
    assert!(!summary.is_empty() && summary == read(folder.path(), "own name.md"));
    let outputs = outputs(&folder.path().join("outputs"));
    assert_eq!(outputs, values(&[("fits", "false"), ("exit-code", "1")]));
}

#[test]
fn what_cannot_be_read_fails_and_leaves_no_earlier_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("popliner-report.md");
    std::fs::write(&report, "earlier").expect("a file");
    let given = values(&[("profile", "nowhere.pop")]);
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.err.contains("error: "), "{run:?}");
    let text =
        "popliner ended with exit code 3 and without a verdict; the log of this step says why";
    let last = format!("::error title=popliner::{text}");
    assert_eq!(run.out.lines().last(), Some(&*last));
    let summary = read(folder.path(), "summary.md");
    assert!(!report.exists() && summary == format!("{text}\n"));
    let outputs = outputs(&folder.path().join("outputs"));
    assert_eq!(outputs, values(&[("fits", ""), ("exit-code", "3")]));
}

/// What popliner prints cannot act as a command of the workflow, nor end that by itself.
#[test]
fn commands_are_stopped_while_names_are_printed() {
    let folder = with_files("popart-bert-inference");
    let given = values(&[("profile", "."), ("report", "a/new folder/report")]);
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        assert_eq!(run.code, 0, "{run:?}");
        assert!(!read(folder.path(), "a/new folder/report.json").is_empty());
        let token = run
            .out
            .strip_prefix("::stop-commands::")
            .expect("a command");
        let (token, rest) = token.split_once('\n').expect("a line");
        assert_eq!(rest, format!("::{token}::\n"));
        assert_eq!(token.len(), 32);
        tokens.push(token.to_owned());
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_compiled_pipeline_is_judged_with_and_without_a_prediction() {
    let folder = with_files("training-pipeline");
    let predicted = values(&[("profile", "."), ("num-ipus", "4"), ("report", "predicted")]);
    let Some(run) = run_action(&predicted, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    copy("training-pipelined", folder.path());
    for given in [
        values(&[("profile", "."), ("against", "predicted.json")]),
        values(&[("profile", "."), ("options", "--fit")]),
        values(&[
            ("profile", "."),
            ("options", "--fit"),
            ("against", "predicted.json"),
        ]),
    ] {
        let run = run_action(&given, folder.path()).expect("bash");
        assert_eq!(run.code, 0, "{given:?} {run:?}");
        let report = read(folder.path(), "popliner-report.txt");
        assert!(report.contains("IPU\t") || report.contains("# fit\n"));
        let is_compared = report.contains("# against\n");
        assert_eq!(is_compared, given.contains_key("against"), "{given:?}");
    }
}

#[test]
fn no_value_runs_as_a_command() {
    let folder = with_files("popart-bert-inference");
    let hostile = "./$(touch ran) `touch ran` && touch ran & touch ran #\" ' * \\";
    for name in [
        "profile", "debug", "num-ipus", "against", "options", "report",
    ] {
        let mut given = values(&[("profile", "profile.pop"), ("debug", "debug.cbor")]);
        given.insert(name.to_owned(), hostile.to_owned());
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        let is_a_name = name == "report";
        assert_eq!(run.code == 0, is_a_name, "{name}: {run:?}");
        assert!(!folder.path().join("ran").exists(), "{name}");
    }
}
