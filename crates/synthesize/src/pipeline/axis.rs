//! The time of an IPU: all its parts, step by step.

use std::collections::HashMap;
use std::ops::Range;

use super::compilation::Compilation;
use super::graph::Pass;
use super::keep::Kind;
use super::options::Recompute;
use super::walk::{Part, Run};
use crate::liveness::Steps;

/// Consecutive steps of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Its first moment.
    pub start: u32,
    pub kind: Kind,
    /// The steps of the one-IPU compilation; of FIFOs: their numbers.
    pub steps: Steps,
}

impl Segment {
    /// The moment after its last one.
    pub fn end(&self) -> u32 {
        self.start + self.steps.1 - self.steps.0
    }
}

/// All parts of an IPU, one after the other.
#[derive(Debug)]
pub(super) struct Axis {
    pub parts: Vec<Part>,
    pub segments: Vec<Segment>,
    /// By part: its segments.
    of_part: Vec<Range<usize>>,
    index: HashMap<(Run, u32), usize>,
}

/// The inputs of an axis.
pub(super) struct Layout<'a> {
    pub compiled: &'a Compilation<'a>,
    /// By run: the number of FIFOs at its end (forward) or start (backward).
    pub fifos: &'a HashMap<Run, u32>,
}

impl Axis {
    pub fn new(layout: &Layout, parts: Vec<Part>) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let mut of_part = Vec::new();
        let run_steps: HashMap<Run, Vec<(Kind, Steps)>> = parts
            .iter()
            .map(|part| (part.run, layout.run_steps(part.run)))
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

    /// The part that runs this for a micro-batch.
    pub fn part(&self, run: Run, micro_batch: u32) -> Option<usize> {
        self.index.get(&(run, micro_batch)).copied()
    }

    /// The first moment of a part.
    pub fn start(&self, part: usize) -> u32 {
        self.segments[self.of_part[part].start].start
    }

    /// The moment after the last one of a part.
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

    /// The segment of a part's FIFOs.
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

    /// The first part after this one that is one of two runs.
    pub fn next(&self, part: usize, runs: [Run; 2]) -> Option<usize> {
        (part + 1..self.parts.len()).find(|&next| runs.contains(&self.parts[next].run))
    }

    /// The last part before this one that is this run.
    pub fn before(&self, part: usize, run: Run) -> Option<usize> {
        (0..part)
            .rev()
            .find(|&before| self.parts[before].run == run)
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

impl Layout<'_> {
    /// The steps of a run.
    fn run_steps(&self, run: Run) -> Vec<(Kind, Steps)> {
        let fifos = self.fifos.get(&run).map(|&count| (Kind::Fifo, (0, count)));
        let (stage, pass) = run;
        let mut run_steps = Vec::new();
        match pass {
            Pass::Forward => run_steps.push((Kind::Forward, self.forward(stage))),
            Pass::Backward => self.add_backward(&mut run_steps, stage),
        }
        match (fifos, self.compiled.options.early_fifo) {
            (Some(fifos), true) => run_steps.push(fifos),
            (Some(fifos), false) => run_steps.insert(0, fifos),
            _ => {}
        }
        if self.compiled.options.early_reruns() && pass == Pass::Forward {
            for (number, positions) in self.compiled.reruns.of(stage).iter().enumerate() {
                let again = self.again(stage, positions.clone());
                run_steps.push((Kind::Rerun(number), again));
            }
        }
        run_steps
    }

    /// The forward steps of a stage: up to those of the next one.
    fn forward(&self, stage: u32) -> Steps {
        let graph = self.compiled.graph;
        let end = graph.forward_end();
        let first = |stage: u32| first_step(&graph.forward, self.positions(stage)).unwrap_or(end);
        (
            self.before(stage).map_or(graph.first, |_| first(stage)),
            self.after(stage).map_or(end, first),
        )
    }

    /// The backward steps of a stage: up to those of the one before it.
    fn backward(&self, stage: u32) -> Steps {
        let graph = self.compiled.graph;
        let end = graph.update;
        let first = |stage: u32| first_step(&graph.backward, self.positions(stage)).unwrap_or(end);
        (
            self.after(stage)
                .map_or(graph.forward_end(), |_| first(stage)),
            self.before(stage).map_or(end, first),
        )
    }

    /// The stage whose steps come before those of this one.
    fn before(&self, stage: u32) -> Option<u32> {
        let mut before = (0..stage).rev();
        before.find(|&other| self.divides_steps(stage, other))
    }

    /// The stage whose steps come after those of this one.
    fn after(&self, stage: u32) -> Option<u32> {
        let mut after = stage + 1..self.compiled.stages.count();
        after.find(|&other| self.divides_steps(stage, other))
    }

    /// Whether two stages have no steps in common.
    fn divides_steps(&self, stage: u32, other: u32) -> bool {
        !self.compiled.options.all_steps
            || self.compiled.stages.ipu(stage) == self.compiled.stages.ipu(other)
    }

    /// The backward steps of a stage with what it runs again in between.
    fn add_backward(&self, run_steps: &mut Vec<(Kind, Steps)>, stage: u32) {
        let (mut at, end) = self.backward(stage);
        let first_of_all = first_step(&self.compiled.graph.backward, self.positions(stage));
        let reruns = match self.compiled.options.early_reruns() {
            true => &[],
            false => self.compiled.reruns.of(stage),
        };
        for (number, positions) in reruns.iter().enumerate().rev() {
            let Some(first) = first_step(&self.compiled.graph.backward, positions.clone()) else {
                continue;
            };
            if first > at && Some(first) != first_of_all {
                run_steps.push((Kind::Backward, (at, first)));
                at = first;
            }
            let again = self.again(stage, positions.clone());
            run_steps.push((Kind::Rerun(number), again));
        }
        run_steps.push((Kind::Backward, (at, end)));
    }

    /// The forward steps that run again: of a whole stage all that it has.
    fn again(&self, stage: u32, positions: Range<u32>) -> Steps {
        if self.compiled.options.recompute == Recompute::Stage {
            return self.forward(stage);
        }
        let steps = steps_of(&self.compiled.graph.forward, positions);
        let first = steps.clone().map(|steps| steps.0).min();
        let end = steps.map(|steps| steps.1).max();
        first.zip(end).unwrap_or((0, 0))
    }

    fn positions(&self, stage: u32) -> Range<u32> {
        self.compiled.stages.positions[stage as usize].clone()
    }
}

fn steps_of(
    steps: &[Option<Steps>],
    positions: Range<u32>,
) -> impl Iterator<Item = Steps> + Clone + '_ {
    positions.filter_map(|position| steps[position as usize])
}

fn first_step(steps: &[Option<Steps>], positions: Range<u32>) -> Option<u32> {
    steps_of(steps, positions).map(|steps| steps.0).min()
}
