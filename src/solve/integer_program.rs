//! Proves the best split with an integer program ([`good_lp`]), which finds the cheapest path over
//! stages: a binary variable states for each stage that a split may have whether it is on the path.
//!
//! A path leads from the first position to the last, over one stage after the other. Each node of a
//! path is a position where the next stage starts, with the number of stages that are left, so that
//! no path has more stages than there are IPUs. At every inner node, equally many chosen stages
//! enter and leave.
//!
//! The cost of a stage is 0 if it begins a split of the remaining positions that is as good as the
//! best split of the dynamic program from the same node, else 1. No stage may begin a better split,
//! which is checked in integers for all stages. So the cheapest path costs 0 if and only if the
//! split of the dynamic program is the best; otherwise the two programs contradict each other. The
//! costs are small enough for floating point. In a large integer program, stages may be left out,
//! except those of one best path.

use good_lp::solvers::SolutionStatus;
use good_lp::solvers::microlp::{MicroLpProblem, microlp};
use good_lp::{
    Expression, ResolutionError, Solution, SolverModel, Variable, constraint::eq, variable,
    variables,
};
use std::collections::BTreeMap;

use super::{
    dynamic_program::{Rests, StagePass, Values, best},
    plan::Plan,
    problem::CompiledStage,
};

/// A node of the graph in which the integer program finds a path from the first position to the
/// last. At this node, the next stage starts at position `start`, and at most `left` stages are
/// still to come, of at most `total` in the whole split.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    total: usize,
    left: usize,
    start: usize,
}

/// A stage as an edge of the graph in which the integer program finds a path from the first
/// position to the last. The edge leads from the node where the stage starts (`None` for the first
/// position) to the node where the next stage starts (`None` after the last position).
struct Edge {
    from: Option<Node>,
    to: Option<Node>,
    stage: CompiledStage,
    /// Whether a best split of the positions from this stage's start to the end begins with this
    /// stage. If so, the stage costs 0 in the integer program, otherwise 1. A path of cost 0 is
    /// thus a best split.
    is_best: bool,
}

/// Finds a split with the lowest values in the objectives of `pass`, which must all be sums over
/// stages, by the integer program. Returns `None` if there is no split. If the integer program
/// contradicts the dynamic program or gives no proof, returns an error as text for the user.
pub fn solve(pass: &StagePass<'_>) -> Result<Option<Plan>, String> {
    let found = pass.run();
    let best = best(&found).map(|(values, _)| values);
    let mut edges = Vec::new();
    for rests in &found {
        add_edges(pass, rests, best, &mut edges)?;
    }
    let path = cheapest_path(&edges)?;
    if path.as_ref().map(|(_, cost)| *cost) != best.map(|_| 0) {
        return Err("the split of the dynamic program is not the cheapest path".to_owned());
    }
    let Some((stages, _)) = path else {
        return Ok(None);
    };
    let plan = Plan::new(stages, pass.checked.layers());
    Ok(Some(plan.ok_or("the chosen ranges do not form a split")?))
}

/// Adds the stages that splits may have to `edges`, the edges of the integer program. `rests` has
/// the best split from each position to the end, as the dynamic program found it, and `best` the
/// values of the best split of all positions. Once there are `CheckedProblem::max_edges` edges,
/// adds only stages of one best split. Returns an error if a stage begins a better split than the
/// dynamic program found.
fn add_edges(
    pass: &StagePass<'_>,
    rests: &Rests,
    best: Option<Values>,
    edges: &mut Vec<Edge>,
) -> Result<(), String> {
    let (checked, total) = (pass.checked, rests.len() - 1);
    let mut candidates = Vec::new();
    candidates.resize_with(checked.layers(), || None);
    // One entry per position (In, layers, Out): `None` if no stage may start there. Otherwise,
    // whether a stage starts there in the one best split whose stages are always added, even beyond
    // the maximum number of edges.
    let mut starts = vec![None; checked.layers() + 1];
    for left in (1..=total).rev() {
        let (after, ipu) = (left - 1, pass.ipu(total, left - 1));
        // A node with n stages left usually stands for splits into at most n stages, so all splits
        // can begin at one node: position 0 with `total` stages left. If costs depend on the number
        // of later stages, the node stands for splits into exactly n stages. Then a split may begin
        // at position 0 with any number of stages left, unless `add_edges` is called separately for
        // each number of stages of the whole split.
        if left == total || ipu.is_none() && checked.is_by_depth() {
            starts[0] = Some(true);
        }
        if checked.is_by_depth() {
            candidates.fill_with(|| None);
        }
        let mut ends = vec![None; starts.len()];
        for (start, candidates) in candidates.iter_mut().enumerate() {
            let Some(mut is_needed) = starts[start] else {
                continue;
            };
            let from = match start {
                0 => best,
                _ => rests[left][start].map(|rest| rest.values),
            };
            for candidate in candidates.get_or_insert_with(|| pass.candidates(start, after)) {
                let range = &candidate.stage.positions;
                let rest = rests[after][range.end];
                let is_last = range.end == checked.layers();
                let may_stand = |ipu| checked.may_stand(ipu, range, candidate.peak);
                if is_last && rest.is_none() || !ipu.is_none_or(may_stand) {
                    continue;
                }
                let values = rest.map(|rest| pass.combined(&candidate.values, &rest.values));
                if values.is_some_and(|values| from.is_none_or(|from| values < from)) {
                    return Err(format!(
                        "a better split has a stage with positions {range:?}"
                    ));
                }
                let is_best = values.is_some() && values == from;
                let is_needed = is_best && std::mem::replace(&mut is_needed, false);
                if is_needed || edges.len() < checked.max_edges {
                    let node = |left, start| Node { total, left, start };
                    edges.push(Edge {
                        from: (start > 0).then_some(node(left, start)),
                        to: (!is_last).then_some(node(after, range.end)),
                        stage: candidate.stage.clone(),
                        is_best,
                    });
                }
                ends[range.end] = ends[range.end].max(Some(is_needed));
            }
        }
        starts = ends;
    }
    Ok(())
}

/// Returns the cheapest path of `edges` from the first position to the last, as stages in order,
/// with its cost; `None` if there is no path. Returns an error if the solver gives no proof.
fn cheapest_path(edges: &[Edge]) -> Result<Option<(Vec<CompiledStage>, usize)>, String> {
    let (program, binaries) = program(edges);
    let solution = match program.solve() {
        Err(ResolutionError::Infeasible) => return Ok(None),
        outcome => outcome.map_err(|error| error.to_string())?,
    };
    if !matches!(solution.status(), SolutionStatus::Optimal) {
        return Err("the solver stopped before it had a proof".to_owned());
    }
    let (mut stages, mut cost) = (Vec::new(), 0);
    for (edge, binary) in edges.iter().zip(binaries) {
        // The variable of each edge (a stage that the split may have) is 1 if the edge is chosen
        // and 0 otherwise, up to rounding. `Plan::new` checks that the chosen stages form a split.
        if solution.value(binary) > 0.5 {
            stages.push(edge.stage.clone());
            cost += usize::from(!edge.is_best);
        }
    }
    stages.sort_by_key(|stage| stage.positions.start);
    Ok(Some((stages, cost)))
}

/// Makes the integer program that finds the cheapest path of `edges` from the first position to the
/// last, and the 0-or-1 variable of each edge. There is one equation per node: the number of chosen
/// edges that leave the node, minus the number that enter it, is 1 for the first position, else 0.
fn program(edges: &[Edge]) -> (MicroLpProblem, Vec<Variable>) {
    let mut variables = variables!();
    let binaries = variables.add_vector(variable().binary(), edges.len());
    let mut cost = Expression::with_capacity(edges.len());
    let mut rows = BTreeMap::from([(None, Expression::default())]);
    for (&binary, edge) in binaries.iter().zip(edges) {
        cost.add_mul(if edge.is_best { 0.0 } else { 1.0 }, binary);
        rows.entry(edge.from).or_default().add_mul(1.0, binary);
        if edge.to.is_some() {
            rows.entry(edge.to).or_default().add_mul(-1.0, binary);
        }
    }
    let mut program = variables.minimise(cost).using(microlp);
    for (node, row) in rows {
        program.add_constraint(eq(row, if node.is_none() { 1.0 } else { 0.0 }));
    }
    (program, binaries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::checked_problem::CheckedProblem;
    use crate::solve::objectives::Objective;
    use crate::solve::problem::{Problem, ProfileCosts};
    use crate::solve::testing::additive;
    use std::ops::Range;

    fn edge(range: Range<usize>, last: usize, is_best: bool) -> Edge {
        let node = |start| Node {
            total: 0,
            left: 0,
            start,
        };
        Edge {
            from: (range.start > 0).then(|| node(range.start)),
            to: (range.end < last).then(|| node(range.end)),
            stage: range.into(),
            is_best,
        }
    }

    #[test]
    fn the_path_with_the_fewest_worse_stages_is_chosen() {
        let edges = [
            edge(0..1, 3, true),
            edge(0..2, 3, false),
            edge(1..3, 3, true),
            edge(0..3, 3, false),
            edge(2..3, 3, true),
        ];
        let path = cheapest_path(&edges).unwrap();
        assert_eq!(path, Some((vec![(0..1).into(), (1..3).into()], 0)));
        let path = cheapest_path(&edges[1..]).unwrap();
        assert_eq!(path.map(|(_, cost)| cost), Some(1));
    }

    #[test]
    fn a_gap_between_the_stages_is_infeasible() {
        let gap = [edge(0..1, 3, true), edge(2..3, 3, true)];
        assert_eq!(cheapest_path(&gap), Ok(None));
        assert_eq!(cheapest_path(&[]), Ok(None));
    }

    #[test]
    fn rests_that_are_not_the_best_contradict_the_integer_program() {
        let profile = ProfileCosts::new(additive(&[3, 1, 4], 5), &[7, 5]);
        let checked = CheckedProblem::new(&Problem::new(&profile, 3, &5)).unwrap();
        let pass = StagePass::new(&checked, &[Objective::CutBytes], &[]);
        let found = pass.run();
        let right = found[0].clone();
        let add = |rests: &Rests| {
            let best = best(&found).map(|(values, _)| values);
            add_edges(&pass, rests, best, &mut Vec::new())
        };
        assert_eq!(add(&right), Ok(()));
        let mut worse = right.clone();
        worse[1][1].as_mut().unwrap().values[0] += 1;
        assert!(add(&worse).is_err());
        let mut missing = right;
        missing[1][1] = None;
        assert!(add(&missing).is_err());
    }
}
