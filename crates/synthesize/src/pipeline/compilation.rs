//! A pipelined compilation: its stages and the IPUs that run them, what runs again, and where
//! tensors go.

use std::ops::Range;

use super::graph::Graph;
use super::keep::Reruns;
use super::options::{PipelineOptions, Recompute};
use super::route::Route;
use super::walk::Pipeline;
use crate::places::Places;

pub(super) struct Compilation<'a> {
    pub graph: &'a Graph,
    pub options: &'a PipelineOptions,
    pub stages: Stages,
    pub reruns: Reruns,
    pub routes: Vec<Route<'a>>,
    pub pipeline: Pipeline,
}

impl<'a> Compilation<'a> {
    pub fn new(graph: &'a Graph, cuts: &[u32], options: &'a PipelineOptions) -> Self {
        let stages = Stages::new(graph.positions(), cuts, options.out_on_first);
        let tensors = graph.tensors.iter();
        let routes = tensors.map(|tensor| Route::new(graph, &stages, tensor));
        Self {
            graph,
            options,
            reruns: Reruns::new(graph, &stages, options),
            routes: routes.collect(),
            pipeline: Pipeline {
                schedule: options.schedule,
                stages: stages.count(),
                is_training: graph.backward_start.is_some(),
            },
            stages,
        }
    }
}

/// The forward stages.
#[derive(Debug, Clone)]
pub(super) struct Stages {
    pub positions: Vec<Range<u32>>,
    out_on_first: bool,
}

impl Stages {
    /// Cuts that are no position, or leave a stage empty, do not count.
    pub fn new(positions: u32, cuts: &[u32], out_on_first: bool) -> Self {
        let end = positions - u32::from(out_on_first);
        let cuts = cuts.iter().copied().filter(|cut| (1..end).contains(cut));
        let mut bounds: Vec<u32> = cuts.chain([0, end, positions]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        Self {
            positions: bounds.windows(2).map(|pair| pair[0]..pair[1]).collect(),
            out_on_first,
        }
    }

    pub fn count(&self) -> u32 {
        self.positions.len() as u32
    }

    pub fn ipus(&self) -> u32 {
        self.count() - u32::from(self.out_on_first)
    }

    pub fn ipu(&self, stage: u32) -> u32 {
        if stage < self.ipus() { stage } else { 0 }
    }

    pub fn on_ipu(&self, ipu: u32) -> Vec<u32> {
        let stages = 0..self.count();
        stages.filter(|&stage| self.ipu(stage) == ipu).collect()
    }

    pub fn of(&self, position: u32) -> u32 {
        let mut stages = self.positions.iter();
        let found = stages.position(|range| range.contains(&position));
        found.map_or(self.count() - 1, |stage| stage as u32)
    }

    pub fn places(&self, graph: &Graph, ipu: u32) -> Places {
        let stages = self.on_ipu(ipu);
        let positions = self.positions_of(&stages);
        let places = positions.map(|at| Places::positions(graph.layers, at..=at));
        places.fold(Places::NONE, |all, one| all | one)
    }

    pub fn positions_of(&self, stages: &[u32]) -> impl Iterator<Item = u32> {
        let stages = stages.iter();
        stages.flat_map(|&stage| self.positions[stage as usize].clone())
    }

    /// The parts that a stage runs again, in the order of the forward pass:
    /// parts of it that run together. In runs with the first layer; what comes
    /// after the last checkpoint of the last stage does not run again.
    pub fn reruns(&self, graph: &Graph, options: &PipelineOptions, stage: u32) -> Vec<Range<u32>> {
        let positions = self.positions[stage as usize].clone();
        let is_last = stage + 1 == self.count();
        let out = graph.positions() - 1;
        let parts = match options.recompute {
            _ if graph.backward_start.is_none() => Vec::new(),
            Recompute::Stage if !is_last => vec![positions],
            Recompute::Layer => layers(positions, out),
            Recompute::None | Recompute::Stage => Vec::new(),
        };
        // Parts that the backward pass does not use are not run again.
        let is_needed = |part: &Range<u32>| {
            let mut backward = graph.backward[part.start as usize..part.end as usize].iter();
            backward.any(Option::is_some)
        };
        parts.into_iter().filter(is_needed).collect()
    }
}

fn layers(positions: Range<u32>, out: u32) -> Vec<Range<u32>> {
    let mut parts: Vec<Range<u32>> = Vec::new();
    for position in positions.filter(|&position| position < out) {
        match parts.last_mut() {
            Some(part) if *part == (0..1) => part.end = 2,
            _ => parts.push(position..position + 1),
        }
    }
    parts
}
