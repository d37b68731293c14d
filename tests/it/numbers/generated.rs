//! The tool against the second analyser on generated models, and on generated models with unusual
//! changes.
//!
//! `SEEDS=1000..2000 cargo test generated::` takes other models, in any number.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::printed::Subject;
use super::printed::diagnoses::diagnosis;
use crate::oracle::layers::Rules;
use crate::support::models::{Random, generate, options, seeds};
use crate::support::vary;
use tempfile::TempDir;

/// Runs a check, and names the model on which it fails.
fn with_model(seed: u64, is_varied: bool) {
    let mut random = Random(seed);
    let options = options(seed);
    let folder = TempDir::new().unwrap();
    let [profile, debug] = generate(folder.path(), &options);
    if is_varied {
        vary::profile(&profile, &mut random);
        vary::contexts(&debug, &mut random);
    }
    let rules = Rules {
        natural: random.once_in(3),
        ..Rules::default()
    };
    let name = format!("seed {seed}, varied: {is_varied}, {}", options.join(" "));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut subject = Subject::new(&name, profile, debug, &rules);
        // The contexts are not as Poplar writes them.
        subject.trusts = is_varied;
        let run = subject.run(&["--list-layers"]);
        match is_varied && run.err.contains("no backward pass by marks") {
            // Without its contexts, training looks like inference that writes its weights.
            true => drop(run.exits(3)),
            false => check(&subject, &mut random),
        }
    }));
    if outcome.is_err() {
        let kept = folder.keep();
        panic!("{name}: the files are in {}", kept.display());
    }
}

/// Checks tables, and splits at limits at, below and above the bytes of some stage.
fn check(subject: &Subject, random: &mut Random) {
    super::fixtures::tables(subject);
    diagnosis(subject);
    let count = subject.oracle.layer_count();
    if count == 1 {
        assert_eq!(subject.run(&["--solve"]).code, 2, "{}", subject.name);
        return;
    }
    let ranges = subject.ranges();
    for num_ipus in 1..=count.min(4) {
        let from = random.below(count - 1);
        let from = if from == 1 { 0 } else { from };
        let to = (from + 2 + random.below(count)).min(count);
        let peak = ranges.peak(&(from..to));
        let limit = peak.saturating_sub(random.below(2) as u64).max(1);
        subject.splits(&ranges, num_ipus, Some(limit));
    }
    subject.splits(&ranges, count, None);
}

#[test]
fn generated_models() {
    seeds(4).for_each(|seed| with_model(seed, false));
}

#[test]
fn varied_models() {
    seeds(4).for_each(|seed| with_model(seed, true));
}
