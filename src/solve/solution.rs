//! The best plan, with the proofs that no other plan is better.

use super::objectives::{Objective, decimal};
use super::plan::{Plan, Score};
use super::problem::SolveError;
use serde::{Deserialize, Serialize};

/// The best plan, with the proofs that no other plan is better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The stages of the best plan, on which the integer program and the dynamic program agree.
    pub plan: Plan,
    /// The values of the plan in all objectives, computed again from its stages in integers.
    pub score: Score,
    /// For each objective, in the order of the goal, the optimum of the integer program and that of
    /// the dynamic program. Empty if only one of them was run.
    pub proofs: Vec<ObjectiveProof>,
    /// Proofs that no plan has a lower peak or fewer cycles of its slowest stage, in the order of
    /// the goal. Objectives whose optimum equals the lowest value of any range need none.
    pub bottlenecks: Vec<BottleneckProof>,
    /// Bounds on the cycles of a step, if the goal is the shortest step; the other proofs are then
    /// only about the cycles of the slowest stage.
    pub step: Option<StepProof>,
}

impl Solution {
    /// Makes a solution without proofs that `plan` is the best, except for the bounds `step` on its
    /// step, if there are any.
    pub(super) fn unproven(plan: Plan, score: Score, step: Option<StepProof>) -> Self {
        Self {
            plan,
            score,
            proofs: Vec::new(),
            bottlenecks: Vec::new(),
            step,
        }
    }

    /// Returns the solution with the split `found`, which a search for the shortest step found when
    /// it began with the split of `self`. Of the proofs of `self`, the one stays that no split has
    /// a faster slowest stage.
    pub(super) fn with_step(mut self, found: Self) -> Self {
        self.proofs.truncate(1);
        self.bottlenecks
            .retain(|proof| proof.objective == Objective::Cycles);
        Self {
            proofs: self.proofs,
            bottlenecks: self.bottlenecks,
            ..found
        }
    }

    /// Checks the bounds on the step against the split, if there are any.
    ///
    /// # Errors
    /// If a step of the split is shorter than the bound on all splits, or longer although the split
    /// is claimed to be the fastest, or if its slowest stage is faster than the proven minimum.
    pub(super) fn check_step(&self) -> Result<(), SolveError> {
        let (Some(step), Some(proof)) = (self.score.step, self.step) else {
            return Ok(());
        };
        let slowest = self.proofs.iter().map(|proof| proof.integer_program);
        let is_beaten = slowest.max() > self.score.slowest_cycles;
        let is_best = proof.at_least == step.cycles;
        let is_as_proven = is_best || !proof.is_optimal && proof.at_least < step.cycles;
        if is_as_proven && !is_beaten {
            return Ok(());
        }
        let (cycles, proven) = (step.cycles, proof.at_least);
        let reason = format!("a step takes {cycles} cycles, and {proven} were proven");
        Err(SolveError::unproven(Objective::Cycles, reason))
    }
}

/// The optimum of one objective, computed by the integer program and by the dynamic program.
/// Numbers are decimal text, since they can exceed 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ProvenObjective"))]
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

/// A proof that no split has a lower peak, or a slowest stage with fewer cycles: no split reaches
/// the next lower value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ProvenBottleneck"))]
pub struct BottleneckProof {
    /// The objective that cannot be lower: `peak` or `cycles`.
    pub objective: Objective,
    /// The next lower value that any range of layers has, which no split reaches, as decimal text.
    #[serde(with = "decimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub below: u128,
    /// The fewest stages of which none has more than `below`; there are fewer IPUs. `null` if no
    /// number of stages is enough, since some layer has more by itself, or pins and limits of
    /// single IPUs rule out every split.
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub stages_needed: Option<usize>,
}

/// Bounds on the shortest step of a pipeline, in cycles. A step is one weight update, with all
/// micro-batches before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProof {
    /// Lower bound on the cycles of a step of any split within the limits, converted to the number
    /// of micro-batches of the best split. It equals the cycles of the best split if that is proven
    /// to be the fastest. It is 0 if more stages are allowed than the search has bounds for.
    pub at_least: u128,
    /// Whether every split was tried or proven to be no faster.
    pub is_optimal: bool,
}
