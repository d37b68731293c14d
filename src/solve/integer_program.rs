//! The integer program, objective after objective.
//!
//! A bottleneck is found by bisection over the values of ranges, with an exact count of stages at
//! each. The integer program then shows that the next lower value is not enough; the next objective
//! shows that the value itself is. The least sum of an objective is known exactly beforehand
//! (`Potentials`); the integer program, over the ranges of the best plans so far, must find a plan
//! with this sum.
//!
//! Most problems are solved over the compact network. It does not limit the number of stages of a
//! path, which is sound as long as the fewest will do: for a bottleneck the fewest are counted, and
//! once the number of stages is an objective, all remaining paths have the same number. The network
//! is layered if it matters which IPU a range is on (pins, limits by IPU), if a sum that comes
//! before the stages needs more of them than there are IPUs (bytes over the cuts), and in a
//! pipeline, where a range costs more the more stages come after it.
//!
//! Large networks are cut down first, in ways that are valid for any solver: to minimise a sum,
//! columns with non-negative reduced costs may be left out (`choices`); to show that there is no
//! path, edges into a node without a leaving edge must be 0 (`infeasible`).

use super::SolveError;
use super::checked_problem::CheckedProblem;
use super::formulation::{self, Potentials};
use super::network::Network;
use super::objectives::{Objective, decimal};
use super::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The next lower value of a number, which no split reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProvenBottleneck")]
pub struct BottleneckProof {
    /// The name of the number: `peak` or `cycles`.
    pub objective: Objective,
    /// The highest number of any range of layers that is lower than the best split's, as decimal
    /// text.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub below: u128,
    /// The fewest stages if no stage may have more than `below`, which are more than there are
    /// IPUs. `null` if no number of stages is enough: some layer by itself is too much, or pins and
    /// limits by IPU leave no split.
    #[schemars(with = "Option<u32>")]
    pub stages_needed: Option<usize>,
}

/// The best plan and the proofs of its bottlenecks.
#[derive(Debug)]
pub(super) struct Answer {
    pub plan: Plan,
    /// In the order of the objectives; a bottleneck with the lowest value of all ranges has no
    /// entry.
    pub proofs: Vec<BottleneckProof>,
}

/// The best plan by the problem's goal, among equals the one with the earliest cuts; `None` if the
/// integer program proves that there is no split.
pub(super) fn solve(checked: &CheckedProblem<'_>) -> Result<Option<Answer>, SolveError> {
    if checked.layers() == 0 {
        return Ok(None);
    }
    if !checked.is_numbered() && !checked.is_by_depth() {
        match search(Network::compact(checked))? {
            Search::Found(answer) => return Ok(Some(answer)),
            Search::None => return Ok(None),
            Search::CountBinds => {}
        }
    }
    match search(Network::layered(checked))? {
        Search::Found(answer) => Ok(Some(answer)),
        Search::None => Ok(None),
        Search::CountBinds => {
            let reason = "a path has more stages than there are layers of the network";
            Err(SolveError::unproven(checked.problem.goal.main(), reason))
        }
    }
}

/// How a search over one network ended.
enum Search {
    Found(Answer),
    None,
    /// The compact network does not show which plans have few enough stages.
    CountBinds,
}

/// Optimises one objective after the other, and keeps only the edges of the best plans.
fn search(mut network: Network<'_>) -> Result<Search, SolveError> {
    let checked = network.checked;
    let main = checked.problem.goal.main();
    if !has_path(&network, Objective::Peak, u128::MAX) {
        infeasible(&network, main)?;
        return Ok(Search::None);
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
            return Ok(Search::CountBinds);
        }
    }
    let stages = network.earliest_path();
    let plan = Plan::new(stages, checked.layers())
        .ok_or_else(|| SolveError::unproven(main, "the best ranges do not form a split"))?;
    Ok(Search::Found(Answer { plan, proofs }))
}

/// Does a path of few enough edges with values of at most `threshold` reach the end?
fn has_path(network: &Network<'_>, objective: Objective, threshold: u128) -> bool {
    let fewest = network.fewest_edges(objective, threshold);
    fewest.is_some_and(|stages| stages <= network.checked.stages)
}

/// Keeps the edges up to the lowest value that is enough in `objective`, and has the integer
/// program show that the next lower value is not.
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

/// Has the integer program show that `network` has no path of few enough edges; returns the number
/// of edges that a path needs, or `None` if there is no path at all.
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

/// Has the integer program minimise the sum of `objective`, and keeps the edges of all paths with
/// the least sum, which it returns; `None` if the program is infeasible.
fn keep_best(network: &mut Network<'_>, objective: Objective) -> Result<Option<u128>, SolveError> {
    let fail = |reason: String| SolveError::unproven(objective, reason);
    let sums = Potentials::new(network, objective);
    let choices = formulation::choices(network, sums.as_ref());
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

/// The sum of `plan` in `objective`; `None` if the costs of a stage are missing.
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

    fn answer(costs: &RangeCosts, ipus: usize, limit: u64) -> Option<Answer> {
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
            let binds = matches!(compact, Search::CountBinds);
            let plan = solve(&checked).unwrap().unwrap().plan;
            (binds, plan.cuts().collect::<Vec<_>>())
        };
        assert_eq!(best(4), (false, vec![1, 3, 5]));
        assert_eq!(best(3), (true, vec![2, 4]));
    }
}
