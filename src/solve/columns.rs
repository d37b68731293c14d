//! The columns of the integer program in exact integers: which ranges can
//! still be in a best plan, and what choosing one costs beyond the best.
//!
//! A plan is a path over layer boundaries, and a range an edge of it. For
//! sums over stages, the least sum from each boundary to the end gives node
//! potentials. Adding their differences to the costs changes every path by
//! the same amount, so it does not change which is best; but the best is then
//! 0 and the numbers are small, where floating point tells them apart.

use std::ops::Range;

use super::objectives::Objective;
use super::plan::Plan;
use super::problem::Problem;

/// A range that the integer program may choose, with its peak in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub range: Range<usize>,
    pub peak: u64,
}

/// All ranges that need at most `peak` bytes, by start, then by end.
pub(super) fn columns_up_to(problem: &Problem<'_>, peak: u64) -> Vec<Column> {
    let all = problem.costs.iter().filter(|&(_, own)| own <= peak);
    all.map(|(range, peak)| Column { range, peak }).collect()
}

/// Exact sums of one objective over the paths through each column.
#[derive(Debug)]
pub(super) struct Sums {
    /// The least sum of any path.
    pub best: u128,
    /// For each column, what it adds in shifted costs: never negative, 0 on
    /// a best path from its start to the end.
    pub shifted: Vec<u128>,
    /// For each column, how far the best path through it is above `best`;
    /// `None` when no path from the first to the last boundary has it. At
    /// least as much as `shifted`.
    pub excess: Vec<Option<u128>>,
}

impl Sums {
    /// Sums of `objective` over `columns`, which are sorted by start; `None`
    /// when they hold no path at all.
    pub(super) fn new(
        problem: &Problem<'_>,
        objective: Objective,
        columns: &[Column],
    ) -> Option<Self> {
        let costs: Vec<u128> = columns
            .iter()
            .map(|column| objective.cost(problem, &column.range, column.peak))
            .collect();
        let to_end = sums_to_end(problem.layers(), columns, &costs);
        let from_start = sums_from_start(problem.layers(), columns, &costs);
        let best = to_end[0]?;
        let mut sums = Self {
            best,
            shifted: Vec::with_capacity(columns.len()),
            excess: Vec::with_capacity(columns.len()),
        };
        for (column, cost) in columns.iter().zip(costs) {
            let through = to_end[column.range.end].map(|rest| cost + rest);
            let shifted = through.and_then(|sum| sum.checked_sub(to_end[column.range.start]?));
            let path = through.and_then(|sum| Some(from_start[column.range.start]? + sum));
            sums.shifted.push(shifted.unwrap_or(0));
            sums.excess.push(path.and_then(|sum| sum.checked_sub(best)));
        }
        Some(sums)
    }
}

/// For each boundary the least sum of a path from it to the last one.
fn sums_to_end(layers: usize, columns: &[Column], costs: &[u128]) -> Vec<Option<u128>> {
    let mut sums = vec![None; layers + 1];
    sums[layers] = Some(0);
    // Columns that start later come later, so a column's end is settled
    // before the column is met.
    for (column, cost) in columns.iter().zip(costs).rev() {
        let sum = sums[column.range.end].map(|rest: u128| rest + cost);
        lower(&mut sums[column.range.start], sum);
    }
    sums
}

/// For each boundary the least sum of a path from the first one to it.
fn sums_from_start(layers: usize, columns: &[Column], costs: &[u128]) -> Vec<Option<u128>> {
    let mut sums = vec![None; layers + 1];
    sums[0] = Some(0);
    for (column, cost) in columns.iter().zip(costs) {
        let sum = sums[column.range.start].map(|before: u128| before + cost);
        lower(&mut sums[column.range.end], sum);
    }
    sums
}

fn lower(least: &mut Option<u128>, sum: Option<u128>) {
    if let Some(sum) = sum {
        *least = Some(least.map_or(sum, |least| least.min(sum)));
    }
}

/// What `plan` sums up to in `objective`; `None` when a stage of it is not
/// among the range costs.
pub(super) fn sum_of(problem: &Problem<'_>, objective: Objective, plan: &Plan) -> Option<u128> {
    let costs = plan.stages().iter().map(|stage| {
        let peak = problem.costs.peak(stage.clone())?;
        Some(objective.cost(problem, stage, peak))
    });
    costs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::additive;

    #[test]
    fn every_path_through_a_column_is_at_least_its_excess_above_the_best() {
        let costs = additive(&[3, 1, 4, 1], 8);
        let problem = Problem {
            costs: &costs,
            cut_bytes: &[7, 7, 7],
            max_stages: 4,
        };
        let columns = columns_up_to(&problem, 5);
        let sums = Sums::new(&problem, Objective::Squares, &columns).unwrap();
        // Cuts after every layer: 9 + 1 + 16 + 1.
        assert_eq!(sums.best, 27);
        let at = |range: Range<usize>| columns.iter().position(|column| column.range == range);
        let excess = |range| sums.excess[at(range).unwrap()];
        assert_eq!(excess(0..1), Some(0));
        // 16 + 16 + 1 and 9 + 25 + 1.
        assert_eq!(excess(0..2), Some(33 - 27));
        assert_eq!(excess(1..3), Some(35 - 27));
        assert_eq!(at(1..4), None, "6 bytes are over the peak of 5");
        for (shifted, excess) in sums.shifted.iter().zip(&sums.excess) {
            assert!(excess.is_some_and(|excess| excess >= *shifted));
        }
    }

    #[test]
    fn columns_without_a_path_have_no_sums() {
        let costs = additive(&[1, 9, 1], 5);
        let problem = Problem {
            costs: &costs,
            cut_bytes: &[0, 0],
            max_stages: 3,
        };
        let columns = columns_up_to(&problem, 5);
        assert_eq!(columns.len(), 2);
        assert!(Sums::new(&problem, Objective::Stages, &columns).is_none());
    }
}
