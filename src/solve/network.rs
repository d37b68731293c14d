//! Plans as paths: boundaries between positions are nodes, ranges that may be a stage are edges.
//!
//! The *compact* network has one node for each boundary and one edge for each range. A path in it
//! may have any number of edges. The *layered* network has levels: each edge leads to the next
//! level, so that no path has more edges than there are IPUs. A level fixes what matters about a
//! stage's place in the split: its IPU, the number of stages after it, or both. In the last case
//! each number of stages has separate levels.

use std::ops::Range;
use std::sync::Arc;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;

/// A range that may be a stage, with its peak in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageRange {
    pub range: Range<usize>,
    pub peak: u64,
}

/// The place of a level's stages in the split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// The IPU of the level's stages; `None` if it does not matter.
    pub ipu: Option<usize>,
    /// Number of stages after those of the level; `None` if it does not matter.
    pub after: Option<usize>,
    /// Can the first stage of a plan be here?
    is_entry: bool,
    /// Does no level follow?
    is_last: bool,
}

/// A range that may be a stage, between two nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    pub from: usize,
    pub to: usize,
    pub level: Level,
    pub stage_range: &'a StageRange,
}

/// The ranges of one level.
#[derive(Debug, Clone)]
struct LevelRanges {
    level: Level,
    /// By start, then by end.
    ranges: Arc<[StageRange]>,
    /// By range: is its edge in the network?
    open: Vec<bool>,
}

/// Nodes 0 (no position is placed) to [`Network::sink`] (all are placed), and the open edges
/// between them. There is at least one position.
#[derive(Debug, Clone)]
pub(super) struct Network<'q> {
    pub checked: &'q CheckedProblem<'q>,
    levels: Vec<LevelRanges>,
    is_layered: bool,
}

impl<'q> Network<'q> {
    /// One edge for each range that is within the highest limit and obeys the constraints on cuts.
    pub(super) fn compact(checked: &'q CheckedProblem<'q>) -> Self {
        let ranges = stage_ranges(checked, 0);
        let only = LevelRanges {
            level: Level::default(),
            open: vec![true; ranges.len()],
            ranges,
        };
        Self {
            checked,
            levels: vec![only],
            is_layered: false,
        }
    }

    /// One edge for each range of [`Network::compact`] on each level where it may be and where the
    /// stages before can end at its start.
    pub(super) fn layered(checked: &'q CheckedProblem<'q>) -> Self {
        // By number of stages after them; without a pipeline, all are equal.
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

    /// The last node, where all positions are placed.
    pub(super) fn sink(&self) -> usize {
        self.levels.len().max(1) * self.checked.layers()
    }

    /// The open edges. Edges that enter a node come before edges that leave it.
    pub(super) fn edges(&self) -> impl DoubleEndedIterator<Item = Edge<'_>> {
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
                Edge {
                    from: node(number, stage_range.range.start),
                    to: node(number + 1, stage_range.range.end),
                    level: entry.level,
                    stage_range,
                }
            })
        })
    }

    /// Closes the open edges for which `keep`, in their order, is false.
    pub(super) fn retain(&mut self, keep: impl IntoIterator<Item = bool>) {
        let open = self.levels.iter_mut().flat_map(|entry| &mut entry.open);
        let open = open.filter(|open| **open);
        for (open, keep) in open.zip(keep) {
            *open = keep;
        }
    }

    /// The network of ranges that may be stages, with only those whose value, such as the bytes of the
    /// stage's fullest tile, is at most `threshold`. `objective` compares splits by their largest value.
    pub(super) fn within(&self, objective: Objective, threshold: u128) -> Self {
        let mut network = self.clone();
        let keep: Vec<bool> = self
            .edges()
            .map(|edge| self.value(objective, &edge) <= threshold)
            .collect();
        network.retain(keep);
        network
    }

    /// The value of `edge` in `objective`.
    pub(super) fn value(&self, objective: Objective, edge: &Edge<'_>) -> u128 {
        let StageRange { range, peak } = edge.stage_range;
        let after = edge.level.after.unwrap_or(0);
        self.checked.value(objective, (range, after), *peak)
    }

    /// The fewest edges of any path over edges with a value of at most `threshold` in `objective`;
    /// `None` if there is no path.
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

    /// Closes edges that lead nowhere, the last ones first, until at most `enough` edges are left.
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

    /// The distinct values of open edges in `objective`, ascending.
    pub(super) fn distinct_values(&self, objective: Objective) -> Vec<u128> {
        let values = self.edges().map(|edge| self.value(objective, &edge));
        let mut values: Vec<u128> = values.collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The stages of the path that takes the shortest range wherever paths part. Every open edge
    /// must be on some path to the end.
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

/// The levels of a layered network, in order.
fn levels_of(checked: &CheckedProblem<'_>) -> Vec<Level> {
    let stages = checked.stages;
    let level = |ipu: Option<usize>, after: Option<usize>| Level {
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

/// By range: may it be a stage of the level? `starts` has the boundaries at which stages of the
/// previous level can end; afterwards those at which stages of this level can.
fn open_edges(
    checked: &CheckedProblem<'_>,
    level: Level,
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

/// The ranges that are within the highest limit with `after` stages after them and obey the
/// constraints on cuts.
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
