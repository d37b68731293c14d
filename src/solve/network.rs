//! Plans as paths: boundaries between positions are nodes, ranges that may be
//! a stage are edges.
//!
//! The *compact* network has one node for each boundary and one edge for each
//! range. A path in it may have any number of edges. The *numbered* network
//! has a node for each boundary and number of the stage that starts there, so
//! that an edge is a range on an IPU, and no path has more edges than there
//! are IPUs.

use std::ops::Range;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;

/// A range that may be a stage, with its peak in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageRange {
    pub range: Range<usize>,
    pub peak: u64,
}

/// A range that may be a stage, between two nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    /// Its place among all edges, open or not.
    index: usize,
    pub from: usize,
    pub to: usize,
    /// The IPU that it is on, in a numbered network.
    pub stage: Option<usize>,
    pub stage_range: &'a StageRange,
}

/// Nodes 0 (no position is placed) to [`Network::sink`] (all are), and the
/// edges between them that are still open. There is at least one position.
#[derive(Debug, Clone)]
pub(super) struct Network<'q> {
    pub checked: &'q CheckedProblem<'q>,
    /// By start, then by end.
    stage_ranges: Vec<StageRange>,
    is_numbered: bool,
    /// By stage, then by range.
    open: Vec<bool>,
}

impl<'q> Network<'q> {
    /// One edge for each range that is within the highest limit and obeys the
    /// constraints on cuts.
    pub(super) fn compact(checked: &'q CheckedProblem<'q>) -> Self {
        let stage_ranges = stage_ranges(checked);
        let open = vec![true; stage_ranges.len()];
        Self {
            checked,
            stage_ranges,
            is_numbered: false,
            open,
        }
    }

    /// One edge for each such range on each IPU where it may be and where the
    /// stages before can leave off at its start.
    pub(super) fn numbered(checked: &'q CheckedProblem<'q>) -> Self {
        let stage_ranges = stage_ranges(checked);
        let layers = checked.layers();
        let mut starts = vec![false; layers + 1];
        starts[0] = true;
        let mut open = Vec::with_capacity(checked.stages * stage_ranges.len());
        for stage in 0..checked.stages {
            let mut ends = vec![false; layers + 1];
            let is_last = stage + 1 == checked.stages;
            for StageRange { range, peak } in &stage_ranges {
                let has_next = range.end == layers || !is_last;
                let stands = starts[range.start] && has_next;
                let stands = stands && checked.may_stand(stage, range, *peak);
                ends[range.end] |= stands;
                open.push(stands);
            }
            starts = ends;
        }
        Self {
            checked,
            stage_ranges,
            is_numbered: true,
            open,
        }
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// The node where all positions are placed: the last.
    pub(super) fn sink(&self) -> usize {
        if self.is_numbered {
            self.checked.stages.max(1) * self.checked.layers()
        } else {
            self.checked.layers()
        }
    }

    /// The open edges. Those that enter a node come before those that leave
    /// it.
    pub(super) fn edges(&self) -> impl DoubleEndedIterator<Item = Edge<'_>> {
        let layers = self.checked.layers();
        let stages = self.open.chunks(self.stage_ranges.len().max(1)).enumerate();
        stages.flat_map(move |(stage, open)| {
            let open = open.iter().zip(&self.stage_ranges).enumerate();
            let open = open.filter(|(_, (open, _))| **open);
            open.map(move |(n, (_, stage_range))| {
                let node = |stage: usize, boundary: usize| {
                    if !self.is_numbered {
                        boundary
                    } else if boundary == layers {
                        self.sink()
                    } else {
                        stage * layers + boundary
                    }
                };
                Edge {
                    index: stage * self.stage_ranges.len() + n,
                    from: node(stage, stage_range.range.start),
                    to: node(stage + 1, stage_range.range.end),
                    stage: self.is_numbered.then_some(stage),
                    stage_range,
                }
            })
        })
    }

    /// Closes the edges that `keep`, one entry for each open edge, is false
    /// for.
    pub(super) fn retain(&mut self, keep: impl IntoIterator<Item = bool>) {
        let open = self.open.iter_mut().filter(|open| **open);
        for (open, keep) in open.zip(keep) {
            *open = keep;
        }
    }

    /// The same with only the edges that count at most `threshold` in a
    /// bottleneck objective.
    pub(super) fn within(&self, objective: Objective, threshold: u128) -> Self {
        let mut network = self.clone();
        let keep: Vec<bool> = self
            .edges()
            .map(|edge| self.value(objective, &edge) <= threshold)
            .collect();
        network.retain(keep);
        network
    }

    /// What choosing `edge` counts in `objective`.
    pub(super) fn value(&self, objective: Objective, edge: &Edge<'_>) -> u128 {
        let StageRange { range, peak } = edge.stage_range;
        self.checked.value(objective, range, *peak)
    }

    /// The fewest edges of any path over edges that count at most `threshold`
    /// in `objective`.
    pub(super) fn fewest_edges(&self, objective: Objective, threshold: u128) -> Option<usize> {
        let mut fewest = vec![None; self.sink() + 1];
        fewest[0] = Some(0_usize);
        for edge in self.edges() {
            let Some(before) = fewest[edge.from] else {
                continue;
            };
            if fewest[edge.to].is_none_or(|best| before + 1 < best)
                && self.value(objective, &edge) <= threshold
            {
                fewest[edge.to] = Some(before + 1);
            }
        }
        fewest[self.sink()]
    }

    /// Closes the edges that no path from the first node reaches.
    pub(super) fn close_unreachable(&mut self) {
        let mut reached = vec![false; self.sink() + 1];
        reached[0] = true;
        let mut keep = Vec::new();
        for edge in self.edges() {
            keep.push(reached[edge.from]);
            reached[edge.to] |= reached[edge.from];
        }
        self.retain(keep);
    }

    /// Closes edges that lead nowhere, the last first, until at most `enough`
    /// are left.
    pub(super) fn close_dead_ends(&mut self, enough: usize) {
        let mut excess = self.edges().count().saturating_sub(enough);
        let mut leads_on = vec![false; self.sink() + 1];
        leads_on[self.sink()] = true;
        let mut keep = Vec::new();
        for edge in self.edges().rev() {
            let stays = leads_on[edge.to] || excess == 0;
            leads_on[edge.from] |= stays;
            excess -= usize::from(!stays);
            keep.push(stays);
        }
        self.retain(keep.into_iter().rev());
    }

    /// Every number that an open edge counts in `objective`, rising.
    pub(super) fn distinct_values(&self, objective: Objective) -> Vec<u128> {
        // In a numbered network the same ranges come again for each stage.
        let mut is_open = vec![false; self.stage_ranges.len()];
        for edge in self.edges() {
            is_open[edge.index % self.stage_ranges.len()] = true;
        }
        let open = self.stage_ranges.iter().zip(is_open);
        let open = open.filter(|&(_, is_open)| is_open);
        let value = |own: &StageRange| self.checked.value(objective, &own.range, own.peak);
        let mut values: Vec<u128> = open.map(|(own, _)| value(own)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The stages of the path that, where paths part, takes the shortest
    /// range. Every open edge must be on some path to the end.
    pub(super) fn earliest_path(&self) -> Vec<Range<usize>> {
        let mut node = 0;
        let mut stages = Vec::new();
        for edge in self.edges() {
            if edge.from == node {
                node = edge.to;
                stages.push(edge.stage_range.range.clone());
            }
        }
        stages
    }
}

fn stage_ranges(checked: &CheckedProblem<'_>) -> Vec<StageRange> {
    let limit = checked.highest_limit();
    let rows = (0..checked.layers()).flat_map(|from| {
        let peaks = checked.problem.costs.peaks_from(from).iter().copied();
        let fit = peaks.take_while(move |&peak| peak <= limit).enumerate();
        fit.map(move |(n, peak)| {
            let range = from..from + n + 1;
            StageRange { range, peak }
        })
    });
    rows.filter(|stage_range| checked.obeys_cuts(&stage_range.range))
        .collect()
}
