//! Another micro-batch than in the profile. The golden `estimate` says in each form that the
//! numbers are an estimate.

use super::{TRAINING, report};
use crate::support::DEFAULT_REGEX;
use serde_json::Value;

const FIXTURES: [&str; 3] = [TRAINING, "popart-bert-inference", "large-embedding"];

/// Returns the exit code and the report of a split on four IPUs of a model that was recorded with
/// micro-batches of 8.
fn recorded_with_8(fixture: &str, more: &str) -> (i32, Value) {
    let options = format!("--solve --num-ipus=4 --micro-batch=8 {DEFAULT_REGEX} {more}");
    report(fixture, &options)
}

#[test]
fn the_largest_fits_and_one_more_does_not() {
    for fixture in FIXTURES {
        let at = |samples: u64| recorded_with_8(fixture, &format!("--at-micro-batch={samples}"));
        let largest = &at(8).1["estimate"]["largest_micro_batch"];
        let samples = super::number(largest);
        for (samples, code) in [(samples, 0), (samples + 1, 1)] {
            let (found, report) = at(samples);
            assert_eq!(found, code, "{fixture}");
            assert_eq!(report["split"]["fits"], code == 0, "{fixture}");
            assert_eq!(report["step"]["micro_batch"], samples);
            assert_eq!(report["estimate"]["largest_micro_batch"], *largest);
        }
    }
}
