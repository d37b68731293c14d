//! The README of the action: its tables match `action.yml`, its workflow is whole, and the workflow
//! runs on a fixture.

use super::{Job, filled_in, names, step, steps, yaml};
use crate::documents::read;
use regex::Regex;
use serde_yaml_ng::Value;
use std::collections::BTreeSet;

fn workflow() -> Value {
    let readme = read("action/README.md");
    let (_, workflow) = readme.split_once("```yaml\n").expect("a workflow");
    let (workflow, rest) = workflow.split_once("```\n").expect("its end");
    assert!(!rest.contains("```"), "there is one workflow");
    serde_yaml_ng::from_str(workflow).expect("YAML")
}

#[test]
fn its_tables_are_those_of_the_action() {
    let (action, readme) = (yaml("action.yml"), read("action/README.md"));
    let name = Regex::new(r"(?m)^\| `([a-z-]+)` \|").expect("a regex");
    for (heading, key) in [("\n## Inputs\n", "inputs"), ("\n## Outputs\n", "outputs")] {
        let (_, part) = readme.split_once(heading).expect(heading);
        let part = part.split("\n## ").next().expect("a part");
        // The names in the first column.
        let found = name.captures_iter(part);
        let found: BTreeSet<&str> = found.map(|found| found.extract::<1>().1[0]).collect();
        assert_eq!(found, names(&action[key]).into_iter().collect());
    }
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
        let text = read(file);
        let found = name.captures_iter(&text);
        let found: BTreeSet<&str> = found.map(|found| found.extract::<1>().1[0]).collect();
        assert_eq!(found, BTreeSet::from([wanted]), "{file}");
    }
    assert!(read("action/README.md").contains(&format!("(`@{wanted}`)")));
}

#[test]
fn its_workflow_runs() {
    let job = or_skip!(Job::new());
    let (workflow, action) = (workflow(), yaml("action.yml"));
    job.copy("popart-bert-inference", "report/training");
    let check = &step(&workflow, "Check that the model fits")["with"];
    let given = filled_in(check, |expression| panic!("{expression}"));
    job.run(&given).exits(0);
    let outputs = |expression: &str| {
        let name = expression.strip_prefix("steps.popliner.outputs.");
        let name = name.filter(|name| names(&action["outputs"]).contains(name));
        job.outputs("outputs")[name.expect("an output")].clone()
    };
    let say = step(&workflow, "Say what was found");
    let script = say["run"].as_str().expect("a script");
    let run = job.bash(script, &filled_in(&say["env"], outputs));
    run.exits(0).prints("fits: true\n");
    run.prints("\nlayers_per_ipu: [");
    let page = &filled_in(&steps(&workflow).last().expect("a step")["with"], outputs)["path"];
    assert!(job.read(page).starts_with("<!DOCTYPE html>"));
}
