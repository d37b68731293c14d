//! The action for GitHub workflows: its description, and its scripts, run as a workflow runs them.

mod commenting;
mod installing;
mod readme;
mod running;

pub use commenting::PullRequest;

use crate::support::{Run, copy, piped, root, skip, try_finish};
use clap::{Arg, CommandFactory, ValueEnum};
use popliner::app::Options;
use popliner::report::emit::Form;
use serde_yaml_ng::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Names with values: inputs, variables or outputs.
pub type Values = BTreeMap<String, String>;

fn action() -> Value {
    let text = std::fs::read_to_string(root().join("action.yml")).expect("the action");
    serde_yaml_ng::from_str(&text).expect("YAML")
}

/// Returns the names of the action's inputs, with their defaults.
fn inputs(action: &Value) -> BTreeMap<&str, Option<&str>> {
    let inputs = action["inputs"].as_mapping().expect("inputs").iter();
    let inputs = inputs.map(|(name, input)| (name.as_str().unwrap(), input["default"].as_str()));
    inputs.collect()
}

fn steps(action: &Value) -> &[Value] {
    action["runs"]["steps"].as_sequence().expect("steps")
}

/// Replaces expressions in a value, as GitHub does before a step.
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

/// Reads the outputs that a step wrote to its file: `name=value`, or `name<<END` and lines up to
/// `END`.
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

/// Runs a script in bash as GitHub does. On the path are the folder `fakes` first, then popliner.
/// `None` if the test is skipped.
pub fn run_script(script: &str, folder: &Path, variables: &Values) -> Option<Run> {
    let binary = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let path = std::env::var("PATH").unwrap_or_default();
    let binaries = binary.parent().expect("a folder").display();
    let path = format!("{}:{binaries}:{path}", folder.join("fakes").display());
    let mut bash = piped("bash");
    bash.args(["-eo", "pipefail", "-c", script]);
    bash.current_dir(folder).envs(variables).env("PATH", path);
    let run = try_finish(&mut bash);
    if run.is_none() {
        skip("there is no bash");
    }
    run
}

/// Writes a script for sh that replaces all programs of this name.
pub fn fake(folder: &Path, name: &str, script: &str) {
    let file = folder.join("fakes").join(name);
    std::fs::create_dir_all(folder.join("fakes")).expect("a folder");
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a script");
    let mut command = piped("chmod");
    assert!(try_finish(command.arg("+x").arg(file)).is_none_or(|run| run.code == 0));
}

/// Runs the step of the action that runs popliner, with these inputs. It leaves `summary.md` and
/// the file `outputs` in the folder.
pub fn run_action(given: &Values, folder: &Path) -> Option<Run> {
    let _ = std::fs::remove_file(folder.join("outputs"));
    run_action_step("Run popliner", given, &Values::new(), folder)
}

/// Runs one step of the action. `context` has the other values that GitHub fills in.
pub fn run_action_step(name: &str, given: &Values, context: &Values, folder: &Path) -> Option<Run> {
    let action = action();
    let defaults = inputs(&action);
    for name in given.keys() {
        assert!(defaults.contains_key(name.as_str()), "{name} is no input");
    }
    let earlier = outputs(&folder.join("outputs"));
    let known = |expression: &str| {
        let input = expression.strip_prefix("inputs.");
        let output = expression.strip_prefix("steps.run.outputs.");
        let found = match (input, output) {
            (Some(name), _) => given.get(name).map(String::as_str).or(defaults[name]),
            (_, Some(name)) => Some(earlier.get(name).map_or("", String::as_str)),
            _ => Some(context.get(expression).map_or("", String::as_str)),
        };
        found.unwrap_or_else(|| panic!("{expression}")).to_owned()
    };
    let mut all = steps(&action).iter();
    let step = all.find(|step| step["name"] == name).expect("a step");
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
    variables.extend(context.clone());
    run_script(step["run"].as_str().expect("a script"), folder, &variables)
}

/// Makes a folder with the files of a fixture.
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
        let uses = used.matches(&format!("inputs.{name} ")).count();
        assert_eq!(uses, 1, "{name}");
        let is_required = action["inputs"][name]["required"] == true;
        assert_eq!(default.is_none(), is_required, "{name}");
    }
}

/// Inputs have the names of options, except inputs about files and the comment, and the action
/// takes every form of `--emit`.
#[test]
fn inputs_are_those_of_the_command() {
    let action = action();
    let command = Options::command();
    let options: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
    let others = [
        "profile", "debug", "options", "report", "comment", "package",
    ];
    for name in inputs(&action).into_keys() {
        assert_ne!(others.contains(&name), options.contains(&name), "{name}");
    }
    let emit = action["inputs"]["emit"]["description"].as_str();
    let emit = emit.expect("a description");
    let words: Vec<&str> = emit
        .split(|c: char| c != '-' && !c.is_alphabetic())
        .collect();
    let script = std::fs::read_to_string(root().join("action/run.sh")).expect("a script");
    for name in Form::value_variants().iter().map(|form| form.name()) {
        // The script removes the file of an earlier run.
        assert!(words.contains(&&*name) && script.contains(&name), "{name}");
    }
}

/// The action hands on the outputs that a step sets, and nothing else.
#[test]
fn outputs_are_those_of_the_script() {
    let action = action();
    let script = std::fs::read_to_string(root().join("action/run.sh")).expect("a script");
    for (name, output) in action["outputs"].as_mapping().expect("outputs") {
        let name = name.as_str().expect("a name");
        let value = format!("${{{{ steps.run.outputs.{name} }}}}");
        assert_eq!(output["value"].as_str(), Some(value.as_str()));
        assert!(script.contains(&format!("\noutput {name} ")), "{name}");
    }
}
