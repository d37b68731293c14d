//! Defines a pipelined compilation: its stages and the IPUs that run them, the parts that run
//! again, and the walk of micro-batches through the stages.

use std::ops::Range;

use super::graph::{Graph, Pass};
use super::options::{PipelineOptions, Recompute, Schedule};
use crate::places::Places;

/// One pass of a stage.
pub(super) type Run = (u32, Pass);

/// One pass of a stage over one micro-batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The time of the schedule at which it runs. Copies between IPUs are made between two times.
    pub time: u32,
    pub run: Run,
    pub micro_batch: u32,
}

pub(super) struct Compilation<'a> {
    pub graph: &'a Graph,
    pub options: &'a PipelineOptions,
    /// By stage: its positions.
    pub stages: Vec<Range<u32>>,
    /// By stage: the ranges of its positions that run again, each as a whole, in the order of the
    /// forward pass.
    pub reruns: Vec<Vec<Range<u32>>>,
}

impl<'a> Compilation<'a> {
    /// Divides a graph into stages. Cuts that are no position, or leave a stage empty, do not
    /// count.
    pub fn new(graph: &'a Graph, cuts: &[u32], options: &'a PipelineOptions) -> Self {
        let positions = graph.layers + 2;
        let end = positions - u32::from(options.out_on_first);
        let cuts = cuts.iter().copied().filter(|cut| (1..end).contains(cut));
        let mut bounds: Vec<u32> = cuts.chain([0, end, positions]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut compiled = Self {
            graph,
            options,
            stages: bounds.windows(2).map(|pair| pair[0]..pair[1]).collect(),
            reruns: Vec::new(),
        };
        let stages = 0..compiled.count();
        compiled.reruns = stages.map(|stage| compiled.reruns_of(stage)).collect();
        compiled
    }

    /// Returns the name of a tensor followed by the one of `names` that PopART or TensorFlow uses.
    pub fn name(&self, names: [&str; 2], tensor: &str) -> String {
        let name = names[usize::from(self.options.schedule.has_fifo())];
        name.replace("{}", tensor)
    }

    /// Returns the number of stages.
    pub fn count(&self) -> u32 {
        self.stages.len() as u32
    }

    pub fn ipus(&self) -> u32 {
        self.count() - u32::from(self.options.out_on_first)
    }

    pub fn ipu(&self, stage: u32) -> u32 {
        if stage < self.ipus() { stage } else { 0 }
    }

    /// Returns the stages of an IPU.
    pub fn on_ipu(&self, ipu: u32) -> Vec<u32> {
        let stages = 0..self.count();
        stages.filter(|&stage| self.ipu(stage) == ipu).collect()
    }

    pub fn positions_on(&self, ipu: u32) -> impl Iterator<Item = u32> {
        let stages = self.on_ipu(ipu).into_iter();
        stages.flat_map(|stage| self.stages[stage as usize].clone())
    }

    pub fn places(&self, ipu: u32) -> Places {
        let positions = self.positions_on(ipu);
        let places = positions.map(|at| Places::positions(self.graph.layers, at..=at));
        places.collect()
    }

    /// Returns the positions of a stage that run again: the whole stage unless it is the last one,
    /// or each layer by itself, In with the first layer. Out, which comes after the last
    /// checkpoint, does not run again. Parts that the backward pass does not use are left out.
    fn reruns_of(&self, stage: u32) -> Vec<Range<u32>> {
        let positions = self.stages[stage as usize].clone();
        let mut parts = match self.options.recompute {
            Recompute::Stage if stage + 1 < self.count() => vec![positions],
            Recompute::Layer => layers(positions, self.graph.layers + 1),
            Recompute::None | Recompute::Stage => Vec::new(),
        };
        parts.retain(|part| self.graph.steps(Pass::Backward, part.clone()).is_some());
        parts
    }

    fn is_training(&self) -> bool {
        self.graph.backward_start.is_some()
    }

    pub fn runs(&self, stages: impl IntoIterator<Item = u32>) -> Vec<Run> {
        let passes = match self.is_training() {
            true => &[Pass::Forward, Pass::Backward][..],
            false => &[Pass::Forward],
        };
        let stages = stages.into_iter();
        let runs = stages.flat_map(|stage| passes.iter().map(move |&pass| (stage, pass)));
        runs.collect()
    }

    /// Returns the number of times of the schedule before this run of a micro-batch. PopART runs
    /// both passes of the last stage at the same time, one after the other.
    fn number(&self, (stage, pass): Run) -> u32 {
        let last = self.count() - 1;
        let turning = u32::from(self.options.schedule != Schedule::Popart);
        match pass {
            Pass::Forward => stage,
            Pass::Backward => last + turning + (last - stage),
        }
    }

    /// Returns the number of times from one micro-batch to the next.
    fn period(&self) -> u32 {
        match (self.options.schedule, self.is_training()) {
            (Schedule::Sequential, true) => 2 * self.count(),
            (Schedule::Sequential, false) => self.count(),
            (Schedule::TfInterleaved, true) => 2,
            _ => 1,
        }
    }

    /// Returns the time at which a run takes place. A micro-batch needs one time for each run.
    pub fn time(&self, run: Run, micro_batch: u32) -> u32 {
        micro_batch * self.period() + self.number(run)
    }

    /// Returns the parts that an IPU runs for this number of micro-batches, in order. At the same
    /// time PopART runs forward before backward, TensorFlow backward before forward.
    pub fn parts(&self, ipu: u32, micro_batches: u32) -> Vec<Part> {
        let runs = self.runs(self.on_ipu(ipu)).into_iter();
        let parts = runs.flat_map(|run| {
            (0..micro_batches).map(move |micro_batch| Part {
                time: self.time(run, micro_batch),
                run,
                micro_batch,
            })
        });
        let mut parts: Vec<Part> = parts.collect();
        parts.sort_by_key(|part| {
            let number = i64::from(self.number(part.run));
            let number = match self.options.schedule.has_fifo() {
                true => -number,
                false => number,
            };
            (part.time, number, part.run.1)
        });
        parts
    }

    /// Returns the runs whose copies to other IPUs are made at the end of a time: all copies of a
    /// full pipeline at that time, whether or not the runs take place now.
    pub fn copied(&self, time: u32) -> Vec<Run> {
        let mut runs = self.runs(0..self.count());
        runs.retain(|&run| self.number(run) % self.period() == time % self.period());
        runs
    }

    /// Counts the copies that are kept beside the one that is worked on, of a tensor that the first
    /// run makes or receives and the other one uses last, by walking through the parts of its IPU.
    ///
    /// PopART stashes a tensor in the first run and takes it out in the last one. A tensor that is
    /// used before the next one is made needs no stash. TensorFlow's FIFO gives out what the next
    /// last run needs before it takes in what was made.
    pub fn slots(&self, parts: &[Part], first: Run, last: Run) -> u32 {
        let runs = parts.iter().map(|part| part.run);
        let runs: Vec<Run> = runs.filter(|&run| run == first || run == last).collect();
        let has_fifo = self.options.schedule.has_fifo();
        let (mut kept, mut most) = (0, 0);
        for (number, &run) in runs.iter().enumerate() {
            if run == last {
                kept -= 1;
                continue;
            }
            kept += 1;
            let is_taken = has_fifo && runs.get(number + 1) == Some(&last);
            most = most.max(kept - u32::from(is_taken));
        }
        if has_fifo || most > 1 { most } else { 0 }
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
