//! Every number that the tool prints about the fixtures and the real sample, compared with a second
//! computation that was written only from the rules.

use super::printed::Subject;
use super::printed::diagnoses::diagnosis;
use crate::oracle::layers::{LAYER_REGEX, Rules};
use crate::support::models::{pairs, share};
use crate::support::{FIXTURES, debug, profile, sample_pair};

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

/// Regexes that find other layers in the fixtures: fewer, more, by two capture groups, with a group
/// that matches nothing, and none.
const OTHER_REGEXES: [&str; 5] = [
    r"(?:[Ll]ayer|blocks)[\/_\.]?([0-2])",
    r"(\d)",
    r"([Ll]a|block)[a-z]+.?(\d+)",
    "([Ll]ayer|blocks).?[13]|(?:oss|ense)()",
    "no such layer",
];

/// Checks all tables and their warnings.
pub fn tables(subject: &Subject) {
    subject.operation_breakdown();
    subject.layer_breakdown();
    subject.memory_totals();
    subject.memory_affinity();
    subject.interlayer_communication();
    subject.warnings();
}

#[test]
fn tables_and_diagnoses_of_the_fixtures() {
    for fixture in FIXTURES {
        let subject = subject(fixture, &Rules::default());
        assert!(subject.oracle.layer_count() > 4, "{fixture}");
        tables(&subject);
        diagnosis(&subject);
    }
}

#[test]
fn tables_with_other_regexes_and_orders() {
    for (fixture, regex) in pairs(&FIXTURES, &OTHER_REGEXES, 6) {
        let subject = subject(fixture, &rules(regex, false));
        assert!(subject.oracle.layer_count() > 1 || *regex == "no such layer");
        subject.operation_breakdown();
        subject.layer_breakdown();
        subject.interlayer_communication();
        subject.warnings();
    }
    for fixture in FIXTURES.iter().step_by(share(3)) {
        tables(&subject(fixture, &rules(LAYER_REGEX, true)));
    }
}

/// Layers named by the last part of a name are not in the order of their names.
#[test]
fn layers_in_the_order_of_their_names() {
    for fixture in FIXTURES.iter().step_by(share(2)) {
        let regex = r"([A-Za-z]+\d*)$";
        let natural = subject(fixture, &rules(regex, true));
        natural.operation_breakdown();
        natural.memory_affinity();
        let steps = subject(fixture, &rules(regex, false));
        let names = [&natural, &steps].map(|subject| &subject.oracle.layering.names);
        assert_ne!(names[0], names[1], "{fixture}");
        steps.memory_affinity();
    }
}

#[test]
fn operations_found_by_the_regex_for_inputs() {
    let mut deduced = 0;
    for (fixture, inputs_regex) in pairs(&FIXTURES, &[".", "input|mask", "Embedding"], 4) {
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
    assert!(deduced > 2, "{deduced}");
}

#[test]
fn splits_of_the_fixtures() {
    for (fixture, natural) in pairs(&FIXTURES, &[false, true], 5) {
        let subject = subject(fixture, &rules(LAYER_REGEX, *natural));
        let ranges = subject.ranges();
        for num_ipus in [1, 2, 3, 4, 16] {
            subject.splits(&ranges, num_ipus, None);
        }
    }
}

#[test]
fn splits_with_other_regexes() {
    let mut split = 0;
    for (fixture, regex) in pairs(&FIXTURES, &OTHER_REGEXES, 4) {
        let subject = subject(fixture, &rules(regex, false));
        if subject.oracle.layer_count() == 1 {
            let run = subject.run(&["--solve"]);
            assert_eq!(run.code, 2, "{}: {}", subject.name, run.err);
            continue;
        }
        let ranges = subject.ranges();
        subject.splits(&ranges, 3, None);
        split += 1;
    }
    assert!(split > 3, "{split}");
}

#[test]
fn the_real_sample() {
    let [profile, debug] = or_skip!(sample_pair());
    let named = rules(r"CS (\d+)", false);
    let subject = Subject::new("sample", profile.clone(), debug.clone(), &named);
    assert_eq!(subject.oracle.layer_count(), 3);
    tables(&subject);
    diagnosis(&subject);
    let ranges = subject.ranges();
    for (&num_ipus, &limit) in pairs(&[1, 2, 3], &[None, Some(1000)], 3) {
        subject.splits(&ranges, num_ipus, limit);
    }
    let unnamed = Subject::new("sample without layers", profile, debug, &Rules::default());
    tables(&unnamed);
    diagnosis(&unnamed);
}
