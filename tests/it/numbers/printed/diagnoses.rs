//! The output of `--diagnose`, compared with the oracle.

use super::Subject;
use crate::oracle::diagnosis::{CODE, Unexplained};

type Rows = Vec<Vec<String>>;

/// Checks everything that `--diagnose` prints.
pub fn diagnosis(subject: &Subject) {
    let sections = subject.diagnosis();
    let rows = |name: &str, operations: &str| -> Rows {
        let name = format!("diagnose-{name}");
        let section = sections.iter().find(|section| section.0 == name);
        let rows = section.expect("a section").1.iter();
        let of = rows.filter(|row| row[0] == operations);
        of.map(|row| row[1..].to_vec()).collect()
    };
    for (name, layered_only) in [("all", false), ("layered", true)] {
        let operations = subject.oracle.explaining(layered_only);
        let rows = |table: &str| rows(table, name);
        let (counts, missing) = (rows("programs"), rows("missing-programs"));
        programs(subject, &operations, counts, missing);
        code(subject, &operations, rows("code"));
        bottleneck(subject, &operations, rows("memory-peak"), rows("variables"));
    }
}

fn programs(subject: &Subject, operations: &[usize], counts: Rows, missing: Rows) {
    let oracle = &subject.oracle;
    for (kind, counts) in ["OnTileExecute", "DoExchange"].iter().zip(counts) {
        let (explained, others) = oracle.explained_programs(operations, kind);
        let lengths = [explained.len(), others.len()].map(|n| n.to_string());
        assert_eq!(counts[0], *kind, "{}", subject.name);
        assert_eq!(counts[1..], lengths, "{}, {kind}", subject.name);
        let rows: Vec<_> = missing.iter().filter(|row| row[0] == *kind).collect();
        let mut bytes: Vec<u64> = others.iter().map(|p| oracle.program_bytes(p)).collect();
        bytes.sort_by(|a, b| b.cmp(a));
        bytes.truncate(10);
        assert_eq!(rows.len(), bytes.len(), "{}, {kind}", subject.name);
        for (row, bytes) in rows.iter().zip(bytes) {
            let program = others.iter().find(|p| p.id.to_string() == row[1]);
            let program = program.expect("a missing program");
            assert_eq!(oracle.program_bytes(program), bytes, "{}", subject.name);
            assert_eq!(row[3], bytes.to_string(), "{}", subject.name);
            let set_name = |set| &oracle.profile.compute_sets[&set].name;
            let names = [Some(&program.name), program.compute_set.map(set_name)];
            assert!(names.contains(&Some(&row[2])), "{}: {row:?}", subject.name);
        }
    }
}

fn percentage(predicted: u64, recorded: u64) -> String {
    let percent = (predicted as f64 - recorded as f64) * 100.0 / recorded as f64;
    let percent = (recorded > 0).then(|| format!("{percent:.2}"));
    percent.unwrap_or_default()
}

fn code(subject: &Subject, operations: &[usize], rows: Rows) {
    assert_eq!(rows.len(), CODE.len(), "{}", subject.name);
    for ((category, part), row) in CODE.into_iter().zip(rows) {
        let code = subject.oracle.code(operations, category, part);
        let expected = [
            category.to_string(),
            code.predicted.to_string(),
            code.recorded.to_string(),
            (code.predicted as i64 - code.recorded as i64).to_string(),
            percentage(code.predicted, code.recorded),
        ];
        assert_eq!(row[..5], expected, "{}", subject.name);
        let worst = code.differences.iter().map(|d| d.abs()).max().unwrap();
        let tile: usize = row[5].parse().expect("a tile");
        assert_eq!(code.differences[tile].abs(), worst, "{}", subject.name);
        assert_eq!(code.differences[tile].to_string(), row[6]);
    }
}

fn bottleneck(subject: &Subject, operations: &[usize], at: Rows, variables: Rows) {
    let oracle = &subject.oracle;
    let bottleneck = oracle.bottleneck();
    let predicted = oracle.predicted_at(operations, &bottleneck);
    let expected = [
        bottleneck.tile.to_string(),
        bottleneck.step.to_string(),
        predicted.to_string(),
        bottleneck.bytes.to_string(),
        (predicted as i64 - bottleneck.bytes as i64).to_string(),
        percentage(predicted, bottleneck.bytes),
    ];
    assert_eq!(at, [expected], "{}", subject.name);
    let mut left = oracle.unexplained(operations, &bottleneck);
    assert_eq!(variables.len(), left.len().min(20), "{}", subject.name);
    for row in variables {
        let largest = left.iter().map(|variable| variable.bytes).max();
        assert_eq!(Some(row[2].clone()), largest.map(|n| n.to_string()));
        let is_it = |v: &Unexplained| {
            [&v.name, &v.category] == [&row[0], &row[1]] && Some(v.bytes) == largest
        };
        let place = left.iter().position(is_it);
        left.remove(place.unwrap_or_else(|| panic!("{}: {row:?}", subject.name)));
    }
}
