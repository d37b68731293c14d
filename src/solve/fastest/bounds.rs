//! Lower bounds on the cycles of the stages that the search for the fastest split has not placed
//! yet.

use crate::solve::checked_problem::CheckedProblem;
use crate::time::{SlotKind, StageTimes};
use std::ops::Range;
use std::sync::Arc;

/// Cycles of a stage in a slot, by the passes that run in it: none, forward, backward (with
/// recomputation), or both.
type CyclesByPasses = [u128; 4];

/// Returns the index in [`CyclesByPasses`] for a stage that runs these passes in a slot.
fn index_of(forward: bool, backward: bool) -> usize {
    usize::from(forward) + 2 * usize::from(backward)
}

/// Lower bounds on the cycles of the busiest of the remaining stages, for splits into one number of
/// stages.
#[derive(Debug)]
pub(super) struct Bounds {
    stages: usize,
    /// The table of bounds, which splits into more stages may share.
    table: Arc<BoundsTable>,
}

/// Lower bounds for all remainders of splits, by the first remaining stage and then by the position
/// where it starts.
#[derive(Debug)]
struct BoundsTable {
    stages: usize,
    positions: usize,
    /// The bounds; `None` if the remaining stages cannot cover the remaining positions. The last
    /// row has no remaining stage.
    rests: Vec<Option<RestBounds>>,
    /// The end of the first remaining stage in the split whose slowest stage takes the fewest
    /// cycles.
    ends: Vec<usize>,
}

/// Lower bounds on the cycles of the remaining stages of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestBounds {
    /// Lower bounds on the cycles of the slowest of all remaining stages.
    busiest: CyclesByPasses,
    /// Lower bounds on the cycles of the first remaining stage.
    first: CyclesByPasses,
}

/// Returns the bytes on the fullest tile of `range` as the stage with number `stage` (from 0) of
/// `stages` stages; `None` if limits or constraints rule this out.
pub(super) fn peak(
    checked: &CheckedProblem<'_>,
    (stage, stages): (usize, usize),
    range: &Range<usize>,
) -> Option<u64> {
    let costs = checked.problem.costs;
    let peak = costs.peak(range.clone(), stages - 1 - stage)?;
    (checked.may_stand(stage, range, peak) && checked.obeys_cuts(range)).then_some(peak)
}

impl BoundsTable {
    fn new(checked: &CheckedProblem<'_>, times: &StageTimes, stages: usize) -> Self {
        let positions = checked.layers();
        let mut table = Self {
            stages,
            positions,
            rests: vec![None; (stages + 1) * (positions + 1)],
            ends: vec![0; (stages + 1) * (positions + 1)],
        };
        let end = table.place(stages, positions);
        table.rests[end] = Some(RestBounds {
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

    /// Computes the bounds for remainders whose first stage is `stage` and starts at `start`, from
    /// the bounds for later stages.
    fn add(
        &mut self,
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        stage: usize,
        start: usize,
    ) {
        let place = self.place(stage, start);
        let mut found: Option<RestBounds> = None;
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
            let best = found.get_or_insert(RestBounds { busiest, first });
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
    /// Computes the bounds for splits into `stages` stages; `None` if there is no such split.
    pub(super) fn new(
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        stages: usize,
    ) -> Option<Self> {
        let table = Arc::new(BoundsTable::new(checked, times, stages));
        Self::of_table(table, stages)
    }

    /// Computes the bounds for each number of stages up to `most` for which there are splits. They
    /// share one table, unless the IPU of a stage matters: otherwise the remaining stages have the
    /// same bounds whatever their number.
    pub(super) fn of_all(
        checked: &CheckedProblem<'_>,
        times: &StageTimes,
        most: usize,
    ) -> Vec<Self> {
        if checked.is_numbered() {
            let all = (1..=most).filter_map(|stages| Self::new(checked, times, stages));
            return all.collect();
        }
        let table = Arc::new(BoundsTable::new(checked, times, most));
        let all = (1..=most).filter_map(|stages| Self::of_table(table.clone(), stages));
        all.collect()
    }

    fn of_table(table: Arc<BoundsTable>, stages: usize) -> Option<Self> {
        let bounds = Self { stages, table };
        bounds.leads_on(0, 0).then_some(bounds)
    }

    /// Returns the number of stages of the splits that the bounds are for.
    pub(super) fn stages(&self) -> usize {
        self.stages
    }

    fn place(&self, stage: usize, start: usize) -> usize {
        let more = self.table.stages - self.stages;
        self.table.place(stage + more, start)
    }

    /// Can the stages from number `stage` on cover all positions from `start` on?
    pub(super) fn leads_on(&self, stage: usize, start: usize) -> bool {
        self.rest(stage, start).is_some()
    }

    /// Returns the lower bounds on the stages from number `stage` on, the first of which starts at
    /// `start`; `None` if there is no such split.
    pub(super) fn rest(&self, stage: usize, start: usize) -> Option<RestBounds> {
        if start > self.table.positions {
            return None;
        }
        *self.table.rests.get(self.place(stage, start))?
    }

    /// Returns the stages of the split whose slowest stage takes the fewest cycles; `None` if the
    /// bounds lead to no split.
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

/// The passes that the remaining stages run in one kind of slot, as indices of [`CyclesByPasses`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RestActivity {
    /// The passes that all remaining stages run, as an index of [`CyclesByPasses`].
    busiest: usize,
    /// The passes that the first remaining stage runs, as an index of [`CyclesByPasses`].
    first: usize,
}

impl RestActivity {
    /// Determines the passes of the stages from number `stage` on in slots of this `kind`.
    pub(super) fn new(kind: &SlotKind, stage: usize) -> Self {
        let (forward, backward) = (&kind.forward[stage..], &kind.backward[stage..]);
        let all = |active: &[bool]| active.iter().all(|&is| is);
        let first = |active: &[bool]| active.first().is_some_and(|&is| is);
        Self {
            busiest: index_of(all(forward), all(backward)),
            first: index_of(first(forward), first(backward)),
        }
    }
}

impl RestBounds {
    /// Returns a lower bound on the cycles of the busiest remaining stage in a slot with these
    /// passes.
    pub(super) fn of(&self, work: RestActivity) -> u128 {
        self.busiest[work.busiest].max(self.first[work.first])
    }
}
