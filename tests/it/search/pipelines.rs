//! Answers of the command with a schedule, against all splits of a fixture tried one by one: the
//! memory of a stage depends on the number of stages after it.

use super::{TRAINING, peaks, report};
use crate::oracle::search::splits;
use crate::support::models::share;
use crate::support::{DEFAULT_REGEX, debug, profile, root, run_fixture};
use popliner::analysis::{Analysis, Request};
use popliner::memory::{Accumulator, MemoryModel, Pipeline, Recompute, Schedule};
use std::ops::Range;

const IPUS: usize = 4;

const PIPELINES: [(Schedule, Recompute); 5] = [
    (Schedule::Popart, Recompute::None),
    (Schedule::Popart, Recompute::Stage),
    (Schedule::Popart, Recompute::Layer),
    (Schedule::TfGrouped, Recompute::None),
    (Schedule::Sequential, Recompute::Stage),
];

/// Returns the lowest peak of all splits, in bytes.
fn lowest(memory: &MemoryModel<'_>) -> u64 {
    let peak = |split: Vec<Range<usize>>| {
        let stages = memory.split(&split);
        stages.iter().map(|stage| stage.max_tile_bytes()).max()
    };
    let peaks = splits(memory.layers(), IPUS).filter_map(peak);
    peaks.min().expect("a split")
}

#[test]
fn each_schedule_has_the_best_of_all_splits() {
    let [profile, debug] = [profile(TRAINING), debug(TRAINING)].map(|file| root().join(file));
    let analysis = Analysis::read(&profile, &debug).expect("both files");
    let layers = analysis.layers(&Request::default()).expect("layers");
    let plain = layers.memory().expect("memory");
    for (schedule, recompute) in PIPELINES.into_iter().step_by(share(2)) {
        let memory = plain.in_pipeline(Pipeline {
            schedule,
            recompute,
            accumulator: Accumulator::AsWeight,
            ..Pipeline::default()
        });
        let lowest = lowest(&memory.expect("few sets"));
        // A limit that is just enough, and one byte less.
        for (limit, code) in [(lowest, 0), (lowest - 1, 1)] {
            let options = format!(
                "--solve --schedule={schedule} --recompute={recompute} --num-ipus={IPUS} \
                 --optimizer-state=on-chip --mem-per-tile={limit} {DEFAULT_REGEX}"
            );
            let (found, report) = report(TRAINING, &options);
            assert_eq!(found, code, "{options}");
            let peak = peaks(&report).into_iter().max();
            assert_eq!(peak, Some(lowest), "{options}");
            let needed = &report["refusal"]["smallest_tile_memory"];
            assert!(code == 0 || *needed == lowest, "{options}: {needed}");
        }
    }
}

#[test]
fn micro_batches_that_are_too_few_are_raised_and_it_is_said() {
    run_fixture(TRAINING, "--solve --num-ipus=4 --micro-batches=4")
        .says("\nA step of 7 micro-batches (raised from 4 to what the pipeline needs) takes ");
}
