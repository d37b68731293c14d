//! The JSON Schema of the report: it is the one of the code, and every
//! fixture's report keeps to it.
//!
//! `BLESS=1 cargo test json_schema::` writes the schema anew. A change that
//! takes a field away or gives it another meaning needs a new version.

use std::fs;

use super::page_types;
use crate::support::{FIXTURES, root, run_fixture};
use popliner::report::{Calibration, Report};
use serde_json::Value;

const SCHEMA: &str = "schema/report-v2.schema.json";
const CALIBRATION: &str = "schema/calibration-v2.schema.json";
const PAGE_TYPES: &str = "src/report/html/report.d.ts";

#[test]
fn the_committed_schemas_are_those_of_the_code() {
    let json = |schema| serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
    let written = [
        (SCHEMA, json(Report::schema())),
        (CALIBRATION, json(Calibration::schema())),
        (PAGE_TYPES, page_types::text()),
    ];
    for (name, text) in written {
        let path = root().join(name);
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            fs::write(&path, &text).expect("a file");
        }
        let committed = fs::read_to_string(&path).expect("a file");
        assert!(committed == text, "{name} is not that of the code");
    }
}

fn validator(name: &str) -> jsonschema::Validator {
    let schema = fs::read_to_string(root().join(name)).expect("a schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

/// Checks that a document keeps to a schema.
fn keeps_to(validator: &jsonschema::Validator, document: &Value, what: &str) {
    let problems = validator.iter_errors(document);
    let problems: Vec<String> = problems
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{what}: {problems:#?}");
}

/// All of a report is read but its texts for people, which are made of the rest.
fn reads_back(mut report: Value) {
    let read: Report = serde_json::from_value(report.clone()).expect("a report");
    let fields = report.as_object_mut().expect("an object");
    for made in ["heading", "sections", "configuration"] {
        assert!(fields.remove(made).is_some(), "{made}");
    }
    assert_eq!(serde_json::to_value(&read).expect("JSON"), report);
}

#[test]
fn a_compilation_and_what_is_learnt_from_it_keep_to_the_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [prediction, calibration] = ["prediction.json", "calibration.json"].map(path);
    let options = [
        "--layers-per-ipu=1,2,2,1",
        "-q",
        "--export-json",
        &prediction,
    ];
    assert_eq!(run_fixture("training-pipeline", &options).code, 0);
    let options = [
        "--fit",
        "-q",
        "--against",
        &prediction,
        "--calibrate",
        &calibration,
        "--export-json=-",
    ];
    let run = run_fixture("training-pipelined", &options);
    assert_eq!(run.code, 0, "{run:?}");
    let (_, report) = run.out.split_once("# export-json\n").expect("a section");
    let report: Value = serde_json::from_str(report).expect("JSON");
    keeps_to(&validator(SCHEMA), &report, "a compilation");
    reads_back(report);
    let calibration = fs::read(calibration).expect("a calibration");
    let document: Value = serde_json::from_slice(&calibration).expect("JSON");
    keeps_to(&validator(CALIBRATION), &document, "a calibration");
    let read = Calibration::read(&calibration).expect("a calibration");
    assert_eq!(read.text().as_bytes(), calibration);
}

/// The report of a fixture as JSON.
fn report(fixture: &str, options: &[&str]) -> Value {
    let run = run_fixture(fixture, &[options, &["--export-json=-", "-q"]].concat());
    assert!([0, 1].contains(&run.code), "{run:?}");
    serde_json::from_str(&run.out).expect("JSON alone")
}

#[test]
fn every_fixture_keeps_to_the_schema_and_reads_back() {
    let validator = validator(SCHEMA);
    // With --solve there are two documents, the first of them the stages.
    let solved = |fixture: &str, options: &[&str]| {
        let run = run_fixture(
            fixture,
            &[&["--solve", "--export-json=-", "-q"], options].concat(),
        );
        let (_, report) = run.out.split_once("# export-json\n").expect("a section");
        serde_json::from_str::<Value>(report).expect("JSON")
    };
    for fixture in FIXTURES {
        let reports = [
            report(fixture, &[]),
            report(fixture, &["--layer-name-regex=nowhere"]),
            solved(fixture, &["--num-ipus=4"]),
            solved(fixture, &["--num-ipus=1", "--solver=greedy"]),
            solved(fixture, &["--memory-model=classic", "--layerless=first"]),
        ];
        for report in reports {
            keeps_to(&validator, &report, fixture);
            reads_back(report);
        }
    }
}

#[test]
fn the_schema_tells_what_is_no_report() {
    let schema = serde_json::to_value(Report::schema()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let good = report("poplar-mlp", &[]);
    assert!(validator.is_valid(&good));
    let changes: [(&str, Value); 4] = [
        ("/format", "another".into()),
        ("/version", 3.into()),
        ("/memory/limit", (-1).into()),
        ("/layers/1/total", "many".into()),
    ];
    for (place, value) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("a field") = value;
        assert!(!validator.is_valid(&bad), "{place}");
    }
}
