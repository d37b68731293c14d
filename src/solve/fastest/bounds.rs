//! Lower bounds on the cycles of the stages that the search for the fastest split has not placed
//! yet.

use crate::solve::checked_problem::CheckedProblem;
use crate::solve::problem::CompiledStage;
use crate::time::SlotKind;
use std::sync::Arc;

/// Cycles of a stage in a slot (an interval in which each IPU works on a pass of its stage). There
/// is one entry per set of passes that the stage may run in the slot: none, forward, backward (with
/// recomputation), or both.
type CyclesByPasses = [u128; 4];

/// Lower bounds on the cycles of the stages that a search has not placed yet, for splits into a
/// fixed number of stages.
pub(super) struct Bounds {
    pub stages: usize,
    /// The table of bounds, which may be for splits into more than `stages` stages. Its last rows
    /// are the bounds for splits into `stages` stages.
    table: Arc<BoundsTable>,
}

/// Lower bounds on the cycles of the last stages of a split into `stages` stages, by the index of
/// the first of these stages and the position where it starts.
struct BoundsTable {
    stages: usize,
    positions: usize,
    /// For each first stage and start position: the bounds; `None` if the stages from the first
    /// stage on cannot cover all positions from the start position on. One more row, after the row
    /// of the last stage, has the bounds for no remaining stage.
    rests: Vec<Option<RestBounds>>,
}

/// Lower bounds on the cycles of the last stages of a split: all stages from one stage on, which
/// begins at a given position. The bounds hold wherever the cuts between these stages are.
#[derive(Clone, Copy, Default)]
pub(super) struct RestBounds {
    /// For each combination of passes: a lower bound on the cycles of the slowest of these last
    /// stages, if all of them run these passes.
    busiest: CyclesByPasses,
    /// For each combination of passes: a lower bound on the cycles of the first of these last
    /// stages, if it runs these passes.
    first: CyclesByPasses,
    /// The end (exclusive) of the first of these last stages, if the cuts are chosen so that the
    /// slowest of these stages takes the fewest cycles.
    end: usize,
    /// The index of the profile of the first of these last stages, which ends at `end`.
    profile: usize,
}

/// Returns the bytes on the fullest tile of `stage` if it has the index `number` in a split into
/// `stages` stages; `None` if limits or constraints rule this out.
pub(super) fn peak(
    checked: &CheckedProblem<'_>,
    (number, stages): (usize, usize),
    stage: &CompiledStage,
) -> Option<u64> {
    let peak = checked.problem.peak(stage, stages - 1 - number)?;
    let positions = &stage.positions;
    (checked.may_stand(number, positions, peak) && checked.obeys_cuts(positions)).then_some(peak)
}

impl BoundsTable {
    fn new(checked: &CheckedProblem<'_>, stages: usize) -> Self {
        let positions = checked.layers();
        let mut table = Self {
            stages,
            positions,
            rests: vec![None; (stages + 1) * (positions + 1)],
        };
        let end = table.place(stages, positions);
        table.rests[end] = Some(RestBounds::default());
        for stage in (0..stages).rev() {
            for start in 0..positions {
                table.add(checked, stage, start);
            }
        }
        table
    }

    fn place(&self, stage: usize, start: usize) -> usize {
        stage * (self.positions + 1) + start
    }

    /// Computes the bounds for the stages from index `number` on, the first of which starts at
    /// position `start`. The bounds for the index `number + 1` must already be in the table.
    fn add(&mut self, checked: &CheckedProblem<'_>, number: usize, start: usize) {
        let place = self.place(number, start);
        let mut found: Option<RestBounds> = None;
        let problem = &checked.problem;
        for stage in problem.stages(start, start + 1..self.positions + 1) {
            let CompiledStage { positions, profile } = &stage;
            let Some(rest) = self.rests[self.place(number + 1, positions.end)] else {
                continue;
            };
            let may_stand = peak(checked, (number, self.stages), &stage).is_some();
            let times = problem.times_in(*profile).filter(|_| may_stand);
            let parts =
                times.and_then(|times| times.stage_and_out(positions, self.stages - 1 - number));
            let Some((parts, _)) = parts else {
                continue;
            };
            let kinds = [0, 1, 2, 3];
            let first = kinds.map(|kind| parts.active(kind & 1 > 0, kind & 2 > 0));
            let busiest = kinds.map(|kind| first[kind].max(rest.busiest[kind]));
            let best = found.get_or_insert(RestBounds {
                busiest,
                first,
                end: positions.end,
                profile: *profile,
            });
            if busiest[3] < best.busiest[3] {
                (best.end, best.profile) = (positions.end, *profile);
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
    /// Computes the bounds for splits into each number of stages, from 1 to `most`. A number is
    /// left out if no split into this number of stages is within the limits and constraints. All
    /// numbers share one table, since the bounds only depend on the number of remaining stages,
    /// unless it matters which IPU a stage runs on.
    pub fn of_all(checked: &CheckedProblem<'_>, most: usize) -> Vec<Self> {
        let table = |stages| Arc::new(BoundsTable::new(checked, stages));
        let shared = (!checked.is_numbered()).then(|| table(most));
        (1..=most)
            .map(|stages| Self {
                stages,
                table: shared.clone().unwrap_or_else(|| table(stages)),
            })
            .filter(|bounds| bounds.leads_on(0, 0))
            .collect()
    }

    fn place(&self, stage: usize, start: usize) -> usize {
        self.table
            .place(stage + (self.table.stages - self.stages), start)
    }

    /// Returns whether the stages from index `stage` on can cover all positions from `start` on,
    /// within the limits and constraints.
    pub fn leads_on(&self, stage: usize, start: usize) -> bool {
        self.rest(stage, start).is_some()
    }

    /// Returns the lower bounds for the stages from index `stage` on, the first of which starts at
    /// position `start`; `None` if these stages cannot cover all positions from `start` on.
    pub fn rest(&self, stage: usize, start: usize) -> Option<RestBounds> {
        if start > self.table.positions {
            return None;
        }
        *self.table.rests.get(self.place(stage, start))?
    }

    /// Returns the stages, in order, of the split whose slowest stage takes the fewest cycles;
    /// `None` if the table has no bounds for one of these stages.
    pub fn path(&self) -> Option<Vec<CompiledStage>> {
        let mut start = 0;
        (0..self.stages)
            .map(|stage| {
                let RestBounds { end, profile, .. } = self.rest(stage, start)?;
                Some(CompiledStage {
                    positions: std::mem::replace(&mut start, end)..end,
                    profile,
                })
            })
            .collect()
    }
}

/// The passes that the stages not placed yet run in one kind of slot.
#[derive(Clone, Copy)]
pub(super) struct RestActivity {
    /// Index into [`CyclesByPasses`] of the passes that all of the stages not placed yet run.
    busiest: usize,
    /// Index into [`CyclesByPasses`] of the passes that the first of the stages not placed yet
    /// runs.
    first: usize,
}

impl RestActivity {
    /// Determines the passes that the stages from index `stage` on run in slots of this `kind`.
    pub fn new(kind: &SlotKind, stage: usize) -> Self {
        let (forward, backward) = (&kind.forward[stage..], &kind.backward[stage..]);
        let index =
            |is: fn(&[bool]) -> bool| usize::from(is(forward)) + 2 * usize::from(is(backward));
        Self {
            busiest: index(|active| active.iter().all(|&is| is)),
            first: index(|active| active.first() == Some(&true)),
        }
    }
}

impl RestBounds {
    /// Returns a lower bound on the cycles of the busiest of the remaining stages, in a slot in
    /// which these stages run the passes `work`.
    pub fn of(&self, work: RestActivity) -> u128 {
        self.busiest[work.busiest].max(self.first[work.first])
    }
}
