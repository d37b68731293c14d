//! The same question answered by an exact dynamic program, in integers.
//!
//! It shares with the integer program only what a stage costs
//! ([`Objective::cost`]): neither the search for the peak nor the models.

use super::objectives::{Objective, SUMS};
use super::plan::Plan;
use super::problem::Problem;

/// One number for each objective of [`SUMS`], compared in that order.
type Sums = [u128; SUMS.len()];

/// The best plan in the order peak, [`SUMS`], earliest cuts; `None` when
/// there is no split.
pub(super) fn solve(problem: &Problem<'_>) -> Option<Plan> {
    let peak = lowest_peak(problem)?;
    best_below(problem, peak)
}

/// The lowest peak (bytes) of any split into at most `max_stages` stages.
///
/// After round `k`, `lowest[from]` is the lowest peak of the positions from
/// `from` on in at most `k` stages.
fn lowest_peak(problem: &Problem<'_>) -> Option<u64> {
    let layers = problem.layers();
    let mut lowest: Vec<Option<u64>> = vec![None; layers + 1];
    lowest[layers] = Some(0);
    for _ in 0..problem.max_stages.min(layers) {
        let next: Vec<_> = (0..layers)
            .map(|from| lowest_from(problem.costs.peaks_from(from), &lowest[from + 1..]))
            .chain([Some(0)])
            .collect();
        if next == lowest {
            break;
        }
        lowest = next;
    }
    if layers == 0 { None } else { lowest[0] }
}

/// The best first stage: `peaks[n]` and `rest[n]` belong to the same end.
fn lowest_from(peaks: &[u64], rest: &[Option<u64>]) -> Option<u64> {
    let mut best: Option<u64> = None;
    for (&peak, rest) in peaks.iter().zip(rest) {
        // Longer first stages cost no less.
        if best.is_some_and(|best| best <= peak) {
            break;
        }
        if let Some(rest) = *rest {
            let both = peak.max(rest);
            best = Some(best.map_or(both, |best| best.min(both)));
        }
    }
    best
}

/// The best plan whose stages all need at most `peak` bytes.
///
/// It is built from the end, so that the first cut is chosen last: among
/// equals the earliest.
fn best_below(problem: &Problem<'_>, peak: u64) -> Option<Plan> {
    let layers = problem.layers();
    let mut totals: Vec<Option<Sums>> = vec![None; layers + 1];
    let mut ends = vec![0; layers];
    totals[layers] = Some(Sums::default());
    for from in (0..layers).rev() {
        for end in from + 1..=problem.costs.reach(from) {
            let Some(total) = total_with(problem, peak, from, end, &totals) else {
                continue;
            };
            if totals[from].is_none_or(|best| total < best) {
                totals[from] = Some(total);
                ends[from] = end;
            }
        }
    }
    totals[0]?;
    let mut stages = Vec::new();
    let mut from = 0;
    while from < layers {
        stages.push(from..ends[from]);
        from = ends[from];
    }
    Plan::new(stages, layers)
}

/// The sums of the stage `from..end` and the best rest after it.
fn total_with(
    problem: &Problem<'_>,
    peak: u64,
    from: usize,
    end: usize,
    totals: &[Option<Sums>],
) -> Option<Sums> {
    let range = from..end;
    let own = problem
        .costs
        .peak(range.clone())
        .filter(|&own| own <= peak)?;
    let mut total = totals[end]?;
    for (sum, objective) in total.iter_mut().zip(SUMS) {
        *sum += Objective::cost(objective, problem, &range, own);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::testing::additive;

    fn cuts(costs: &RangeCosts, cut_bytes: &[u64], max_stages: usize) -> Option<Vec<usize>> {
        let problem = Problem {
            costs,
            cut_bytes,
            max_stages,
        };
        solve(&problem).map(|plan| plan.cuts().collect())
    }

    #[test]
    fn the_peak_comes_before_the_number_of_stages() {
        let costs = additive(&[4, 1, 1, 4], u64::MAX);
        assert_eq!(cuts(&costs, &[0; 3], 4), Some(vec![1, 3]));
        assert_eq!(cuts(&costs, &[0; 3], 1), Some(vec![]));
    }

    #[test]
    fn evenness_comes_before_bytes_over_the_cut() {
        // 9 | 5 1 | 6 is more even than 9 | 5 | 1 6, whatever the cut sends.
        let costs = additive(&[9, 5, 1, 6], u64::MAX);
        assert_eq!(cuts(&costs, &[0, 0, 7], 3), Some(vec![1, 3]));
        // With 5 for 6 both are as even, and the cut decides.
        let even = additive(&[9, 5, 1, 5], u64::MAX);
        assert_eq!(cuts(&even, &[0, 0, 7], 3), Some(vec![1, 2]));
        assert_eq!(cuts(&even, &[0, 7, 0], 3), Some(vec![1, 3]));
    }

    #[test]
    fn ties_go_to_the_earliest_cut() {
        let costs = additive(&[1, 0, 0, 1], u64::MAX);
        assert_eq!(cuts(&costs, &[0; 3], 2), Some(vec![1]));
        assert_eq!(cuts(&costs, &[1, 0, 0], 2), Some(vec![2]));
    }

    #[test]
    fn there_is_none_without_stages_or_over_the_limit() {
        assert_eq!(cuts(&additive(&[1, 1], u64::MAX), &[0], 0), None);
        assert_eq!(cuts(&additive(&[1, 5, 1], 4), &[0; 2], 3), None);
        assert_eq!(cuts(&additive(&[3, 3, 3], 4), &[0; 2], 2), None);
        assert_eq!(cuts(&additive(&[3, 3, 3], 4), &[0; 2], 3), Some(vec![1, 2]));
        assert_eq!(cuts(&additive(&[], 4), &[], 3), None);
    }
}
