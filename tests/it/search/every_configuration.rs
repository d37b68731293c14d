//! The plan against all configurations of a fixture, tried one by one: every split, schedule,
//! recomputation and place of optimizer state.

use super::pipelines::splits;
use crate::support::models::share;
use crate::support::{debug, profile, root, run_fixture};
use popliner::analysis::{Analysis, Layers, Request};
use popliner::memory::{MemoryModel, Pipeline, Recompute, Schedule, StatePlace};
use popliner::model::Model;
use popliner::time::{StageTimes, StepOptions};
use serde_json::Value;
use std::collections::BTreeSet;

const IPUS: usize = 4;
/// Upper bound on rows for each number of IPUs.
const MAX_OF_NUMBER: usize = 8;

/// Whether time is missing, IPUs, cycles, micro-batches, and bytes on the fullest tile.
type Row = (bool, usize, u64, u64, u64);

fn pipelines() -> Vec<Pipeline> {
    let mut all = Vec::new();
    for schedule in [Schedule::Popart, Schedule::Sequential] {
        for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
            let pipeline = Pipeline {
                schedule,
                recompute,
                ..Pipeline::default()
            };
            all.extend(
                [StatePlace::OnChip, StatePlace::OffChip].map(|at| pipeline.with_state(at, 1)),
            );
            for replicas in [2, 4] {
                let shared = [StatePlace::Sharded, StatePlace::ShardedOffChip];
                all.extend(shared.map(|at| pipeline.with_state(at, replicas)));
            }
        }
    }
    all
}

/// Returns the times of stages in a pipeline.
fn times(
    (model, layers): (&Model, &Layers<'_>),
    memory: &MemoryModel<'_>,
    pipeline: Pipeline,
) -> StageTimes {
    let cycles = model.layer_cycles(&layers.placement);
    let times = StageTimes::new(
        &cycles.expect("cycles"),
        &layers.placement.positions,
        (pipeline, true),
        memory.cut_bytes_by_pass().expect("bytes"),
        StepOptions::default(),
    );
    times.streaming(&memory.streamed_state().expect("few sets"))
}

/// Returns every configuration that fits.
fn all_that_fit(model: &Model, layers: &Layers<'_>) -> Vec<Row> {
    let plain = layers.memory().expect("memory");
    let limit = model.target.bytes_per_tile;
    let mut found = Vec::new();
    for pipeline in pipelines() {
        let memory = plain.in_pipeline(pipeline).expect("few sets");
        let times = times((model, layers), &memory, pipeline);
        for stages in splits(memory.layers()) {
            let is_shared = pipeline.state.is_sharded();
            if is_shared && pipeline.replicas != (IPUS / stages.len()) as u64 {
                continue;
            }
            let bytes = memory
                .split(&stages)
                .iter()
                .map(|stage| stage.max_tile_bytes())
                .max();
            let bytes = bytes.expect("a stage");
            if bytes <= limit {
                let step = times.step(&stages).expect("a step");
                let cycles = u64::try_from(step.cycles).expect("few cycles");
                let lacks_time = pipeline.state != StatePlace::OnChip;
                found.push((lacks_time, stages.len(), cycles, step.micro_batches, bytes));
            }
        }
    }
    found
}

/// Returns the configurations that no other one is better than.
fn best_of(all: &[Row]) -> BTreeSet<Row> {
    let is_no_worse = |row: &Row, other: &Row| {
        let [fast, slow] = [
            row.2 as u128 * other.3 as u128,
            other.2 as u128 * row.3 as u128,
        ];
        row.0 == other.0 && row.1 <= other.1 && fast <= slow && row.4 <= other.4
    };
    let is_best = |row: &&Row| {
        !all.iter()
            .any(|other| other != *row && is_no_worse(other, row))
    };
    all.iter().filter(is_best).copied().collect()
}

fn rows(plan: &Value) -> BTreeSet<Row> {
    let number = |row: &Value, name: &str| row[name].as_u64().expect("a number");
    let rows = plan["rows"].as_array().expect("rows").iter();
    let row = |row: &Value| {
        (
            row["lacks_time"] == true,
            number(row, "ipus") as usize,
            number(row, "cycles"),
            number(row, "micro_batches"),
            number(row, "fullest_tile_bytes"),
        )
    };
    rows.map(row).collect()
}

#[test]
fn the_plan_has_the_best_of_all_configurations() {
    for fixture in ["tied-weights", "training-pipeline"]
        .into_iter()
        .step_by(share(2))
    {
        let files = [profile(fixture), debug(fixture)].map(|file| root().join(file));
        let analysis = Analysis::read(&files[0], &files[1]).expect("both files");
        let layers = analysis.layers(&Request::default()).expect("layers");
        let options = ["--plan", "--num-ipus=4", "--export-json=-", "-q"];
        let run = run_fixture(fixture, &options);
        let json = run.out.split_once("# export-json\n").expect("a report").1;
        let report: Value = serde_json::from_str(json).expect("JSON");
        let found = rows(&report["plan"]);
        let all = all_that_fit(&analysis.model, &layers);
        let expected = best_of(&all);
        assert!(expected.len() > 4, "{expected:?}");
        let is_whole = |lacks_time: bool, ipus: usize| {
            let is_of_group = |row: &&Row| (row.0, row.1) == (lacks_time, ipus);
            expected.iter().filter(is_of_group).count() <= MAX_OF_NUMBER
        };
        assert!(
            found.is_subset(&expected),
            "{fixture}: {found:#?} {expected:#?}"
        );
        let missing: Vec<_> = expected.difference(&found).collect();
        let is_left_out = |row: &&&Row| is_whole(row.0, row.1);
        assert_eq!(
            missing.iter().filter(is_left_out).count(),
            0,
            "{fixture}: {missing:?}"
        );
    }
}
