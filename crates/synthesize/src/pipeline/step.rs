//! The cycles of a step: all micro-batches walk through the stages, time by time.
//!
//! At each time every IPU runs its parts, and the slowest one is waited for; then copies
//! between IPUs are made, and the IPU that sends or receives the most is waited for. These are
//! all that a full pipeline has at this time, also while it fills and drains: PopART
//! (`addPipelineCycle`) and TensorFlow (`ParallelPipelineVisitor`) leave none out.
//! Weights are updated when the last micro-batch is through: one IPU after the other in
//! PopART, side by side in TensorFlow.

use std::ops::Range;

use super::compilation::{Compilation, Part, Run};
use super::graph::Pass;
use super::model::PipelineModel;
use super::options::PipelineOptions;
use super::route::Route;

/// What a step depends on beside the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct StepForm {
    /// The micro-batches of a step.
    pub micro_batches: u32,
    /// Cycles of a tile in a second.
    pub clock: u64,
    /// Bytes between neighbours in a second, in each direction.
    pub link: u64,
    /// Bytes to and from memory outside the IPUs in a second.
    pub streaming: u64,
}

impl StepForm {
    /// The cycles that this number of bytes takes.
    fn cycles(&self, bytes: u64, bandwidth: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.clock)).div_ceil(bandwidth.into()) as u64
    }
}

impl PipelineModel {
    /// The cycles of a step with these cuts.
    pub fn step(&self, cuts: &[u32], options: &PipelineOptions, form: &StepForm) -> u64 {
        let compiled = Compilation::new(&self.graph, cuts, options);
        let parts = |ipu| compiled.parts(ipu, form.micro_batches);
        let parts: Vec<Vec<Part>> = (0..compiled.ipus()).map(parts).collect();
        let routes = Route::all(&compiled);
        let last = parts.iter().flatten().map(|part| part.time).max();
        let times =
            (0..=last.unwrap_or(0)).map(|time| compiled.cycles((&parts, &routes), time, form));
        let updates = (0..compiled.ipus()).map(|ipu| compiled.update(ipu, form));
        let updates = match options.schedule.has_fifo() {
            true => updates.max().unwrap_or(0),
            false => updates.sum(),
        };
        times.sum::<u64>() + updates
    }
}

impl Compilation<'_> {
    fn cycles(&self, (parts, routes): (&[Vec<Part>], &[Route]), time: u32, form: &StepForm) -> u64 {
        let work = |parts: &Vec<Part>| -> u64 {
            let active = parts.iter().filter(|part| part.time == time);
            active.map(|part| self.work(part.run)).sum()
        };
        let slowest = parts.iter().map(work).max().unwrap_or(0);
        // Sent and received.
        let mut bytes = vec![[0u64; 2]; parts.len()];
        for run in self.copied(time) {
            if let Some((next, sent)) = self.sent(run, routes) {
                bytes[self.ipu(run.0) as usize][0] += sent;
                bytes[self.ipu(next) as usize][1] += sent;
            }
        }
        let most = bytes.iter().flatten().max().copied().unwrap_or(0);
        slowest + form.cycles(most, form.link)
    }

    fn work(&self, (stage, pass): Run) -> u64 {
        let sum = |pass: Pass, positions: &Range<u32>| -> u64 {
            let cycles = &self.graph.cycles[pass as usize];
            positions.clone().map(|at| cycles[at as usize]).sum()
        };
        let again = self.reruns[stage as usize].iter();
        let again = again.filter(|_| pass == Pass::Backward);
        let again = again.map(|part| sum(Pass::Forward, part));
        sum(pass, &self.stages[stage as usize]) + again.sum::<u64>()
    }

    /// The neighbour that a run sends to, and the bytes that it sends.
    fn sent(&self, (stage, pass): Run, routes: &[Route]) -> Option<(u32, u64)> {
        let next = match pass {
            Pass::Forward => Some(stage + 1).filter(|&next| next < self.count()),
            Pass::Backward => stage.checked_sub(1),
        }?;
        let is_sent =
            |route: &&Route| route.made.1 == pass && route.holds(stage) && route.holds(next);
        let sent = routes.iter().filter(is_sent);
        let on_tiles = sent.flat_map(|route| &route.tensor.on_tiles);
        Some((next, on_tiles.map(|(_, variable)| variable.bytes).sum()))
    }

    fn update(&self, ipu: u32, form: &StepForm) -> u64 {
        let graph = self.graph;
        let positions = self.positions_on(ipu);
        let work = positions.map(|position| graph.cycles[2][position as usize]);
        let (places, elsewhere) = (self.places(ipu), self.options.elsewhere);
        let updates = &graph.updates;
        let loaded = updates.all.iter().map(|update| {
            let tiles = 0..graph.tiles as usize;
            let taken = tiles.map(|tile| updates.taken(update, (tile, places), elsewhere));
            form.cycles(taken.map(|taken| taken.loaded).sum(), form.streaming)
        });
        work.sum::<u64>() + 2 * loaded.sum::<u64>()
    }
}
