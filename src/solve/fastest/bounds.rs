//! Lower bounds on the cycles of the last stages of a split. With them, the search for the fastest
//! split can give up a beginning (the first stages) of a split before it places the last stages.

use crate::{solve::checked_problem::CheckedProblem, time::SlotKind};
use std::ops::Range;

/// Cycles of a stage in a slot (an interval in which each IPU works on the passes of its stage),
/// for each set of passes that the stage may run in the slot: none, forward, backward (with
/// recomputation), or both.
type CyclesByPasses = [u64; 4];

/// Table of lower bounds on the cycles of the last stages of a split. Entry `[n][p]` is for n
/// stages, of which the first starts at position `p`; `None` if n stages cannot cover all positions
/// from there to the end.
pub type RestsByStages = Vec<Vec<Option<RestBounds>>>;

/// Lower bounds on the cycles of the last stages of a split, wherever the cuts between them are.
#[derive(Clone, Copy, Default)]
pub struct RestBounds {
    /// For each set of passes (none, forward, backward, both): a lower bound on the cycles of a
    /// slot (an interval of the step) in which all of the last stages of the split run these
    /// passes. The slot takes as long as the slowest of these stages.
    pub busiest: CyclesByPasses,
    /// For each set of passes (forward, backward): a lower bound on the cycles that the next stage
    /// to be placed takes in a slot (an interval of the step) in which it runs these passes.
    first: CyclesByPasses,
}

/// Computes lower bounds on the cycles of the last n stages of a split, for each n up to `stages`.
/// If it matters which IPU runs a stage, they only hold for splits into exactly `stages` stages,
/// whose last stage is on the IPU with index `stages - 1`.
pub fn rests(checked: &CheckedProblem<'_>, stages: usize) -> RestsByStages {
    let layers = checked.layers();
    let mut rests = vec![vec![None; layers + 1]];
    rests[0][layers] = Some(RestBounds::default());
    for left in 1..=stages {
        let later = &rests[left - 1];
        let with_stage = |start| RestBounds::new(checked, stages - left, stages, start, later);
        rests.push((0..layers).map(with_stage).chain([None]).collect());
    }
    rests
}

/// The passes (forward, backward) that the last stages of a split run in slots of one kind. A slot
/// is an interval of a step. In all slots of one kind, the same stages run the same passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RestActivity {
    /// The passes (forward, backward) that all stages not placed yet run in a slot (an interval of
    /// the step) of this kind, as an index into [`CyclesByPasses`]. Passes of only some stages are
    /// left out.
    busiest: usize,
    /// The passes (forward, backward) that the next stage to be placed runs in a slot (an interval
    /// of the step) of this kind, as an index into [`CyclesByPasses`].
    first: usize,
}

impl RestActivity {
    /// Determines which passes (forward, backward) all of the stages `last` run in a slot (an
    /// interval of the step) of the kind `kind`, and which passes the first of these stages runs.
    pub fn new(kind: &SlotKind, last: Range<usize>) -> Self {
        let (forward, backward) = (&kind.forward[last.clone()], &kind.backward[last]);
        let index =
            |is: fn(&[bool]) -> bool| usize::from(is(forward)) + 2 * usize::from(is(backward));
        Self {
            busiest: index(|active| active.iter().all(|&is| is)),
            first: index(|active| active.first() == Some(&true)),
        }
    }
}

impl RestBounds {
    /// Computes lower bounds on the cycles of the last stages of a split into `stages` stages: of
    /// the stage with the index `number`, which starts at position `start`, and of all later
    /// stages. `later` has the bounds of the later stages alone, by the position where they start.
    /// Returns `None` if the stages cannot cover all positions from `start` on.
    fn new(
        checked: &CheckedProblem<'_>,
        number: usize,
        stages: usize,
        start: usize,
        later: &[Option<Self>],
    ) -> Option<Self> {
        let (problem, after) = (&checked.problem, stages - 1 - number);
        problem
            .stages(start, start + 1..later.len())
            .filter_map(|stage| {
                let rest = later[stage.positions.end]?;
                checked.peak_at(number, stages, &stage)?;
                let times = problem.times_in(stage.profile)?;
                let (parts, _) = times.stage_and_out(&stage.positions, after)?;
                let first = parts.by_set();
                let busiest = std::array::from_fn(|passes| first[passes].max(rest.busiest[passes]));
                Some(Self { busiest, first })
            })
            .reduce(Self::min)
    }

    /// Returns a lower bound on the cycles of a slot, an interval in which each IPU works on the
    /// passes of its stage. `work` states which passes the last stages of a split run in it.
    pub fn of(&self, work: RestActivity) -> u64 {
        self.busiest[work.busiest].max(self.first[work.first])
    }

    fn min(self, other: Self) -> Self {
        let least = |one: CyclesByPasses, other: CyclesByPasses| {
            std::array::from_fn(|passes| one[passes].min(other[passes]))
        };
        Self {
            busiest: least(self.busiest, other.busiest),
            first: least(self.first, other.first),
        }
    }
}
