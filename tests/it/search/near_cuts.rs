//! Splits that a reader can try in models with too many layers to compute all their ranges.

use crate::support::models;
use popliner::analysis::{Analysis, Request};
use popliner::memory::StageMemory;
use popliner::search::{IpuCount, Solver};

/// Returns the bytes of the stages that end at these boundaries, from the bytes of all ranges.
fn tried(what_if: &popliner::report::WhatIf, ends: &[u32]) -> Vec<u64> {
    let boundaries = &what_if.boundaries;
    let place = |at: u32| boundaries.binary_search(&at).expect("a boundary");
    let mut start = 0;
    let mut bytes = Vec::new();
    for &end in ends {
        let before: usize = (0..start).map(|from| boundaries.len() - 1 - from).sum();
        bytes.push(what_if.bytes[before + place(end) - start - 1]);
        start = place(end);
    }
    bytes
}

#[test]
fn cuts_of_more_than_400_layers_can_be_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let options =
        "--framework poplar --mode inference --layers 401 --tiles 4 --vars-per-layer-tile 1";
    let options: Vec<String> = options.split(' ').map(String::from).collect();
    let [profile, debug] = models::generate(folder.path(), &options);
    let analysis = Analysis::read(&profile, &debug).expect("a model");
    let request = Request {
        ipus: Some(IpuCount::Exactly(3)),
        memory_per_tile: vec![6_000_000],
        // Proving that a split is the best takes longer than everything else here.
        solver: Solver::Greedy,
        what_if: true,
        ..Request::default()
    };
    let layers = analysis.layers(&request).expect("layers");
    let report = layers.split(&request).expect("a report");
    let what_if = report.what_if.expect("other splits");
    assert!(!what_if.by_stages_after);
    let positions = *what_if.boundaries.last().expect("boundaries");
    assert!(positions > 402 && what_if.boundaries.len() < 200);

    let stages = report.split.expect("a split").stages;
    let ends: Vec<u32> = stages.iter().map(|stage| stage.positions.end).collect();
    let memory = layers.memory().expect("a memory model");
    for moved in [0, 9] {
        let ends = [ends[0] - moved, ends[1] + moved, positions];
        let starts = [0, ends[0], ends[1]];
        let stages = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| start as usize..end as usize);
        let memory = memory.split(&stages.collect::<Vec<_>>());
        let peaks: Vec<u64> = memory.iter().map(StageMemory::max_tile_bytes).collect();
        assert_eq!(tried(&what_if, &ends), peaks);
    }
}
