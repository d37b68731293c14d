//! The time of an IPU: all its parts, step by step.

use std::collections::HashMap;
use std::ops::Range;

use super::compilation::Compilation;
use super::graph::Pass;
use super::keep::Kind;
use super::options::Recompute;
use super::walk::{Part, Run};
use crate::liveness::Steps;

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub start: u32,
    pub kind: Kind,
    /// The steps of the one-IPU compilation; of FIFOs: their numbers.
    pub steps: Steps,
}

impl Segment {
    pub fn end(&self) -> u32 {
        self.start + self.steps.1 - self.steps.0
    }
}

/// All parts of an IPU, one after the other.
#[derive(Debug)]
pub(super) struct Axis {
    pub parts: Vec<Part>,
    pub segments: Vec<Segment>,
    of_part: Vec<Range<usize>>,
    index: HashMap<(Run, u32), usize>,
}

impl Axis {
    /// The axis of these parts; `fifos` has by run the number of FIFOs at its end (forward) or
    /// start (backward).
    pub fn new(compiled: &Compilation, fifos: &HashMap<Run, u32>, parts: Vec<Part>) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let mut of_part = Vec::new();
        let runs = parts.iter().map(|part| part.run);
        let run_steps: HashMap<_, _> = runs
            .map(|run| (run, compiled.run_steps(run, fifos)))
            .collect();
        for part in &parts {
            let first = segments.len();
            for &(kind, steps) in &run_steps[&part.run] {
                let start = segments.last().map_or(0, Segment::end);
                segments.push(Segment { start, kind, steps });
            }
            of_part.push(first..segments.len());
        }
        let keys = parts.iter().map(|part| (part.run, part.micro_batch));
        Self {
            index: keys.zip(0..).collect(),
            parts,
            segments,
            of_part,
        }
    }

    pub fn part(&self, run: Run, micro_batch: u32) -> Option<usize> {
        self.index.get(&(run, micro_batch)).copied()
    }

    pub fn start(&self, part: usize) -> u32 {
        self.segments[self.of_part[part].start].start
    }

    pub fn end(&self, part: usize) -> u32 {
        self.segments[self.of_part[part].end - 1].end()
    }

    /// The segment of a part that runs a step in this way. What runs again for a
    /// backward part may stand in the forward part before it.
    pub fn segment(&self, part: usize, kind: Kind, step: u32) -> Option<usize> {
        let found = self.of_part[part].clone().find(|&segment| {
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

    pub fn fifo(&self, part: usize) -> Option<&Segment> {
        let mut segments = self.segments[self.of_part[part].clone()].iter();
        segments.find(|segment| segment.kind == Kind::Fifo)
    }

    /// The moment of the copies between IPUs at the end of a time.
    pub fn after_time(&self, time: u32) -> u32 {
        let next = self.parts.partition_point(|part| part.time <= time);
        match next < self.parts.len() {
            true => self.start(next),
            false => self.segments.last().map_or(0, Segment::end),
        }
    }

    pub fn next(&self, part: usize, runs: [Run; 2]) -> Option<usize> {
        let mut later = part + 1..self.parts.len();
        later.find(|&next| runs.contains(&self.parts[next].run))
    }

    pub fn before(&self, part: usize, run: Run) -> Option<usize> {
        let mut earlier = (0..part).rev();
        earlier.find(|&before| self.parts[before].run == run)
    }

    /// The moment of a step that a variable of a segment reaches, where it lives
    /// longer than its last use: it may reach into the next segment if that goes
    /// on with the steps of this one.
    pub fn reach(&self, segment: usize, step: u32) -> u32 {
        let here = &self.segments[segment];
        if step <= here.steps.1 {
            return here.end() - (here.steps.1 - step);
        }
        let passes = |kind| matches!(kind, Kind::Forward | Kind::Backward);
        let mut later = segment + 1..self.segments.len();
        let next = later.find(|&next| passes(self.segments[next].kind));
        match next {
            Some(next) if passes(here.kind) && self.segments[next].steps.0 == here.steps.1 => {
                self.reach(next, step)
            }
            _ => here.end(),
        }
    }
}

impl Compilation<'_> {
    fn run_steps(&self, run: Run, fifos: &HashMap<Run, u32>) -> Vec<(Kind, Steps)> {
        let (stage, pass) = run;
        let mut run_steps = match pass {
            Pass::Forward => vec![(Kind::Forward, self.forward(stage))],
            Pass::Backward => self.with_reruns(stage),
        };
        if let Some(&count) = fifos.get(&run) {
            let at = if self.options.early_fifo {
                run_steps.len()
            } else {
                0
            };
            run_steps.insert(at, (Kind::Fifo, (0, count)));
        }
        if self.options.early_reruns() && pass == Pass::Forward {
            for (number, positions) in self.reruns.of(stage).iter().enumerate() {
                let again = self.again(stage, positions.clone());
                run_steps.push((Kind::Rerun(number), again));
            }
        }
        run_steps
    }

    /// The forward steps of a stage: up to those of the next one.
    fn forward(&self, stage: u32) -> Steps {
        let graph = self.graph;
        let first = |stage| self.first_step(&graph.forward, stage, graph.forward_end());
        (
            self.before(stage).map_or(graph.first, |_| first(stage)),
            self.after(stage).map_or(graph.forward_end(), first),
        )
    }

    /// The backward steps of a stage: up to those of the one before it.
    fn backward(&self, stage: u32) -> Steps {
        let graph = self.graph;
        let first = |stage| self.first_step(&graph.backward, stage, graph.update);
        let start = self.after(stage);
        (
            start.map_or(graph.forward_end(), |_| first(stage)),
            self.before(stage).map_or(graph.update, first),
        )
    }

    /// The first step of a stage in a pass; `end` if it has none.
    fn first_step(&self, pass: &[Option<Steps>], stage: u32, end: u32) -> u32 {
        let positions = self.stages.positions[stage as usize].clone();
        first_step(pass, positions).unwrap_or(end)
    }

    fn before(&self, stage: u32) -> Option<u32> {
        let mut before = (0..stage).rev();
        before.find(|&other| self.divides_steps(stage, other))
    }

    fn after(&self, stage: u32) -> Option<u32> {
        let mut after = stage + 1..self.stages.count();
        after.find(|&other| self.divides_steps(stage, other))
    }

    fn divides_steps(&self, stage: u32, other: u32) -> bool {
        !self.options.all_steps || self.stages.ipu(stage) == self.stages.ipu(other)
    }

    /// The backward steps of a stage with what it runs again in between.
    fn with_reruns(&self, stage: u32) -> Vec<(Kind, Steps)> {
        let mut run_steps = Vec::new();
        let (mut at, end) = self.backward(stage);
        let backward = &self.graph.backward;
        let first_of_all = self.first_step(backward, stage, at);
        let reruns = match self.options.early_reruns() {
            true => &[],
            false => self.reruns.of(stage),
        };
        for (number, positions) in reruns.iter().enumerate().rev() {
            let Some(first) = first_step(backward, positions.clone()) else {
                continue;
            };
            if first > at && first != first_of_all {
                run_steps.push((Kind::Backward, (at, first)));
                at = first;
            }
            let again = self.again(stage, positions.clone());
            run_steps.push((Kind::Rerun(number), again));
        }
        run_steps.push((Kind::Backward, (at, end)));
        run_steps
    }

    /// The forward steps that run again: of a whole stage all that it has.
    fn again(&self, stage: u32, positions: Range<u32>) -> Steps {
        if self.options.recompute == Recompute::Stage {
            return self.forward(stage);
        }
        let steps = steps_of(&self.graph.forward, positions);
        let all = steps.reduce(|all, steps| (all.0.min(steps.0), all.1.max(steps.1)));
        all.unwrap_or((0, 0))
    }
}

fn steps_of(pass: &[Option<Steps>], positions: Range<u32>) -> impl Iterator<Item = Steps> {
    positions.filter_map(|position| pass[position as usize])
}

fn first_step(pass: &[Option<Steps>], positions: Range<u32>) -> Option<u32> {
    steps_of(pass, positions).map(|steps| steps.0).min()
}
