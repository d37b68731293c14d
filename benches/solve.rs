//! Solving by the number of layers and of stages, and by the goal; the integer and
//! the dynamic program together.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use popliner::memory::RangeCosts;
use popliner::solve::{Goal, Problem, solve};
use popliner::time::StageTimes;

/// Memory of a tile, in bytes.
const LIMIT: u64 = 638_976;
/// Tiles that take turns as the fullest.
const TILES: u64 = 16;

/// Some number below `below`, always the same for the same `of`.
fn random(of: u64, below: u64) -> u64 {
    let mixed = (of + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % below
}

/// Costs of layers whose bytes differ from tile to tile.
fn costs(layers: usize, stages: usize) -> RangeCosts {
    // Three fifths of a tile for each stage, of which there is at most one for
    // every second layer.
    let stages = stages.min(layers / 2) as u64;
    let average = LIMIT * 3 / 5 * stages / layers as u64;
    let bytes = |layer: u64, tile: u64| average * 3 / 4 + random(layer * TILES + tile, average / 2);
    let row = |from: usize| {
        let mut tiles = [0; TILES as usize];
        let mut peaks = Vec::new();
        for layer in from..layers {
            for (sum, tile) in tiles.iter_mut().zip(0..) {
                *sum += bytes(layer as u64, tile);
            }
            match tiles.iter().copied().max() {
                Some(peak) if peak <= LIMIT => peaks.push(peak),
                _ => break,
            }
        }
        peaks
    };
    RangeCosts::new((0..layers).map(row).collect())
}

fn solving(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("solve");
    group.sample_size(10);
    for stages in [16, 64] {
        for layers in [50, 100, 400] {
            let costs = costs(layers, stages);
            let cut_bytes: Vec<u64> = (1..layers as u64).map(|n| random(n, 1 << 24)).collect();
            let problem = Problem::new(&costs, &cut_bytes, stages, LIMIT);
            let solution = solve(&problem).expect("both programs agree");
            assert!(solution.is_some(), "{layers} layers fit {stages} stages");
            let name = BenchmarkId::new(format!("{stages}-stages"), layers);
            group.bench_function(name, |bencher| bencher.iter(|| solve(&problem)));
        }
    }
    group.finish();
}

/// One question with each goal.
fn goals(criterion: &mut Criterion) {
    let (layers, stages) = (100, 16);
    let costs = costs(layers, stages);
    let cut_bytes: Vec<u64> = (1..layers as u64).map(|n| random(n, 1 << 24)).collect();
    let cycles: Vec<u64> = (0..layers as u64).map(|n| random(n, 1 << 20)).collect();
    let times = StageTimes::of_cycles(&cycles).for_stages(stages);
    let mut group = criterion.benchmark_group("goals");
    group.sample_size(10);
    for goal in Goal::ALL {
        let problem = Problem {
            times: Some(&times),
            goal,
            ..Problem::new(&costs, &cut_bytes, stages, LIMIT)
        };
        let solution = solve(&problem).expect("both programs agree");
        assert!(solution.is_some(), "{goal:?} has a split");
        let name = format!("{goal:?}").to_lowercase();
        group.bench_function(name, |bencher| bencher.iter(|| solve(&problem)));
    }
    group.finish();
}

criterion_group!(benches, solving, goals);
criterion_main!(benches);
