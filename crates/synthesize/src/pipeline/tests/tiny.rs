//! Pipelines small enough to be computed by hand.
//!
//! Steps of the graph of [`chain`]: In 0 and 1, the layers 2 to 5, Out 6 to 9
//! with the backward pass from step 8 on, the layers backward 10 to 13, In 14 and 15.

use super::super::graph::{Call, Graph, Local, Use};
use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::super::simulate::simulate;
use super::small::{chain, empty};
use crate::places::Places;

fn options(schedule: Schedule, recompute: Recompute) -> PipelineOptions {
    PipelineOptions::new(schedule, recompute)
}

/// By IPU: bytes that come and go, bytes of rings, copies in a ring.
fn memory(graph: &Graph, cuts: &[u32], options: &PipelineOptions) -> Vec<(u64, u64, u32)> {
    let ipus = simulate(graph, cuts, options);
    ipus.iter()
        .map(|ipu| (ipu.not_always_live[0], ipu.stash[0], ipu.slots))
        .collect()
}

/// The second IPU needs 100 + 2000 bytes at step 9. The first one keeps 1 and 10
/// three times; at step 12 it has what waits for the copy at the end of the cycle
/// (10), what came from there (200) and what it restored (10).
#[test]
fn popart_without_recomputation() {
    let graph = chain(true);
    let mut options = options(Schedule::Popart, Recompute::None);
    assert_eq!(memory(&graph, &[2], &options), [(220, 33, 3), (2100, 0, 0)]);
    options.early_restore = true;
    assert_eq!(memory(&graph, &[2], &options), [(221, 33, 3), (2100, 0, 0)]);
    options.early_restore = false;
    options.keep_buffers = true;
    assert_eq!(memory(&graph, &[2], &options), [(231, 33, 3), (2110, 0, 0)]);
}

/// Backward comes first: what the second IPU receives waits for its forward part
/// (10). When the first one's FIFO of 10 bytes runs, it has given out both outputs
/// and still holds the 10.
#[test]
fn tensorflow_without_recomputation() {
    let graph = chain(true);
    let mut options = options(Schedule::TfGrouped, Recompute::None);
    assert_eq!(memory(&graph, &[2], &options), [(221, 22, 2), (2110, 0, 0)]);
    options.early_fifo = true;
    assert_eq!(memory(&graph, &[2], &options), [(211, 22, 2), (2110, 0, 0)]);
}

/// Another gradient of 500 bytes waits for the copy after the forward part, with
/// the 20 of the chain. What is received is in use until the FIFO took it in (1),
/// and what is made waits too (10). If the stage runs again before the copies, the
/// same 10 are recomputed while these wait.
#[test]
fn tensorflow_runs_again_before_or_after_the_copies() {
    let mut graph = chain(true);
    graph.plant(500, &[(1, 13), (0, 14)]);
    let mut options = options(Schedule::TfGrouped, Recompute::Stage);
    assert_eq!(memory(&graph, &[1, 2], &options)[1], (531, 2, 2));
    options.early_fifo = true;
    assert_eq!(memory(&graph, &[1, 2], &options)[1], (540, 2, 2));
}

/// Half cycles bring what is copied right before it is used, so nothing waits at
/// the second IPU.
#[test]
fn tensorflow_interleaved() {
    let graph = chain(true);
    let options = options(Schedule::TfInterleaved, Recompute::None);
    assert_eq!(memory(&graph, &[2], &options), [(221, 11, 1), (2100, 0, 0)]);
}

/// One micro-batch at a time: as on one IPU, each with its part.
#[test]
fn sequential() {
    let graph = chain(true);
    let options = options(Schedule::Sequential, Recompute::None);
    assert_eq!(memory(&graph, &[2], &options), [(211, 0, 0), (2100, 0, 0)]);
}

/// Only what the host sent is stashed. At step 12 both outputs are there again
/// (11) beside the original that waits (10) and the gradient (200). In runs with
/// the first layer, so both kinds of recomputation are the same here. The second
/// IPU runs its layer again, for which it keeps what it received (10).
#[test]
fn popart_with_recomputation() {
    let graph = chain(true);
    let stage = options(Schedule::Popart, Recompute::Stage);
    assert_eq!(memory(&graph, &[2], &stage), [(221, 12, 3), (2100, 0, 0)]);
    let layer = options(Schedule::Popart, Recompute::Layer);
    assert_eq!(memory(&graph, &[2], &layer), [(221, 12, 3), (2110, 0, 0)]);
}

/// The first IPU has three stages after its own, and the tensor of 7 bytes that
/// its head reads three forward stages later.
#[test]
fn head_on_the_first_ipu() {
    let mut graph = chain(true);
    graph.plant(7, &[(0, 1), (3, 6)]);
    let options = PipelineOptions {
        out_on_first: true,
        ..options(Schedule::Popart, Recompute::None)
    };
    let stash: Vec<_> = memory(&graph, &[1, 2], &options)
        .iter()
        .map(|ipu| (ipu.1, ipu.2))
        .collect();
    assert_eq!(stash, [(7 + 4 * 7, 7), (50, 5), (300, 3)]);
}

/// A tensor that skips stages stays on each IPU between until the next copy.
#[test]
fn tensors_that_skip_stages() {
    for schedule in super::SCHEDULES {
        let mut graph = empty(2, 2, false);
        graph.plant(7, &[(0, 1), (3, 6)]);
        let options = options(schedule, Recompute::None);
        assert_eq!(memory(&graph, &[1, 2, 3], &options), [(7, 0, 0); 4]);
    }
    let mut graph = empty(2, 2, true);
    graph.plant(1000, &[(1, 2), (1, 13)]);
    graph.plant(5, &[(3, 9), (0, 14)]);
    let options = options(Schedule::Popart, Recompute::None);
    let not_always_live: Vec<u64> = memory(&graph, &[1, 2, 3], &options)
        .iter()
        .map(|ipu| ipu.0)
        .collect();
    assert_eq!(not_always_live, [5, 1005, 5, 5]);
}

/// A body of 150 bytes that both layers call is listed in the first one, at steps 2
/// and 3. The IPU of the second one runs it after its own call, at step 4: beside
/// the 10 bytes that it received if it still needs them afterwards.
#[test]
fn bodies_run_where_they_are_called() {
    let mut graph = chain(false);
    let body = (2, 4);
    graph.calls = vec![Call { step: 4, body }];
    graph.classes.push(vec![body]);
    let class = graph.classes.len() as u32 - 1;
    let both = Places::layer(0) | Places::layer(1);
    let local = Local {
        places: both,
        class,
        category: 0,
    };
    graph.locals[0].insert(local, 150);
    let options = options(Schedule::Popart, Recompute::None);
    assert_eq!(memory(&graph, &[2, 3], &options)[1].0, 150);
    let again = Use {
        position: 2,
        steps: (5, 6),
    };
    graph.tensors[2].uses.push(again);
    assert_eq!(memory(&graph, &[2, 3], &options)[1].0, 160);
}

#[test]
fn accumulators_have_the_size_of_their_weights_or_of_floats() {
    let mut graph = chain(true);
    graph.plant_weight(8, Places::IN);
    graph.plant_weight(16, Places::layer(1));
    let mut options = options(Schedule::Sequential, Recompute::None);
    let bytes = |options: &PipelineOptions| -> Vec<u64> {
        let ipus = simulate(&graph, &[2], options);
        ipus.iter().map(|ipu| ipu.accumulators[0]).collect()
    };
    assert_eq!(bytes(&options), [8, 16]);
    options.float_accumulators = true;
    assert_eq!(bytes(&options), [16, 32]);
}

#[test]
fn odd_cuts_do_not_count() {
    let graph = chain(true);
    let options = options(Schedule::Popart, Recompute::None);
    assert_eq!(
        memory(&graph, &[9, 2, 0, 2, 4], &options),
        memory(&graph, &[2], &options)
    );
}
