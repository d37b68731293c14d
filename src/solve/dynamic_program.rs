//! The same question answered by an exact dynamic program, in integers.
//!
//! It shares with the integer program only what a range counts and where it may be
//! ([`CheckedProblem`]): neither the search for bottlenecks nor networks.
//!
//! `rest[from]` for stage k is the best of the positions from `from` on when
//! stage k starts there. Sums may be compared one after the other in one pass,
//! since the best rest stays the best whatever comes before it. A bottleneck
//! may only come last in a pass: a rest that is better in it may be no better
//! in the end, and worse in what follows. So each bottleneck ends a pass, and
//! from then on caps what a stage may count.

use std::ops::Range;

use super::checked_problem::CheckedProblem;
use super::objectives::Objective;
use super::plan::Plan;

/// The maximum number of objectives that one pass compares.
const MOST: usize = 4;

/// One number for each objective of a pass, the rest 0.
type Key = [u128; MOST];

/// The best plan by the question's goal, among equals that with the earliest
/// cuts; `None` when there is no split.
pub(super) fn solve(checked: &CheckedProblem<'_>) -> Option<Plan> {
    let mut caps = Vec::new();
    let mut sums = Vec::new();
    for &objective in checked.goal.order() {
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

/// A range that may be a stage and what it counts.
struct Candidate {
    end: usize,
    peak: u64,
    key: Key,
}

/// One pass over all stages, from the last to the first.
struct StagePass<'a> {
    checked: &'a CheckedProblem<'a>,
    /// Whether the last objective is a bottleneck, and where it is.
    bottleneck: Option<usize>,
    /// By start: the ranges that may be a stage on some IPU.
    candidates: Vec<Vec<Candidate>>,
}

impl<'a> StagePass<'a> {
    /// A pass over ranges that count at most as much as `caps` allow.
    fn new(
        checked: &'a CheckedProblem<'a>,
        objectives: &[Objective],
        caps: &[(Objective, u128)],
    ) -> Self {
        let last = objectives.len() - 1;
        let bottleneck = objectives[last].is_bottleneck().then_some(last);
        let from = |start| candidates(checked, objectives, caps, start);
        Self {
            checked,
            bottleneck,
            candidates: (0..checked.layers()).map(from).collect(),
        }
    }

    /// The best numbers and the stages that reach them.
    fn run(&self) -> Option<(Key, Vec<Range<usize>>)> {
        let layers = self.checked.layers();
        let mut rest: Vec<Option<Key>> = vec![None; layers + 1];
        rest[layers] = Some(Key::default());
        // By stage and start, from the last stage to the first.
        let mut ends = Vec::new();
        for stage in (0..self.checked.stages).rev() {
            let mut ends_here = vec![layers; layers];
            // Every stage before has a position, and the first has the first.
            let starts = if stage == 0 { 0..1 } else { stage..layers };
            // Starts rise, and a start only looks at the later ones: no
            // number is used after it was replaced.
            for start in starts {
                let best = self.best_from(stage, start, &rest);
                rest[start] = best.map(|(key, _)| key);
                ends_here[start] = best.map_or(layers, |(_, end)| end);
            }
            ends.push(ends_here);
        }
        let best = rest[0].filter(|_| layers > 0)?;
        let mut start = 0;
        let mut stages = Vec::new();
        for ends in ends.iter().rev() {
            if start == layers {
                break;
            }
            stages.push(start..ends[start]);
            start = ends[start];
        }
        Some((best, stages))
    }

    /// The best stage `stage` that starts at `start`: its numbers with the
    /// best rest, and its end. Among equals the shortest.
    fn best_from(&self, stage: usize, start: usize, rest: &[Option<Key>]) -> Option<(Key, usize)> {
        let mut best: Option<(Key, usize)> = None;
        for candidate in &self.candidates[start] {
            let Candidate { end, peak, key } = candidate;
            // With nothing but a bottleneck to compare, longer stages are no
            // better.
            if self.bottleneck == Some(0) && best.is_some_and(|(best, _)| best[0] <= key[0]) {
                break;
            }
            let Some(total) = rest[*end].map(|rest| self.joined(key, &rest)) else {
                continue;
            };
            let is_better = best.is_none_or(|(best, _)| total < best);
            if is_better && self.checked.may_stand(stage, &(start..*end), *peak) {
                best = Some((total, *end));
            }
        }
        best
    }

    fn joined(&self, own: &Key, rest: &Key) -> Key {
        let mut both = *rest;
        for (n, (both, own)) in both.iter_mut().zip(own).enumerate() {
            *both = match self.bottleneck {
                Some(bottleneck) if bottleneck == n => (*own).max(*both),
                _ => own + *both,
            };
        }
        both
    }
}

/// The ranges from `start` that obey the constraints on cuts and count at most as
/// much as `caps` allow, by end.
fn candidates(
    checked: &CheckedProblem<'_>,
    objectives: &[Objective],
    caps: &[(Objective, u128)],
    start: usize,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for end in start + 1..=checked.problem.costs.reach(start) {
        let range = start..end;
        let peak = checked.problem.costs.peak(range.clone());
        let Some(peak) = peak.filter(|&peak| peak <= checked.highest_limit()) else {
            break;
        };
        let over = |&(objective, cap)| checked.value(objective, &range, peak) > cap;
        if caps.iter().any(over) {
            break;
        }
        if checked.obeys_cuts(&range) {
            let mut key = Key::default();
            for (number, &objective) in key.iter_mut().zip(objectives) {
                *number = checked.value(objective, &range, peak);
            }
            candidates.push(Candidate { end, peak, key });
        }
    }
    candidates
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
        // With 5 for 6 both are as even, and the cut decides.
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
