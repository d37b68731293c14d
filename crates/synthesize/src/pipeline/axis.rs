//! Lays out the time of an IPU: all its parts, step by step. A part is one pass of a stage over one
//! micro-batch.

use std::collections::HashMap;
use std::ops::Range;

use super::compilation::{Compilation, Part, Run};
use super::graph::Pass;
use super::options::Recompute;
use crate::liveness::Steps;

/// The way in which steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The steps run with all other steps of a pass.
    Pass(Pass),
    /// The steps run again before the backward pass, in the part of the stage with this number.
    Rerun(usize),
    /// FIFOs take in and give out tensors; each FIFO has a step.
    Fifo,
}

/// Steps of a part that run one after the other.
pub(super) struct Segment {
    part: usize,
    pub start: u32,
    pub kind: Kind,
    /// The steps of the compilation for one IPU; for FIFOs, their numbers.
    pub steps: Steps,
}

impl Segment {
    pub fn end(&self) -> u32 {
        self.start + self.steps.1 - self.steps.0
    }
}

/// All parts of an IPU, one after the other. A moment is a step of any part, counted from the first
/// part on.
pub(super) struct Axis {
    pub parts: Vec<Part>,
    pub segments: Vec<Segment>,
    /// The micro-batch that is followed. It starts when all stages run, and runs of all kinds
    /// follow its own runs.
    pub micro_batch: u32,
}

impl Axis {
    /// Lays out these parts. `fifos` has, by run, the number of FIFOs that run with it.
    pub fn new(
        compiled: &Compilation,
        fifos: &HashMap<Run, u32>,
        (parts, micro_batch): (Vec<Part>, u32),
    ) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        for (part, Part { run, .. }) in parts.iter().enumerate() {
            for (kind, steps) in compiled.run_steps(*run, fifos.get(run)) {
                let start = segments.last().map_or(0, Segment::end);
                segments.push(Segment {
                    part,
                    start,
                    kind,
                    steps,
                });
            }
        }
        Self {
            parts,
            segments,
            micro_batch,
        }
    }

    /// Returns the part that is this run of the micro-batch.
    pub fn part(&self, run: Run) -> usize {
        let mut parts = self.parts.iter();
        let part = parts.position(|part| part.run == run && part.micro_batch == self.micro_batch);
        part.expect("all runs of a micro-batch are on the axis")
    }

    fn segments_of(&self, part: usize) -> Range<usize> {
        let first = self.segments.partition_point(|other| other.part < part);
        first..self.segments.partition_point(|other| other.part <= part)
    }

    /// Returns the moment at which a part starts; the end of all parts for the part after the last
    /// one.
    pub fn start(&self, part: usize) -> u32 {
        let segment = self.segments.get(self.segments_of(part).start);
        let end = self.segments.last().map_or(0, Segment::end);
        segment.map_or(end, |segment| segment.start)
    }

    /// Returns the segment of a part in which a step runs in this way. The steps that run again for
    /// a backward part may be in the forward part before it.
    pub fn segment(&self, part: usize, kind: Kind, step: u32) -> Option<usize> {
        let found = self.segments_of(part).find(|&segment| {
            let segment = &self.segments[segment];
            segment.kind == kind && (segment.steps.0..segment.steps.1).contains(&step)
        });
        match (kind, self.parts[part].run) {
            (Kind::Rerun(_), (stage, Pass::Backward)) if found.is_none() => {
                let before = self.before(part, (stage, Pass::Forward))?;
                self.segment(before, kind, step)
            }
            _ => found,
        }
    }

    /// Returns the moment of the first FIFO of a part.
    pub fn fifos(&self, part: usize) -> Option<u32> {
        let mut segments = self.segments[self.segments_of(part)].iter();
        let fifos = segments.find(|segment| segment.kind == Kind::Fifo);
        fifos.map(|segment| segment.start)
    }

    /// Returns the moment of the copies between IPUs at the end of a time of the schedule.
    pub fn after_time(&self, time: u32) -> u32 {
        self.start(self.parts.partition_point(|part| part.time <= time))
    }

    /// Returns the next part after this one that is any of these runs.
    pub fn next(&self, part: usize, runs: [Run; 2]) -> Option<usize> {
        let mut later = part + 1..self.parts.len();
        later.find(|&next| runs.contains(&self.parts[next].run))
    }

    pub fn before(&self, part: usize, run: Run) -> Option<usize> {
        let mut earlier = (0..part).rev();
        earlier.find(|&before| self.parts[before].run == run)
    }

    /// Returns the moment of a step up to which a variable of a segment lives if it outlives its
    /// last use: it may reach into the next segment, if that continues the steps of this one.
    pub fn reach(&self, segment: usize, step: u32) -> u32 {
        let here = &self.segments[segment];
        if step <= here.steps.1 {
            return here.end() - (here.steps.1 - step);
        }
        let mut later = segment + 1..self.segments.len();
        let is_pass = |segment: &Segment| matches!(segment.kind, Kind::Pass(_));
        match later.find(|&next| is_pass(&self.segments[next])) {
            Some(next) if is_pass(here) && self.segments[next].steps.0 == here.steps.1 => {
                self.reach(next, step)
            }
            _ => here.end(),
        }
    }
}

impl Compilation<'_> {
    /// Returns the steps of a run in the order in which they run, with this number of FIFOs.
    fn run_steps(&self, run: Run, fifos: Option<&u32>) -> Vec<(Kind, Steps)> {
        let (stage, pass) = run;
        let mut run_steps = match pass {
            Pass::Forward => vec![(Kind::Pass(Pass::Forward), self.steps(run))],
            Pass::Backward => self.backward(stage),
        };
        if let Some(&count) = fifos {
            let late = usize::from(self.options.early_fifo) * run_steps.len();
            run_steps.insert(late, (Kind::Fifo, (0, count)));
        }
        if self.options.early_reruns() && pass == Pass::Forward {
            let again = self.reruns[stage as usize].iter().enumerate();
            let again = again.map(|(number, part)| (Kind::Rerun(number), self.again(stage, part)));
            run_steps.extend(again);
        }
        run_steps
    }

    /// Returns the steps of a stage in a pass: up to the steps of the stage that comes next.
    fn steps(&self, (stage, pass): Run) -> Steps {
        let graph = self.graph;
        let divides_steps =
            |&other: &u32| !self.options.all_steps || self.ipu(stage) == self.ipu(other);
        let before = (0..stage).rev().find(divides_steps);
        let after = (stage + 1..self.count()).find(divides_steps);
        let (start, end, before, after) = match pass {
            Pass::Forward => (graph.first, graph.turn(), before, after),
            Pass::Backward => (graph.turn(), graph.update, after, before),
        };
        let first = |stage: u32| {
            let steps = graph.steps(pass, self.stages[stage as usize].clone());
            steps.map_or(end, |steps| steps.0)
        };
        let from = before.map_or(start, |_| first(stage));
        (from, after.map_or(end, first))
    }

    /// Returns the backward steps of a stage, with the steps that run again between them.
    fn backward(&self, stage: u32) -> Vec<(Kind, Steps)> {
        let (mut at, end) = self.steps((stage, Pass::Backward));
        let first = |positions: &Range<u32>| {
            let steps = self.graph.steps(Pass::Backward, positions.clone());
            steps.map_or(at, |steps| steps.0)
        };
        let first_of_all = first(&self.stages[stage as usize]);
        let mut run_steps = Vec::new();
        let late = match self.options.early_reruns() {
            true => &[],
            false => &self.reruns[stage as usize][..],
        };
        let late: Vec<_> = late.iter().map(|part| (part, first(part))).collect();
        for (number, &(part, first)) in late.iter().enumerate().rev() {
            if first > at && first != first_of_all {
                run_steps.push((Kind::Pass(Pass::Backward), (at, first)));
                at = first;
            }
            run_steps.push((Kind::Rerun(number), self.again(stage, part)));
        }
        run_steps.push((Kind::Pass(Pass::Backward), (at, end)));
        run_steps
    }

    /// Returns the forward steps that run again: all forward steps of the stage if stages are
    /// recomputed as a whole.
    fn again(&self, stage: u32, part: &Range<u32>) -> Steps {
        match self.options.recompute {
            Recompute::Stage => self.steps((stage, Pass::Forward)),
            _ => {
                let steps = self.graph.steps(Pass::Forward, part.clone());
                steps.unwrap_or((0, 0))
            }
        }
    }
}
