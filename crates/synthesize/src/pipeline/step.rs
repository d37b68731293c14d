//! The cycles of a step: all micro-batches walk through the stages, time by time.
//!
//! At each time every IPU runs its parts, and the slowest one is waited for; then copies
//! between IPUs are made, and the IPU that sends or receives the most is waited for. These are
//! all that a full pipeline has at this time, also while it fills and drains: PopART
//! (`addPipelineCycle`) and TensorFlow (`ParallelPipelineVisitor`) leave none out.
//! Weights are updated when the last micro-batch is through: one IPU after the other in
//! PopART, side by side in TensorFlow.

use std::ops::Range;

use super::compilation::Compilation;
use super::graph::{Cycles, Pass};
use super::model::PipelineModel;
use super::options::PipelineOptions;
use super::walk::{Part, Run};

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
    fn cycles(bytes: u64, bandwidth: u64, clock: u64) -> u64 {
        (u128::from(bytes) * u128::from(clock)).div_ceil(bandwidth.into()) as u64
    }
}

impl PipelineModel {
    /// The cycles of a step with these cuts.
    pub fn step(&self, cuts: &[u32], options: &PipelineOptions, form: &StepForm) -> u64 {
        let compiled = Compilation::new(&self.graph, cuts, options);
        let Compilation {
            stages, pipeline, ..
        } = &compiled;
        let step = Step {
            compiled: &compiled,
            form,
        };
        let parts = |ipu| pipeline.parts(&stages.on_ipu(ipu), form.micro_batches);
        let parts: Vec<Vec<Part>> = (0..stages.ipus()).map(parts).collect();
        let last = parts.iter().flatten().map(|part| part.time).max();
        let times = (0..=last.unwrap_or(0)).map(|time| step.time(&parts, time));
        times.sum::<u64>() + step.updates()
    }
}

struct Step<'a> {
    compiled: &'a Compilation<'a>,
    form: &'a StepForm,
}

impl Step<'_> {
    fn time(&self, parts: &[Vec<Part>], time: u32) -> u64 {
        let work = |parts: &Vec<Part>| -> u64 {
            let active = parts.iter().filter(|part| part.time == time);
            active.map(|part| self.part(part)).sum()
        };
        let slowest = parts.iter().map(work).max().unwrap_or(0);
        let mut bytes = vec![[0u64; 2]; parts.len()];
        for run in self.compiled.pipeline.copied(time) {
            self.send(run, &mut bytes);
        }
        let most = bytes.iter().flatten().max().copied().unwrap_or(0);
        slowest + StepForm::cycles(most, self.form.link, self.form.clock)
    }

    fn part(&self, part: &Part) -> u64 {
        let (stage, pass) = part.run;
        let sum = |cycles: &[u64], positions: &Range<u32>| -> u64 {
            cycles[positions.start as usize..positions.end as usize]
                .iter()
                .sum()
        };
        let Cycles {
            forward, backward, ..
        } = &self.compiled.graph.cycles;
        let positions = &self.compiled.stages.positions[stage as usize];
        match pass {
            Pass::Forward => sum(forward, positions),
            Pass::Backward => {
                let again = self.compiled.reruns.of(stage).iter();
                let again: u64 = again.map(|part| sum(forward, part)).sum();
                sum(backward, positions) + again
            }
        }
    }

    /// Adds the bytes that a run sends to its neighbour, by IPU: sent and received.
    fn send(&self, (stage, pass): Run, bytes: &mut [[u64; 2]]) {
        let next = match pass {
            Pass::Forward => Some(stage + 1).filter(|&next| next < self.compiled.stages.count()),
            Pass::Backward => stage.checked_sub(1),
        };
        let Some(next) = next else { return };
        let sent = self.compiled.routes.iter().filter(|route| {
            let is_held = |stage| route.home(&[stage]).is_some();
            route.made.1 == pass && is_held(stage) && is_held(next)
        });
        let on_tiles = sent.flat_map(|route| &route.tensor.on_tiles);
        let sum: u64 = on_tiles.map(|(_, variable)| variable.bytes).sum();
        bytes[self.compiled.stages.ipu(stage) as usize][0] += sum;
        bytes[self.compiled.stages.ipu(next) as usize][1] += sum;
    }

    fn updates(&self) -> u64 {
        let Compilation { graph, options, .. } = self.compiled;
        let of_ipu = |ipu| {
            let places = self.compiled.stages.places(graph, ipu);
            let stages = self.compiled.stages.on_ipu(ipu);
            let positions = self.compiled.stages.positions_of(&stages);
            let work = positions.map(|position| graph.cycles.update[position as usize]);
            let updates = &graph.updates;
            let loaded = updates.all.iter().map(|update| {
                let tiles = 0..graph.tiles as usize;
                let taken = tiles.map(|tile| updates.taken(update, (tile, places), options).loaded);
                StepForm::cycles(taken.sum(), self.form.streaming, self.form.clock)
            });
            work.sum::<u64>() + 2 * loaded.sum::<u64>()
        };
        let ipus = (0..self.compiled.stages.ipus()).map(of_ipu);
        match options.schedule.has_fifo() {
            true => ipus.max().unwrap_or(0),
            false => ipus.sum(),
        }
    }
}
