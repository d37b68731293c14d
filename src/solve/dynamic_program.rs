//! Solves the integer program's problem by an exact dynamic program, in integers.
//!
//! It shares with the integer program only the values of ranges and where they may be
//! ([`CheckedProblem`]): neither the search for bottlenecks nor networks.
//!
//! `rest[from]` for stage k is the best split of the positions from `from` on if stage k starts
//! there. Sums can be compared one after the other in one pass, since the best rest stays the best
//! whatever comes before it. A bottleneck must come last in a pass: a rest that is better in it may
//! be no better in the end, and worse in later objectives. So each bottleneck ends a pass, and from
//! then on caps the value of a stage.

use std::ops::Range;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;
use super::plan::Plan;

/// The maximum number of objectives that one pass compares.
const MAX_OBJECTIVES: usize = 4;

/// One value for each objective of a pass; unused entries are 0.
type Key = [u128; MAX_OBJECTIVES];

/// The best plan by the problem's goal, among equals the one with the earliest cuts; `None` if
/// there is no split.
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

/// A range that may be a stage, with its values.
struct Candidate {
    end: usize,
    peak: u64,
    key: Key,
}

/// By start: the ranges that may be a stage on some IPU.
type Candidates = Vec<Vec<Candidate>>;

/// One pass over all stages, from the last to the first.
struct StagePass<'a> {
    checked: &'a CheckedProblem<'a>,
    objectives: &'a [Objective],
    caps: &'a [(Objective, u128)],
    /// Index of the last objective if it is a bottleneck.
    bottleneck: Option<usize>,
}

/// The best stages from each position on, found from the last stage to the first.
struct Rest {
    /// By start: the best values; `None` if there is no split.
    best: Vec<Option<Key>>,
    /// By stage from the last one, then by start: end of the stage.
    ends: Vec<Vec<usize>>,
}

impl Rest {
    /// No stage: all positions are placed.
    fn new(layers: usize) -> Self {
        let mut best = vec![None; layers + 1];
        best[layers] = Some(Key::default());
        let ends = Vec::new();
        Self { best, ends }
    }

    /// The stages of the best split from position 0 into at most `stages` stages.
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
    /// A pass over ranges whose values are within `caps`.
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

    /// The best values, and the stages that reach them.
    fn run(&self) -> Option<(Key, Vec<Range<usize>>)> {
        if self.checked.layers() == 0 {
            return None;
        }
        let stages = self.checked.stages;
        if !self.checked.is_by_depth() || !self.checked.is_numbered() {
            return self.up_to(stages);
        }
        // The number of stages before a stage and the number after it both matter.
        let found = (1..=stages).filter_map(|total| self.up_to(total));
        found.min_by_key(|&(key, _)| key)
    }

    /// The best split into at most `total` stages; into exactly `total` if both the number of stages
    /// before a stage and the number after it matter.
    fn up_to(&self, total: usize) -> Option<(Key, Vec<Range<usize>>)> {
        let layers = self.checked.layers();
        let is_by_depth = self.checked.is_by_depth();
        let knows_ipu = !is_by_depth || self.checked.is_numbered();
        let mut candidates = self.candidates(0);
        let mut rest = Rest::new(layers);
        let mut best: Option<(Key, usize)> = None;
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
                // The next stage has exactly one more stage after it.
                rest.best[layers] = None;
            }
            let is_whole = ipu.is_none_or(|ipu| ipu == 0);
            let found = rest.best[0].filter(|_| is_whole);
            best = best
                .into_iter()
                .chain(found.map(|key| (key, after + 1)))
                .min();
        }
        let (key, stages) = best?;
        Some((key, rest.stages(stages)))
    }

    /// Puts a stage before the rest, on `ipu` if that matters. Starts ascend, and a start only uses
    /// values of later starts, so that none is used after it was replaced.
    fn add_stage(
        &self,
        ipu: Option<usize>,
        candidates: &Candidates,
        starts: Range<usize>,
        rest: &mut Rest,
    ) {
        let layers = self.checked.layers();
        let mut ends = vec![layers; layers];
        for start in starts {
            let best = self.best_from(ipu, start, &candidates[start], &rest.best);
            rest.best[start] = best.map(|(key, _)| key);
            ends[start] = best.map_or(layers, |(_, end)| end);
        }
        rest.ends.push(ends);
    }

    /// The best stage that starts at `start`: its values with the best rest, and its end. Among
    /// equals the shortest.
    fn best_from(
        &self,
        ipu: Option<usize>,
        start: usize,
        candidates: &[Candidate],
        rest: &[Option<Key>],
    ) -> Option<(Key, usize)> {
        let mut best: Option<(Key, usize)> = None;
        for Candidate { end, peak, key } in candidates {
            // If a bottleneck is all that is compared, longer stages are no better, unless they
            // need fewer copies.
            if self.bottleneck == Some(0)
                && !self.checked.is_by_depth()
                && best.is_some_and(|(best, _)| best[0] <= key[0])
            {
                break;
            }
            let Some(total) = rest[*end].map(|rest| self.joined(key, &rest)) else {
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

    fn joined(&self, stage: &Key, rest: &Key) -> Key {
        let mut sum = *rest;
        for (n, (sum, stage)) in sum.iter_mut().zip(stage).enumerate() {
            *sum = match self.bottleneck {
                Some(bottleneck) if bottleneck == n => (*stage).max(*sum),
                _ => stage + *sum,
            };
        }
        sum
    }

    /// By start: the ranges that obey the constraints on cuts and are within the caps with `after`
    /// stages after them.
    fn candidates(&self, after: usize) -> Candidates {
        let starts = 0..self.checked.layers();
        starts
            .map(|start| self.candidates_from(start, after))
            .collect()
    }

    fn candidates_from(&self, start: usize, after: usize) -> Vec<Candidate> {
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
            // All longer ranges are over, too.
            if is_over(least) {
                break;
            }
            let peak = costs.peak(range.clone(), after);
            let Some(peak) = peak.filter(|&peak| !is_over(peak)) else {
                continue;
            };
            if checked.obeys_cuts(&range) {
                let mut key = Key::default();
                for (number, &objective) in key.iter_mut().zip(self.objectives) {
                    *number = checked.value(objective, (&range, after), peak);
                }
                candidates.push(Candidate {
                    end: range.end,
                    peak,
                    key,
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
