//! `--compare`: a run against the report of an earlier one.

use crate::support::{Run, cells, one_line, run_fixture, sections};
use std::path::Path;

const FIXTURE: &str = "poplar-mlp";

/// Writes a report of the fixture, and returns its path.
fn report(folder: &Path, options: &[&str]) -> String {
    let path = folder.join("report.json");
    let path = path.to_str().expect("a plain path").to_string();
    let export = format!("--export-json={path}");
    let run = run_fixture(FIXTURE, &[options, &[&export]].concat());
    assert!(run.code == 0 || run.code == 1, "{run:?}");
    path
}

fn compared(earlier: &str, options: &[&str]) -> Run {
    let compare = format!("--compare={earlier}");
    run_fixture(FIXTURE, &[options, &[&compare]].concat())
}

/// Returns the rows of a section, without the header.
fn rows(run: &Run, section: &str) -> Vec<Vec<String>> {
    let sections = sections(&run.out);
    let found = sections.iter().find(|(name, _)| name == section);
    let mut rows = cells(&found.expect("the section").1, '\t');
    rows.remove(0);
    rows
}

#[test]
fn the_same_again_is_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let earlier = report(folder.path(), &["--solve"]);
    let run = compared(&earlier, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    let names: Vec<String> = sections(&run.out)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        ["compare-verdict", "compare-stages", "compare-layers"]
    );
    assert_eq!(rows(&run, "compare-layers"), Vec::<Vec<String>>::new());
    for row in rows(&run, "compare-verdict") {
        assert_eq!(row[1], row[2], "{row:?}");
    }
    assert!(run.err.contains("\nCompared: it fits; "), "{}", run.err);
}

#[test]
fn a_model_that_fitted_and_no_longer_does_ends_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let earlier = report(folder.path(), &["--solve", "--num-ipus=3"]);
    let run = compared(&earlier, &["--num-ipus=2"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.err.contains("it fitted and no longer does"),
        "{}",
        run.err
    );
    let verdict = rows(&run, "compare-verdict");
    assert_eq!(verdict[0], ["Fits", "yes", "no"]);
    assert_eq!(verdict[3], ["Stages", "3", "2"]);
    let stages = rows(&run, "compare-stages");
    assert_eq!(stages.len(), 3);
    assert_eq!(stages[2][2], "");
}

#[test]
fn a_model_that_never_fitted_ends_with_1_only_where_the_verdict_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let earlier = report(folder.path(), &["--solve", "--num-ipus=2"]);
    assert_eq!(compared(&earlier, &["--num-ipus=2"]).code, 0);
    assert_eq!(compared(&earlier, &["--num-ipus=2", "--solve"]).code, 1);
    assert_eq!(compared(&earlier, &["--num-ipus=3", "--solve"]).code, 0);
}

#[test]
fn layers_of_another_model_of_memory_differ_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let earlier = report(folder.path(), &["--solve", "--memory-model=classic"]);
    let run = compared(&earlier, &[]);
    let warning = "warning: compared with another report: the memory model was classic and is full";
    assert!(run.err.contains(warning), "{}", run.err);
    let layers = rows(&run, "compare-layers");
    assert!(layers.iter().any(|row| row[1] == "grew"), "{layers:?}");
    let come_and_gone: Vec<[&str; 2]> = layers
        .iter()
        .map(|row| [row[0].as_str(), row[1].as_str()])
        .filter(|row| ["new", "gone"].contains(&row[1]))
        .collect();
    assert_eq!(
        come_and_gone,
        [["In", "new"], ["Out", "new"], ["None", "gone"]]
    );
    let around = "what is before and after the layers was None before them and is In before them";
    assert!(run.err.contains(around), "{}", run.err);
    let layers = layers
        .iter()
        .filter(|row| !["new", "gone"].contains(&&*row[1]));
    let number = |cell: &str| cell.parse::<i64>().expect("a number");
    for row in layers {
        assert_eq!(
            number(&row[3]) - number(&row[2]),
            number(&row[4]),
            "{row:?}"
        );
        assert_eq!(
            number(&row[6]) - number(&row[5]),
            number(&row[7]),
            "{row:?}"
        );
    }
}

#[test]
fn a_report_without_a_split_can_still_be_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let earlier = report(folder.path(), &[]);
    let run = compared(&earlier, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.err
            .contains("compared with another report: it has no split"),
        "{}",
        run.err
    );
    assert_eq!(compared(&earlier, &["--num-ipus=1"]).code, 1);
}

#[test]
fn what_is_no_report_ends_with_3_and_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.json");
    let name = path.to_str().expect("a plain path");
    let cases = [
        (
            r#"{"format": "popliner-report", "version": 99}"#,
            "version 99",
        ),
        (r#"{"format": "other"}"#, "--export-json"),
        ("[]", "popliner-report"),
        ("fits: true", "not JSON"),
    ];
    for (text, part) in cases {
        std::fs::write(&path, text).expect("a file");
        let run = compared(name, &[]);
        let line = one_line(&run, 3);
        assert!(line.contains(part) && line.contains("other.json"), "{line}");
        assert!(line.matches("line 1 column").count() <= 1, "{line}");
    }
    let run = compared("no such file.json", &[]);
    assert!(one_line(&run, 3).contains("no such file.json"));
}
