//! Every number the tool prints about the fixtures and the real sample, held
//! against a second computation that was written from the rules alone.

mod compare;
mod oracle;
mod support;

use compare::Subject;
use oracle::diagnosis::CODE;
use oracle::layers::{LAYER_REGEX, Rules};
use oracle::search::Ranges;
use support::{FIXTURES, cells, debug, profile, sample};

fn subject(fixture: &str, rules: &Rules) -> Subject {
    let name = format!("{fixture} with {}", rules.layer_regex);
    Subject::new(&name, profile(fixture), debug(fixture), rules)
}

fn rules(layer_regex: &str, natural: bool) -> Rules {
    Rules {
        layer_regex: layer_regex.to_string(),
        natural,
        ..Rules::default()
    }
}

/// Other ways to see layers in the fixtures: fewer of them, more of them, by
/// two capture groups, by a group that takes no part, and none.
const OTHER_REGEXES: [&str; 5] = [
    r"(?:[Ll]ayer|blocks)[\/_\.]?([0-2])",
    r"(\d)",
    r"([Ll]a|block)[a-z]+.?(\d+)",
    "([Ll]ayer|blocks).?[13]|(?:oss|ense)()",
    "no such layer",
];

fn tables(subject: &Subject) {
    subject.operation_breakdown();
    subject.layer_breakdown();
    subject.memory_totals();
    subject.memory_affinity();
    subject.interlayer_communication();
    subject.warnings();
}

#[test]
fn tables_of_the_fixtures() {
    for fixture in FIXTURES {
        let subject = subject(fixture, &Rules::default());
        assert!(subject.oracle.layer_count() > 4, "{fixture}");
        tables(&subject);
    }
}

#[test]
fn tables_with_other_regexes_and_orders() {
    for fixture in FIXTURES {
        for regex in OTHER_REGEXES {
            let subject = subject(fixture, &rules(regex, false));
            assert!(subject.oracle.layer_count() > 1 || regex == "no such layer");
            subject.operation_breakdown();
            subject.layer_breakdown();
            subject.interlayer_communication();
            subject.warnings();
        }
        tables(&subject(fixture, &rules(LAYER_REGEX, true)));
    }
}

/// Layers by the last part of a name do not come in the order of their names.
#[test]
fn layers_in_the_order_of_their_names() {
    for fixture in FIXTURES {
        let regex = r"([A-Za-z]+\d*)$";
        let natural = subject(fixture, &rules(regex, true));
        natural.operation_breakdown();
        natural.memory_affinity();
        let steps = subject(fixture, &rules(regex, false));
        assert_ne!(
            natural.oracle.layering.names, steps.oracle.layering.names,
            "{fixture}"
        );
        steps.memory_affinity();
    }
}

#[test]
fn a_call_with_inputs_of_several_layers_is_warned_of() {
    for fixture in ["popart-bert-inference", "poptorch-bert-training"] {
        let subject = subject(fixture, &rules("([a-z])", false));
        assert!(subject.oracle.layering.mixed_call, "{fixture}");
        subject.warnings();
        subject.operation_breakdown();
    }
}

#[test]
fn operations_found_by_the_regex_for_inputs() {
    let mut deduced = 0;
    for fixture in FIXTURES {
        for inputs_regex in [".", "input|mask", "Embedding"] {
            let rules = Rules {
                inputs_regex: inputs_regex.to_string(),
                ..Rules::default()
            };
            let subject = subject(fixture, &rules);
            let notes = subject.oracle.layering.notes.iter();
            deduced += notes.filter(|note| *note == "inputs_regex_layer_0").count();
            subject.operation_breakdown();
            subject.layer_breakdown();
        }
    }
    assert!(deduced > 10);
}

/// What is read back from CSV is what is read back from TSV.
#[test]
fn both_formats_have_the_same_cells() {
    let options = [
        "--operation-breakdown",
        "--layer-breakdown",
        "--memory-totals",
        "--memory-affinity",
        "--interlayer-communication",
    ];
    for fixture in FIXTURES {
        let subject = subject(fixture, &Rules::default());
        for option in options {
            let [tsv, csv] = ["tsv", "csv"].map(|format| {
                let delimiter = if format == "csv" { ',' } else { '\t' };
                let run = subject.run(&[option, "--format", format]);
                cells(&run.out, delimiter)
            });
            assert!(tsv.len() > 5 && tsv[0].len() > 3, "{fixture}, {option}");
            assert_eq!(tsv, csv, "{fixture}, {option}");
        }
    }
}

#[test]
fn splits_of_the_fixtures() {
    for fixture in FIXTURES {
        for natural in [false, true] {
            let subject = subject(fixture, &rules(LAYER_REGEX, natural));
            let ranges = Ranges::of(&subject.oracle);
            for num_ipus in [1, 2, 3, 4, 16] {
                subject.solve(&ranges, num_ipus, None);
                subject.greedy(&ranges, num_ipus, None);
            }
        }
    }
}

/// From nothing fits to all fits in one stage, by the sizes of the ranges
/// themselves: at a size, and a byte below and above it.
#[test]
fn splits_of_the_fixtures_at_other_limits() {
    for fixture in FIXTURES {
        let subject = subject(fixture, &Rules::default());
        let ranges = Ranges::of(&subject.oracle);
        let count = subject.oracle.layer_count();
        let whole = ranges.peak(&(0..count));
        for range in [0..2, 1..3, 0..count] {
            let peak = ranges.peak(&range);
            for limit in [peak - 1, peak, 2 * peak] {
                subject.solve(&ranges, 3, Some(limit));
                subject.greedy(&ranges, 3, Some(limit));
            }
        }
        subject.solve(&ranges, 4, Some(1));
        subject.greedy(&ranges, count, Some(whole / 3));
    }
}

#[test]
fn splits_with_other_regexes() {
    let mut split = 0;
    for fixture in FIXTURES {
        for regex in OTHER_REGEXES {
            let subject = subject(fixture, &rules(regex, false));
            if subject.oracle.layer_count() == 1 {
                let run = subject.run(&["--solve"]);
                assert_eq!(run.code, 2, "{}: {}", subject.name, run.err);
                continue;
            }
            let ranges = Ranges::of(&subject.oracle);
            subject.solve(&ranges, 3, None);
            subject.greedy(&ranges, 3, None);
            split += 1;
        }
    }
    assert!(split > 15);
}

#[test]
fn diagnoses_of_the_fixtures() {
    for fixture in FIXTURES {
        diagnosis(&subject(fixture, &Rules::default()));
    }
}

#[test]
fn the_real_sample() {
    let files = ["firehose.profile.pop", "firehose.debug.cbor"].map(sample);
    let [Some(profile), Some(debug)] = files else {
        return;
    };
    let named = rules(r"CS (\d+)", false);
    let subject = Subject::new("sample", profile.clone(), debug.clone(), &named);
    assert_eq!(subject.oracle.layer_count(), 3);
    tables(&subject);
    diagnosis(&subject);
    let ranges = Ranges::of(&subject.oracle);
    for num_ipus in [1, 2, 3] {
        for limit in [None, Some(1000)] {
            subject.solve(&ranges, num_ipus, limit);
            subject.greedy(&ranges, num_ipus, limit);
        }
    }
    let unnamed = Subject::new("sample without layers", profile, debug, &Rules::default());
    tables(&unnamed);
    diagnosis(&unnamed);
}

type Rows = Vec<Vec<String>>;

/// Everything that `--diagnose` prints.
fn diagnosis(subject: &Subject) {
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
        programs(
            subject,
            &operations,
            rows("programs"),
            rows("missing-programs"),
        );
        code(subject, &operations, rows("code"));
        bottleneck(subject, &operations, rows("bottleneck"), rows("variables"));
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
            let set = program
                .compute_set
                .map(|set| &oracle.profile.compute_sets[&set]);
            let names = [Some(&program.name), set.map(|set| &set.name)];
            assert!(names.contains(&Some(&row[2])), "{}: {row:?}", subject.name);
        }
    }
}

fn percentage(predicted: u64, recorded: u64) -> String {
    match recorded {
        0 => String::new(),
        _ => {
            let percent = (predicted as f64 - recorded as f64) * 100.0 / recorded as f64;
            format!("{percent:.2}")
        }
    }
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
        let is_it = |v: &oracle::diagnosis::Unexplained| {
            [&v.name, &v.category] == [&row[0], &row[1]] && Some(v.bytes) == largest
        };
        let place = left.iter().position(is_it);
        left.remove(place.unwrap_or_else(|| panic!("{}: {row:?}", subject.name)));
    }
}
