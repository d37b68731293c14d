//! Range costs to test with, and the best split by trying all of them.

use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

use crate::memory::RangeCosts;

/// Costs of one tile on which each position has bytes of its own.
pub fn additive(weights: &[u64], limit: u64) -> RangeCosts {
    table(weights.len(), limit, |range| weights[range].iter().sum())
}

/// Costs by a function of the range, up to the first from each start that is
/// over `limit`.
pub fn table(layers: usize, limit: u64, cost: impl Fn(Range<usize>) -> u64) -> RangeCosts {
    let row = |from: usize| {
        let costs = (from + 1..=layers).map(|end| cost(from..end));
        costs.take_while(|&peak| peak <= limit).collect()
    };
    RangeCosts::new((0..layers).map(row).collect())
}

/// A problem that owns its costs.
#[derive(Debug, Clone)]
pub struct Case {
    pub costs: RangeCosts,
    pub cut_bytes: Vec<u64>,
    pub max_stages: usize,
}

/// Peak, number of stages, sum of squares, bytes over the cuts, and the cuts.
pub type Rank = (u64, usize, u128, u128, Vec<usize>);

/// The best rank of all splits, each tried.
pub fn brute_force(case: &Case) -> Option<Rank> {
    let layers = case.costs.layers();
    assert!((1..=16).contains(&layers), "too many splits to try");
    let splits = 0_u32..1 << (layers - 1);
    splits
        .filter_map(|bits| rank(case, (1..layers).filter(|&cut| bits >> (cut - 1) & 1 == 1)))
        .min()
}

/// What a split is ranked by; `None` when it has too many stages or one is
/// over the limit. Written apart from [`Score`](super::Score) on purpose.
fn rank(case: &Case, cuts: impl Iterator<Item = usize>) -> Option<Rank> {
    let cuts: Vec<usize> = cuts.collect();
    let bounds = [&[0], cuts.as_slice(), &[case.costs.layers()]].concat();
    let stages = bounds.windows(2);
    let peaks: Vec<u64> = stages
        .map(|ends| case.costs.peak(ends[0]..ends[1]))
        .collect::<Option<_>>()?;
    let fits = peaks.len() <= case.max_stages;
    let squares = peaks.iter().map(|&peak| u128::from(peak).pow(2)).sum();
    let bytes = cuts
        .iter()
        .map(|&cut| u128::from(case.cut_bytes[cut - 1]))
        .sum();
    fits.then_some((*peaks.iter().max()?, peaks.len(), squares, bytes, cuts))
}

/// The values that costs are drawn from: few (many ties), multiples of 4,
/// nearly equal ones, tile sizes, and far beyond any tile.
fn palette() -> impl Strategy<Value = (u64, u64, u64)> {
    // First value, distance, number of values.
    prop_oneof![
        Just((0, 1, 3)),
        Just((0, 4, 200)),
        Just((600_000, 1, 4)),
        Just((1 << 40, 1, 3)),
        Just((0, 1, 1 << 20)),
        Just((0, 1, 1 << 40)),
        Just((0, 1, 1 << 58)),
    ]
}

/// Any table of costs that never falls when a range grows.
fn monotone_table(layers: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    let draws = move |(first, distance, n): (u64, u64, u64)| {
        vec(
            (0..n).prop_map(move |i| first + distance * i),
            layers * layers,
        )
    };
    palette().prop_flat_map(draws).prop_map(move |draws| {
        let mut peaks = vec![vec![0; layers]; layers];
        for length in 0..layers {
            for from in 0..layers - length {
                let inner = if length == 0 {
                    0
                } else {
                    let shorter: u64 = peaks[from][length - 1];
                    shorter.max(peaks[from + 1][length - 1])
                };
                peaks[from][length] = draws[from * layers + length].max(inner);
            }
        }
        peaks
    })
}

/// Costs as they come about: bytes of each layer on each tile, and items
/// that several layers share and a range holds once.
fn tile_model(layers: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    const TILES: usize = 3;
    let scale = prop_oneof![Just(1_u64), Just(4), Just(1 << 12), Just(1 << 30)];
    let own = vec(vec(0..40_u64, TILES), layers);
    let shared = vec((0..TILES, vec(any::<bool>(), layers), 0..60_u64), 0..6);
    (scale, own, shared).prop_map(move |(scale, own, shared)| {
        let on_tile = |tile: usize, range: Range<usize>| {
            let own: u64 = own[range.clone()].iter().map(|tiles| tiles[tile]).sum();
            let held = shared
                .iter()
                .filter(|(at, users, _)| *at == tile && users[range.clone()].contains(&true));
            (own + held.map(|(_, _, bytes)| bytes).sum::<u64>()) * scale
        };
        let peak = |range: Range<usize>| (0..TILES).map(|tile| on_tile(tile, range.clone())).max();
        (0..layers)
            .map(|from| {
                (from + 1..=layers)
                    .filter_map(|end| peak(from..end))
                    .collect()
            })
            .collect()
    })
}

/// Cases of up to `layers` positions and at most 5 stages (or half of `layers`,
/// if that is more), some with a limit that rules ranges out.
pub fn case(layers: usize) -> impl Strategy<Value = Case> {
    let peaks = (1..=layers).prop_flat_map(|layers| {
        prop_oneof![monotone_table(layers).boxed(), tile_model(layers).boxed()]
    });
    let cut = prop_oneof![0..3_u64, 0..1_u64 << 60];
    let cuts = vec(cut, layers);
    (peaks, cuts, 1..=(layers / 2).max(5), 0..40_usize).prop_map(
        |(peaks, mut cut_bytes, max_stages, limit)| {
            let layers = peaks.len();
            cut_bytes.truncate(layers - 1);
            let mut all: Vec<u64> = peaks.iter().flatten().copied().collect();
            all.sort_unstable();
            // In half the cases the limit is one of the costs.
            let limit = all.get(limit * all.len() / 20).copied().unwrap_or(u64::MAX);
            let costs = table(layers, limit, |range| peaks[range.start][range.len() - 1]);
            Case {
                costs,
                cut_bytes,
                max_stages,
            }
        },
    )
}
