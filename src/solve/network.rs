//! Plans as paths in a network: boundaries between positions are nodes, and ranges of positions
//! that may be a stage are edges.
//!
//! The *compact* network has one node for each boundary and one edge for each range. A path in it
//! may have any number of edges. The *layered* network repeats the nodes on levels: each edge leads
//! to the next level, so that no path has more edges than there are IPUs. A level fixes the
//! properties of its stages that matter: the IPU, the number of stages after it, or both. In the
//! last case each total number of stages has its own levels.

use std::ops::Range;
use std::sync::Arc;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;

/// A range of positions that may be a stage, with the bytes on its fullest tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageRange {
    pub range: Range<usize>,
    pub peak: u64,
}

/// A level of a layered network: what all stages on this level have in common. A path has one stage
/// on each level that it visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StageLevel {
    /// The number of the IPU that the stages run on; `None` if it does not matter.
    pub ipu: Option<usize>,
    /// The number of stages after a stage of this level; `None` if it does not matter.
    pub after: Option<usize>,
    /// Whether a stage of this level can be the first one of a split.
    is_entry: bool,
    /// Whether a stage of this level must be the last one of a split.
    is_last: bool,
}

/// An edge of the network: a stage on the level `level`, from the node `from` where it starts to
/// the node `to` where it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageEdge<'a> {
    pub from: usize,
    pub to: usize,
    pub level: StageLevel,
    pub stage_range: &'a StageRange,
}

/// The ranges of positions that may be stages on one level of the network, and which of them still
/// have an edge.
#[derive(Debug, Clone)]
struct LevelRanges {
    level: StageLevel,
    /// The ranges, ordered by start and then by end.
    ranges: Arc<[StageRange]>,
    /// For each range: whether its edge is in the network, and not removed.
    open: Vec<bool>,
}

/// A network whose edges are ranges of positions that may be stages. A path from node 0, where no
/// position is in a stage, to [`Network::sink`], where all positions are, is a split. An edge is
/// *open* until it is removed. In the compact network, nodes are boundaries between positions; in
/// the layered network, there is a node for each boundary and each number of stages before it, as
/// constraints on single stages or IPUs need.
#[derive(Debug, Clone)]
pub(super) struct Network<'q> {
    pub checked: &'q CheckedProblem<'q>,
    levels: Vec<LevelRanges>,
    is_layered: bool,
}

impl<'q> Network<'q> {
    /// Makes the compact network, in which stages are not counted. It has an edge for each range
    /// that is within the highest limit of any IPU and obeys the constraints on cuts.
    pub(super) fn compact(checked: &'q CheckedProblem<'q>) -> Self {
        let ranges = stage_ranges(checked, 0);
        let only = LevelRanges {
            level: StageLevel::default(),
            open: vec![true; ranges.len()],
            ranges,
        };
        Self {
            checked,
            levels: vec![only],
            is_layered: false,
        }
    }

    /// Makes the layered network, in which a path has one stage on each level. A level has an edge
    /// for each range that may be a stage on it and that starts where stages of the level before
    /// can end.
    pub(super) fn layered(checked: &'q CheckedProblem<'q>) -> Self {
        // The ranges by the number of stages after them, computed once each.
        let mut by_after: Vec<Option<Arc<[StageRange]>>> = vec![None; checked.stages.max(1)];
        let mut starts = vec![false; checked.layers() + 1];
        let mut levels = Vec::new();
        for level in levels_of(checked) {
            let after = level.after.unwrap_or(0);
            let ranges = by_after[after].get_or_insert_with(|| stage_ranges(checked, after));
            let ranges = ranges.clone();
            starts[0] = level.is_entry;
            let open = open_edges(checked, level, &ranges, &mut starts);
            levels.push(LevelRanges {
                level,
                ranges,
                open,
            });
        }
        Self {
            checked,
            levels,
            is_layered: true,
        }
    }

    /// Returns the number of the last node, where all positions are in stages.
    pub(super) fn sink(&self) -> usize {
        self.levels.len().max(1) * self.checked.layers()
    }

    /// Returns the edges that were not removed. Edges into a node come before edges out of it;
    /// edges of one level are ordered by start and then by end.
    pub(super) fn edges(&self) -> impl DoubleEndedIterator<Item = StageEdge<'_>> {
        let layers = self.checked.layers();
        let levels = self.levels.iter().enumerate();
        levels.flat_map(move |(number, entry)| {
            let open = entry.open.iter().zip(&*entry.ranges);
            let open = open.filter(|(open, _)| **open);
            open.map(move |(_, stage_range)| {
                let node = |number: usize, boundary: usize| match boundary {
                    0 => 0,
                    _ if boundary == layers => self.sink(),
                    _ if self.is_layered => number * layers + boundary,
                    _ => boundary,
                };
                StageEdge {
                    from: node(number, stage_range.range.start),
                    to: node(number + 1, stage_range.range.end),
                    level: entry.level,
                    stage_range,
                }
            })
        })
    }

    /// Removes the edges for which `keep` is false. `keep` has one entry for each edge, in the
    /// order of [`Network::edges`].
    pub(super) fn retain(&mut self, keep: impl IntoIterator<Item = bool>) {
        let open = self.levels.iter_mut().flat_map(|entry| &mut entry.open);
        let open = open.filter(|open| **open);
        for (open, keep) in open.zip(keep) {
            *open = keep;
        }
    }

    /// Returns the network with only the edges whose value in `objective` ([`Network::value`]) is
    /// at most `threshold`.
    pub(super) fn within(&self, objective: Objective, threshold: u128) -> Self {
        let mut network = self.clone();
        let keep: Vec<bool> = self
            .edges()
            .map(|edge| self.value(objective, &edge) <= threshold)
            .collect();
        network.retain(keep);
        network
    }

    /// Returns the value of the stage of `edge` in `objective`, such as the bytes on its fullest
    /// tile for the peak.
    pub(super) fn value(&self, objective: Objective, edge: &StageEdge<'_>) -> u128 {
        let StageRange { range, peak } = edge.stage_range;
        let after = edge.level.after.unwrap_or(0);
        self.checked.value(objective, (range, after), *peak)
    }

    /// Returns the fewest edges of any path from the first node to the last whose edges all have a
    /// value of at most `threshold` in `objective`; `None` if there is no such path.
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

    /// Removes the edges to which no path from the first node leads.
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

    /// Removes edges from which no path leads to the last node, the last such edges first, and
    /// stops when at most `enough` edges are left.
    pub(super) fn close_dead_ends(&mut self, enough: usize) {
        let mut excess = self.edges().count().saturating_sub(enough);
        let mut leads_on = vec![false; self.sink() + 1];
        leads_on[self.sink()] = true;
        let mut keep = Vec::new();
        for edge in self.edges().rev() {
            let is_kept = leads_on[edge.to] || excess == 0;
            leads_on[edge.from] |= is_kept;
            excess -= usize::from(!is_kept);
            keep.push(is_kept);
        }
        self.retain(keep.into_iter().rev());
    }

    /// Returns the distinct values that the edges have in `objective`, in ascending order.
    pub(super) fn distinct_values(&self, objective: Objective) -> Vec<u128> {
        let values = self.edges().map(|edge| self.value(objective, &edge));
        let mut values: Vec<u128> = values.collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Returns the stages, in order, of the path that takes the shortest range at every node, which
    /// has the earliest cuts. Every edge must be on a path to the last node.
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

/// Returns the levels of the layered network for `checked`, in the order in which paths visit them.
fn levels_of(checked: &CheckedProblem<'_>) -> Vec<StageLevel> {
    let stages = checked.stages;
    let level = |ipu: Option<usize>, after: Option<usize>| StageLevel {
        ipu,
        after,
        is_entry: ipu.is_none_or(|ipu| ipu == 0),
        is_last: match (after, ipu) {
            (Some(after), _) => after == 0,
            (None, ipu) => ipu.is_none_or(|ipu| ipu + 1 == stages),
        },
    };
    match (checked.is_by_depth(), checked.is_numbered()) {
        (false, _) => (0..stages).map(|ipu| level(Some(ipu), None)).collect(),
        (true, false) => {
            let after = (0..stages).rev();
            after.map(|after| level(None, Some(after))).collect()
        }
        (true, true) => {
            let of_total =
                |total: usize| (0..total).map(move |ipu| level(Some(ipu), Some(total - 1 - ipu)));
            (1..=stages).flat_map(of_total).collect()
        }
    }
}

/// Returns for each of `ranges` whether it may be a stage of `level`. `starts` says for each
/// boundary (n is before position n) whether a stage of this level may start there; afterwards it
/// says the same for the next level: whether a stage of `level` can end there.
fn open_edges(
    checked: &CheckedProblem<'_>,
    level: StageLevel,
    ranges: &[StageRange],
    starts: &mut Vec<bool>,
) -> Vec<bool> {
    let layers = checked.layers();
    let mut ends = vec![false; layers + 1];
    let mut open = Vec::with_capacity(ranges.len());
    for StageRange { range, peak } in ranges {
        let has_next = range.end == layers || !level.is_last;
        let may_stand = level
            .ipu
            .is_none_or(|ipu| checked.may_stand(ipu, range, *peak));
        let stands = starts[range.start] && has_next && may_stand;
        ends[range.end] |= stands;
        open.push(stands);
    }
    *starts = ends;
    open
}

/// Returns the ranges, ordered by start and then by end, that obey the constraints on cuts and are
/// within the highest limit of any IPU if `after` stages follow.
fn stage_ranges(checked: &CheckedProblem<'_>, after: usize) -> Arc<[StageRange]> {
    let limit = checked.highest_limit();
    let costs = checked.problem.costs;
    let rows = (0..checked.layers()).flat_map(|from| {
        let least = costs.least_from(from).iter();
        let fit = least.take_while(move |&&least| least <= limit).enumerate();
        fit.filter_map(move |(n, _)| {
            let range = from..from + n + 1;
            let peak = costs.peak(range.clone(), after)?;
            (peak <= limit).then_some(StageRange { range, peak })
        })
    });
    rows.filter(|stage_range| checked.obeys_cuts(&stage_range.range))
        .collect()
}
