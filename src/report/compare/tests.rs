//! Tests the comparison of a report with an earlier one.

use super::*;
use crate::{
    report::terminal::TextStyle,
    report::testing::report,
    report::{Table, json},
    witnesses::Contradiction,
};

fn written(report: &Report) -> Vec<u8> {
    json(report).unwrap().into_bytes()
}

fn row(table: &Table, first: &str) -> Vec<String> {
    let mut rows = table.plain_rows().into_iter();
    let found = rows.find(|row| row[0] == first);
    found.map_or(Vec::new(), |row| row[1..].to_vec())
}

#[test]
fn what_was_written_is_read_and_nothing_changed() {
    let report = report();
    let read = read(&written(&report)).unwrap();
    assert_eq!(read, report);
    let comparison = Comparison::new(&read, &report);
    assert!(comparison.warnings.is_empty() && !comparison.is_worse());
    assert_eq!(comparison.grown().count(), 0);
    let [_, stages, layers] = comparison.tables();
    assert!(layers.rows.is_empty() && comparison.changes().is_empty());
    assert!(stages.plain_rows().iter().all(|row| row[5] == "0"));
    assert!(
        comparison
            .summary(&TextStyle::default())
            .ends_with("; verdict, stages and layers are what they were")
    );
}

#[test]
fn layers_grow_shrink_come_and_go() {
    let (earlier, mut later) = (report(), report());
    assert!(later.layers.len() >= 3, "the report for tests");
    later.layers[0].fullest_tile_bytes += 5;
    let changes = Comparison::new(&earlier, &later).changes();
    let names: Vec<_> = changes
        .iter()
        .map(|table| (table.name, table.rows.len()))
        .collect();
    assert_eq!(names, [("compare-layers", 1)]);
    let layers = &mut later.layers;
    layers[1].total += 7;
    let (gone, twin) = (layers[2].name.clone(), layers[1].clone());
    layers[2].name = Some("new".into());
    layers.push(LayerMemory {
        total: twin.total - 8,
        ..twin
    });
    let comparison = Comparison::new(&earlier, &later);
    let table = &comparison.tables()[2];
    let name = |layer: &LayerMemory| PseudoLayers::InAndOut.name_of(&layer.name).to_string();
    assert_eq!(row(table, &name(&earlier.layers[0]))[0], "grew");
    assert_eq!(row(table, &name(&earlier.layers[0]))[3], "5");
    assert_eq!(row(table, &name(&earlier.layers[1]))[0], "grew");
    assert_eq!(row(table, &name(&earlier.layers[1]))[6], "7");
    assert_eq!(row(table, "new")[..2], ["new", ""]);
    assert_eq!(row(table, &gone.unwrap())[0], "gone");
    // The later report has two layers that the earlier one lacks: a layer named `new`, and a second
    // layer with the name of an existing one. The comparison pairs the earlier layer of this name
    // with the first of the two, so the second counts as new.
    let new = |row: &&Vec<String>| row[1] == "new";
    assert_eq!(table.plain_rows().iter().filter(new).count(), 2);
    assert_eq!(comparison.grown().count(), 2);
    let summary = comparison.summary(&TextStyle::default());
    assert!(
        summary.contains("grew: 2, most of all In by 5 bytes on its"),
        "{summary}"
    );
}

#[test]
fn what_fitted_must_go_on_fitting() {
    let fitting = |fits: Option<bool>| {
        let mut report = report();
        match fits {
            Some(fits) => report.split.as_mut().unwrap().fits = fits,
            None => report.split = None,
        }
        report
    };
    let cases = [
        (Some(true), Some(true), false, "it fits;"),
        (Some(true), Some(false), true, "no longer does"),
        (Some(false), Some(false), false, "it does not fit"),
        (Some(false), Some(true), false, "did not before"),
        (None, Some(false), true, "it does not fit"),
        (None, Some(true), false, "it fits;"),
        (Some(true), None, false, "no verdict"),
    ];
    for (before, now, worse, sentence) in cases {
        let reports = [before, now].map(fitting);
        let comparison = Comparison::new(&reports[0], &reports[1]);
        assert_eq!(comparison.is_worse(), worse, "{before:?} {now:?}");
        let summary = comparison.summary(&TextStyle::default());
        assert!(summary.contains(sentence), "{sentence} in {summary}");
        assert_eq!(before.is_none(), !comparison.warnings.is_empty());
    }
    // A profile that contradicts itself leaves the report without a verdict, and `fits` is `false`
    // only because nothing is known. If either report has no verdict, the comparison must not say
    // that the split no longer fits.
    let mut without = fitting(Some(false));
    without.contradictions = vec![Contradiction::without_rows("vars_info", 1)];
    for (reports, sentence) in [
        ([&without, &fitting(Some(false))], "it does not fit"),
        ([&fitting(Some(true)), &without], "no verdict"),
    ] {
        let comparison = Comparison::new(reports[0], reports[1]);
        assert!(!comparison.is_worse());
        let summary = comparison.summary(&TextStyle::default());
        assert!(summary.contains(sentence), "{sentence} in {summary}");
    }
}

#[test]
fn more_and_fewer_stages_are_side_by_side() {
    let (mut earlier, later) = (report(), report());
    let split = earlier.split.as_mut().unwrap();
    let last = split.stages.pop().unwrap();
    let comparison = Comparison::new(&earlier, &later);
    let [verdict, stages, _] = comparison.tables();
    let number = last.stage.to_string();
    let bytes = last.fullest_tile.bytes.to_string();
    assert_eq!(row(&stages, &number)[0], "");
    assert_eq!(row(&stages, &number)[2..], ["", &bytes, ""]);
    let count = last.stage as usize;
    let expected = [count, count + 1].map(|count| count.to_string());
    assert_eq!(row(&verdict, "Stages"), expected);
}

#[test]
fn reports_of_another_kind_are_compared_with_a_warning() {
    let (earlier, mut later) = (report(), report());
    later.provenance.memory_model = "classic".into();
    later.memory.limit += 1;
    let warnings = Comparison::new(&earlier, &later).warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("is classic; "), "{warnings:?}");
}

#[test]
fn other_files_are_refused_by_kind() {
    let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    let deep = "[".repeat(10_000);
    for other in ["", "layers_per_ipu: [1]", &deep] {
        assert!(error(other).starts_with("it is not JSON"), "{other}");
    }
    for other in [
        "[]",
        "3",
        "{}",
        r#"{"format": "other"}"#,
        r#"{"format": [1]}"#,
    ] {
        let error = error(other);
        assert!(error.starts_with("its format is "), "{other}: {error}");
    }
    for other in [
        "2",
        "3",
        "0",
        "1.5",
        "\"1\"",
        "null",
        "18446744073709551616",
    ] {
        let text = format!(r#"{{"format": "popliner-report", "version": {other}}}"#);
        let error = error(&text);
        assert!(error.starts_with("it is a report of version "), "{error}");
        assert!(error.contains("reads version"), "{other}: {error}");
    }
    let text = r#"{"format": "popliner-report", "version": 1}"#;
    assert!(error(text).contains("not a complete one"));
    let long = format!(r#"{{"format": "{}"}}"#, "é".repeat(1000));
    assert!(error(&long).len() < 300);
}

#[test]
fn fields_of_later_reports_are_passed_over() {
    let mut value = serde_json::to_value(report()).unwrap();
    value["added"] = serde_json::json!({ "later": [1] });
    assert_eq!(read(value.to_string().as_bytes()).unwrap(), report());
}

#[test]
fn a_report_without_one_of_its_fields_is_damaged() {
    let whole = serde_json::to_value(report()).unwrap();
    for field in ["provenance", "memory", "layers", "cuts", "warnings"] {
        let mut value = whole.clone();
        value.as_object_mut().unwrap().remove(field);
        let error = read(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains("not a complete one"), "{field}: {error}");
        assert!(error.contains(field), "{field}: {error}");
    }
}
