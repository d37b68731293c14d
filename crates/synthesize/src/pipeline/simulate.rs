//! The memory of each IPU in one period of the pipeline.

use super::graph::Graph;
use super::ipu::{Ipu, Of, Variable};
use super::keep::Reruns;
use super::options::PipelineOptions;
use super::route::Route;
use super::stages::Stages;
use super::sum::Changes;
use super::walk::Pipeline;

/// Memory of an IPU beside the variables that are always live in the one-IPU
/// compilation too.
#[derive(Debug, Clone, Default)]
pub(super) struct IpuMemory {
    /// By tile: the most that is live at any moment of what comes and goes.
    pub not_always_live: Vec<u64>,
    /// By tile: rings of stashed tensors.
    pub stash: Vec<u64>,
    /// By tile: accumulators of weights.
    pub accumulators: Vec<u64>,
    /// By tile: state of the optimizer that is always live on one IPU and has left, and the
    /// shares of it that stay; empty where all of it stays.
    pub moved: Vec<(u64, u64)>,
    /// The most copies of a tensor in a ring.
    pub slots: u32,
}

/// The memory of each IPU.
pub(super) fn simulate(graph: &Graph, cuts: &[u32], options: &PipelineOptions) -> Vec<IpuMemory> {
    let mut ipus = Vec::new();
    walk(graph, cuts, options, |ipu, routes| {
        ipus.push(memory(graph, ipu, routes));
    });
    ipus
}

/// Goes through the IPUs.
pub(super) fn walk(
    graph: &Graph,
    cuts: &[u32],
    options: &PipelineOptions,
    mut each: impl FnMut(&Ipu, &[Route]),
) {
    let stages = Stages::new(graph.positions(), cuts, options.out_on_first);
    let reruns = Reruns::new(graph, &stages, options);
    let tensors = graph.tensors.iter();
    let routes: Vec<Route> = tensors
        .map(|tensor| Route::new(graph, &stages, tensor))
        .collect();
    let pipeline = Pipeline {
        schedule: options.schedule,
        stages: stages.count(),
        is_training: graph.backward_start.is_some(),
    };
    for number in 0..stages.ipus() {
        let ipu = Ipu {
            graph,
            stages: &stages,
            reruns: &reruns,
            options,
            pipeline,
            number,
        };
        each(&ipu, &routes);
    }
}

/// Sums what an IPU has.
fn memory(graph: &Graph, ipu: &Ipu, routes: &[Route]) -> IpuMemory {
    let tiles = graph.tiles as usize;
    let mut changes: Vec<Changes> = (0..tiles).map(|_| Changes::default()).collect();
    let mut memory = IpuMemory {
        stash: vec![0; tiles],
        accumulators: vec![0; tiles],
        ..IpuMemory::default()
    };
    memory.slots = ipu.visit(routes, |Variable { tile, of, bytes }| match of {
        Of::Local(_, lives) | Of::Copy(_, _, lives) | Of::State(lives) => {
            changes[tile].add(lives, bytes);
        }
        Of::Ring(_) => memory.stash[tile] += bytes,
        Of::Accumulator(_) => memory.accumulators[tile] += bytes,
    });
    let places = ipu.stages.places(graph, ipu.number);
    let elsewhere = ipu.options.elsewhere;
    let moved = |tile| graph.updates.moved(tile, places, elsewhere);
    if elsewhere.is_any() {
        memory.moved = (0..tiles).map(moved).collect();
    }
    memory.not_always_live = changes.iter().map(Changes::peak).collect();
    memory
}
