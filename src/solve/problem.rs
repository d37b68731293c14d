//! The input of the solver: costs of ranges of positions, bytes that cross cuts, limits,
//! constraints and the goal.

use std::{ops::Range, sync::Arc};

use super::{
    conflict::Conflict,
    constraints::{Constraint, Origin},
    objectives::Goal,
    plan::Plan,
};
use crate::{
    memory::RangeCosts,
    message::{OVER_BOUND, REPORT_THIS},
    time::{StageTimes, StepTime},
};

/// A problem of splitting a model into pipeline stages.
///
/// Stage n is on IPU n. If there are fewer stages than IPUs, the last IPUs are empty.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// One entry per profile of the model: the costs (memory and time) of the positions in this
    /// profile. All profiles have the same positions. Each stage has the costs of one profile.
    pub by_profile: &'a [ProfileCosts],
    /// Number of IPUs, which is the maximum number of stages.
    pub ipus: usize,
    /// The bytes that a stage may take on each tile of its IPU: one number for all IPUs, or one for
    /// each IPU, from IPU 0.
    pub limits: &'a [u64],
    /// Conditions on a split besides the memory limits, such as layers that must be in one stage.
    pub constraints: &'a [Constraint],
    /// The objective by which splits are compared first; it determines the order of all other
    /// objectives.
    pub goal: Goal,
}

/// The costs (memory and time) of all ranges of positions in one profile of a model.
#[derive(Debug, Clone)]
pub struct ProfileCosts {
    /// The bytes on the fullest tile of every range of positions as a stage. In a pipeline, these
    /// bytes depend on the number of stages after the stage. A range without an entry exceeds every
    /// limit.
    pub ranges: Arc<RangeCosts>,
    /// The bytes, over all tiles, of the variables that cross a cut at each boundary:
    /// `cut_bytes[i]` for a cut between positions `i` and `i + 1`. There is one entry fewer than
    /// there are positions.
    pub cut_bytes: Arc<[u64]>,
    /// The cycles of each range of positions as a stage; `None` if the profile has no cycles.
    pub times: Option<Arc<StageTimes>>,
}

impl ProfileCosts {
    /// Returns the bytes, over all tiles, of the variables that cross a cut before the position
    /// `boundary`, which must be neither 0 nor beyond the last position.
    pub fn bytes_over_cut(&self, boundary: usize) -> u64 {
        self.cut_bytes[boundary - 1]
    }
}

/// A stage of a plan: a range of positions, compiled as in one of the profiles of the problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledStage {
    /// The positions (In, layers, Out) of the stage; the end is exclusive.
    pub positions: Range<usize>,
    /// The profile from which the stage takes its memory and time, as an index into
    /// [`Problem::by_profile`]. A model may have several profiles, compiled with different options.
    pub profile: usize,
}

impl From<Range<usize>> for CompiledStage {
    /// Makes the stage with the range `positions` and with costs from the main profile (index 0).
    fn from(positions: Range<usize>) -> Self {
        Self {
            positions,
            profile: 0,
        }
    }
}

impl<'a> Problem<'a> {
    /// Returns this problem without memory limits, with the lowest peak as the goal. Ranges without
    /// an entry in the costs still cannot be stages.
    pub fn at_any_limit(self) -> Self {
        Self {
            limits: &[u64::MAX],
            goal: Goal::Peak,
            ..self
        }
    }

    /// Returns the limit, in bytes on each tile, of the IPU with index `ipu`; `None` if each IPU
    /// has its own limit and there is no such IPU.
    pub(super) fn limit_of(&self, ipu: usize) -> Option<u64> {
        match self.limits {
            [same] => Some(*same),
            limits => limits.get(ipu).copied(),
        }
    }

    /// Returns the highest limit of any IPU, in bytes on each tile; 0 if there are no IPUs.
    pub(super) fn highest_limit(&self) -> u64 {
        self.limits.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn layers(&self) -> usize {
        self.by_profile.first().map_or(0, |own| own.ranges.layers())
    }

    pub(super) fn all_ranges(&self) -> impl Iterator<Item = &'a RangeCosts> + use<'a> {
        self.by_profile.iter().map(|own| &*own.ranges)
    }

    pub(super) fn times_in(&self, profile: usize) -> Option<&'a StageTimes> {
        self.by_profile[profile].times.as_deref()
    }

    /// Returns whether every profile has cycle counts. If not, stages of different profiles cannot
    /// be compared by cycles.
    pub(crate) fn has_cycles(&self) -> bool {
        self.by_profile.iter().all(|own| own.times.is_some())
    }

    /// Iterates over possible stages: each range of positions from `start` to one of `ends`
    /// (exclusive), paired with each profile of the model. Leaves out ranges that have no costs in
    /// any profile. A range that has costs in only some profiles is still paired with all of them.
    pub(super) fn stages(
        &self,
        start: usize,
        ends: Range<usize>,
    ) -> impl Iterator<Item = CompiledStage> + use<> {
        let reach = self.all_ranges().map(|ranges| ranges.reach(start)).max();
        let ends = ends.start..ends.end.min(reach.unwrap_or(start) + 1);
        let profiles = self.by_profile.len();
        ends.flat_map(move |end| {
            (0..profiles).map(move |profile| CompiledStage {
                positions: start..end,
                profile,
            })
        })
    }

    /// Returns a lower bound on the bytes of `range` as a stage, whatever its profile; `None` if
    /// the range has no costs in any profile, because it exceeds every limit.
    pub fn least(&self, range: &Range<usize>) -> Option<u64> {
        self.all_ranges()
            .filter_map(|ranges| ranges.least(range.clone()))
            .min()
    }

    /// Returns the bytes on the fullest tile of `stage` if `after` stages follow it; `None` if the
    /// profile of the stage has no costs for it.
    pub fn peak(&self, stage: &CompiledStage, after: usize) -> Option<u64> {
        self.by_profile[stage.profile]
            .ranges
            .peak(stage.positions.clone(), after)
    }

    /// Returns the bytes on the fullest tile of each stage of `plan`; `None` if the costs lack one
    /// of the stages.
    pub fn peaks(&self, plan: &Plan) -> Option<Vec<u64>> {
        plan.with_after()
            .map(|(stage, after)| self.peak(&stage, after))
            .collect()
    }

    /// Returns the bytes of the variables that cross the cut after `stage`, as recorded in the
    /// profile of this stage ([`CompiledStage::profile`]); 0 after the last position.
    pub(super) fn bytes_over_cut_after(&self, stage: &CompiledStage) -> u64 {
        let cut_bytes = &self.by_profile[stage.profile].cut_bytes;
        cut_bytes.get(stage.positions.end - 1).copied().unwrap_or(0)
    }

    /// Returns the cycles of each stage of `plan` for one micro-batch, including recomputation;
    /// empty if the profile of any stage has no cycle counts.
    pub fn cycles(&self, plan: &Plan) -> Vec<u128> {
        plan.with_after()
            .map(|(stage, after)| self.stage_cycles(&stage, after))
            .collect::<Option<_>>()
            .unwrap_or_default()
    }

    /// Returns the cycles of `stage` for one micro-batch, including recomputation, if `after`
    /// stages follow it; `None` without cycle counts.
    pub(super) fn stage_cycles(&self, stage: &CompiledStage, after: usize) -> Option<u128> {
        let times = self.times_in(stage.profile)?;
        Some(times.stage(&stage.positions, after)?.of_micro_batch())
    }

    /// Returns the time of a pipeline step of `plan`; `None` if the profile of any stage has no
    /// cycle counts, or if a position does not exist.
    pub fn step(&self, plan: &Plan) -> Option<StepTime> {
        let stages = plan.stages().iter().zip(plan.profiles());
        let timed = stages.map(|(positions, &profile)| Some((self.times_in(profile)?, positions)));
        StageTimes::step(&timed.collect::<Option<Vec<_>>>()?)
    }

    /// Iterates over the constraints, such as pins of layers to IPUs, that the split `plan` breaks.
    pub(super) fn broken_by(&self, plan: &Plan) -> impl Iterator<Item = &'a Constraint> + use<'a> {
        let stages = plan.stages().iter().enumerate();
        let stage_of: Vec<usize> = stages
            .flat_map(|(stage, range)| range.clone().map(move |_| stage))
            .collect();
        self.constraints
            .iter()
            .filter(move |own| !own.is_obeyed(&stage_of))
    }

    /// Returns an error unless the problem meets all conditions on which the solvers rely:
    ///
    /// - all profiles have the same positions, and there is one limit, or one per IPU
    /// - there are cycle counts if the goal needs them
    /// - the sum of squared peaks does not overflow
    /// - no range takes fewer bytes than a range inside it
    /// - the positions in constraints exist
    pub(super) fn check(&self) -> Result<(), SolveError> {
        self.check_lengths()?;
        self.check_size()?;
        self.check_monotone()?;
        let layers = self.layers();
        match self.constraints.iter().find(|own| !own.is_within(layers)) {
            Some(found) => Err(SolveError::NoSuchPosition(found.origin.clone(), layers)),
            None => Ok(()),
        }
    }

    fn check_lengths(&self) -> Result<(), SolveError> {
        let (layers, ipus) = (self.layers(), self.ipus);
        let expected = layers.saturating_sub(1);
        let mut cuts = self.by_profile.iter().map(|own| own.cut_bytes.len());
        let mut positions = self.by_profile.iter().flat_map(|own| {
            let of_times = own.times.as_deref().map(StageTimes::positions);
            [own.ranges.layers(), of_times.unwrap_or(layers)]
        });
        let problem = if let Some(cuts) = cuts.find(|&cuts| cuts != expected) {
            format!("{cuts} boundaries have bytes over a cut, but the layer order has {expected}")
        } else if let Some(other) = positions.find(|&other| other != layers) {
            format!("{other} layers have cycles, but the layer order has {layers}")
        } else if ![1, ipus].contains(&self.limits.len()) {
            format!("{} limits for {ipus} IPUs", self.limits.len())
        } else if !self.has_cycles() && self.goal.needs_cycles() {
            return Err(SolveError::NoCycles);
        } else {
            return Ok(());
        };
        Err(SolveError::Internal(problem))
    }

    /// Returns [`SolveError::TooLarge`] unless four times the largest possible sum of squared peaks
    /// fits in 128 bits. The factor is for the solvers, which add several such sums.
    fn check_size(&self) -> Result<(), SolveError> {
        let sum = |peak: u64| {
            u128::from(peak)
                .pow(2)
                .checked_mul(4 * self.layers() as u128)
        };
        let highest = self.all_ranges().filter_map(RangeCosts::highest);
        match highest.max_by_key(|&(_, peak)| peak) {
            Some((range, peak)) if sum(peak).is_none() => Err(SolveError::TooLarge(range, peak)),
            _ => Ok(()),
        }
    }

    /// Checks that no range of positions takes fewer bytes than the same range without its first or
    /// last position, by the lower bounds on their bytes. A longer range never takes fewer
    /// (docs/model.md, "The memory of a stage").
    fn check_monotone(&self) -> Result<(), SolveError> {
        for costs in self.all_ranges() {
            for (range, peak) in costs.iter().filter(|(range, _)| range.len() > 1) {
                for inner in [range.start..range.end - 1, range.start + 1..range.end] {
                    let inner_bytes = match costs.least(inner.clone()) {
                        Some(least) if least <= peak => continue,
                        Some(least) => format!("need {least}"),
                        None => "are over the limit".to_owned(),
                    };
                    return Err(SolveError::Internal(format!(
                        "the layers at positions {range:?} need {peak} bytes, but those at \
                         {inner:?} inside them {inner_bytes}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The reason why [`solve`](super::solve) could neither find a split nor prove that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The goal compares cycles, but the profile has no cycle counts of layers.
    #[error(
        "--objective cycles: the profile has no cycles of layers; choose another objective, or \
         record the profile with cycles"
    )]
    NoCycles,
    /// A constraint names a position that does not exist, or requires a cut before the first
    /// position. Fields: the origin of the constraint and the number of positions.
    #[error("{0}: there are {1} layers, and no cut before the first; name a later layer")]
    NoSuchPosition(Origin, usize),
    /// The constraints contradict each other, so no split obeys all of them, whatever the memory.
    /// The field is the contradiction that was found first.
    #[error("no split obeys all constraints: {0}; change one of them or leave it out")]
    Contradiction(Box<Conflict>),
    /// Peaks (bytes on the fullest tile of a stage) are so high that the sum of their squares could
    /// overflow 128 bits. Fields: the range of positions with the highest peak, and this peak.
    #[error(
        "{1} bytes on one tile for the layers at positions {0:?} are too many to compare splits; \
         {OVER_BOUND}"
    )]
    TooLarge(Range<usize>, u64),
    /// An error in this program, not in a profile or an option: parts of the problem do not belong
    /// together, or a result contradicts another result or its proof.
    #[error("internal error: {0}; {REPORT_THIS}")]
    Internal(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Rule;

    fn check(peaks: Vec<Vec<u64>>, cut_bytes: &[u64]) -> Result<(), SolveError> {
        let profile = ProfileCosts::new(RangeCosts::new(peaks), cut_bytes);
        Problem::new(&profile, 2, &u64::MAX).check()
    }

    #[test]
    fn what_belongs_to_another_layer_order_is_refused() {
        let is_internal = |checked: Result<(), SolveError>, begin: &str| matches!(checked, Err(SolveError::Internal(text)) if text.starts_with(begin));
        let checked = check(vec![vec![1, 2], vec![1]], &[0, 0]);
        assert!(is_internal(checked, "2 boundaries have bytes over a cut"));

        let costs = RangeCosts::new(vec![vec![1, 2], vec![1]]);
        let profile = ProfileCosts::new(costs, &[0]);
        let problem = Problem::new(&profile, 3, &5);
        let timed = |cycles: &[u64]| ProfileCosts {
            times: Some(crate::time::tests::forward_times(cycles).into()),
            ..profile.clone()
        };
        let by_profile = &[timed(&[1, 2, 3])];
        let checked = Problem {
            by_profile,
            ..problem
        };
        assert!(is_internal(checked.check(), "3 layers have cycles"));
        let limits = &[1, 2];
        let checked = Problem { limits, ..problem }.check();
        assert!(is_internal(checked, "2 limits for 3 IPUs"));
        let goal = Goal::Cycles;
        for by_profile in [vec![profile.clone()], vec![timed(&[1, 2]), profile.clone()]] {
            let by_profile = &by_profile;
            let checked = Problem {
                by_profile,
                goal,
                ..problem
            };
            assert_eq!(checked.check(), Err(SolveError::NoCycles));
        }
    }

    #[test]
    fn orders_for_positions_that_are_not_there_are_refused() {
        let profile = ProfileCosts::new(RangeCosts::new(vec![vec![1, 2], vec![1]]), &[0]);
        let check = |rule| {
            let constraints = [Constraint::option(rule, "--constraint")];
            let problem = Problem::new(&profile, 2, &5);
            let constraints = &constraints;
            Problem {
                constraints,
                ..problem
            }
            .check()
        };
        let (first, last) = (1, 2);
        for (beyond, fine) in [
            (
                Rule::CutBefore { position: 0 },
                Rule::CutBefore { position: 1 },
            ),
            (
                Rule::CutBefore { position: 2 },
                Rule::CutBefore { position: 1 },
            ),
            (
                Rule::Together { first, last },
                Rule::Together { first, last: 0 },
            ),
        ] {
            let origin = Constraint::option(beyond, "--constraint").origin;
            let error = SolveError::NoSuchPosition(origin, 2);
            assert_eq!(check(beyond), Err(error));
            assert_eq!(check(fine), Ok(()));
        }
    }

    #[test]
    fn a_range_cheaper_than_its_part_is_refused() {
        for (peaks, inside) in [
            (vec![vec![5, 4], vec![1]], "0..1 inside them need 5"),
            (vec![vec![1, 4], vec![7]], "1..2 inside them need 7"),
            (
                vec![vec![1, 4], vec![]],
                "1..2 inside them are over the limit",
            ),
        ] {
            let text = "the layers at positions 0..2 need 4 bytes, but those at";
            let error = SolveError::Internal(format!("{text} {inside}"));
            assert_eq!(check(peaks, &[0]), Err(error));
        }
    }

    #[test]
    fn peaks_whose_squares_overflow_are_refused() {
        let peak = u64::MAX;
        let error = check(vec![vec![1, peak], vec![1]], &[0]).unwrap_err();
        assert_eq!(error, SolveError::TooLarge(0..2, peak));
        check(vec![vec![1 << 50, 1 << 60], vec![1]], &[u64::MAX]).unwrap();
    }
}
