//! Reading a debug file: as a stream that is in memory, and on all threads.

mod common;

use common::Files;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use popliner::debug_info::DebugInfo;
use std::hint::black_box;

fn contexts(criterion: &mut Criterion) {
    let files = Files::generate("--layers 12 --tiles 16 --contexts 50000");
    let document = std::fs::read(files.debug()).expect("the debug file is there");
    let count = DebugInfo::from_reader(&document[..]).unwrap().len();
    let mut group = criterion.benchmark_group("contexts");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(document.len() as u64));
    group.bench_function(format!("{count}, stream"), |bencher| {
        bencher.iter(|| DebugInfo::from_reader(black_box(&document[..])).unwrap());
    });
    let path = files.debug();
    group.bench_function(format!("{count}, file"), |bencher| {
        bencher.iter(|| DebugInfo::read(black_box(&path)).unwrap());
    });
    group.finish();
}

criterion_group!(benches, contexts);
criterion_main!(benches);
