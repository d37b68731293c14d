//! The best plan, with the proof that no other plan is better.

use super::objectives::{Objective, decimal};
use super::plan::{Plan, Score};
use serde::{Deserialize, Serialize};

/// The best plan, with the proof that no other plan is better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The stages of the best plan.
    pub plan: Plan,
    /// The values of the plan in all objectives, computed again from its stages in integers.
    pub score: Score,
    /// For each objective, in the order of the goal, the optimum of the integer program and that of
    /// the dynamic program. Empty if only one of them was run.
    pub proofs: Vec<ObjectiveProof>,
    /// Whether the search for the shortest step tried every split that could be faster; `None` if
    /// the goal is not the shortest step, or if the profile has no cycles. The proofs are then only
    /// about the cycles of the slowest stage.
    pub is_shortest: Option<bool>,
}

impl Solution {
    /// Makes a solution without a proof that `plan` is the best.
    pub fn unproven(plan: Plan, score: Score) -> Self {
        Self {
            plan,
            score,
            proofs: Vec::new(),
            is_shortest: None,
        }
    }
}

/// The optimum of one objective, computed by the integer program and by the dynamic program.
/// Numbers are decimal text, since they can exceed 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "ProvenObjective")
)]
pub struct ObjectiveProof {
    /// The objective that the two optima are of.
    pub objective: Objective,
    /// The optimum that the integer program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub integer_program: u128,
    /// The optimum that the dynamic program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub dynamic_program: u128,
}
