//! A problem that passed its checks, with its constraints arranged so that the solvers can check
//! quickly whether a range of positions obeys them.

use std::ops::Range;

use super::{
    conflict,
    constraints::{Constraint, CutRule, cuts_before},
    objectives::Objective,
    plan::{Plan, Score},
    problem::{CompiledStage, Problem, SolveError},
};
use crate::{memory::RangeCosts, time::StageTimes};

/// Maximum number of edges (ranges of positions that may be stages) that the integer program gets.
/// The program takes some hundredths of a second with this number of edges, and seconds with ten
/// times as many.
const MAX_EDGES: usize = 5_000;

pub struct CheckedProblem<'a> {
    /// The problem to solve, which passed its checks. Solvers limit the number of stages by
    /// `stages`, not by `problem.ipus`, which may be higher.
    pub problem: Problem<'a>,
    /// Maximum number of stages of a split, by the numbers of IPUs and positions. A pin (a position
    /// fixed to an IPU) may lower it: if the last position is fixed to IPU 1, a split has two
    /// stages.
    pub stages: usize,
    /// Maximum number of edges of the integer program. An edge is a range of positions that may be
    /// a stage; the program chooses the edges that form the best split. Edges beyond the maximum
    /// are left out, except those of one best split.
    pub max_edges: usize,
    /// For each boundary between positions, and for both ends of the layer order: whether
    /// constraints require or forbid a cut there.
    cuts_before: Vec<CutRule>,
    /// For each boundary between positions: the number of cuts that constraints require from the
    /// start of the layer order up to this boundary (inclusive). The number of required cuts inside
    /// a range is a difference of two entries.
    required_until: Vec<usize>,
    /// The pins of layers to IPUs, as pairs of a position and the index of its IPU, in ascending
    /// order.
    pins: Vec<(usize, usize)>,
}

impl<'a> CheckedProblem<'a> {
    /// Checks `problem` and prepares its constraints.
    ///
    /// # Errors
    /// The errors of [`Problem::check`], and [`SolveError::Contradiction`] if no split obeys all
    /// constraints.
    pub fn new(problem: &Problem<'a>) -> Result<Self, SolveError> {
        problem.check()?;
        let layers = problem.layers();
        if let Some(conflict) = conflict::find(problem.constraints, layers, problem.ipus) {
            return Err(SolveError::Contradiction(Box::new(conflict)));
        }
        let cuts_before = cuts_before(problem.constraints, layers);
        let mut pins: Vec<_> = problem
            .constraints
            .iter()
            .filter_map(Constraint::pin)
            .collect();
        pins.sort_unstable();
        // The last pin (a position fixed to an IPU) determines the number of stages before the
        // stage with this position. From there on, there is at most one stage per position, which
        // limits the number of all stages.
        let most = pins
            .last()
            .map_or(layers, |&(position, ipu)| ipu + layers - position);
        Ok(Self {
            problem: *problem,
            stages: problem
                .all_ranges()
                .map(RangeCosts::stages)
                .fold(problem.ipus.min(most), usize::min),
            max_edges: MAX_EDGES,
            required_until: cuts_before
                .iter()
                .scan(0, |count, cut| {
                    *count += usize::from(*cut == CutRule::Required);
                    Some(*count)
                })
                .collect(),
            cuts_before,
            pins,
        })
    }

    pub fn layers(&self) -> usize {
        self.problem.layers()
    }

    /// Returns whether it matters which IPU a stage runs on, because of pins (layers fixed to IPUs)
    /// or of limits that differ between IPUs.
    pub fn is_numbered(&self) -> bool {
        let limits = self.problem.limits;
        !self.pins.is_empty() || limits.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// Returns whether the bytes or cycles of a stage depend on the number of stages after it, as
    /// the bytes of stashes in a pipeline do.
    pub fn is_by_depth(&self) -> bool {
        self.problem.by_profile.iter().any(|own| {
            let times = own.times.as_deref();
            own.ranges.is_by_depth() || times.is_some_and(StageTimes::is_by_depth)
        })
    }

    /// Returns the objectives of the problem's goal, the most important first. Leaves out
    /// [`Objective::Cycles`] if a profile has no cycle counts.
    pub fn order(&self) -> impl Iterator<Item = Objective> + use<'_, 'a> {
        let (has_cycles, order) = (self.problem.has_cycles(), self.problem.goal.order());
        order
            .iter()
            .copied()
            .filter(move |&objective| has_cycles || objective != Objective::Cycles)
    }

    /// Returns whether constraints allow cuts at both ends of `range`, and require none inside it.
    pub fn obeys_cuts(&self, range: &Range<usize>) -> bool {
        let forbidden = |boundary: usize| self.cuts_before[boundary] == CutRule::Forbidden;
        let inside = self.required_until[range.end - 1] - self.required_until[range.start];
        inside == 0 && !forbidden(range.start) && !forbidden(range.end)
    }

    /// Returns whether the positions `range` may be the stage on the IPU with index `stage`: the
    /// IPU exists, its limit is at least `peak` bytes on a tile, and pins (layers fixed to IPUs)
    /// are obeyed.
    pub fn may_stand(&self, stage: usize, range: &Range<usize>, peak: u64) -> bool {
        let limit = self.problem.limit_of(stage);
        let fits = stage < self.stages && limit.is_some_and(|limit| peak <= limit);
        // A pin (a position fixed to an IPU) never has an earlier IPU than the pin before it, since
        // the constraints passed their checks. If the first and the last pin in `range` have the
        // IPU of this stage, all pins between them have it, too.
        let after = &self.pins[self.pins.partition_point(|pin| pin.0 < range.start)..];
        let inside = &after[..after.partition_point(|pin| pin.0 < range.end)];
        fits && [inside.first(), inside.last()]
            .iter()
            .flatten()
            .all(|pin| pin.1 == stage)
    }

    /// Returns the bytes on the fullest tile of `stage` with the index `number` in a split into
    /// `stages` stages; `None` if limits or constraints rule out this stage.
    pub fn peak_at(&self, number: usize, stages: usize, stage: &CompiledStage) -> Option<u64> {
        let positions = &stage.positions;
        let peak = self.problem.peak(stage, stages - 1 - number)?;
        (self.may_stand(number, positions, peak) && self.obeys_cuts(positions)).then_some(peak)
    }

    /// Returns the score of the split `plan`; `None` if it has too many stages, is over a limit,
    /// breaks a constraint, or lacks cycle counts.
    pub fn score(&self, plan: &Plan) -> Option<Score> {
        let peaks = self.problem.peaks(plan)?;
        let mut stages = plan.stages().iter().zip(&peaks).enumerate();
        let is_allowed = stages.all(|(ipu, (range, &peak))| self.may_stand(ipu, range, peak))
            && self.problem.broken_by(plan).next().is_none();
        is_allowed
            .then(|| Score::of_peaks(&self.problem, plan, &peaks))
            .flatten()
    }

    /// Returns the internal error that the solver could not prove its split to be the best, because
    /// of `reason`.
    pub fn unproven(&self, reason: &str) -> SolveError {
        SolveError::Internal(format!(
            "no proven {}: {reason}",
            self.problem.goal.order()[0]
        ))
    }

    /// Returns the value in `objective` of a stage with `after` stages after it and `peak` bytes on
    /// its fullest tile. The value of a split is the sum over its stages or, if the objective is a
    /// bottleneck (such as the peak), the maximum over its stages. The bytes over a cut count for
    /// the stage before the cut.
    pub fn value(
        &self,
        objective: Objective,
        stage: &CompiledStage,
        after: usize,
        peak: u64,
    ) -> u128 {
        match objective {
            Objective::Peak => u128::from(peak),
            Objective::Stages => 1,
            Objective::Squares => u128::from(peak).pow(2),
            Objective::CutBytes => u128::from(self.problem.bytes_over_cut_after(stage)),
            Objective::Cycles => self.problem.stage_cycles(stage, after).unwrap_or(0),
        }
    }
}
