//! A problem that passed its checks, with its constraints arranged so that it is quick to check
//! whether a range of positions obeys them.

use std::ops::Range;

use super::conflict;
use super::constraints::{Constraint, CutRule, cuts_before};
use super::objectives::Objective;
use super::plan::{Plan, Score};
use super::problem::{CompiledStage, Problem, SolveError};
use crate::memory::RangeCosts;
use crate::time::StageTimes;

/// The maximum number of edges (ranges of positions that may be stages) that the integer program
/// gets. With this number of edges, the program takes some hundredths of a second; with ten times
/// as many, it takes seconds.
const MAX_EDGES: usize = 5_000;

/// A problem that has passed its checks, with its constraints prepared for the solvers.
#[derive(Clone)]
pub(super) struct CheckedProblem<'a> {
    /// The problem that was checked. Its number of IPUs may be higher than the field `stages`.
    pub problem: Problem<'a>,
    /// Maximum number of stages of a split: at most the number of IPUs, and at most the number of
    /// positions. The last pin can lower this maximum further, since a pin fixes the number of
    /// stages before the pinned position.
    pub stages: usize,
    /// Maximum number of edges (ranges of positions that may be stages) that the integer program
    /// gets. If a problem has more edges, the integer program gets only some of them, among them
    /// all stages of a best plan.
    pub max_edges: usize,
    /// One entry per boundary, from the boundary before position 0 to the boundary after the last
    /// position: whether constraints require or forbid a cut at the boundary.
    cuts_before: Vec<CutRule>,
    /// One entry per boundary, as in `cuts_before`: the number of required cuts at this boundary or
    /// before it.
    required_until: Vec<usize>,
    /// Pairs of a pinned position and the index of its IPU, in ascending order of positions.
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
        let pins = problem.constraints.iter().filter_map(Constraint::pin);
        let mut pins: Vec<_> = pins.collect();
        pins.sort_unstable();
        // From the last pin on, each position can be a separate stage; the pin fixes the number of
        // stages before its position.
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

    /// Returns the number of positions in the layer order.
    pub fn layers(&self) -> usize {
        self.problem.layers()
    }

    /// Returns whether it matters which IPU a stage runs on, because of pins or of limits that
    /// differ between IPUs.
    pub fn is_numbered(&self) -> bool {
        let limits = self.problem.limits.by_ipu().unwrap_or_default();
        !self.pins.is_empty() || limits.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// Returns whether the bytes or cycles of a stage depend on the number of stages after it.
    pub fn is_by_depth(&self) -> bool {
        self.problem.by_profile.iter().any(|own| {
            let times = own.times.as_deref();
            own.ranges.is_by_depth() || times.is_some_and(StageTimes::is_by_depth)
        })
    }

    /// Returns the objectives of the problem's goal, the most important first. The objective of
    /// cycles is left out if a profile has no cycle counts.
    pub fn order(&self) -> impl Iterator<Item = Objective> + use<'_, 'a> {
        let has_cycles = self.problem.has_cycles();
        self.problem
            .goal
            .order()
            .iter()
            .copied()
            .filter(move |&objective| has_cycles || objective != Objective::Cycles)
    }

    /// Returns whether constraints allow cuts at both ends of `range`, and require no cut inside
    /// it.
    pub fn obeys_cuts(&self, range: &Range<usize>) -> bool {
        let forbidden = |boundary: usize| self.cuts_before[boundary] == CutRule::Forbidden;
        let inside = self.required_until[range.end - 1] - self.required_until[range.start];
        inside == 0 && !forbidden(range.start) && !forbidden(range.end)
    }

    /// Returns whether the positions `range` may be the stage on the IPU with index `stage`: the
    /// IPU exists, its limit is at least `peak` (the bytes on the fullest tile), and all pins are
    /// obeyed.
    pub fn may_stand(&self, stage: usize, range: &Range<usize>, peak: u64) -> bool {
        let limit = self.problem.limits.of(stage);
        let fits = stage < self.stages && limit.is_some_and(|limit| peak <= limit);
        // The IPU indices of pins never decrease, so it is enough to check the first and the last
        // pin in `range`.
        let after = &self.pins[self.pins.partition_point(|pin| pin.0 < range.start)..];
        let inside = &after[..after.partition_point(|pin| pin.0 < range.end)];
        fits && [inside.first(), inside.last()]
            .iter()
            .flatten()
            .all(|pin| pin.1 == stage)
    }

    /// Returns the bytes on the fullest tile of `stage` if it has the index `number` in a split
    /// into `stages` stages; `None` if limits or constraints rule this out.
    pub fn peak_at(&self, number: usize, stages: usize, stage: &CompiledStage) -> Option<u64> {
        let positions = &stage.positions;
        let peak = self.problem.peak(stage, stages - 1 - number)?;
        (self.may_stand(number, positions, peak) && self.obeys_cuts(positions)).then_some(peak)
    }

    /// Returns the score of `plan`; `None` if `plan` has too many stages, is over a limit, breaks a
    /// constraint, or lacks cycles that the other splits have.
    pub fn score(&self, plan: &Plan) -> Option<Score> {
        let peaks = self.problem.peaks(plan)?;
        let mut stages = plan.stages().iter().zip(&peaks).enumerate();
        let is_allowed = stages.all(|(ipu, (range, &peak))| self.may_stand(ipu, range, peak))
            && self.problem.broken_by(plan).next().is_none();
        is_allowed
            .then(|| Score::of_peaks(&self.problem, plan, &peaks))
            .flatten()
    }

    /// Returns the internal error that a split is not proven to be the best by the goal of the
    /// problem, for the reason `reason`.
    pub fn unproven(&self, reason: &str) -> SolveError {
        let objective = self.problem.goal.main();
        SolveError::Internal(format!("no proven {objective}: {reason}"))
    }

    /// Returns the value of a stage in `objective`. The stage is followed by `after` stages, and
    /// its fullest tile takes `peak` bytes. The value of a plan is the highest value of its stages
    /// if [`Objective::is_bottleneck`], otherwise the sum over its stages. The bytes over a cut are
    /// attributed to the stage before the cut.
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
