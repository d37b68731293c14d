//! The best plan, with the proofs that no other plan is better.

use super::objectives::{Objective, decimal};
use super::plan::{Plan, Score};
use super::problem::SolveError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The best plan, with the proofs that no other plan is better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The stages of the best plan, on which the integer program and the dynamic program agree.
    pub plan: Plan,
    /// The value of the plan in every objective, computed again from its stages in integers.
    pub score: Score,
    /// For each objective, in the order of the goal, the optimum of the integer program and that of
    /// the dynamic program.
    pub proofs: Vec<ObjectiveProof>,
    /// Proofs that no plan has a lower peak or fewer cycles of its slowest stage, in the order of
    /// the goal. Objectives whose optimum equals the lowest value of any range need none.
    pub bottlenecks: Vec<BottleneckProof>,
    /// Bounds on the cycles of a step, if the goal is the shortest step; the other proofs are then
    /// only about the cycles of the slowest stage.
    pub step: Option<StepProof>,
}

impl Solution {
    /// Makes a solution without proofs that it is the best, except for the bounds on its step.
    pub(super) fn unproven(plan: Plan, score: Score, step: Option<StepProof>) -> Self {
        Self {
            plan,
            score,
            proofs: Vec::new(),
            bottlenecks: Vec::new(),
            step,
        }
    }

    /// Returns the faster split `found` with the proof of `self` that no split has a faster slowest
    /// stage. `found` was searched from the split of `self`.
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

    /// Returns an error if the steps of the split are shorter than the proven bound on all splits,
    /// longer than the bound although the split is claimed to be the fastest, or if its slowest
    /// stage is faster than the proven minimum.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProvenObjective")]
pub struct ObjectiveProof {
    /// The objective that the two optima are of.
    pub objective: Objective,
    /// The optimum that the integer program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub integer_program: u128,
    /// The optimum that the dynamic program computed, as decimal text in JSON.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub dynamic_program: u128,
}

/// A proof that the peak or the cycles of the slowest stage cannot be lower: no split reaches the
/// next lower value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProvenBottleneck")]
pub struct BottleneckProof {
    /// The number that cannot be lower: `peak` or `cycles`.
    pub objective: Objective,
    /// The next lower value that any range of layers has, which no split reaches, as decimal text.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub below: u128,
    /// The fewest stages of which none has more than `below`; there are fewer IPUs. `null` if no
    /// number of stages is enough, since some layer has more by itself, or pins and limits of
    /// single IPUs rule out every split.
    #[schemars(with = "Option<u32>")]
    pub stages_needed: Option<usize>,
}

/// Bounds on the shortest step of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProof {
    /// Lower bound on the cycles of a step, over all splits that fit, with the number of
    /// micro-batches of the best split. Equals the cycles of the best split if that is proven to be
    /// the best. 0 if more stages are allowed than the search bounds.
    pub at_least: u128,
    /// Whether every split was tried or proven to be no better.
    pub is_optimal: bool,
}
