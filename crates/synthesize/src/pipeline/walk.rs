//! The walk of micro-batches through the stages of an IPU.

use std::collections::VecDeque;

use super::graph::Pass;
use super::options::Schedule;

/// One pass of a stage.
pub(super) type Run = (u32, Pass);

/// One pass of a stage over one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// When it runs. Copies between IPUs stand between two times.
    pub time: u32,
    pub run: Run,
    pub micro_batch: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Pipeline {
    pub schedule: Schedule,
    pub stages: u32,
    pub is_training: bool,
}

impl Pipeline {
    /// How many runs a micro-batch makes before this one. PopART runs both
    /// passes of the last stage at the same time, one after the other.
    fn number(&self, (stage, pass): Run) -> u32 {
        let last = self.stages - 1;
        let turning = u32::from(self.schedule != Schedule::Popart);
        match pass {
            Pass::Forward => stage,
            Pass::Backward => last + turning + (last - stage),
        }
    }

    /// Times from one micro-batch to the next.
    pub fn period(&self) -> u32 {
        match (self.schedule, self.is_training) {
            (Schedule::Sequential, true) => 2 * self.stages,
            (Schedule::Sequential, false) => self.stages,
            (Schedule::TfInterleaved, true) => 2,
            _ => 1,
        }
    }

    /// When a run takes place. A micro-batch needs one time for each run.
    pub fn time(&self, run: Run, micro_batch: u32) -> u32 {
        micro_batch * self.period() + self.number(run)
    }

    /// The parts that an IPU with these stages runs for the first so many
    /// micro-batches, in order. At the same time PopART runs forward before
    /// backward, TensorFlow backward before forward.
    pub fn parts(&self, stages: &[u32], micro_batches: u32) -> Vec<Part> {
        let mut parts = Vec::new();
        for &stage in stages {
            for pass in self.passes() {
                let run = (stage, *pass);
                parts.extend((0..micro_batches).map(|micro_batch| Part {
                    time: self.time(run, micro_batch),
                    run,
                    micro_batch,
                }));
            }
        }
        parts.sort_by_key(|part| {
            let number = i64::from(self.number(part.run));
            let sign = if self.schedule.has_fifo() { -1 } else { 1 };
            (part.time, sign * number, part.run.1)
        });
        parts
    }

    /// The runs whose copies to other IPUs are made at the end of a time: of all that it has
    /// when the pipeline is full, whether or not they run now.
    pub fn copied(&self, time: u32) -> impl Iterator<Item = Run> {
        let Self { stages, .. } = *self;
        let runs = self.passes().iter();
        let runs = runs.flat_map(move |&pass| (0..stages).map(move |stage| (stage, pass)));
        runs.filter(move |&run| self.number(run) % self.period() == time % self.period())
    }

    fn passes(&self) -> &'static [Pass] {
        match self.is_training {
            true => &[Pass::Forward, Pass::Backward],
            false => &[Pass::Forward],
        }
    }

    /// Counts the copies that are kept beside the one that is worked on, of a
    /// tensor that the first run makes or receives and the other one uses last,
    /// by walking through the runs of its IPU.
    pub fn slots(&self, parts: &[Part], first: Run, last: Run) -> u32 {
        let parts = parts.iter().copied();
        let runs = parts.filter(|part| part.run == first || part.run == last);
        let runs: Vec<Part> = runs.collect();
        match self.schedule.has_fifo() {
            true => in_fifo(&runs, first),
            false => in_stash(&runs, first),
        }
    }
}

/// PopART pushes in the first run and pops in the last one. What is used before
/// the next one is made needs no stash.
fn in_stash(runs: &[Part], first: Run) -> u32 {
    let mut stash = VecDeque::new();
    let mut longest = 0;
    for part in runs {
        if part.run == first {
            stash.push_back(part.micro_batch);
            longest = longest.max(stash.len());
        } else {
            let oldest = stash.pop_front();
            assert_eq!(oldest, Some(part.micro_batch), "the stash is a queue");
        }
    }
    if longest > 1 { longest as u32 } else { 0 }
}

/// After each first run TensorFlow's FIFO gives out what the next last run needs,
/// then takes in what was made. What is needed at once does not go through it.
fn in_fifo(runs: &[Part], first: Run) -> u32 {
    let mut fifo = VecDeque::new();
    let mut longest = 0;
    for (index, part) in runs.iter().enumerate() {
        if part.run != first {
            continue;
        }
        let Some(next) = runs.get(index + 1) else {
            break;
        };
        fifo.push_back(part.micro_batch);
        if next.run != first {
            let oldest = fifo.pop_front();
            assert_eq!(oldest, Some(next.micro_batch), "the FIFO is a queue");
        }
        longest = longest.max(fifo.len());
    }
    longest as u32
}
