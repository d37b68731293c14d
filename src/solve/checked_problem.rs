//! A checked problem, with its constraints in a form in which both programs look up each range.

use std::ops::Range;

use super::SolveError;
use super::conflict;
use super::constraints::{CutRule, Rule, cuts_after};
use super::objectives::Objective;
use super::plan::Plan;
use super::problem::Problem;
use crate::time::StageTimes;

/// Edges for which the integer program takes some hundredths of a second. For ten times this number
/// it takes seconds.
const MAX_EDGES: usize = 5_000;

/// A checked problem for some number of IPUs.
#[derive(Debug, Clone)]
pub(super) struct CheckedProblem<'a> {
    pub problem: Problem<'a>,
    /// Maximum number of stages: there must be an IPU and a position for each.
    pub stages: usize,
    /// Maximum number of edges in the integer program; of a larger network, it gets only a part.
    pub max_edges: usize,
    cuts_after: Vec<CutRule>,
    /// By boundary: number of required cuts up to it, included.
    required_until: Vec<usize>,
    /// Pinned positions with their IPUs, ascending.
    pins: Vec<(usize, usize)>,
}

impl<'a> CheckedProblem<'a> {
    /// Checks `problem` and its constraints.
    pub(super) fn new(problem: &Problem<'a>) -> Result<Self, SolveError> {
        problem.check()?;
        let layers = problem.layers();
        if let Some(conflict) = conflict::find(problem.constraints, layers, problem.ipus) {
            return Err(SolveError::Contradiction(Box::new(conflict)));
        }
        let cuts_after = cuts_after(problem.constraints, layers);
        let pins = problem.constraints.iter().filter_map(|own| match own.rule {
            Rule::Pin { position, ipu } => Some((position, ipu)),
            _ => None,
        });
        let mut pins: Vec<(usize, usize)> = pins.collect();
        pins.sort_unstable();
        // One stage for each position; but the last pin fixes the number of stages before it.
        let last_pin = pins.last();
        let most = last_pin.map_or(layers, |&(position, ipu)| ipu + layers - position);
        Ok(Self {
            problem: *problem,
            stages: problem.ipus.min(most).min(problem.costs.stages()),
            max_edges: MAX_EDGES,
            required_until: required_until(&cuts_after),
            cuts_after,
            pins,
        })
    }

    /// The problem with fewer IPUs, which keep their limits. Pins to removed IPUs leave no split.
    pub(super) fn with_ipus(&self, ipus: usize) -> Self {
        let stages = ipus.min(self.stages);
        Self {
            stages,
            ..self.clone()
        }
    }

    pub(super) fn layers(&self) -> usize {
        self.problem.layers()
    }

    /// Does it matter which IPU a stage is on?
    pub(super) fn is_numbered(&self) -> bool {
        !self.pins.is_empty() || self.problem.limits.differs()
    }

    /// Does it matter how many stages come after a stage?
    pub(super) fn is_by_depth(&self) -> bool {
        let times = self.problem.times;
        self.problem.costs.is_by_depth() || times.is_some_and(StageTimes::is_by_depth)
    }

    /// The objectives of the goal, without cycles if the profile has none.
    pub(super) fn order(&self) -> impl Iterator<Item = Objective> + use<'_, 'a> {
        let is_known =
            |&objective: &Objective| objective != Objective::Cycles || self.problem.times.is_some();
        self.problem.goal.order().iter().copied().filter(is_known)
    }

    /// The maximum bytes that any stage may take.
    pub(super) fn highest_limit(&self) -> u64 {
        self.problem.limits.first(self.stages).highest()
    }

    /// Do the cuts at both ends of `range` and inside it obey the constraints?
    pub(super) fn obeys_cuts(&self, range: &Range<usize>) -> bool {
        let forbidden = |boundary: usize| {
            let before = boundary.checked_sub(1);
            before.is_some_and(|before| self.cuts_after[before] == CutRule::Forbidden)
        };
        let inside = self.required_until[range.end - 1] - self.required_until[range.start];
        inside == 0 && !forbidden(range.start) && !forbidden(range.end)
    }

    /// May a stage `range` of `peak` bytes be on IPU `stage`?
    pub(super) fn may_stand(&self, stage: usize, range: &Range<usize>, peak: u64) -> bool {
        let limit = self.problem.limits.of(stage);
        let fits = stage < self.stages && limit.is_some_and(|limit| peak <= limit);
        // IPUs of pins never decrease, so all pins between the first and the last agree with them.
        let after = &self.pins[self.pins.partition_point(|pin| pin.0 < range.start)..];
        let inside = &after[..after.partition_point(|pin| pin.0 < range.end)];
        let ends = [inside.first(), inside.last()];
        fits && ends.iter().flatten().all(|pin| pin.1 == stage)
    }

    /// Is `plan` within the limits, with few enough stages, and does it obey every constraint?
    pub(super) fn allows(&self, plan: &Plan) -> bool {
        let fits = |(stage, (range, after)): (usize, (&Range<usize>, usize))| {
            let peak = self.problem.costs.peak(range.clone(), after);
            let limit = self.problem.limits.of(stage);
            peak.zip(limit).is_some_and(|(peak, limit)| peak <= limit)
        };
        let stage_of = plan.stage_of();
        let mut constraints = self.problem.constraints.iter();
        plan.stages().len() <= self.stages
            && plan.with_after().enumerate().all(fits)
            && constraints.all(|constraint| constraint.is_obeyed(&stage_of))
    }

    /// The value in `objective` of a stage `range` of `peak` bytes with `after` stages after it. A
    /// stage pays for the cut at its end; the last stage has none.
    pub(super) fn value(
        &self,
        objective: Objective,
        (range, after): (&Range<usize>, usize),
        peak: u64,
    ) -> u128 {
        match objective {
            Objective::Peak => u128::from(peak),
            Objective::Stages => 1,
            Objective::Squares => u128::from(peak) * u128::from(peak),
            Objective::CutBytes => u128::from(self.problem.bytes_over_cut(range.end)),
            Objective::Cycles => {
                let times = self.problem.times;
                times
                    .and_then(|times| times.cycles(range, after))
                    .unwrap_or(0)
            }
            Objective::EarliestCuts => 0,
        }
    }
}

/// By boundary: number of required cuts up to it, included.
fn required_until(cuts_after: &[CutRule]) -> Vec<usize> {
    let count = |count: &mut usize, cut: &CutRule| {
        *count += usize::from(*cut == CutRule::Required);
        Some(*count)
    };
    [0].into_iter()
        .chain(cuts_after.iter().scan(0, count))
        .collect()
}
