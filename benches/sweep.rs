//! The peaks of all ranges of layers, by the sweep and by rebuilding each
//! range from its operations; and in the pipeline of every schedule.

mod common;

use clap::ValueEnum;
use common::Files;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use popliner::debug_info::DebugInfo;
use popliner::memory::{MemoryModel, Pipeline, RangeCosts, Recompute, Schedule};
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model,
    Placement, PlacementOptions,
};
use popliner::profile::Profile;
use regex::Regex;

/// No range is over this limit, so that both ways have the same work.
const NO_LIMIT: u64 = u64::MAX;

fn model(layers: usize) -> (Model, Layering) {
    let options = "--mode training --tiles 64 --vars-per-layer-tile 60";
    let files = Files::generate(&format!("--layers {layers} {options}"));
    let profile = Profile::read(&files.profile()).expect("the profile can be read");
    let debug_info = DebugInfo::read(&files.debug()).expect("the debug file can be read");
    let model = Model::build(profile, &debug_info, false).expect("the model is sound");
    let layer_options = LayerOptions {
        layer_regex: Regex::new(DEFAULT_LAYER_REGEX).expect("a regex"),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).expect("a regex"),
        order: LayerOrder::Steps,
    };
    let layering = Layering::new(&model.operations, &layer_options);
    (model, layering)
}

/// Rebuilds each range by itself.
fn naive(memory: &MemoryModel<'_>) -> RangeCosts {
    let layers = memory.layers();
    let row = |from: usize| {
        let stages = (from + 1..=layers).map(|to| memory.stages(std::slice::from_ref(&(from..to))));
        stages.map(|stages| stages[0].max_tile_bytes()).collect()
    };
    RangeCosts::new((0..layers).map(row).collect())
}

fn sweep(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sweep");
    group.sample_size(10);
    for layers in [6, 12, 24] {
        let (model, layering) = model(layers);
        let placement = Placement::classic(&model, &layering).expect("few sets");
        let memory = MemoryModel::new(&model, &placement).expect("few sets");
        let swept = memory.range_costs(NO_LIMIT).expect("few sets");
        assert_eq!(swept, naive(&memory));
        group.bench_function(BenchmarkId::new("sweep", layers), |bencher| {
            bencher.iter(|| memory.range_costs(NO_LIMIT));
        });
        group.bench_function(BenchmarkId::new("naive", layers), |bencher| {
            bencher.iter(|| naive(&memory));
        });
    }
    group.finish();
}

/// What the copies, accumulators and recomputation of each pipeline add.
fn schedules(criterion: &mut Criterion) {
    let (model, layering) = model(24);
    let options = PlacementOptions::default();
    let placement = Placement::full(&model, &layering, &options).expect("few sets");
    let memory = MemoryModel::new(&model, &placement).expect("few sets");
    let mut group = criterion.benchmark_group("schedules");
    group.sample_size(10);
    for schedule in Schedule::value_variants() {
        let pipeline = Pipeline {
            schedule: *schedule,
            recompute: Recompute::Stage,
            ..Pipeline::default()
        };
        let memory = memory.in_pipeline(pipeline).expect("few sets");
        let name = format!("{schedule:?}").to_lowercase();
        group.bench_function(name, |bencher| {
            bencher.iter(|| memory.range_costs(NO_LIMIT));
        });
    }
    group.finish();
}

criterion_group!(benches, sweep, schedules);
criterion_main!(benches);
