//! The integer program in the form of good_lp: ranges that may be chosen, their costs, and the
//! cheapest path of them.
//!
//! Costs are shifted by exact sums ([`Potentials`]). The least sum from each node to the end gives
//! node potentials. Adding their differences to the costs changes every path by the same amount, so
//! the best path stays the best; but it then costs 0, and the numbers are small enough for floating
//! point to distinguish them.

use good_lp::solvers::SolutionStatus;
use good_lp::solvers::microlp::{MicroLpProblem, microlp};
use good_lp::{
    Expression, ResolutionError, Solution, SolverModel, Variable, constraint::eq, variable,
    variables,
};
use std::collections::BTreeMap;
use std::ops::Range;

use super::network::{Edge, Network};
use super::objectives::Objective;

/// How far a binary may be off 0 or 1 and still be read as 0 or 1.
const INTEGRALITY: f64 = 1e-6;

/// Shifted costs are capped here. A path with such a high cost cannot be the best if a cheaper path
/// exists, and one always does: the best path costs 0.
const COST_CAP: u128 = 1 << 20;

/// A range that may be chosen, between two nodes, with its shifted cost.
#[derive(Debug)]
pub(super) struct Choice {
    pub from: usize,
    pub to: usize,
    pub range: Range<usize>,
    pub cost: u128,
}

/// The edges on some path with their shifted costs. Without any path there is nothing to shift by:
/// all edges, at no cost.
///
/// If there are more than `max_edges`, only the edges of the best paths are taken. Their optimum is
/// the optimum of all: shifted costs are never negative, so that no other edge can lower a sum of
/// 0.
pub(super) fn choices(network: &Network<'_>, sums: Option<&Potentials>) -> Vec<Choice> {
    let max_excess = sums.map(|sums| max_excess(&sums.excess, network.checked.max_edges));
    let edges = network.edges().enumerate();
    let choices = edges.filter_map(|(index, edge)| {
        let cost = match (sums, max_excess) {
            (Some(sums), Some(max_excess)) => {
                let excess = sums.excess[index].filter(|&excess| excess <= max_excess);
                excess.map(|_| sums.shifted[index])?
            }
            _ => 0,
        };
        Some(Choice {
            from: edge.from,
            to: edge.to,
            range: edge.stage_range.range.clone(),
            cost,
        })
    });
    choices.collect()
}

/// The excess up to which there are at most `max_edges` edges; 0 if even the edges without any
/// excess are more.
fn max_excess(excess: &[Option<u128>], max_edges: usize) -> u128 {
    let mut excess: Vec<u128> = excess.iter().flatten().copied().collect();
    if excess.len() <= max_edges {
        return u128::MAX;
    }
    let (_, first_out, _) = excess.select_nth_unstable(max_edges);
    first_out.saturating_sub(1)
}

/// The cheapest path of `choices` from node 0 to `sink`, as ranges in order; `None` if there is no
/// path.
///
/// There is a binary for each choice; at every node equally many chosen ranges end and start, and
/// one starts at the first node.
pub(super) fn cheapest_path(
    sink: usize,
    choices: &[Choice],
) -> Result<Option<Vec<Range<usize>>>, String> {
    let (program, binaries) = program(sink, choices);
    let solution = match program.solve() {
        Err(ResolutionError::Infeasible) => return Ok(None),
        outcome => outcome.map_err(|error| error.to_string())?,
    };
    if !matches!(solution.status(), SolutionStatus::Optimal) {
        return Err("the solver stopped before it had a proof".to_owned());
    }
    let mut ranges = Vec::new();
    for (choice, binary) in choices.iter().zip(binaries) {
        let is_chosen = read_binary(solution.value(binary));
        if is_chosen.ok_or("a binary is neither 0 nor 1")? {
            ranges.push(choice.range.clone());
        }
    }
    ranges.sort_by_key(|range| range.start);
    Ok(Some(ranges))
}

/// The integer program, and the binary of each choice. It has a row for each node on a choice,
/// except the last node, whose row follows from the others: edges that leave it minus edges that
/// enter it; the sum is 1 at the first node, else 0.
fn program(sink: usize, choices: &[Choice]) -> (MicroLpProblem, Vec<Variable>) {
    let mut variables = variables!();
    let binaries = variables.add_vector(variable().binary(), choices.len());
    let mut cost = Expression::with_capacity(choices.len());
    let mut rows = BTreeMap::from([(0, Expression::default())]);
    for (&binary, choice) in binaries.iter().zip(choices) {
        cost.add_mul(choice.cost.min(COST_CAP) as f64, binary);
        rows.entry(choice.from).or_default().add_mul(1.0, binary);
        rows.entry(choice.to).or_default().add_mul(-1.0, binary);
    }
    rows.remove(&sink);
    let mut program = variables.minimise(cost).using(microlp);
    for (node, row) in rows {
        let supply = if node == 0 { 1.0 } else { 0.0 };
        program.add_constraint(eq(row, supply));
    }
    (program, binaries)
}

fn read_binary(value: f64) -> Option<bool> {
    let rounded = value.round();
    let is_integral = (value - rounded).abs() <= INTEGRALITY;
    match rounded {
        0.0 if is_integral => Some(false),
        1.0 if is_integral => Some(true),
        _ => None,
    }
}

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
        let value = |edge: &Edge<'_>| network.value(objective, edge);
        let (edges, last) = (network.edges(), network.sink());
        let edges = edges.map(|edge| (edge.from, edge.to, edge));
        let from_start = least_sums((0, last), edges, value);
        let edges = network.edges().rev();
        let edges = edges.map(|edge| (edge.to, edge.from, edge));
        let to_end = least_sums((last, last), edges, value);
        let best = to_end[0]?;
        let (mut shifted, mut excess) = (Vec::new(), Vec::new());
        for edge in network.edges() {
            let cost = value(&edge);
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

/// By node up to `last`: the least sum of values on a path over `edges` from `start` to it. Edges
/// are in the order of paths, each after the node where it begins and the node where it ends.
fn least_sums<'a>(
    (start, last): (usize, usize),
    edges: impl Iterator<Item = (usize, usize, Edge<'a>)>,
    value: impl Fn(&Edge<'_>) -> u128,
) -> Vec<Option<u128>> {
    let mut sums = vec![None; last + 1];
    sums[start] = Some(0);
    for (from, to, edge) in edges {
        if let Some(before) = sums[from] {
            let sum: u128 = before + value(&edge);
            sums[to] = Some(sums[to].map_or(sum, |least| sum.min(least)));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Problem;
    use crate::solve::checked_problem::CheckedProblem;
    use crate::solve::testing::additive;

    fn choice(range: Range<usize>, cost: u128) -> Choice {
        Choice {
            from: range.start,
            to: range.end,
            range,
            cost,
        }
    }

    #[test]
    fn the_cheapest_path_over_the_nodes_is_chosen() {
        let choices = [
            choice(0..1, 0),
            choice(0..2, 3),
            choice(1..3, 0),
            choice(0..3, 4),
            choice(2..3, 0),
        ];
        let path = cheapest_path(3, &choices).unwrap();
        assert_eq!(path, Some(vec![0..1, 1..3]));
    }

    #[test]
    fn costs_beyond_the_cap_are_not_chosen() {
        let choices = [choice(0..1, 0), choice(0..2, u128::MAX), choice(1..2, 1)];
        let path = cheapest_path(2, &choices).unwrap();
        assert_eq!(path, Some(vec![0..1, 1..2]));
    }

    #[test]
    fn a_gap_between_the_choices_is_infeasible() {
        let gap = [choice(0..1, 0), choice(2..3, 0)];
        assert_eq!(cheapest_path(3, &gap), Ok(None));
        assert_eq!(cheapest_path(1, &[]), Ok(None));
    }

    #[test]
    fn a_value_between_0_and_1_is_not_read() {
        assert_eq!(read_binary(0.5), None);
        assert_eq!(read_binary(2.0), None);
        assert_eq!(read_binary(f64::NAN), None);
        assert_eq!(read_binary(1.0 - 1e-9), Some(true));
    }

    #[test]
    fn edges_without_excess_are_never_left_out() {
        let excess = [Some(0), None, Some(7), Some(0), Some(3), Some(3)];
        assert_eq!(max_excess(&excess, 5), u128::MAX);
        assert_eq!(max_excess(&excess, 4), 6);
        assert_eq!(max_excess(&excess, 3), 2);
        assert_eq!(max_excess(&excess, 2), 2);
        assert_eq!(max_excess(&excess, 1), 0);
    }

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
