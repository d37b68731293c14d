//! A randomly changed file gives an error, or the answer of the second analyser, which reads it
//! with plain SQL and no checks.
//!
//! Tables that the second analyser does not read (memory by category, the exact memory of compute
//! sets) are ignored. The second analyser panics on most damage, and on debug files that are cut or
//! malformed, whose readable part the tool uses; for such files the test only shows that the tool
//! ends well.
//!
//! `SEEDS=1000..2000 cargo test mutated::` makes other changes.

use std::fs;
use std::path::Path;

use super::printed::Subject;
use crate::oracle::layers::Rules;
use crate::support::models::{Random, generate, seeds};
use crate::support::mutations::{Choices, loosen, mutate};
use crate::support::{catch_quietly, popliner};
use tempfile::TempDir;

/// Numbers of outcomes for the changed files.
#[derive(Debug, Default)]
struct Outcomes {
    refused: usize,
    agreed: usize,
    undecided: usize,
}

#[test]
fn a_changed_file_is_refused_or_read_as_the_second_analyser_reads_it() {
    let mut outcomes = Outcomes::default();
    let frameworks = ["poplar", "popart", "poptorch", "tensorflow"].into_iter();
    let failed = frameworks.flat_map(|framework| of_framework(framework, &mut outcomes));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    if std::env::var_os("SEEDS").is_none() {
        assert!(outcomes.refused > 5 && outcomes.agreed > 2, "{outcomes:?}");
    }
    eprintln!("{outcomes:?}");
}

/// Changes the model of a framework repeatedly, and returns the failures.
fn of_framework(framework: &str, outcomes: &mut Outcomes) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let options = format!("--layers=3 --tiles=4 --vars-per-layer-tile=2 --framework={framework}");
    let [profile, debug] = generate(folder.path(), &options);
    let schema = loosen(&profile);
    let sound = [&profile, &debug].map(|path| fs::read(path).unwrap());
    let mut failed = Vec::new();
    for seed in seeds(5) {
        fs::write(&profile, &sound[0]).unwrap();
        fs::write(&debug, &sound[1]).unwrap();
        let mut random = Random(seed);
        let data: Vec<u8> = (0..200).map(|_| random.next() as u8).collect();
        mutate(&profile, &debug, &schema, &mut Choices(&data));
        // The second analyser needs a whole document.
        if seed % 4 != 0 {
            fs::write(&debug, &sound[1]).unwrap();
        }
        let name = format!("{framework}, seed {seed}");
        let run = popliner([&profile, &debug, Path::new("--layer-breakdown")]);
        if run.code == 3 {
            // Warnings may come before the error.
            let is_error = |line: &str| line.starts_with("error: ");
            let is_said = run.out.is_empty() && run.err.lines().any(is_error);
            outcomes.refused += 1;
            failed.extend((!is_said).then(|| format!("{name}: {run:?}")));
            continue;
        }
        let rules = Rules::default();
        // The second analyser is expected to panic.
        let subject = || Subject::new(&name, profile.clone(), debug.clone(), &rules);
        let Ok(subject) = catch_quietly(subject) else {
            outcomes.undecided += 1;
            continue;
        };
        match catch_quietly(|| compared(&subject)) {
            Ok(()) => outcomes.agreed += 1,
            Err(panic) => failed.push(format!("{name}: {}", text(&*panic))),
        }
    }
    failed
}

fn compared(subject: &Subject) {
    subject.operation_breakdown();
    subject.layer_breakdown();
    subject.memory_affinity();
    subject.interlayer_communication();
    let count = subject.oracle.layer_count();
    if count > 1 {
        let ranges = subject.ranges();
        subject.solve(&ranges, 2, None);
    }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = panic.downcast_ref::<String>().cloned().or(literal);
    text.unwrap_or_else(|| "a panic".into())
}
