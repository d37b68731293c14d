//! Reading a profile, and joining it with its contexts: the walk over the
//! program, names, and which operations use each variable.

mod common;

use common::Files;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use popliner::debug_info::DebugInfo;
use popliner::model::Model;
use popliner::profile::Profile;

fn model(criterion: &mut Criterion) {
    let files = Files::generate("--layers 12 --mode training --tiles 64 --variables 200000");
    let path = files.profile();
    let debug_info = DebugInfo::read(&files.debug()).expect("the debug file can be read");
    let read = || Profile::read(&path).expect("the profile can be read");
    let variables = read().variables.len() as u64;
    let mut group = criterion.benchmark_group("model");
    group.sample_size(20);
    group.throughput(Throughput::Elements(variables));
    group.bench_function("read", |bencher| bencher.iter(read));
    group.bench_function("build", |bencher| {
        let build = |profile| Model::build(profile, &debug_info, false).unwrap();
        bencher.iter_batched(read, build, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, model);
criterion_main!(benches);
