//! Counted copies, held against the sizes that the frameworks' sources give.

use super::super::graph::Pass;
use super::super::options::Schedule;
use super::super::walk::{Pipeline, Run};
use super::SCHEDULES;

fn counted(pipeline: &Pipeline, stages: &[u32], first: Run, last: Run) -> u32 {
    let parts = pipeline.parts(stages, 2 * pipeline.stages + 4);
    pipeline.slots(&parts, first, last)
}

fn stated(schedule: Schedule, after: u32) -> u32 {
    match (schedule, after) {
        (_, 0) | (Schedule::Sequential, _) => 0,
        (Schedule::Popart, _) => 2 * after + 1,
        (Schedule::TfGrouped, _) => 2 * after,
        (Schedule::TfInterleaved, _) => after,
    }
}

fn pipeline(schedule: Schedule, stages: u32) -> Pipeline {
    Pipeline {
        schedule,
        stages,
        is_training: true,
    }
}

#[test]
fn the_walk_counts_what_the_sources_state() {
    for (schedule, stages) in SCHEDULES
        .iter()
        .flat_map(|&schedule| (1..=24).map(move |f| (schedule, f)))
    {
        let pipeline = pipeline(schedule, stages);
        for stage in 0..stages {
            let runs = [(stage, Pass::Forward), (stage, Pass::Backward)];
            assert_eq!(
                counted(&pipeline, &[stage], runs[0], runs[1]),
                stated(schedule, stages - 1 - stage),
                "{schedule:?}, stage {stage} of {stages}"
            );
        }
    }
}

#[test]
fn a_head_on_the_first_ipu_changes_nothing_of_that() {
    for (schedule, stages) in SCHEDULES
        .iter()
        .flat_map(|&schedule| (2..=24).map(move |f| (schedule, f)))
    {
        let pipeline = pipeline(schedule, stages);
        let ends = [0, stages - 1];
        for stage in ends {
            let runs = [(stage, Pass::Forward), (stage, Pass::Backward)];
            assert_eq!(
                counted(&pipeline, &ends, runs[0], runs[1]),
                stated(schedule, stages - 1 - stage),
                "{schedule:?}, stage {stage} of {stages}"
            );
        }
    }
}

#[test]
fn what_a_head_on_the_first_ipu_reads_is_stashed_once_for_each_stage() {
    for stages in 2..=24 {
        for is_training in [false, true] {
            let pipeline = Pipeline {
                is_training,
                ..pipeline(Schedule::Popart, stages)
            };
            let runs = [(0, Pass::Forward), (stages - 1, Pass::Forward)];
            let counted = counted(&pipeline, &[0, stages - 1], runs[0], runs[1]);
            assert_eq!(counted, stages);
        }
    }
}
