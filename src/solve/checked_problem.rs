//! A checked problem, with its constraints arranged for looking up each range quickly.

use std::ops::Range;

use super::conflict;
use super::constraints::{Constraint, CutRule, cuts_before};
use super::objectives::Objective;
use super::plan::Plan;
use super::problem::{CompiledStage, Problem, SolveError};
use crate::time::StageTimes;

/// The maximum number of edges (ranges that may be stages) that the integer program gets, so that
/// it takes some hundredths of a second. With ten times as many edges it takes seconds.
const MAX_EDGES: usize = 5_000;

/// A problem that has passed its checks, with its constraints prepared for the solvers.
#[derive(Clone)]
pub(super) struct CheckedProblem<'a> {
    /// The problem that was checked. Its number of IPUs may be larger than `stages`.
    pub problem: Problem<'a>,
    /// Maximum number of stages of a split: there are at most as many as IPUs and positions, and
    /// the last pin fixes the number of stages before it.
    pub stages: usize,
    /// Maximum number of edges (ranges that may be stages) that the integer program gets. Of a
    /// network with more edges it only gets a part that contains the best plan.
    pub max_edges: usize,
    /// For each boundary n, the one before position n (and one after the last): whether constraints
    /// require or forbid a cut there.
    cuts_before: Vec<CutRule>,
    /// For each boundary, the number of required cuts at it or before it.
    required_until: Vec<usize>,
    /// Pairs of a pinned position and the number of its IPU, in ascending order of positions.
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
        // Positions can all be stages of their own, but a pin fixes the number of stages before it.
        let most = pins
            .last()
            .map_or(layers, |&(position, ipu)| ipu + layers - position);
        Ok(Self {
            problem: *problem,
            stages: problem
                .profiles()
                .map(|profile| problem.costs_in(profile).stages())
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

    /// Does it matter which IPU a stage runs on, because of pins or of limits that differ between
    /// IPUs?
    pub fn is_numbered(&self) -> bool {
        !self.pins.is_empty() || self.problem.limits.differs()
    }

    /// Do the bytes or cycles of a stage depend on the number of stages after it?
    pub fn is_by_depth(&self) -> bool {
        self.problem.by_profile.iter().any(|own| {
            let times = own.times.as_deref();
            own.ranges.is_by_depth() || times.is_some_and(StageTimes::is_by_depth)
        })
    }

    /// Returns the objectives of the goal, the most important first, without cycles if the profile
    /// has none.
    pub fn order(&self) -> impl Iterator<Item = Objective> + use<'_, 'a> {
        let has_cycles = self.problem.has_cycles();
        self.problem
            .goal
            .order()
            .iter()
            .copied()
            .filter(move |&objective| has_cycles || objective != Objective::Cycles)
    }

    /// Returns the highest limit, in bytes on one tile, of the first `stages` IPUs.
    pub fn highest_limit(&self) -> u64 {
        self.problem.limits.first(self.stages).highest()
    }

    /// Do constraints allow cuts at both ends of `range`, and require none inside it?
    pub fn obeys_cuts(&self, range: &Range<usize>) -> bool {
        let forbidden = |boundary: usize| self.cuts_before[boundary] == CutRule::Forbidden;
        let inside = self.required_until[range.end - 1] - self.required_until[range.start];
        inside == 0 && !forbidden(range.start) && !forbidden(range.end)
    }

    /// May the positions `range` be the stage on the IPU with the number `stage`? It must be one of
    /// the allowed IPUs, `peak` (the bytes on the fullest tile) within its limit, and the pins
    /// obeyed.
    pub fn may_stand(&self, stage: usize, range: &Range<usize>, peak: u64) -> bool {
        let limit = self.problem.limits.of(stage);
        let fits = stage < self.stages && limit.is_some_and(|limit| peak <= limit);
        // The IPUs of pins never decrease, so it is enough to check the first and the last pin in
        // the range.
        let after = &self.pins[self.pins.partition_point(|pin| pin.0 < range.start)..];
        let inside = &after[..after.partition_point(|pin| pin.0 < range.end)];
        fits && [inside.first(), inside.last()]
            .iter()
            .flatten()
            .all(|pin| pin.1 == stage)
    }

    /// Does `plan` obey all limits and constraints, and has it an allowed number of stages?
    pub fn allows(&self, plan: &Plan) -> bool {
        let stage_of = plan.stage_of();
        let mut constraints = self.problem.constraints.iter();
        plan.stages().len() <= self.stages
            && plan
                .with_after()
                .enumerate()
                .all(|(number, (stage, after))| {
                    let peak = self.problem.peak(&stage, after);
                    let limit = self.problem.limits.of(number);
                    peak.zip(limit).is_some_and(|(peak, limit)| peak <= limit)
                })
            && constraints.all(|constraint| constraint.is_obeyed(&stage_of))
    }

    /// Returns the value of one stage in `objective`. The value of a plan is the highest of its
    /// stages if [`Objective::is_bottleneck`], otherwise their sum. `after` stages follow the stage,
    /// and its fullest tile takes `peak` bytes. The bytes of a cut count for the stage that ends
    /// there.
    pub fn value(
        &self,
        objective: Objective,
        (stage, after): (&CompiledStage, usize),
        peak: u64,
    ) -> u128 {
        match objective {
            Objective::Peak => u128::from(peak),
            Objective::Stages => 1,
            Objective::Squares => u128::from(peak).pow(2),
            Objective::CutBytes => u128::from(self.problem.bytes_over_cut_after(stage)),
            Objective::Cycles => {
                let times = self.problem.times_in(stage.profile);
                times
                    .and_then(|times| times.cycles(&stage.positions, after))
                    .unwrap_or(0)
            }
        }
    }
}
