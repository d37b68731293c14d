//! The action for GitHub workflows: its description, and its scripts, run as a workflow runs them.

mod commenting;
mod installing;
mod job;
mod readme;
mod running;

pub use job::{Job, Values, filled_in, has, step, steps, yaml};

use super::read;
use crate::support::Words;
use clap::{Arg, CommandFactory, ValueEnum};
use popliner::app::Options;
use popliner::report::emit::EmitForm;
use serde_yaml_ng::Value;

/// Returns the names in a mapping of the action.
fn names(mapping: &Value) -> Vec<&str> {
    let names = mapping.as_mapping().expect("a mapping").keys();
    names.map(|name| name.as_str().expect("a name")).collect()
}

#[test]
fn no_input_is_a_part_of_a_script() {
    let action = yaml("action.yml");
    for step in steps(&action) {
        assert!(!step["run"].as_str().expect("a script").contains("${{"));
    }
    for name in names(&action["inputs"]) {
        let file = read("action.yml");
        let uses = file.matches(&format!("inputs.{name} ")).count();
        assert_eq!(uses, 1, "{name}");
        let input = &action["inputs"][name];
        let is_required = input["required"] == true;
        assert_eq!(input["default"].is_null(), is_required, "{name}");
    }
}

/// Inputs have the names of options, except inputs about files and the comment, and the action
/// takes every form of `--emit`.
#[test]
fn inputs_are_those_of_the_command() {
    let action = yaml("action.yml");
    let command = Options::command();
    let options: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
    let others = "profile debug options report comment package".words();
    for name in names(&action["inputs"]) {
        assert_ne!(others.contains(&name), options.contains(&name), "{name}");
    }
    let emit = action["inputs"]["emit"]["description"].as_str();
    let words = emit.expect("a description");
    let words = words.split(|c: char| c != '-' && !c.is_alphabetic());
    let words: Vec<&str> = words.collect();
    for name in EmitForm::value_variants().iter().map(|form| form.name()) {
        // The script removes the file of an earlier run.
        let is_removed = read("action/run.sh").contains(&name);
        assert!(is_removed && words.contains(&&*name), "{name}");
    }
}
