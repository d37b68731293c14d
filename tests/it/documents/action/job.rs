//! Workflows in YAML, and a folder in which their steps run as on GitHub's machines.

use crate::documents::read;
use crate::support::{Run, copy, finish, path_with_tool, piped, root, skip, try_finish};
use serde_yaml_ng::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names with values: inputs, variables or outputs.
pub type Values = BTreeMap<String, String>;

/// Reads inputs or variables, written as in a workflow.
pub fn values(yaml: &str) -> Values {
    serde_yaml_ng::from_str(yaml).expect(yaml)
}

/// Reads a workflow or an action of the repository.
pub fn yaml(path: &str) -> Value {
    serde_yaml_ng::from_str(&read(path)).expect(path)
}

/// Returns the steps of an action, or of all jobs of a workflow.
pub fn steps(document: &Value) -> Vec<&Value> {
    let jobs = document["jobs"].as_mapping().into_iter();
    let jobs = jobs.flat_map(|jobs| jobs.values());
    let all = jobs.chain(document.get("runs"));
    let steps = all.flat_map(|job| job["steps"].as_sequence().expect("steps"));
    steps.collect()
}

/// Returns a step by its name.
pub fn step<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut steps = steps(document).into_iter();
    steps.find(|step| step["name"] == name).expect(name)
}

/// Returns the values of a mapping, with expressions replaced as GitHub does before a step.
pub fn filled_in(mapping: &Value, known: impl Fn(&str) -> String) -> Values {
    let mut given: Values = serde_yaml_ng::from_value(mapping.clone()).expect("texts");
    for value in given.values_mut() {
        let mut parts = value.split("${{");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (expression, after) = part.split_once("}}").expect("an end");
            text += &(known(expression.trim()) + after);
        }
        *value = text;
    }
    given
}

/// Returns whether a program is on the path, and skips the test if not. GitHub's machines have all
/// programs that the steps use.
#[track_caller]
pub fn has(program: &str) -> bool {
    let found = try_finish(piped(program).arg("--version")).is_some();
    if !found {
        skip(&format!("there is no {program}"));
    }
    found
}

/// A folder in which steps run.
pub struct Job(tempfile::TempDir);

impl Job {
    /// Makes an empty folder; `None` if the test is skipped.
    pub fn new() -> Option<Self> {
        has("bash").then(|| Self(tempfile::tempdir().expect("a folder")))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Reads a file, which may be missing.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes a file, and the folder that it is in.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect(name);
    }

    /// Copies both files of a fixture into a folder, and returns the profile.
    pub fn copy(&self, fixture: &str, folder: &str) -> PathBuf {
        std::fs::create_dir_all(self.path(folder)).expect("a folder");
        let [profile, _] = copy(fixture, &self.path(folder));
        profile
    }

    /// Writes a script for sh that replaces all programs of this name.
    pub fn fake(&self, name: &str, script: &str) {
        let name = format!("fakes/{name}");
        self.write(&name, &format!("#!/bin/sh\n{script}\n"));
        let made = try_finish(piped("chmod").arg("+x").arg(self.path(&name)));
        assert!(made.is_none_or(|run| run.code == 0));
    }

    /// Reads the outputs that a step wrote to a file: `name=value`, or `name<<END` and lines up to
    /// `END`.
    pub fn outputs(&self, file: &str) -> Values {
        let text = self.read(file);
        let (mut lines, mut found) = (text.lines(), Values::new());
        while let Some(line) = lines.next() {
            let (name, value) = match line.split_once("<<") {
                Some((name, end)) => {
                    let value = lines.by_ref().take_while(|line| *line != end);
                    (name, value.collect::<Vec<_>>().join("\n"))
                }
                None => {
                    let (name, value) = line.split_once('=').expect("a value");
                    (name, value.to_owned())
                }
            };
            found.insert(name.to_owned(), value);
        }
        found
    }

    /// Runs a script in bash as GitHub does. On the path are the programs of [`Self::fake`] first,
    /// then popliner.
    pub fn bash(&self, script: &str, variables: &Values) -> Run {
        let path = format!("{}:{}", self.path("fakes").display(), path_with_tool());
        let mut bash = piped("bash");
        bash.args(["-eo", "pipefail", "-c", script])
            .current_dir(self.path(""));
        finish(bash.envs(variables).env("PATH", path))
    }

    /// Runs the step of the action that runs popliner, with these inputs. The step writes
    /// `summary.md` and the file `outputs`.
    pub fn run(&self, given: &Values) -> Run {
        let _ = std::fs::remove_file(self.path("outputs"));
        self.step("Run popliner", given, &Values::new())
    }

    /// Runs one step of the action. `context` has the other values that GitHub fills in.
    pub fn step(&self, name: &str, given: &Values, context: &Values) -> Run {
        let action = yaml("action.yml");
        let inputs = action["inputs"].as_mapping().expect("inputs");
        let is_known = |name: &String| inputs.contains_key(name.as_str());
        assert!(given.keys().all(is_known), "{given:?}");
        let outputs = self.outputs("outputs");
        let known = |expression: &str| match expression.rsplit_once('.') {
            Some(("inputs", name)) => given.get(name).map_or_else(
                || inputs[name]["default"].as_str().expect(name).to_owned(),
                String::clone,
            ),
            Some(("steps.run.outputs", name)) => outputs.get(name).cloned().unwrap_or_default(),
            _ => context.get(expression).cloned().unwrap_or_default(),
        };
        let step = step(&action, name);
        let mut variables = filled_in(&step["env"], known);
        for (name, path) in [
            ("GITHUB_STEP_SUMMARY", self.path("summary.md")),
            ("GITHUB_OUTPUT", self.path("outputs")),
            ("GITHUB_ACTION_PATH", root().to_owned()),
        ] {
            variables.insert(name.to_owned(), path.display().to_string());
        }
        variables.extend(context.clone());
        self.bash(step["run"].as_str().expect("a script"), &variables)
    }
}
