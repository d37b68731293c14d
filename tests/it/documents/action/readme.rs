//! The README of the action: its tables match `action.yml`, its workflow is whole, and the workflow
//! runs on a fixture.

use super::{Values, values};
use super::{action, filled_in, inputs, outputs, read, run_action, run_script};
use crate::support::{copy, root};
use regex::Regex;
use serde_yaml_ng::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn readme() -> String {
    std::fs::read_to_string(root().join("action/README.md")).expect("the README")
}

fn workflow() -> Value {
    let readme = readme();
    let (_, workflow) = readme.split_once("```yaml\n").expect("a workflow");
    let (workflow, rest) = workflow.split_once("```\n").expect("its end");
    assert!(!rest.contains("```"), "there is one workflow");
    serde_yaml_ng::from_str(workflow).expect("YAML")
}

/// Returns the steps of the job that checks.
fn steps(workflow: &Value) -> &[Value] {
    workflow["jobs"]["fits"]["steps"]
        .as_sequence()
        .expect("steps")
}

fn step<'a>(workflow: &'a Value, name: &str) -> &'a Value {
    let mut steps = steps(workflow).iter();
    steps.find(|step| step["name"] == name).expect("a step")
}

/// Returns the names in the first column of the table under a heading.
fn table(heading: &str) -> BTreeSet<String> {
    let readme = readme();
    let (_, part) = readme
        .split_once(&format!("\n## {heading}\n"))
        .expect(heading);
    let part = part.split("\n## ").next().expect("a part");
    let name = Regex::new(r"(?m)^\| `([a-z-]+)` \|").expect("a regex");
    name.captures_iter(part)
        .map(|found| found[1].to_owned())
        .collect()
}

#[test]
fn its_tables_are_those_of_the_action() {
    let action = action();
    let names: BTreeSet<String> = inputs(&action).into_keys().map(str::to_owned).collect();
    assert_eq!(table("Inputs"), names);
    let names = action["outputs"].as_mapping().expect("outputs").keys();
    let names = names.map(|name| name.as_str().expect("a name").to_owned());
    assert_eq!(table("Outputs"), names.collect());
}

/// Every document names the action by the next version.
#[test]
fn it_is_named_by_its_version() {
    let wanted = concat!("v", env!("CARGO_PKG_VERSION"));
    let name = Regex::new(r"OWNER/popliner@(\S+)").expect("a regex");
    for file in [
        "README.md",
        "docs/reference.md",
        "action/README.md",
        "examples/ci/github-actions.yml",
    ] {
        let text = std::fs::read_to_string(root().join(file)).expect(file);
        let found: Vec<String> = name
            .captures_iter(&text)
            .map(|found| found[1].to_owned())
            .collect();
        assert!(
            !found.is_empty() && found.iter().all(|found| found == wanted),
            "{file}: {found:?}"
        );
    }
    assert!(readme().contains(&format!("(`@{wanted}`)")));
}

/// Returns a value of the workflow, with the outputs of the action in this folder.
fn with_outputs(value: &Value, folder: &Path) -> String {
    let outputs = outputs(&folder.join("outputs"));
    filled_in(value.as_str().expect("a text"), |expression| {
        let name = expression
            .strip_prefix("steps.popliner.outputs.")
            .expect("an output");
        assert!(
            action()["outputs"].get(name).is_some(),
            "{name} is no output"
        );
        outputs[name].clone()
    })
}

#[test]
fn its_workflow_runs() {
    let workflow = workflow();
    let check = step(&workflow, "Check that the model fits");
    assert_eq!(check["id"], "popliner");
    let given = check["with"].as_mapping().expect("inputs").iter();
    let given: Values = given
        .map(|(name, value)| {
            (
                name.as_str().expect("a name"),
                value.as_str().expect("a text"),
            )
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report/training");
    std::fs::create_dir_all(&report).expect("a folder");
    copy("popart-bert-inference", &report);
    for (ipus, fits) in [("1", "false"), ("16", "true")] {
        let mut given = given.clone();
        given.insert("num-ipus".to_owned(), ipus.to_owned());
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        assert!(run.code <= 1, "{run:?}");
        let say = step(&workflow, "Say what was found");
        let variables = say["env"].as_mapping().expect("variables").iter();
        let variables = variables.map(|(name, value)| {
            let name = name.as_str().expect("a name").to_owned();
            (name, with_outputs(value, folder.path()))
        });
        let script = say["run"].as_str().expect("a script");
        let run = run_script(script, folder.path(), &variables.collect()).expect("bash");
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.out.starts_with(&format!("fits: {fits}\n")), "{run:?}");
        assert!(run.out.contains("\nlayers_per_ipu: ["), "{run:?}");
    }
    let page = &steps(&workflow).last().expect("a step")["with"]["path"];
    let page = read(folder.path(), &with_outputs(page, folder.path()));
    assert!(page.starts_with("<!DOCTYPE html>"));
}

/// Without a verdict there is nothing to print, and no error in the step.
#[test]
fn its_workflow_says_that_there_is_no_verdict() {
    let say = workflow();
    let say = step(&say, "Say what was found")["run"]
        .as_str()
        .expect("a script");
    let folder = tempfile::tempdir().expect("a folder");
    let Some(run) = run_script(say, folder.path(), &values(&[("FITS", ""), ("SPLIT", "")])) else {
        return;
    };
    assert_eq!((run.code, run.out.as_str()), (0, "fits: \n"));
}
