//! Searches: best splits and plans.

mod bert_large;
mod claims;
mod facts;
mod layer_names;
mod plan;
mod proportions;
mod sizes;
mod state;
mod ties;

use crate::support::run_fixture;
use serde_json::Value;

/// A fixture that trains in a pipeline.
const TRAINING: &str = "training-pipeline";

/// Returns the exit code and the report of a run on a fixture.
fn report(fixture: &str, options: &str) -> (i32, Value) {
    let run = run_fixture(fixture, &format!("{options} -q --export-json=-"));
    (run.code, run.report())
}

fn stages(report: &Value) -> &[Value] {
    report["split"]["stages"].as_array().expect("stages")
}

fn number(value: &Value) -> u64 {
    let number = value.as_u64();
    number.unwrap_or_else(|| panic!("no number: {value}"))
}
