//! The time of an IPU: all its parts, step by step.

use std::collections::HashMap;
use std::ops::Range;

use super::graph::{Graph, Pass, Steps};
use super::keep::{Kind, Reruns};
use super::stages::Stages;
use super::walk::{Part, Run};

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

/// What an axis is made from.
pub(super) struct Layout<'a> {
    pub graph: &'a Graph,
    pub stages: &'a Stages,
    pub reruns: &'a Reruns,
    /// By run: the number of FIFOs at its end (forward) or start (backward).
    pub fifos: &'a HashMap<Run, u32>,
    /// Whether they run at the end of the run.
    pub early_fifo: bool,
}

impl Axis {
    pub fn new(layout: &Layout, own: &[u32], parts: Vec<Part>) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let mut of_part = Vec::new();
        let pieces: HashMap<Run, Vec<(Kind, Steps)>> = parts
            .iter()
            .map(|part| (part.run, layout.pieces(own, part.run)))
            .collect();
        for part in &parts {
            let first = segments.len();
            for &(kind, steps) in &pieces[&part.run] {
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

    /// The segment of a part that runs a step in this way.
    pub fn segment(&self, part: usize, kind: Kind, step: u32) -> Option<usize> {
        self.of_part[part].clone().find(|&segment| {
            let own = &self.segments[segment];
            own.kind == kind && (own.steps.0..own.steps.1).contains(&step)
        })
    }

    /// The segment of a part's FIFOs.
    pub fn fifo(&self, part: usize) -> Option<&Segment> {
        let mut own = self.segments[self.of_part[part].clone()].iter();
        own.find(|segment| segment.kind == Kind::Fifo)
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
        let own = &self.segments[segment];
        if step <= own.steps.1 {
            return own.end() - (own.steps.1 - step);
        }
        let passes = |kind| matches!(kind, Kind::Forward | Kind::Backward);
        let mut later = segment + 1..self.segments.len();
        let next = later.find(|&next| passes(self.segments[next].kind));
        match next {
            Some(next) if passes(own.kind) && self.segments[next].steps.0 == own.steps.1 => {
                self.reach(next, step)
            }
            _ => own.end(),
        }
    }
}

impl Layout<'_> {
    /// What a run consists of.
    fn pieces(&self, own: &[u32], run: Run) -> Vec<(Kind, Steps)> {
        let fifos = self.fifos.get(&run).map(|&count| (Kind::Fifo, (0, count)));
        let (stage, pass) = run;
        let mut pieces = match pass {
            Pass::Forward => vec![(Kind::Forward, self.forward(own, stage))],
            Pass::Backward => self.backward(own, stage),
        };
        match (fifos, self.early_fifo) {
            (Some(fifos), true) => pieces.push(fifos),
            (Some(fifos), false) => pieces.insert(0, fifos),
            _ => {}
        }
        pieces
    }

    /// The forward steps of a stage. On an IPU of its own it has all of them;
    /// nothing of it runs in those of the others.
    fn forward(&self, own: &[u32], stage: u32) -> Steps {
        let all = (self.graph.first, self.graph.forward_end());
        let first = |stage: u32| {
            let positions = self.stages.positions[stage as usize].clone();
            first_step(&self.graph.forward, positions).unwrap_or(all.1)
        };
        match own {
            [_, last] if stage == *last => (first(*last), all.1),
            [_, last] => (all.0, first(*last)),
            _ => all,
        }
    }

    /// The backward steps of a stage, with what it runs again in between.
    fn backward(&self, own: &[u32], stage: u32) -> Vec<(Kind, Steps)> {
        let graph = self.graph;
        let mut at = graph.forward_end();
        let mut end = graph.update;
        if let [first, last] = own {
            let positions = self.stages.positions[*first as usize].clone();
            let turn = first_step(&graph.backward, positions).unwrap_or(end);
            (at, end) = if stage == *last {
                (at, turn)
            } else {
                (turn, end)
            };
        }
        let mut pieces = Vec::new();
        for (number, positions) in self.reruns.of(stage).iter().enumerate().rev() {
            let Some(first) = first_step(&graph.backward, positions.clone()) else {
                continue;
            };
            if first > at && !(pieces.is_empty() && self.is_first(stage, first)) {
                pieces.push((Kind::Backward, (at, first)));
                at = first;
            }
            let again = self.again(own, stage, positions.clone());
            pieces.push((Kind::Rerun(number), again));
        }
        pieces.push((Kind::Backward, (at, end)));
        pieces
    }

    /// Whether nothing of a stage runs before this step in the backward pass: then
    /// what runs again comes before all of it.
    fn is_first(&self, stage: u32, step: u32) -> bool {
        let positions = self.stages.positions[stage as usize].clone();
        first_step(&self.graph.backward, positions) == Some(step)
    }

    /// The forward steps that run again: of a whole stage all that it has.
    fn again(&self, own: &[u32], stage: u32, positions: Range<u32>) -> Steps {
        if positions == self.stages.positions[stage as usize] && self.reruns.of(stage).len() == 1 {
            return self.forward(own, stage);
        }
        let steps = steps_of(&self.graph.forward, positions);
        let first = steps.clone().map(|steps| steps.0).min();
        let end = steps.map(|steps| steps.1).max();
        first.zip(end).unwrap_or((0, 0))
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
