//! Finds the best plan with the integer program, one objective after the other.
//!
//! A bottleneck (the highest value of any stage) is minimised by bisection over the values of
//! ranges, with an exact count of the stages that each value needs. The integer program then proves
//! that the next lower value is not enough; the next objective proves that the value itself is. For
//! a sum over stages, the minimum is computed exactly beforehand (`Potentials`). The integer
//! program, over the ranges of the plans that are still the best, must find a plan with this
//! minimum.
//!
//! Most problems are solved over the compact network, which does not limit the number of stages of
//! a path. This is sound as long as the fewest stages are few enough: for a bottleneck the fewest
//! are counted, and once the number of stages is an objective, all remaining paths have the same
//! number. The layered network is used if the IPU of a range matters (pins, limits by IPU), if the
//! plans with the least sum need more stages than there are IPUs and the sum is compared before the
//! number of stages (bytes over the cuts), and in a pipeline, where the bytes of a range depend on
//! the number of stages after it.
//!
//! Large networks are reduced first, in ways that are valid for any solver. To minimise a sum,
//! columns with non-negative reduced costs may be left out (`costed_edges`). To prove that there is
//! no path, edges into a node that no edge leaves may be left out (`infeasible`).

use super::checked_problem::CheckedProblem;
use super::formulation::{self, Potentials};
use super::network::Network;
use super::objectives::Objective;
use super::plan::Plan;
use super::problem::SolveError;
use super::solution::BottleneckProof;

/// The best plan, and proofs that its peak, or the cycles of its slowest stage, cannot be lower.
#[derive(Debug)]
pub(super) struct ProvenPlan {
    pub plan: Plan,
    /// The proofs, in the order of the objectives. There is none for an objective in which no range
    /// that may be a stage has a lower value.
    pub proofs: Vec<BottleneckProof>,
}

/// Returns the best plan by the goal of the problem; among equal plans the one whose cuts come
/// earliest. Returns `None` if the integer program proves that there is no split.
///
/// # Errors
/// If the solver gives no proof, or contradicts exact sums.
pub(super) fn solve(checked: &CheckedProblem<'_>) -> Result<Option<ProvenPlan>, SolveError> {
    if checked.layers() == 0 {
        return Ok(None);
    }
    if !checked.is_numbered() && !checked.is_by_depth() {
        match search(Network::compact(checked))? {
            Outcome::Found(answer) => return Ok(Some(answer)),
            Outcome::None => return Ok(None),
            Outcome::CountBinds => {}
        }
    }
    match search(Network::layered(checked))? {
        Outcome::Found(answer) => Ok(Some(answer)),
        Outcome::None => Ok(None),
        Outcome::CountBinds => {
            let reason = "a path has more stages than there are layers of the network";
            Err(SolveError::unproven(checked.problem.goal.main(), reason))
        }
    }
}

/// The result of searching one network for the best plan.
enum Outcome {
    Found(ProvenPlan),
    None,
    /// The best paths of the network have more stages than there are IPUs. For the compact network,
    /// the layered one must be searched instead, which counts stages.
    CountBinds,
}

/// Optimises one objective after the other, and each time removes the edges that are not part of a
/// best plan. Returns the plan that is left, with the earliest cuts.
///
/// # Errors
/// If the solver gives no proof, or contradicts exact sums.
fn search(mut network: Network<'_>) -> Result<Outcome, SolveError> {
    let checked = network.checked;
    let main = checked.problem.goal.main();
    if !has_path(&network, Objective::Peak, u128::MAX) {
        infeasible(&network, main)?;
        return Ok(Outcome::None);
    }
    let mut proofs = Vec::new();
    for objective in checked.order() {
        if objective.is_bottleneck() {
            let (lowest, proof) = lowest(&network, objective)?;
            network = lowest;
            proofs.extend(proof);
        } else {
            keep_best(&mut network, objective)?;
        }
        if !has_path(&network, Objective::Peak, u128::MAX) {
            return Ok(Outcome::CountBinds);
        }
    }
    let stages = network.earliest_path();
    let plan = Plan::new(stages, checked.layers())
        .ok_or_else(|| SolveError::unproven(main, "the best ranges do not form a split"))?;
    Ok(Outcome::Found(ProvenPlan { plan, proofs }))
}

/// Does a path from the first node to the last exist that has no more edges than there may be
/// stages, and whose edges all have a value of at most `threshold` in `objective`?
fn has_path(network: &Network<'_>, objective: Objective, threshold: u128) -> bool {
    let fewest = network.fewest_edges(objective, threshold);
    fewest.is_some_and(|stages| stages <= network.checked.stages)
}

/// Minimises `objective`, a maximum over stages. Returns the network with only the edges up to the
/// lowest value that allows a plan, and a proof by the integer program that the next lower value
/// does not. There is no proof if no edge has a lower value.
///
/// # Errors
/// If no value allows a plan, or the solver gives no proof.
fn lowest<'q>(
    network: &Network<'q>,
    objective: Objective,
) -> Result<(Network<'q>, Option<BottleneckProof>), SolveError> {
    let values = network.distinct_values(objective);
    let index = values.partition_point(|&value| !has_path(network, objective, value));
    let Some(&best) = values.get(index) else {
        return Err(SolveError::unproven(objective, "no number is enough"));
    };
    let below = index.checked_sub(1).map(|below| values[below]);
    let proof = below.map(|below| {
        let stages_needed = infeasible(&network.within(objective, below), objective)?;
        Ok(BottleneckProof {
            objective,
            below,
            stages_needed,
        })
    });
    Ok((network.within(objective, best), proof.transpose()?))
}

/// Proves by the integer program that no path of `network` has as few edges as there may be stages.
/// Returns the number of edges that a path needs, or `None` if there is no path at all. `objective`
/// is named in errors.
///
/// # Errors
/// If the solver gives no proof, or finds such a path.
fn infeasible(network: &Network<'_>, objective: Objective) -> Result<Option<usize>, SolveError> {
    let mut reachable = network.clone();
    reachable.close_unreachable();
    if network.fewest_edges(Objective::Peak, u128::MAX).is_none() {
        reachable.close_dead_ends(network.checked.max_edges);
    }
    match keep_best(&mut reachable, Objective::Stages)? {
        None => Ok(None),
        Some(needed) if needed > network.checked.stages as u128 => Ok(Some(needed as usize)),
        Some(needed) => {
            let reason = format!("{needed} stages turned out to be enough");
            Err(SolveError::unproven(objective, reason))
        }
    }
}

/// Minimises the sum of `objective` over a path by the integer program, and removes all edges of
/// `network` but those of paths with the least sum. Returns this sum; `None`, without a change, if
/// there is no path.
///
/// # Errors
/// If the solver gives no proof, or contradicts exact sums.
fn keep_best(network: &mut Network<'_>, objective: Objective) -> Result<Option<u128>, SolveError> {
    let fail = |reason: String| SolveError::unproven(objective, reason);
    let sums = Potentials::new(network, objective);
    let choices = formulation::costed_edges(network, sums.as_ref());
    let path = formulation::cheapest_path(network.sink(), &choices).map_err(fail)?;
    let (path, sums) = match (path, sums) {
        (Some(path), Some(sums)) => (path, sums),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(fail("a split found against the exact sums".to_owned())),
        (None, Some(_)) => return Err(fail("no split found against the exact sums".to_owned())),
    };
    let checked = network.checked;
    let plan = Plan::new(path, checked.layers())
        .ok_or_else(|| fail("the chosen ranges do not form a split".to_owned()))?;
    let found = sum_of(checked, objective, &plan);
    if found != Some(sums.best) {
        let best = sums.best;
        return Err(fail(format!("{found:?} found, but {best} is the bound")));
    }
    network.retain(sums.excess.iter().map(|&excess| excess == Some(0)));
    Ok(found)
}

/// Returns the sum of the values of the stages of `plan` in `objective`; `None` if the costs lack a
/// stage.
fn sum_of(checked: &CheckedProblem<'_>, objective: Objective, plan: &Plan) -> Option<u128> {
    let costs = plan.with_after().map(|(stage, after)| {
        let peak = checked.problem.costs.peak(stage.clone(), after)?;
        Some(checked.value(objective, (stage, after), peak))
    });
    costs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RangeCosts;
    use crate::solve::objectives::Goal;
    use crate::solve::problem::Problem;
    use crate::solve::testing::additive;

    fn answer(costs: &RangeCosts, ipus: usize, limit: u64) -> Option<ProvenPlan> {
        let cut_bytes = vec![0; costs.layers() - 1];
        let problem = Problem::new(costs, &cut_bytes, ipus, limit);
        solve(&CheckedProblem::new(&problem).unwrap()).unwrap()
    }

    #[test]
    fn the_next_lower_cost_is_proven_too_low() {
        let found = answer(&additive(&[3, 1, 4, 1, 5], u64::MAX), 2, 99).unwrap();
        // 3 1 4 | 1 5: the next lower cost of any range is 6.
        assert_eq!(found.plan.stages(), [0..3, 3..5]);
        let proof = BottleneckProof {
            objective: Objective::Peak,
            below: 6,
            stages_needed: Some(3),
        };
        assert_eq!(found.proofs, [proof]);
    }

    #[test]
    fn a_heavy_layer_needs_no_number_of_stages_below_it() {
        let proofs = answer(&additive(&[1, 9, 1], u64::MAX), 3, 99)
            .unwrap()
            .proofs;
        assert_eq!(proofs[0].below, 1);
        assert_eq!(proofs[0].stages_needed, None);
        let even = additive(&[0, 0], u64::MAX);
        assert_eq!(answer(&even, 2, 99).unwrap().proofs, []);
    }

    #[test]
    fn a_model_that_fits_in_no_split_has_no_answer() {
        assert!(answer(&additive(&[3, 3, 3], 99), 2, 4).is_none());
        assert!(answer(&additive(&[9], 99), 2, 4).is_none());
        assert!(answer(&additive(&[1], 99), 0, 4).is_none());
    }

    #[test]
    fn splits_that_send_least_may_need_too_many_ipus() {
        // At most 2 positions in a stage: two cuts are enough and send 10 bytes; three send 3.
        let costs = additive(&[1; 6], u64::MAX);
        let best = |ipus| {
            let problem = Problem {
                goal: Goal::Communication,
                ..Problem::new(&costs, &[1, 5, 1, 5, 1], ipus, 2)
            };
            let checked = CheckedProblem::new(&problem).unwrap();
            let compact = search(Network::compact(&checked)).unwrap();
            let binds = matches!(compact, Outcome::CountBinds);
            let plan = solve(&checked).unwrap().unwrap().plan;
            (binds, plan.cuts().collect::<Vec<_>>())
        };
        assert_eq!(best(4), (false, vec![1, 3, 5]));
        assert_eq!(best(3), (true, vec![2, 4]));
    }
}
