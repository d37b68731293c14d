//! The moments of an IPU that count, and what is live at them.

use std::ops::Range;

use super::axis::Axis;
use super::copies::Copy;
use super::graph::{Graph, Tensor};
use super::keep::Kind;
use crate::liveness::Steps;

/// The moments that count: those of the period, then the steps before the first
/// micro-batch, then those after the last one.
pub(super) struct Sum<'a> {
    pub graph: &'a Graph,
    pub axis: &'a Axis,
    pub window: Range<u32>,
    /// The steps of the IPU's own positions in both passes.
    pub own: Vec<Steps>,
    /// Does each step outside of both passes have a moment before it, for loads, and two
    /// after it, for what replicas gather and for stores?
    pub has_loads: bool,
}

pub(super) struct Moments {
    pub load: Range<u32>,
    pub operation: Range<u32>,
    pub gather: Range<u32>,
    pub store: Range<u32>,
}

impl Sum<'_> {
    /// The moments of steps outside of both passes, with loads and stores.
    pub fn update(&self, (from, to): Steps) -> Moments {
        let base = self.window.end - self.window.start;
        let (load, end) = (base + 4 * from, base + 4 * to);
        Moments {
            load: load..load + 1,
            operation: load + 1..end - 2,
            gather: end - 2..end - 1,
            store: end - 1..end,
        }
    }

    pub fn in_period(&self, lives: &[Range<u32>]) -> Vec<Range<u32>> {
        let end = self.window.end - self.window.start;
        let lives = lives.iter().filter(|live| live.start < end);
        lives.cloned().collect()
    }

    /// When what is of this class is live by the one-IPU compilation, as far as that is on
    /// the IPU: of a body that is listed for each call, at its own calls alone.
    fn ranges(&self, class: u32) -> impl Iterator<Item = Steps> + '_ {
        let ranges = &self.graph.classes[class as usize];
        let is_own = |&(from, to): &Steps| {
            let mut own = self.own.iter();
            own.any(|steps| from < steps.1 && steps.0 < to)
        };
        let has_own = ranges.len() > 1 && ranges.iter().any(is_own);
        let ranges = ranges.iter().copied();
        ranges.filter(move |range| !has_own || is_own(range))
    }

    fn clip(&self, from: u32, to: u32) -> Option<Range<u32>> {
        let from = from.max(self.window.start);
        let to = to.min(self.window.end);
        let start = self.window.start;
        (from < to).then(|| from - start..to - start)
    }

    fn outside(&self, from: u32, to: u32) -> Vec<Range<u32>> {
        let mut lives = Vec::new();
        let graph = self.graph;
        let base = self.window.end - self.window.start;
        let mut add = |from: u32, to: u32| match self.has_loads {
            true => lives.push(self.update((from, to)).operation),
            false => lives.push(base + from..base + to),
        };
        if from < graph.first {
            add(from, to.min(graph.first));
        }
        if to > graph.update {
            add(from.max(graph.update), to);
        }
        lives
    }

    pub fn steps(&self, class: u32) -> Vec<Range<u32>> {
        let mut lives = Vec::new();
        for (from, to) in self.ranges(class) {
            let segments = self.axis.segments.iter();
            for segment in segments.filter(|segment| segment.kind != Kind::Fifo) {
                let first = from.max(segment.steps.0);
                let end = to.min(segment.steps.1);
                if first < end {
                    let start = segment.start;
                    let at = |step: u32| start + (step - segment.steps.0);
                    lives.extend(self.clip(at(first), at(end)));
                }
            }
            lives.extend(self.outside(from, to));
        }
        lives
    }

    /// The moments when copies of a tensor live on a tile where it has this
    /// class: it may live longer, or again.
    pub fn lives(&self, tensor: &Tensor, class: u32, copies: &[Copy]) -> Vec<Range<u32>> {
        let end = tensor.end();
        let ranges = &self.graph.classes[class as usize];
        let later = ranges.iter().filter(|range| range.1 > end);
        let later: Vec<(u32, u32)> = later.map(|range| (range.0.max(end), range.1)).collect();
        let mut lives = Vec::new();
        for copy in copies {
            let mut to = copy.to;
            if let Some(segment) = copy.tail {
                for range in &later {
                    let from = self.axis.reach(segment, range.0);
                    let end = self.axis.reach(segment, range.1);
                    if from <= to {
                        to = to.max(end);
                    } else {
                        lives.extend(self.clip(from, end));
                    }
                }
            }
            lives.extend(self.clip(copy.from, to));
        }
        // The tensor that is used last may live on when all micro-batches are
        // through.
        let is_last = |copy: &Copy| {
            let segment = copy.tail.map(|tail| self.axis.segments[tail].kind);
            segment.is_some_and(|kind| !matches!(kind, Kind::Rerun(_)))
        };
        if copies.iter().any(is_last) {
            for &(from, to) in later.iter().filter(|range| range.1 > self.graph.update) {
                lives.extend(self.outside(from.max(self.graph.update), to));
            }
        }
        lives
    }
}
