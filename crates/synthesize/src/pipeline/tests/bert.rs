//! Published configurations of BERT with a checkpoint for each layer.

use super::super::graph::Graph;
use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::super::simulate::simulate;
use super::small::empty;

/// Layers that hand on so much, and keep ten times that for their own backward
/// pass.
fn bert(layers: u32, mib: u64) -> Graph {
    let mut graph = empty(layers, 4, true);
    let end = 8 * (layers + 2);
    for position in 0..=layers {
        let made = 4 * position;
        let back = end - 4 * (position + 1);
        graph.plant(mib, &[(position, made + 3), (position + 1, made + 4)]);
        graph.plant(10 * mib, &[(position, made + 1), (position, back + 1)]);
        graph.plant(mib, &[(position + 1, back - 1), (position, back)]);
    }
    graph
}

fn stash(layers: u32, mib: u64, cuts: &[u32]) -> Vec<u64> {
    let options = PipelineOptions {
        out_on_first: true,
        ..PipelineOptions::new(Schedule::Popart, Recompute::Layer)
    };
    let ipus = simulate(&bert(layers, mib), cuts, &options);
    ipus.iter().map(|ipu| ipu.stash[0]).collect()
}

#[test]
fn large_in_stages_of_3_7_7_7() {
    assert_eq!(stash(24, 2, &[4, 11, 18]), [36, 98, 70, 42]);
}

#[test]
fn base_in_stages_of_0_4_4_4() {
    assert_eq!(stash(12, 6, &[1, 5, 9]), [0, 168, 120, 72]);
}

/// A checkpoint for each layer needs less than a stash of everything.
#[test]
fn recomputation_saves_memory() {
    let graph = bert(24, 2);
    let needs = |recompute| -> Vec<u64> {
        let options = PipelineOptions {
            out_on_first: true,
            ..PipelineOptions::new(Schedule::Popart, recompute)
        };
        let ipus = simulate(&graph, &[4, 11, 18], &options);
        ipus.iter()
            .map(|ipu| ipu.stash[0] + ipu.not_always_live[0])
            .collect()
    };
    let (none, layer) = (needs(Recompute::None), needs(Recompute::Layer));
    assert!(none.iter().zip(&layer).all(|(none, layer)| none > layer));
}
