//! Exact sums over paths, which show how much choosing an edge costs beyond the best path.
//!
//! The least sum from each node to the end gives node potentials. Adding their differences to the
//! costs changes every path by the same amount, so the best path stays the best; but it then costs
//! 0, and the numbers are small enough for floating point to distinguish them.

use super::network::Network;
use super::objectives::Objective;

/// Exact sums of one objective over the paths through each open edge.
#[derive(Debug)]
pub(super) struct Potentials {
    /// The least sum of any path.
    pub best: u128,
    /// By open edge: its shifted cost, which is never negative, and 0 on a best path from its start
    /// to the end.
    pub shifted: Vec<u128>,
    /// By open edge: how much the best path through it exceeds `best`; `None` if it is on no path
    /// from the first to the last node. At least as much as `shifted`.
    pub excess: Vec<Option<u128>>,
}

impl Potentials {
    /// The potentials of `objective`; `None` if there is no path at all.
    pub(super) fn new(network: &Network<'_>, objective: Objective) -> Option<Self> {
        let to_end = sums_to_end(network, objective);
        let from_start = sums_from_start(network, objective);
        let best = to_end[0]?;
        let (mut shifted, mut excess) = (Vec::new(), Vec::new());
        for edge in network.edges() {
            let cost = network.value(objective, &edge);
            let through = to_end[edge.to].map(|rest| cost + rest);
            let above = through.and_then(|sum| sum.checked_sub(to_end[edge.from]?));
            let path = through.and_then(|sum| Some(from_start[edge.from]? + sum));
            shifted.push(above.unwrap_or(0));
            excess.push(path.and_then(|sum| sum.checked_sub(best)));
        }
        Some(Self {
            best,
            shifted,
            excess,
        })
    }
}

/// By node: the least sum of a path from it to the last node.
fn sums_to_end(network: &Network<'_>, objective: Objective) -> Vec<Option<u128>> {
    let mut sums = vec![None; network.sink() + 1];
    sums[network.sink()] = Some(0);
    for edge in network.edges().rev() {
        let rest: Option<u128> = sums[edge.to];
        let sum = rest.map(|rest| rest + network.value(objective, &edge));
        lower(&mut sums[edge.from], sum);
    }
    sums
}

/// By node: the least sum of a path from the first node to it.
fn sums_from_start(network: &Network<'_>, objective: Objective) -> Vec<Option<u128>> {
    let mut sums = vec![None; network.sink() + 1];
    sums[0] = Some(0);
    for edge in network.edges() {
        let before: Option<u128> = sums[edge.from];
        let sum = before.map(|before| before + network.value(objective, &edge));
        lower(&mut sums[edge.to], sum);
    }
    sums
}

fn lower(least: &mut Option<u128>, sum: Option<u128>) {
    if let Some(sum) = sum {
        *least = Some(least.map_or(sum, |least| least.min(sum)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::checked_problem::CheckedProblem;
    use crate::solve::problem::Problem;
    use crate::solve::testing::additive;
    use std::ops::Range;

    #[test]
    fn every_path_through_an_edge_is_at_least_its_excess_above_the_best() {
        let costs = additive(&[3, 1, 4, 1], 8);
        let checked = CheckedProblem::new(&Problem::new(&costs, &[7, 7, 7], 4, 5)).unwrap();
        let network = Network::compact(&checked);
        let sums = Potentials::new(&network, Objective::Squares).unwrap();
        // Cuts after every layer: 9 + 1 + 16 + 1.
        assert_eq!(sums.best, 27);
        let mut ranges = network.edges().map(|edge| &edge.stage_range.range);
        assert!(!ranges.any(|range| *range == (1..4)), "6 bytes are over 5");
        let excess = |range: Range<usize>| {
            let at = network
                .edges()
                .position(|edge| edge.stage_range.range == range);
            sums.excess[at.unwrap()]
        };
        assert_eq!(excess(0..1), Some(0));
        // 16 + 16 + 1 and 9 + 25 + 1.
        assert_eq!(excess(0..2), Some(33 - 27));
        assert_eq!(excess(1..3), Some(35 - 27));
        for (shifted, excess) in sums.shifted.iter().zip(&sums.excess) {
            assert!(excess.is_some_and(|excess| excess >= *shifted));
        }
    }

    #[test]
    fn without_a_path_there_are_no_sums() {
        let costs = additive(&[1, 9, 1], 5);
        let checked = CheckedProblem::new(&Problem::new(&costs, &[0, 0], 3, 5)).unwrap();
        let network = Network::compact(&checked);
        assert_eq!(network.edges().count(), 2);
        assert!(Potentials::new(&network, Objective::Stages).is_none());
    }
}
