//! Which positions form a stage, and which IPU runs it.

use std::ops::Range;

use super::graph::Graph;
use super::options::{PipelineOptions, Recompute};
use crate::places::Places;

/// The forward stages, in order.
#[derive(Debug, Clone)]
pub(super) struct Stages {
    /// By stage: its positions.
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

    /// How many stages there are.
    pub fn count(&self) -> u32 {
        self.positions.len() as u32
    }

    /// How many IPUs there are.
    pub fn ipus(&self) -> u32 {
        self.count() - u32::from(self.out_on_first)
    }

    /// The IPU of a stage.
    pub fn ipu(&self, stage: u32) -> u32 {
        if stage < self.ipus() { stage } else { 0 }
    }

    /// The stages of an IPU.
    pub fn on_ipu(&self, ipu: u32) -> Vec<u32> {
        let stages = 0..self.count();
        stages.filter(|&stage| self.ipu(stage) == ipu).collect()
    }

    /// The stage of a position.
    pub fn of(&self, position: u32) -> u32 {
        let mut stages = self.positions.iter();
        let found = stages.position(|range| range.contains(&position));
        found.map_or(self.count() - 1, |stage| stage as u32)
    }

    /// The places of an IPU.
    pub fn places(&self, graph: &Graph, ipu: u32) -> Places {
        let stages = self.on_ipu(ipu).into_iter();
        let ranges = stages.map(|stage| &self.positions[stage as usize]);
        ranges.fold(Places::NONE, |places, range| {
            places | Places::positions(graph.layers, range.start..=range.end - 1)
        })
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
            Recompute::None => Vec::new(),
            Recompute::Stage if is_last => Vec::new(),
            Recompute::Stage => vec![positions],
            Recompute::Layer => layers(positions, out),
        };
        // Parts that the backward pass does not use are not run again.
        let is_needed = |part: &Range<u32>| {
            let mut backward = graph.backward[part.start as usize..part.end as usize].iter();
            backward.any(Option::is_some)
        };
        parts.into_iter().filter(is_needed).collect()
    }
}

/// Each layer.
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
