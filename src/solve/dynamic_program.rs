//! Finds the best plan by an exact dynamic program in integers.
//!
//! It shares the values of ranges and the rules for stages ([`CheckedProblem`]) with the integer
//! program, but neither its networks nor its search for bottlenecks, so that each checks the other.
//!
//! For each position, a pass keeps the best split of all positions from there to the end, while it
//! adds one stage after another at the front. Sums can be compared one after the other in one pass,
//! since the best split of the last positions stays the best whatever comes before it. A bottleneck
//! (the highest value of any stage) must be compared last in a pass: a split of the last positions
//! that is better in it may make no difference in the end, and be worse in later objectives. So
//! each bottleneck ends a pass, and later passes only use stages up to its optimum.

use std::ops::Range;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;
use super::plan::Plan;

/// The maximum number of objectives that one pass compares: all that are sums over stages, and one
/// bottleneck (the maximum over stages).
const MAX_OBJECTIVES: usize = 4;

/// The values of one stage, or of several stages together, in each objective of a pass, in its
/// order; unused entries are 0.
type Values = [u128; MAX_OBJECTIVES];

/// Returns the best plan by the goal of the problem; among equal plans the one whose cuts come
/// earliest. Returns `None` if no split is within the limits and obeys the constraints.
pub(super) fn solve(checked: &CheckedProblem<'_>) -> Option<Plan> {
    let mut caps = Vec::new();
    let mut sums = Vec::new();
    for objective in checked.order() {
        if objective.is_bottleneck() {
            let objectives = [sums.as_slice(), &[objective]].concat();
            let best = StagePass::new(checked, &objectives, &caps).run()?.0;
            caps.push((objective, best[sums.len()]));
        } else {
            sums.push(objective);
        }
    }
    let (_, stages) = StagePass::new(checked, &sums, &caps).run()?;
    Plan::new(stages, checked.layers())
}

/// A range of positions that may be a stage: its end (exclusive), the bytes on its fullest tile,
/// and its values in the objectives of the pass. [`CandidatesByStart`] has its start.
struct StageCandidate {
    end: usize,
    peak: u64,
    values: Values,
}

/// The ranges that may be a stage on some IPU, by the position where they start.
type CandidatesByStart = Vec<Vec<StageCandidate>>;

/// One pass of the dynamic program, which finds the best split by some of the objectives. It adds
/// stages from the last to the first.
struct StagePass<'a> {
    checked: &'a CheckedProblem<'a>,
    objectives: &'a [Objective],
    /// Objectives of earlier passes, each with the highest value that a stage may have in it.
    caps: &'a [(Objective, u128)],
    /// Index in `objectives` of the one that is the maximum over stages, always the last; `None` if
    /// all objectives are sums over stages.
    bottleneck: Option<usize>,
}

/// For each position: the best split of the positions from it to the end, into the number of stages
/// that a pass has added so far.
struct BestRests {
    /// For each position, and one after the last: the values of the best split from there to the
    /// end; `None` if there is no such split.
    best: Vec<Option<Values>>,
    /// For each stage that the pass added, the last of the split first: for each position, the end
    /// (exclusive) of the best stage that starts there.
    ends: Vec<Vec<usize>>,
}

impl BestRests {
    /// Starts without any stage, for `layers` positions: only the empty split after the last
    /// position exists.
    fn new(layers: usize) -> Self {
        let mut best = vec![None; layers + 1];
        best[layers] = Some(Values::default());
        let ends = Vec::new();
        Self { best, ends }
    }

    /// Returns the stages, in order, of the best split of all positions into at most `stages`
    /// stages. There must be such a split; `best` of position 0 says whether there is.
    fn stages(&self, stages: usize) -> Vec<Range<usize>> {
        let layers = self.best.len() - 1;
        let mut start = 0;
        let mut found = Vec::new();
        for ends in self.ends[..stages].iter().rev() {
            if start == layers {
                break;
            }
            found.push(start..ends[start]);
            start = ends[start];
        }
        found
    }
}

impl<'a> StagePass<'a> {
    /// Makes a pass that compares `objectives`, the most important first. Only the last may be a
    /// bottleneck (a maximum over stages). `caps` are objectives with the highest value that a
    /// stage may have in each.
    fn new(
        checked: &'a CheckedProblem<'a>,
        objectives: &'a [Objective],
        caps: &'a [(Objective, u128)],
    ) -> Self {
        let last = objectives.len() - 1;
        Self {
            checked,
            objectives,
            caps,
            bottleneck: objectives[last].is_bottleneck().then_some(last),
        }
    }

    /// Returns the values of the best split in the objectives of the pass, and its stages in order;
    /// `None` if no split is allowed.
    fn run(&self) -> Option<(Values, Vec<Range<usize>>)> {
        if self.checked.layers() == 0 {
            return None;
        }
        let stages = self.checked.stages;
        if !self.checked.is_by_depth() || !self.checked.is_numbered() {
            return self.up_to(stages);
        }
        // The IPU of a stage and the number of stages after it both matter, so the total is fixed.
        let found = (1..=stages).filter_map(|total| self.up_to(total));
        found.min_by_key(|&(values, _)| values)
    }

    /// Returns the values of the best split into at most `total` stages, and its stages in order;
    /// `None` if there is none. If both the IPU of a stage and the number of stages after it
    /// matter, only splits into exactly `total` stages count.
    fn up_to(&self, total: usize) -> Option<(Values, Vec<Range<usize>>)> {
        let layers = self.checked.layers();
        let is_by_depth = self.checked.is_by_depth();
        let knows_ipu = !is_by_depth || self.checked.is_numbered();
        let mut candidates = self.candidates(0);
        let mut rest = BestRests::new(layers);
        let mut best: Option<(Values, usize)> = None;
        for after in 0..total {
            if is_by_depth && after > 0 {
                candidates = self.candidates(after);
            }
            let ipu = knows_ipu.then_some(total - 1 - after);
            let starts = match ipu {
                // Every earlier stage has a position, and the first stage has the first position.
                Some(0) => 0..1,
                earlier => earlier.unwrap_or(0)..layers,
            };
            self.add_stage(ipu, &candidates, starts, &mut rest);
            if is_by_depth {
                // If more stages are added, this one is not the last, so no split ends here.
                rest.best[layers] = None;
            }
            let is_whole = ipu.is_none_or(|ipu| ipu == 0);
            let found = rest.best[0].filter(|_| is_whole);
            best = best
                .into_iter()
                .chain(found.map(|values| (values, after + 1)))
                .min();
        }
        let (values, stages) = best?;
        Some((values, rest.stages(stages)))
    }

    /// Extends the best splits in `rest` by one more stage before them, which starts at one of
    /// `starts` and is one of `candidates`; on the IPU with the number `ipu`, if that matters.
    /// Starts are visited in ascending order: each only uses the entries of later starts, which are
    /// still those without the new stage.
    fn add_stage(
        &self,
        ipu: Option<usize>,
        candidates: &CandidatesByStart,
        starts: Range<usize>,
        rest: &mut BestRests,
    ) {
        let layers = self.checked.layers();
        let mut ends = vec![layers; layers];
        for start in starts {
            let best = self.best_from(ipu, start, &candidates[start], &rest.best);
            rest.best[start] = best.map(|(values, _)| values);
            ends[start] = best.map_or(layers, |(_, end)| end);
        }
        rest.ends.push(ends);
    }

    /// Returns the best split of the positions from `start` to the end: its values, and the end
    /// (exclusive) of its first stage, which is one of `candidates` on the IPU `ipu` (if that
    /// matters). `rest` has the values of the best split from each later position. Among equal
    /// splits that with the shortest first stage is the best; `None` if there is none.
    fn best_from(
        &self,
        ipu: Option<usize>,
        start: usize,
        candidates: &[StageCandidate],
        rest: &[Option<Values>],
    ) -> Option<(Values, usize)> {
        let mut best: Option<(Values, usize)> = None;
        for StageCandidate { end, peak, values } in candidates {
            // If the bottleneck is the only objective, longer stages cannot be better, unless bytes
            // depend on the number of stages after a stage.
            if self.bottleneck == Some(0)
                && !self.checked.is_by_depth()
                && best.is_some_and(|(best, _)| best[0] <= values[0])
            {
                break;
            }
            let Some(total) = rest[*end].map(|rest| self.combined(values, &rest)) else {
                continue;
            };
            let is_better = best.is_none_or(|(best, _)| total < best);
            let may_stand = |ipu| self.checked.may_stand(ipu, &(start..*end), *peak);
            if is_better && ipu.is_none_or(may_stand) {
                best = Some((total, *end));
            }
        }
        best
    }

    /// Combines the values of a stage with those of the stages after it (`rest`): the maximum for
    /// the bottleneck, the sum for all other objectives.
    fn combined(&self, stage: &Values, rest: &Values) -> Values {
        let mut sum = *rest;
        for (n, (sum, stage)) in sum.iter_mut().zip(stage).enumerate() {
            *sum = match self.bottleneck {
                Some(bottleneck) if bottleneck == n => (*stage).max(*sum),
                _ => stage + *sum,
            };
        }
        sum
    }

    /// Returns the ranges, by start, that may be a stage with `after` stages after it: they are
    /// within the highest limit of any IPU and [`StagePass::caps`], and obey the constraints on
    /// cuts.
    fn candidates(&self, after: usize) -> CandidatesByStart {
        let starts = 0..self.checked.layers();
        starts
            .map(|start| self.candidates_from(start, after))
            .collect()
    }

    fn candidates_from(&self, start: usize, after: usize) -> Vec<StageCandidate> {
        let checked = self.checked;
        let (costs, limit) = (checked.problem.costs, checked.highest_limit());
        let mut candidates = Vec::new();
        for (n, &least) in costs.least_from(start).iter().enumerate() {
            let range = start..start + n + 1;
            let is_over = |peak: u64| {
                let over =
                    |&(objective, cap)| checked.value(objective, (&range, after), peak) > cap;
                peak > limit || self.caps.iter().any(over)
            };
            // All longer ranges are over a limit or a cap, too.
            if is_over(least) {
                break;
            }
            let peak = costs.peak(range.clone(), after);
            let Some(peak) = peak.filter(|&peak| !is_over(peak)) else {
                continue;
            };
            if checked.obeys_cuts(&range) {
                let mut values = Values::default();
                for (number, &objective) in values.iter_mut().zip(self.objectives) {
                    *number = checked.value(objective, (&range, after), peak);
                }
                candidates.push(StageCandidate {
                    end: range.end,
                    peak,
                    values,
                });
            }
        }
        candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::problem::Problem;
    use crate::solve::testing::additive;

    fn cuts(costs: &RangeCosts, cut_bytes: &[u64], ipus: usize, limit: u64) -> Option<Vec<usize>> {
        let problem = Problem::new(costs, cut_bytes, ipus, limit);
        let plan = solve(&CheckedProblem::new(&problem).unwrap());
        plan.map(|plan| plan.cuts().collect())
    }

    #[test]
    fn the_peak_comes_before_the_number_of_stages() {
        let costs = additive(&[4, 1, 1, 4], u64::MAX);
        assert_eq!(cuts(&costs, &[0; 3], 4, 99), Some(vec![1, 3]));
        assert_eq!(cuts(&costs, &[0; 3], 1, 99), Some(vec![]));
    }

    #[test]
    fn evenness_comes_before_bytes_over_the_cut() {
        // 9 | 5 1 | 6 is more even than 9 | 5 | 1 6, whatever the cut sends.
        let costs = additive(&[9, 5, 1, 6], u64::MAX);
        assert_eq!(cuts(&costs, &[0, 0, 7], 3, 99), Some(vec![1, 3]));
        // With 5 instead of 6 both are equally even, and the cut decides.
        let even = additive(&[9, 5, 1, 5], u64::MAX);
        assert_eq!(cuts(&even, &[0, 0, 7], 3, 99), Some(vec![1, 2]));
        assert_eq!(cuts(&even, &[0, 7, 0], 3, 99), Some(vec![1, 3]));
    }

    #[test]
    fn ties_go_to_the_earliest_cut() {
        let costs = additive(&[1, 0, 0, 1], u64::MAX);
        assert_eq!(cuts(&costs, &[0; 3], 2, 99), Some(vec![1]));
        assert_eq!(cuts(&costs, &[1, 0, 0], 2, 99), Some(vec![2]));
    }

    #[test]
    fn there_is_none_without_stages_or_over_the_limit() {
        assert_eq!(cuts(&additive(&[1, 1], u64::MAX), &[0], 0, 99), None);
        assert_eq!(cuts(&additive(&[1, 5, 1], 4), &[0; 2], 3, 99), None);
        assert_eq!(cuts(&additive(&[1, 5, 1], 99), &[0; 2], 3, 4), None);
        let three = additive(&[3, 3, 3], 99);
        assert_eq!(cuts(&three, &[0; 2], 2, 4), None);
        assert_eq!(cuts(&three, &[0; 2], 3, 4), Some(vec![1, 2]));
        assert_eq!(cuts(&additive(&[], 4), &[], 3, 99), None);
    }
}
