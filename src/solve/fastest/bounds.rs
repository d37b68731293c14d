//! Lower bounds on the time of stages that are not chosen yet.

use crate::solve::checked_problem::CheckedProblem;
use crate::time::{SlotKind, StageTimes};
use std::ops::Range;
use std::sync::Arc;

/// Cycles by kind of work: of none, of the forward pass, of the backward pass (with recomputation),
/// and of both.
type Work = [u128; 4];

/// Kind of work of a stage that runs forward, or backward, or both.
fn kind_of(forward: bool, backward: bool) -> usize {
    usize::from(forward) + 2 * usize::from(backward)
}

/// For splits into one number of stages: lower bounds, by kind of work, on the cycles of the
/// busiest stage from one stage on.
#[derive(Debug)]
pub(super) struct Bounds {
    stages: usize,
    /// The table, which may be shared with splits into more stages.
    table: Arc<Table>,
}

/// The bounds by stage, then by its start.
#[derive(Debug)]
struct Table {
    stages: usize,
    positions: usize,
    /// `None` if the rest has no split. After the last stage comes one row for no stage.
    rests: Vec<Option<Rest>>,
    /// The end of the stage with the least cycles of both passes.
    ends: Vec<usize>,
}

/// Lower bounds on the work of the remaining stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    /// Bounds on the busiest remaining stage.
    busiest: Work,
    /// Bounds on the first remaining stage.
    first: Work,
}

/// Bytes on the fullest tile of a range as number `stage` of `stages` stages; `None` if it may not
/// be that stage.
pub(super) fn peak(
    checked: &CheckedProblem<'_>,
    (stage, stages): (usize, usize),
    range: &Range<usize>,
) -> Option<u64> {
    let costs = checked.problem.costs;
    let peak = costs.peak(range.clone(), stages - 1 - stage)?;
    (checked.may_stand(stage, range, peak) && checked.obeys_cuts(range)).then_some(peak)
}

impl Table {
    fn new(checked: &CheckedProblem<'_>, times: &StageTimes, stages: usize) -> Self {
        let positions = checked.layers();
        let mut table = Self {
            stages,
            positions,
            rests: vec![None; (stages + 1) * (positions + 1)],
            ends: vec![0; (stages + 1) * (positions + 1)],
        };
        let end = table.place(stages, positions);
        table.rests[end] = Some(Rest {
            busiest: [0; 4],
            first: [0; 4],
        });
        for stage in (0..stages).rev() {
            for start in 0..positions {
                table.add(checked, times, stage, start);
            }
        }
        table
    }

    fn place(&self, stage: usize, start: usize) -> usize {
        stage * (self.positions + 1) + start
    }

    /// Computes the bounds over all stages that start here.
    fn add(
        &mut self,
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        stage: usize,
        start: usize,
    ) {
        let place = self.place(stage, start);
        let mut found: Option<Rest> = None;
        // Longer ranges are over the limit.
        for end in start + 1..=checked.problem.costs.reach(start) {
            let range = start..end;
            let Some(rest) = self.rests[self.place(stage + 1, end)] else {
                continue;
            };
            let parts = times.stage_and_out(&range, self.stages - 1 - stage);
            let Some((parts, _)) =
                parts.filter(|_| peak(checked, (stage, self.stages), &range).is_some())
            else {
                continue;
            };
            let kinds = [0, 1, 2, 3];
            let first = kinds.map(|kind| parts.active(kind & 1 > 0, kind & 2 > 0));
            let busiest = kinds.map(|kind| first[kind].max(rest.busiest[kind]));
            let best = found.get_or_insert(Rest { busiest, first });
            if busiest[3] < best.busiest[3] || self.ends[place] == 0 {
                self.ends[place] = end;
            }
            for kind in kinds {
                best.busiest[kind] = best.busiest[kind].min(busiest[kind]);
                best.first[kind] = best.first[kind].min(first[kind]);
            }
        }
        self.rests[place] = found;
    }
}

impl Bounds {
    /// Bounds for splits into this number of stages; `None` if there is no split.
    pub(super) fn new(
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        stages: usize,
    ) -> Option<Self> {
        let table = Arc::new(Table::new(checked, times, stages));
        Self::of_table(table, stages)
    }

    /// Bounds for splits into each number of stages up to `most`, if there are any. They share one
    /// table, unless it matters which IPU a stage is on: the rest after a stage is the same in all
    /// of them.
    pub(super) fn of_all(
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        most: usize,
    ) -> Vec<Self> {
        if checked.is_numbered() {
            let all = (1..=most).filter_map(|stages| Self::new(checked, times, stages));
            return all.collect();
        }
        let table = Arc::new(Table::new(checked, times, most));
        let all = (1..=most).filter_map(|stages| Self::of_table(table.clone(), stages));
        all.collect()
    }

    fn of_table(table: Arc<Table>, stages: usize) -> Option<Self> {
        let bounds = Self { stages, table };
        bounds.leads_on(0, 0).then_some(bounds)
    }

    /// Number of stages of the splits.
    pub(super) fn stages(&self) -> usize {
        self.stages
    }

    fn place(&self, stage: usize, start: usize) -> usize {
        let more = self.table.stages - self.stages;
        self.table.place(stage + more, start)
    }

    /// Can the stages from this one on cover the positions from `start` on?
    pub(super) fn leads_on(&self, stage: usize, start: usize) -> bool {
        self.rest(stage, start).is_some()
    }

    /// The lower bounds on the stages from `stage` on, which start at `start`.
    pub(super) fn rest(&self, stage: usize, start: usize) -> Option<Rest> {
        if start > self.table.positions {
            return None;
        }
        *self.table.rests.get(self.place(stage, start))?
    }

    /// The split with the fastest slowest stage.
    pub(super) fn path(&self) -> Option<Vec<Range<usize>>> {
        let mut start = 0;
        let mut stages = Vec::with_capacity(self.stages);
        for stage in 0..self.stages {
            self.rest(stage, start)?;
            let end = self.table.ends[self.place(stage, start)];
            stages.push(start..end);
            start = end;
        }
        Some(stages)
    }
}

/// The kinds of work in a slot of the stages from one on: of all of them at least, and of the
/// first.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkOfRest {
    busiest: usize,
    first: usize,
}

impl WorkOfRest {
    /// The work of the stages from `stage` on.
    pub(super) fn new(kind: &SlotKind, stage: usize) -> Self {
        let (forward, backward) = (&kind.forward[stage..], &kind.backward[stage..]);
        let all = |active: &[bool]| active.iter().all(|&is| is);
        let first = |active: &[bool]| active.first().is_some_and(|&is| is);
        Self {
            busiest: kind_of(all(forward), all(backward)),
            first: kind_of(first(forward), first(backward)),
        }
    }
}

impl Rest {
    /// Lower bound on the cycles of the busiest stage in a slot with this work.
    pub(super) fn of(&self, work: WorkOfRest) -> u128 {
        self.busiest[work.busiest].max(self.first[work.first])
    }
}
