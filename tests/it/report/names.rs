//! Hostile texts in every form of a report.

use crate::support::{profile, root, typed};
use popliner::report::{Format, Report, Table, html, json, markdown, terminal::TextStyle};
use serde::Deserialize;
use serde_json::Value;

/// Texts that try to become markup, a formula, a command of a terminal, or another line.
const HOSTILE: [&str; 4] = [
    "</script></title><img src=x onerror=alert(1)>&amp;",
    "=cmd|' /C calc'!A0",
    "a\u{1b}[31m\u{202e}b\u{2066}c\r\n# heading\u{2028}\u{9b}",
    "|`*_[x](javascript:y) @all \"' onload=\"z",
];

/// Runs whose reports have all sections together. The last one compares a compilation with the
/// report of the first one.
const RUNS: [(&str, &str); 6] = [
    ("training-pipeline", "--solve --num-ipus=4"),
    ("poplar-mlp", "--solve --sweep --plan --num-ipus=3"),
    ("poplar-mlp", "--splits=3 --num-ipus=2 --pin=1=1"),
    ("poptorch-bert-training", "--solve --num-ipus=4"),
    ("tied-weights", "--solve --num-ipus=3"),
    ("training-pipelined", "--fit --compare=0.json"),
];

/// Fields with a fixed set of texts, with numbers as texts, or with texts that decide which
/// sentences there are.
const FIXED: &str = "format pseudo_layers schedule recompute state accumulator framework source \
    rule reason options matched_by change objective integer_program dynamic_program below";

/// Replaces every text except those of [`FIXED`] fields.
fn replace(value: &mut Value, name: &str) {
    match value {
        Value::String(text) => *text = name.into(),
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, name)),
        Value::Object(fields) => {
            let free = fields.iter_mut();
            let free = free.filter(|(key, value)| {
                !(value.is_string() && FIXED.split(' ').any(|own| own == *key))
            });
            free.for_each(|(_, value)| replace(value, name));
        }
        _ => {}
    }
}

/// Returns the report of each run with each of the hostile texts in place of all others, beside the
/// report itself.
fn reports() -> Vec<[Report; 2]> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut reports = Vec::new();
    for (number, (fixture, options)) in RUNS.into_iter().enumerate() {
        let exports = format!("--export-html=page.html --export-json={number}.json");
        let profile = root().join(profile(fixture));
        let line = format!("popliner '{}' {options} {exports}", profile.display());
        let run = typed(&line, folder.path());
        assert!(run.code < 2, "{run:?}");
        let text = std::fs::read(folder.path().join(format!("{number}.json")));
        let document: Value = serde_json::from_slice(&text.expect("a report")).expect("JSON");
        for name in HOSTILE {
            let mut hostile = document.clone();
            replace(&mut hostile, name);
            let both = [&document, &hostile].map(Report::deserialize);
            reports.push(both.map(|report| report.expect("a report")));
        }
    }
    reports
}

/// Returns the number of cells on each line of Markdown.
fn bars(text: &str) -> Vec<usize> {
    text.lines().map(|line| line.matches('|').count()).collect()
}

#[test]
fn hostile_texts_stay_texts_in_every_form() {
    for [plain, report] in reports() {
        let page = html(&report);
        assert!(!page.contains("<img") && !page.contains("\" onload"));
        let count = |part: &str| page.matches(part).count();
        assert_eq!(count("<script"), count("</script>"));
        assert_eq!(count("</title>"), 1);
        let document = markdown(&report);
        for part in ["<img", "@all", "](", "`"] {
            assert!(!document.contains(part), "{part} in {document}");
        }
        // Hostile names add no line and no cell.
        assert_eq!(bars(&document), bars(&markdown(&plain)), "{document}");
        let tables = report.tables(Format::Csv).into_iter();
        let look = TextStyle::default();
        let text = |table: Table| table.text(Format::Csv, &look).expect("memory");
        let rows: String = tables.map(text).collect();
        let json = json(&report).expect("memory");
        for text in [&page, &document, &rows, &json] {
            let others = ['\u{202e}', '\u{2066}', '\u{2028}'];
            let is_obeyed = |c: char| c.is_control() && c != '\n' || others.contains(&c);
            assert_eq!(text.lines().find(|line| line.contains(is_obeyed)), None);
        }
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.flexible(true).from_reader(rows.as_bytes());
        for record in reader.records() {
            for cell in &record.expect("a row") {
                assert!(!cell.starts_with(['=', '+', '@']), "{cell}");
            }
        }
        let read: Report = serde_json::from_str(&json).expect("a report");
        assert_eq!(read, report);
    }
}
