//! Decoding the blobs of `profile.pop`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use popliner::profile::encoding::{
    Runs, Varints, decode_diff_rle, encode_diff_rle, encode_list, encode_rle,
};
use std::hint::black_box;

/// Bytes by tile as a real program has them: stretches of equal values.
fn by_tile() -> Vec<u64> {
    (0..1472).map(|tile| 40 + tile / 92 % 7 * 12).collect()
}

/// Ascending ids as those of a compute set's variables: mostly neighbours.
fn ids() -> Vec<u64> {
    let gap = |n: u64| {
        if n.is_multiple_of(13) {
            900 + n % 1000
        } else {
            1
        }
    };
    let ids = (0..100_000).scan(0, |id, n| {
        *id += gap(n);
        Some(*id)
    });
    ids.collect()
}

fn blobs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blobs");
    let values = by_tile();
    group.throughput(Throughput::Elements(values.len() as u64));
    let list = encode_list(&values);
    group.bench_function(BenchmarkId::new("list", values.len()), |bencher| {
        bencher.iter(|| {
            Varints::new(black_box(&list))
                .map(Result::unwrap)
                .sum::<u64>()
        });
    });
    let runs = encode_rle(&values);
    group.bench_function(BenchmarkId::new("runs", values.len()), |bencher| {
        let bytes = |runs| {
            Runs::new(runs)
                .map(|run| run.unwrap())
                .map(|run| run.count * run.value)
        };
        bencher.iter(|| bytes(black_box(&runs)).sum::<u64>());
    });
    let ids = ids();
    group.throughput(Throughput::Elements(ids.len() as u64));
    let differences = encode_diff_rle(&ids);
    group.bench_function(BenchmarkId::new("differences", ids.len()), |bencher| {
        bencher.iter(|| decode_diff_rle(black_box(&differences), ids.len()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, blobs);
criterion_main!(benches);
