//! The integer program as [`good_lp`] takes it: a binary variable for each range that may be a
//! stage, and the cheapest path over these ranges.
//!
//! Costs are shifted by exact sums ([`Potentials`]). Each node has the least sum of costs from
//! there to the last node as its potential. Adding the differences of potentials to the costs
//! changes the cost of every path by the same amount, so the best path stays the best. But it then
//! costs 0, and the numbers are small enough to be exact in floating point.

use good_lp::solvers::SolutionStatus;
use good_lp::solvers::microlp::{MicroLpProblem, microlp};
use good_lp::{
    Expression, ResolutionError, Solution, SolverModel, Variable, constraint::eq, variable,
    variables,
};
use std::collections::BTreeMap;
use std::ops::Range;

use super::network::{Network, StageEdge};
use super::objectives::Objective;

/// The largest difference from 0 or 1 at which the solver's value of a variable is still read as 0
/// or 1.
const INTEGRALITY: f64 = 1e-6;

/// The highest cost of an edge that the solver gets; higher shifted costs are replaced by it. An
/// edge of the best path costs 0, so an edge with such a cost is never part of it.
const COST_CAP: u128 = 1 << 20;

/// An edge of the network from the node `from` to the node `to`: a range of positions that may be a
/// stage. `cost` is its cost in the integer program, as in [`Potentials::shifted`].
#[derive(Debug)]
pub(super) struct CostedEdge {
    pub from: usize,
    pub to: usize,
    pub range: Range<usize>,
    pub cost: u128,
}

/// Returns the edges of `network` that the integer program gets, with their shifted costs in one
/// objective, whose `sums` are given: all that lie on a path from the first node to the last.
/// `None` means that there is no such path; then all edges are returned, at cost 0.
///
/// If there are more edges than
/// [`CheckedProblem::max_edges`](super::checked_problem::CheckedProblem::max_edges), only those of
/// the best paths are returned. The optimum stays the same: shifted costs are never negative, so no
/// other edge can lower a sum of 0.
pub(super) fn costed_edges(network: &Network<'_>, sums: Option<&Potentials>) -> Vec<CostedEdge> {
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
        Some(CostedEdge {
            from: edge.from,
            to: edge.to,
            range: edge.stage_range.range.clone(),
            cost,
        })
    });
    choices.collect()
}

/// Returns the largest excess (see [`Potentials::excess`]) up to which at most `max_edges` edges
/// are left; 0 if even the edges without excess are more.
fn max_excess(excess: &[Option<u128>], max_edges: usize) -> u128 {
    let mut excess: Vec<u128> = excess.iter().flatten().copied().collect();
    if excess.len() <= max_edges {
        return u128::MAX;
    }
    let (_, first_out, _) = excess.select_nth_unstable(max_edges);
    first_out.saturating_sub(1)
}

/// Solves the integer program: returns the cheapest path of `edges` from node 0 to the node `sink`,
/// as ranges of positions in order, or `None` if there is no path.
///
/// There is a variable of value 0 or 1 for each edge. At every node except the first and the last,
/// equally many chosen edges enter and leave, and one leaves the first node.
///
/// # Errors
/// If the solver fails, stops without a proof, or returns a value between 0 and 1. The text is the
/// reason for the user.
pub(super) fn cheapest_path(
    sink: usize,
    edges: &[CostedEdge],
) -> Result<Option<Vec<Range<usize>>>, String> {
    let (program, binaries) = program(sink, edges);
    let solution = match program.solve() {
        Err(ResolutionError::Infeasible) => return Ok(None),
        outcome => outcome.map_err(|error| error.to_string())?,
    };
    if !matches!(solution.status(), SolutionStatus::Optimal) {
        return Err("the solver stopped before it had a proof".to_owned());
    }
    let mut ranges = Vec::new();
    for (edge, binary) in edges.iter().zip(binaries) {
        let is_chosen = read_binary(solution.value(binary));
        if is_chosen.ok_or("a binary is neither 0 nor 1")? {
            ranges.push(edge.range.clone());
        }
    }
    ranges.sort_by_key(|range| range.start);
    Ok(Some(ranges))
}

/// Makes the integer program for the cheapest path of `edges` from node 0 to the node `sink`. Also
/// returns its variable, 0 or 1, for each edge in order. There is a row for each node with an edge,
/// except the last node, whose row follows from the others: the edges that leave the node minus the
/// edges that enter it are 1 at the first node, else 0.
fn program(sink: usize, edges: &[CostedEdge]) -> (MicroLpProblem, Vec<Variable>) {
    let mut variables = variables!();
    let binaries = variables.add_vector(variable().binary(), edges.len());
    let mut cost = Expression::with_capacity(edges.len());
    let mut rows = BTreeMap::from([(0, Expression::default())]);
    for (&binary, edge) in binaries.iter().zip(edges) {
        cost.add_mul(edge.cost.min(COST_CAP) as f64, binary);
        rows.entry(edge.from).or_default().add_mul(1.0, binary);
        rows.entry(edge.to).or_default().add_mul(-1.0, binary);
    }
    rows.remove(&sink);
    let mut program = variables.minimise(cost).using(microlp);
    for (node, row) in rows {
        let supply = if node == 0 { 1.0 } else { 0.0 };
        program.add_constraint(eq(row, supply));
    }
    (program, binaries)
}

/// Reads the solver's `value` of a variable: is it 1? `None` if it is farther than [`INTEGRALITY`]
/// from both 0 and 1.
fn read_binary(value: f64) -> Option<bool> {
    let rounded = value.round();
    let is_integral = (value - rounded).abs() <= INTEGRALITY;
    match rounded {
        0.0 if is_integral => Some(false),
        1.0 if is_integral => Some(true),
        _ => None,
    }
}

/// For one objective: the least sum of its values over any path, and how far paths through each
/// edge are above it. Edges are in the order of [`Network::edges`].
#[derive(Debug)]
pub(super) struct Potentials {
    /// The least sum of the values over a path from the first node to the last.
    pub best: u128,
    /// For each edge, its shifted cost: by how much its value, plus the least sum from its end to
    /// the last node, exceeds the least sum from its start. It is 0 if the edge begins a best path
    /// from there.
    pub shifted: Vec<u128>,
    /// For each edge, by how much the least sum over a whole path through it exceeds `best`; `None`
    /// if no path from the first node to the last uses it. It is never below the shifted cost.
    pub excess: Vec<Option<u128>>,
}

impl Potentials {
    /// Computes the sums of `objective` over the paths of `network`; `None` if no path leads from
    /// the first node to the last.
    pub(super) fn new(network: &Network<'_>, objective: Objective) -> Option<Self> {
        let value = |edge: &StageEdge<'_>| network.value(objective, edge);
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

/// Returns for each node up to `last` the least sum of `value` over the edges of a path from the
/// node `start` to it; `None` for nodes without such a path. An entry of `edges` is the node that
/// an edge leads from, the node that it leads to, and the edge; edges into a node come before edges
/// out of it.
fn least_sums<'a>(
    (start, last): (usize, usize),
    edges: impl Iterator<Item = (usize, usize, StageEdge<'a>)>,
    value: impl Fn(&StageEdge<'_>) -> u128,
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

    fn choice(range: Range<usize>, cost: u128) -> CostedEdge {
        CostedEdge {
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
