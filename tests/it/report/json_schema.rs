//! The reports of all fixtures conform to the JSON Schema of the report, which a test of
//! `src/report/json.rs` writes, and the types of the page's scripts are made from it.
//!
//! `BLESS=1 cargo test json_schema` writes both again.

use std::fs;

use super::{page_types, schema_check::problems};
use crate::support::models::pairs;
use crate::support::{Earlier, FIXTURES, read_json, root, run_fixture};
use popliner::report::Report;
use serde_json::Value;

const SCHEMA: &str = "schema/report-v1.schema.json";
const PAGE_TYPES: &str = "src/report/html/report.d.ts";

#[test]
fn the_types_of_the_page_are_those_of_the_schema() {
    let text = page_types::text(&schema());
    let path = root().join(PAGE_TYPES);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &text).expect("a file");
    }
    let committed = fs::read_to_string(&path).expect("a file");
    assert!(committed == text, "{PAGE_TYPES} is not that of the schema");
}

fn schema() -> Value {
    read_json(&fs::read_to_string(root().join(SCHEMA)).expect("a schema"))
}

fn keeps_to(schema: &Value, report: &Value, what: &str) {
    let problems = problems(schema, report);
    assert!(problems.is_empty(), "{what}: {problems:#?}");
}

/// Checks that a report is read back completely, except texts for people, which are made from the
/// rest.
fn reads_back(mut report: Value) {
    let read: Report = serde_json::from_value(report.clone()).expect("a report");
    let fields = report.as_object_mut().expect("an object");
    for made in ["heading", "sections", "configuration"] {
        assert!(fields.remove(made).is_some(), "{made}");
    }
    assert_eq!(serde_json::to_value(&read).expect("JSON"), report);
}

#[test]
fn a_compilation_beside_its_prediction_keeps_to_the_schema() {
    let prediction = Earlier::new("training-pipeline", "--layers-per-ipu=1,2,2,1");
    let comparison = format!("--fit --compare={}", prediction.path());
    let report = report("training-pipelined", &comparison);
    keeps_to(&schema(), &report, "a compilation");
    reads_back(report);
}

fn report(fixture: &str, options: &str) -> Value {
    run_fixture(fixture, &format!("{options} --export-json=- -q")).report()
}

/// Runs whose reports have different sections.
const RUNS: [&str; 7] = [
    "",
    "--layer-name-regex=nowhere",
    "--solve --num-ipus=4",
    "--solve --num-ipus=1 --solver=greedy",
    "--solve --num-ipus=4 --sweep --plan --explain",
    "--solve --num-ipus=1 --explain",
    "--solve --memory-model=classic",
];

#[test]
fn every_fixture_keeps_to_the_schema_and_reads_back() {
    let schema = schema();
    for (fixture, options) in pairs(&FIXTURES, &RUNS, 3) {
        let report = report(fixture, options);
        keeps_to(&schema, &report, fixture);
        reads_back(report);
    }
}

#[test]
fn the_schema_tells_what_is_no_report() {
    let schema = schema();
    let good = report("poplar-mlp", "");
    keeps_to(&schema, &good, "a report");
    let changes: [(&str, Value); 6] = [
        ("/format", "another".into()),
        ("/version", 2.into()),
        ("/memory/limit", (-1).into()),
        ("/layers/1/total", "many".into()),
        ("/layers/0/name", 7.into()),
        ("/pseudo_layers", "none-last".into()),
    ];
    for (place, value) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("a field") = value;
        assert!(problems(&schema, &bad)[0].starts_with(place), "{place}");
    }
    let mut bad = good;
    let memory = bad["memory"].as_object_mut();
    memory.expect("fields").remove("limit");
    assert!(problems(&schema, &bad)[0].starts_with("/memory: not of required"));
}
