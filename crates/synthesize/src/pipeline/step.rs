//! Computes the cycles of a step: all micro-batches walk through the stages, time by time.
//!
//! At each time every IPU runs its parts, and the others wait for the slowest one; then copies
//! between IPUs are made, and take as long as those of the IPU that sends or receives the most. All
//! copies of a full pipeline at this time are made, also while it fills and drains: PopART
//! (`addPipelineCycle`) and TensorFlow (`ParallelPipelineVisitor`) leave no copy out. Weights are
//! updated after the last micro-batch: one IPU after the other in PopART, side by side in
//! TensorFlow.

use std::ops::Range;

use super::compilation::{Compilation, Part, Run};
use super::graph::Pass;
use super::model::PipelineModel;
use super::options::PipelineOptions;
use super::route::Route;

/// The numbers on which the cycles of a step depend, beside the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct StepForm {
    /// Number of micro-batches in a step.
    pub micro_batches: u32,
    /// Clock of a tile in cycles per second.
    pub clock: u64,
    /// Bytes per second between neighbouring IPUs, in each direction.
    pub link: u64,
    /// Bytes per second to and from memory outside the IPUs.
    pub streaming: u64,
}

impl StepForm {
    /// Returns the cycles in which this number of bytes is moved.
    fn cycles(&self, bytes: u64, bandwidth: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.clock)).div_ceil(bandwidth.into()) as u64
    }
}

impl PipelineModel {
    /// Returns the cycles of a step with these cuts.
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
        // The bytes that each IPU sends, and the bytes that it receives.
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

    /// Returns the neighbour to which a run sends, and the bytes that it sends.
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
