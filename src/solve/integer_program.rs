//! The integer program, objective after objective.
//!
//! The peak is found by bisection over the distinct costs, with an exact
//! count of stages at each. The integer program then minimises the number of
//! stages twice: at the peak that was found, where few enough must do, and at
//! the next lower cost, where they must not. Each further sum is minimised
//! over the ranges of the plans that are best so far.

use super::columns::{Column, Sums, columns_up_to, sum_of};
use super::error::SolveError;
use super::model::{self, Choice};
use super::objectives::{Objective, SUMS};
use super::plan::Plan;
use super::problem::Problem;

/// What shows that no lower peak is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakProof {
    /// The highest cost (bytes) of any range below the peak that was found.
    pub threshold: u64,
    /// The fewest stages when none may need more than `threshold` bytes, by
    /// the integer program: more than were allowed. `None`: a layer needs
    /// more by itself, so no number of stages will do.
    pub stages_needed: Option<usize>,
}

/// The best plan and its proof.
#[derive(Debug)]
pub(super) struct Answer {
    pub plan: Plan,
    /// `None`: no range at all costs less than the peak.
    pub proof: Option<PeakProof>,
}

/// The best plan in the order peak, [`SUMS`], earliest cuts; `None` when
/// the integer program proves that there is no split.
pub(super) fn solve(problem: &Problem<'_>) -> Result<Option<Answer>, SolveError> {
    let thresholds = distinct_peaks(problem);
    let Some(&highest) = thresholds.last() else {
        return Ok(None);
    };
    // The first threshold that is enough; all from it on are.
    let index = thresholds.partition_point(|&threshold| {
        count_stages(&reach_within(problem, threshold)).is_none_or(|n| n > problem.max_stages)
    });
    let Some(&peak) = thresholds.get(index) else {
        refuse(problem, highest)?;
        return Ok(None);
    };
    let below = index.checked_sub(1).map(|below| thresholds[below]);
    let proof = below.map(|below| refuse(problem, below)).transpose()?;
    let plan = best_within(problem, peak)?;
    Ok(Some(Answer { plan, proof }))
}

/// The best plan of stages that need at most `peak` bytes: objective after
/// objective, keeps only the columns of the best plans.
fn best_within(problem: &Problem<'_>, peak: u64) -> Result<Plan, SolveError> {
    let mut columns = columns_up_to(problem, peak);
    let mut max_stages = problem.layers();
    for objective in SUMS {
        let best = best_of(problem, objective, &columns, max_stages)?
            .ok_or_else(|| unproven(objective, format!("no split within {peak} bytes")))?;
        max_stages = best.plan.stages().len().min(problem.max_stages);
        columns = best.columns;
    }
    earliest_cuts(&columns, problem.layers())
        .filter(|plan| plan.stages().len() <= problem.max_stages)
        .ok_or_else(|| {
            unproven(
                Objective::Peak,
                format!("too many stages within {peak} bytes"),
            )
        })
}

/// The plan whose cuts come first among all paths over `columns`, of which
/// each is part of a best plan: the shortest first stage, then the shortest
/// after it, and so on.
fn earliest_cuts(columns: &[Column], layers: usize) -> Option<Plan> {
    let mut stages = Vec::new();
    let mut end = 0;
    for column in columns {
        if column.range.start == end {
            end = column.range.end;
            stages.push(column.range.clone());
        }
    }
    Plan::new(stages, layers)
}

/// The optimum of one sum over stages.
#[derive(Debug)]
struct Best {
    /// A plan that reaches it, as the integer program chose it.
    plan: Plan,
    /// The columns of all plans that reach it, sorted as before.
    columns: Vec<Column>,
}

/// Minimises `objective` over the plans of at most `max_stages` of `columns`;
/// `None` when the integer program is infeasible.
fn best_of(
    problem: &Problem<'_>,
    objective: Objective,
    columns: &[Column],
    max_stages: usize,
) -> Result<Option<Best>, SolveError> {
    let fail = |reason: String| unproven(objective, reason);
    let sums = Sums::new(problem, objective, columns);
    let choices = choices(columns, sums.as_ref());
    let plan = model::cheapest_plan(problem.layers(), max_stages, &choices).map_err(fail)?;
    let (plan, sums) = match (plan, sums) {
        (Some(plan), Some(sums)) => (plan, sums),
        (None, None) => return Ok(None),
        (plan, _) => {
            let program = if plan.is_some() {
                "a split"
            } else {
                "no split"
            };
            return Err(fail(format!("{program} found against the exact sums")));
        }
    };
    let found = sum_of(problem, objective, &plan);
    if found != Some(sums.best) {
        return Err(fail(format!(
            "{found:?} found, but {} is the bound",
            sums.best
        )));
    }
    let columns = columns.iter().zip(&sums.excess);
    let best = columns.filter(|&(_, &excess)| excess == Some(0));
    let columns = best.map(|(column, _)| column.clone()).collect();
    Ok(Some(Best { plan, columns }))
}

/// The columns with their shifted costs, without those that no path has.
/// Without any path there is nothing to shift by: all columns, at no cost.
fn choices(columns: &[Column], sums: Option<&Sums>) -> Vec<Choice> {
    let choice = |(index, column): (usize, &Column)| {
        let cost = match sums {
            Some(sums) => sums.excess[index].map(|_| sums.shifted[index])?,
            None => 0,
        };
        let range = column.range.clone();
        Some(Choice { range, cost })
    };
    columns.iter().enumerate().filter_map(choice).collect()
}

/// Has the integer program show that `threshold` bytes are not enough.
fn refuse(problem: &Problem<'_>, threshold: u64) -> Result<PeakProof, SolveError> {
    let columns = columns_up_to(problem, threshold);
    let best = best_of(problem, Objective::Stages, &columns, problem.layers())?;
    let stages_needed = best.map(|best| best.plan.stages().len());
    if let Some(n) = stages_needed.filter(|&n| n <= problem.max_stages) {
        let reason = format!("{n} stages turned out to do with {threshold} bytes");
        return Err(unproven(Objective::Peak, reason));
    }
    Ok(PeakProof {
        threshold,
        stages_needed,
    })
}

/// The end of the longest range from each start that needs at most
/// `threshold` bytes; the start itself when there is none.
fn reach_within(problem: &Problem<'_>, threshold: u64) -> Vec<usize> {
    (0..problem.layers())
        .map(|from| {
            let peaks = problem.costs.peaks_from(from);
            from + peaks.partition_point(|&peak| peak <= threshold)
        })
        .collect()
}

/// The fewest stages, each as long as it can be; `None` when one is empty.
/// Exact, since no range costs more than one that holds it.
fn count_stages(reach: &[usize]) -> Option<usize> {
    let mut from = 0;
    let mut stages = 0;
    while from < reach.len() {
        if reach[from] == from {
            return None;
        }
        from = reach[from];
        stages += 1;
    }
    Some(stages)
}

/// Every cost in the table once, in rising order.
fn distinct_peaks(problem: &Problem<'_>) -> Vec<u64> {
    let mut peaks: Vec<u64> = problem.costs.iter().map(|(_, peak)| peak).collect();
    peaks.sort_unstable();
    peaks.dedup();
    peaks
}

fn unproven(objective: Objective, reason: String) -> SolveError {
    SolveError::Unproven { objective, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::testing::additive;

    fn answer(costs: &RangeCosts, cut_bytes: &[u64], max_stages: usize) -> Option<Answer> {
        let problem = Problem {
            costs,
            cut_bytes,
            max_stages,
        };
        solve(&problem).unwrap()
    }

    #[test]
    fn the_next_lower_cost_is_proven_too_low() {
        let costs = additive(&[3, 1, 4, 1, 5], u64::MAX);
        let found = answer(&costs, &[0; 4], 2).unwrap();
        // 3 1 4 | 1 5: the next lower cost of any range is 6.
        assert_eq!(found.plan.stages(), [0..3, 3..5]);
        let threshold = 6;
        let stages_needed = Some(3);
        let proof = PeakProof {
            threshold,
            stages_needed,
        };
        assert_eq!(found.proof, Some(proof));
    }

    #[test]
    fn a_heavy_layer_needs_no_number_of_stages_below_it() {
        let costs = additive(&[1, 9, 1], u64::MAX);
        let proof = answer(&costs, &[0; 2], 3).unwrap().proof.unwrap();
        assert_eq!((proof.threshold, proof.stages_needed), (1, None));
        let even = additive(&[0, 0], u64::MAX);
        assert_eq!(answer(&even, &[0], 2).unwrap().proof, None);
    }

    #[test]
    fn a_model_that_fits_in_no_split_has_no_answer() {
        assert!(answer(&additive(&[3, 3, 3], 4), &[0; 2], 2).is_none());
        assert!(answer(&additive(&[9], 4), &[], 2).is_none());
        assert!(answer(&additive(&[1], 4), &[], 0).is_none());
    }
}
