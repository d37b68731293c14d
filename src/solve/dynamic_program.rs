//! Finds the best split by an exact dynamic program in integers.
//!
//! A pass of the program adds one stage after another at the front of a split. For each position
//! (In, layers, Out), it keeps the best split of the positions from there to the end. One pass can
//! compare several objectives that are sums over stages, since the best split of the last positions
//! stays the best whatever stages come before it.
//!
//! A bottleneck (an objective that is the highest value of any stage) must be compared last in a
//! pass. For example, a lower peak of the last stages is no gain if an earlier stage has a higher
//! peak, and it may worsen the objectives compared after it. So each bottleneck ends a pass, and
//! later passes only use stages whose value is at most the optimum of this bottleneck.

use super::{
    checked_problem::CheckedProblem, objectives::Objective, plan::Plan, problem::CompiledStage,
};

/// Maximum number of objectives that one pass (one run of the dynamic program over all positions)
/// compares: the three objectives that are sums over stages, and one bottleneck (a maximum over
/// stages).
const MAX_OBJECTIVES: usize = 4;

/// The values of one stage, or of several stages together: one entry for each objective that a pass
/// of the dynamic program compares, the most important first. If the pass compares fewer objectives
/// than the array has entries, the other entries are 0.
pub type Values = [u128; MAX_OBJECTIVES];

/// Returns the best plan by the goal of the problem; among equal plans, the plan with the earliest
/// cuts. Returns `None` if no split is within the limits and obeys the constraints.
pub fn solve(checked: &CheckedProblem<'_>) -> Option<Plan> {
    let mut caps = Vec::new();
    let mut sums = Vec::new();
    for objective in checked.order() {
        if objective.is_bottleneck() {
            let objectives = [&*sums, &[objective]].concat();
            let (best, _) = best(&StagePass::new(checked, &objectives, &caps).run())?;
            caps.push((objective, best[sums.len()]));
        } else {
            sums.push(objective);
        }
    }
    let (_, stages) = best(&StagePass::new(checked, &sums, &caps).run())?;
    Plan::new(stages, checked.layers())
}

/// A stage that a split may have within the limits and constraints: the bytes on its fullest tile,
/// and its values in the objectives that one pass of the dynamic program compares.
pub struct StageCandidate {
    pub stage: CompiledStage,
    pub peak: u64,
    pub values: Values,
}

/// One pass of the dynamic program. It finds the best split by objectives that are sums over stages
/// and by at most one that is a maximum over stages, and adds stages from the last to the first.
pub struct StagePass<'a> {
    pub checked: &'a CheckedProblem<'a>,
    /// The objectives by which this pass of the dynamic program compares splits, the most important
    /// first.
    objectives: &'a [Objective],
    /// The highest values that any stage may have in bottlenecks (objectives that are a maximum
    /// over stages), such as the optimum that an earlier pass of the dynamic program found.
    caps: &'a [(Objective, u128)],
    /// Index of the bottleneck (an objective that is a maximum over stages) in `objectives`, where
    /// it comes last; `None` if all objectives are sums over stages.
    bottleneck: Option<usize>,
    /// The highest memory limit of any IPU, in bytes on each tile, which no stage may exceed.
    limit: u64,
}

/// The best split of the positions from one position to the end: its values in the objectives, and
/// its first stage. The stages after it are in the table of splits with one stage fewer
/// ([`Rests`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    pub values: Values,
    /// The end (exclusive) of the positions of the split's first stage.
    end: usize,
    /// The index of the profile from which the split's first stage takes its costs.
    profile: usize,
}

/// Table of the best splits of the last positions. `rests[n][p]` is the best split of the positions
/// from `p` to the end into at most n stages; `None` if there is none. If the costs of a stage
/// depend on the number of stages after it, `rests[n][p]` has exactly n stages. If it matters which
/// IPU runs a stage, the first stage of `rests[n][p]` is on IPU `rests.len() - 1 - n`.
pub type Rests = Vec<Vec<Option<Rest>>>;

/// Returns the best split in `tables`, the result of [`StagePass::run`]: its values in the
/// objectives of the pass, and its stages. Among equal splits, prefers the fewest stages. Returns
/// `None` if no split is allowed.
pub fn best(tables: &[Rests]) -> Option<(Values, Vec<CompiledStage>)> {
    let (rests, stages, values) = tables
        .iter()
        .flat_map(|rests| (1..rests.len()).map(move |stages| (rests, stages)))
        .filter_map(|(rests, stages)| Some((rests, stages, rests[stages][0]?.values)))
        .min_by_key(|&(_, stages, values)| (values, stages))?;
    let mut start = 0;
    let firsts = rests[..=stages].iter().rev().map_while(|rests| {
        let Rest { end, profile, .. } = rests.get(start)?.filter(|rest| rest.end > start)?;
        Some(CompiledStage {
            positions: std::mem::replace(&mut start, end)..end,
            profile,
        })
    });
    Some((values, firsts.collect()))
}

impl<'a> StagePass<'a> {
    pub fn new(
        checked: &'a CheckedProblem<'a>,
        objectives: &'a [Objective],
        caps: &'a [(Objective, u128)],
    ) -> Self {
        Self {
            checked,
            objectives,
            caps,
            bottleneck: objectives.iter().position(|of| of.is_bottleneck()),
            limit: checked.problem.highest_limit(),
        }
    }

    /// Finds the best split from each position to the end. Usually returns one table for all
    /// numbers of stages. If it matters both which IPU runs a stage (by limits or pins of layers)
    /// and how many stages follow it (by costs), returns one table for each total number of stages.
    pub fn run(&self) -> Vec<Rests> {
        let most = self.checked.stages;
        let is_fixed = self.checked.is_by_depth() && self.checked.is_numbered();
        let totals = if is_fixed { 1 } else { most }..=most;
        totals.map(|total| self.rests(total)).collect()
    }

    /// Returns the index of the IPU that runs a stage with `after` stages after it, in a split into
    /// `total` stages; `None` if it does not matter which IPU runs a stage.
    pub fn ipu(&self, total: usize, after: usize) -> Option<usize> {
        self.checked.is_numbered().then(|| total - 1 - after)
    }

    /// Finds the best splits from each position to the end into at most `total` stages. Stops
    /// earlier if one more stage improves no split.
    fn rests(&self, total: usize) -> Rests {
        let layers = self.checked.layers();
        let is_by_depth = self.checked.is_by_depth();
        let mut candidates = Vec::new();
        let mut rests: Rests = vec![vec![None; layers + 1]];
        rests[0][layers] = Some(Rest {
            values: Values::default(),
            end: layers,
            profile: 0,
        });
        for after in 0..total {
            if is_by_depth || after == 0 {
                candidates = (0..layers)
                    .map(|start| self.candidates(start, after))
                    .collect();
            }
            let ipu = self.ipu(total, after);
            let next = self.with_stage(ipu, &candidates, &rests[after]);
            if ipu.is_none() && !is_by_depth && next == rests[after] {
                break;
            }
            rests.push(next);
        }
        rests
    }

    /// Adds a stage at the front of splits. `rest` has the best split from each position to the
    /// end, and `candidates` the stages that may begin at each position. Returns, for each
    /// position, the best split that begins with one of these stages and continues with a split of
    /// `rest`. The added stage runs on the IPU with index `ipu`, or on any IPU if `ipu` is `None`.
    fn with_stage(
        &self,
        ipu: Option<usize>,
        candidates: &[Vec<StageCandidate>],
        rest: &[Option<Rest>],
    ) -> Vec<Option<Rest>> {
        let layers = self.checked.layers();
        let mut best = vec![None; layers + 1];
        if !self.checked.is_by_depth() {
            best[layers] = rest[layers];
        }
        // Every stage has at least one position, so the stages before the one on IPU `ipu` have at
        // least `ipu` positions, and this stage starts at position `ipu` or later. Only the first
        // stage can start at position 0.
        for start in ipu.map_or(0..layers, |ipu| ipu..if ipu == 0 { 1 } else { layers }) {
            best[start] = self.best_from(ipu, &candidates[start], rest);
        }
        best
    }

    /// Returns the best split from one position to the end: one of `candidates`, which all start at
    /// this position, followed by the split in `rest` that starts where the candidate ends. The
    /// first stage runs on the IPU with index `ipu`, or on any IPU if `ipu` is `None`. Among
    /// equally good splits, returns the one with the shortest first stage, that is, the earliest
    /// cut.
    fn best_from(
        &self,
        ipu: Option<usize>,
        candidates: &[StageCandidate],
        rest: &[Option<Rest>],
    ) -> Option<Rest> {
        let mut best: Option<Rest> = None;
        for StageCandidate {
            stage,
            peak,
            values,
        } in candidates
        {
            let CompiledStage { positions, profile } = stage;
            let Some(rest) = &rest[positions.end] else {
                continue;
            };
            let values = self.combined(values, &rest.values);
            // Check last, to save time, whether the limit of the IPU and pins (layers fixed to
            // IPUs) allow the stage.
            let is_better = best.is_none_or(|best| values < best.values);
            if is_better && ipu.is_none_or(|ipu| self.checked.may_stand(ipu, positions, *peak)) {
                best = Some(Rest {
                    values,
                    end: positions.end,
                    profile: *profile,
                });
            }
        }
        best
    }

    /// Combines the values of a stage with `rest`, the values of the stages after it: by the
    /// maximum for a bottleneck (such as the peak), by the sum for any other objective.
    pub fn combined(&self, stage: &Values, rest: &Values) -> Values {
        std::array::from_fn(|n| {
            if self.bottleneck == Some(n) {
                stage[n].max(rest[n])
            } else {
                stage[n] + rest[n]
            }
        })
    }

    /// Returns the stages that may begin at position `start` with `after` stages after them, the
    /// shortest first, and at most one per profile for each range. Each stage
    ///
    /// - is within the highest memory limit of any IPU
    /// - obeys the constraints on cuts
    /// - does not exceed the optimum that an earlier pass of the dynamic program found for a
    ///   bottleneck (an objective that is a maximum over stages)
    pub fn candidates(&self, start: usize, after: usize) -> Vec<StageCandidate> {
        let problem = &self.checked.problem;
        let mut open: Vec<usize> = (0..problem.by_profile.len()).collect();
        let mut candidates = Vec::new();
        for end in start + 1..=self.checked.layers() {
            // Costs never fall when a range grows. A model may have several profiles, compiled with
            // different options. Once a range exceeds a limit in one of them, stop trying longer
            // ranges in this profile.
            let compiled = |profile| CompiledStage {
                positions: start..end,
                profile,
            };
            open.retain(|&profile| {
                let least = problem.by_profile[profile].ranges.least(start..end);
                least.is_some_and(|least| !self.is_over(&compiled(profile), after, least))
            });
            if open.is_empty() {
                break;
            }
            if !self.checked.obeys_cuts(&(start..end)) {
                continue;
            }
            candidates.extend(open.iter().copied().map(compiled).filter_map(|stage| {
                let fits = |&peak: &u64| !self.is_over(&stage, after, peak);
                let peak = problem.peak(&stage, after).filter(fits)?;
                let mut values = Values::default();
                for (number, &objective) in values.iter_mut().zip(self.objectives) {
                    *number = self.checked.value(objective, &stage, after, peak);
                }
                Some(StageCandidate {
                    stage,
                    peak,
                    values,
                })
            }));
        }
        candidates
    }

    fn is_over(&self, stage: &CompiledStage, after: usize, peak: u64) -> bool {
        let is_over_cap =
            |&(objective, cap)| self.checked.value(objective, stage, after, peak) > cap;
        peak > self.limit || self.caps.iter().any(is_over_cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::problem::{Problem, ProfileCosts};
    use crate::solve::testing::additive;

    fn cuts(costs: &RangeCosts, cut_bytes: &[u64], ipus: usize, limit: u64) -> Option<Vec<usize>> {
        let profile = ProfileCosts::new(costs.clone(), cut_bytes);
        let problem = Problem::new(&profile, ipus, &limit);
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
        // The layers have 9, 5, 1 and 6 bytes. Only a cut before the last layer sends any bytes,
        // but 9 | 5 1 | 6 with this cut is better than 9 | 5 | 1 6, since its stages are more even.
        let costs = additive(&[9, 5, 1, 6], u64::MAX);
        assert_eq!(cuts(&costs, &[0, 0, 7], 3, 99), Some(vec![1, 3]));
        // If the last layer has 5 bytes, the stages of 9 | 5 1 | 5 and of 9 | 5 | 1 5 are equally
        // even, so the split with fewer bytes over its cuts is better.
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
