//! The parts of a report that justify its answer: the proof that the split is the best, the reason
//! why no split fits, and the comparison of a split that the user gave with the best split.

use super::{
    BestSplit, VariableSum,
    build::{Inputs, NamedVariables},
};
use crate::{
    model::LayerNames,
    search::{Advice, Claim, Outcome, OverLimit, SearchResult},
    solve::{Cause, Constraint, ObjectiveProof},
    wording::option_name,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The proof that the report's split is the best one by the objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Proof {
    /// The objective that the user requested: `peak`, `fewest`, `communication`, `cycles` or
    /// `time`.
    pub objective: String,
    /// Whether it is proven that no split is better by the objective. If true, the integer program
    /// was solved to optimality and the dynamic program agrees in every number; for `time`, every
    /// split that could be faster was tried. For a greedy search, for a split that the user gave,
    /// and if no split fits, it is `false`, and `objectives` is empty.
    pub optimal: bool,
    /// The best value of each number by which splits are compared, as the integer program and
    /// the dynamic program found it, the most important number first. With the objective `time`
    /// there is one entry: the fewest possible cycles of the slowest stage.
    pub objectives: Vec<ObjectiveProof>,
}

/// Why no split fits, and which changes of options or of the model would help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Refusal {
    /// Why no split fits: a range of layers is too large, there are too few IPUs, pins or
    /// limits prevent every split, or the pipeline adds too many bytes.
    pub reason: Cause,
    /// Bytes that a stage may take on each tile: the memory of the tile less the reserve. If IPUs
    /// have different limits, the highest one.
    pub limit: u64,
    /// Ranges of consecutive layers that each exceed the limit as one stage, and overlap at
    /// most in their end layers. Each range needs a cut of its own, so together they prove how
    /// many stages are needed.
    pub ranges: Vec<OverLimit>,
    /// The names of the layers before which the user requires a cut (`--cut-before`). Each of these
    /// cuts adds 1 to the lower bound `stages_needed`.
    pub cuts_before: LayerNames,
    /// A lower bound on the number of stages: one more than the cuts that must be made, which are
    /// one inside each range of `ranges` and one before each layer of `cuts_before`. `null` if no
    /// number of stages is enough.
    pub stages_needed: Option<u32>,
    /// The lowest limit, in bytes on each tile and the same for all IPUs, with which the model fits
    /// on the requested IPUs; `null` if no limit is enough.
    pub smallest_limit: Option<u64>,
    /// The lowest memory of each tile in bytes (`--mem-per-tile`) with which the model fits on the
    /// requested IPUs; `null` if no memory is enough. A stage may take `smallest_limit` bytes of
    /// it; the others stay free (`--reserve`).
    pub smallest_tile_memory: Option<u64>,
    /// The best split on tiles with `smallest_tile_memory` bytes each; `null` if the model fits
    /// on no tile size.
    pub with_memory: Option<BestSplit>,
    /// The fewest IPUs, over all replicas, that the framework supports and on which the model
    /// fits; `null` if no number up to 64 is enough, or if each IPU has a limit of its own.
    pub fewest_ipus: Option<u32>,
    /// The best split on `fewest_ipus` IPUs; `null` if `fewest_ipus` is `null`.
    pub on_more_ipus: Option<BestSplit>,
    /// The highest number of IPUs, summed over all replicas, on which a split was searched to
    /// find `fewest_ipus`; `null` if each IPU has a limit of its own.
    pub ipus_tried: Option<u32>,
    /// The constraints that keep layers in one stage although these layers together exceed the
    /// limit. Each is the option that the user typed or, for a tied weight, the name of the weight
    /// and the option that unties it.
    pub kept_together: Vec<String>,
    /// Splits that fit if some constraints are dropped or some weights are untied; empty if there
    /// are no such splits.
    pub relaxations: Vec<RelaxationFacts>,
    /// The stage of the report's split that exceeds its limit most; `null` if no stage exceeds
    /// its limit.
    pub most_over: Option<OverLimit>,
    /// Changes of the model that would free memory in the stage `most_over`, which exceeds its
    /// limit most. No profile can show whether these changes are enough.
    pub advice: Vec<Advice>,
    /// The largest variables at the memory peak of the fullest tile of `most_over`, the stage that
    /// exceeds its limit most. Variables of one category whose names differ only in numbers are one
    /// entry; there are at most 3 entries, most bytes first. Empty if names of variables are
    /// unavailable, such as in a saved model.
    pub largest_variables: Vec<VariableSum>,
}

/// A split that fits after some constraints are dropped or some tied weights are untied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RelaxationFacts {
    /// The constraints (pins, for example) that must be dropped so that the split fits, each as
    /// the option that the user typed.
    pub constraints: Vec<String>,
    /// The names of the tied weights that must be untied so that the split fits. An untied
    /// weight has a copy on each stage that uses it.
    pub weights: Vec<String>,
    /// The best split when `constraints` are dropped and `weights` are untied.
    pub answer: BestSplit,
}

/// The comparison of a split that the user gave with the best split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct GivenSplit {
    /// The constraints that the user's split breaks: options as the user typed them or, for a tied
    /// weight that is not on one IPU, a text such as `the tie of wte`.
    pub broken_constraints: Vec<String>,
    /// The best split by the objective, for comparison with the user's split; if no split fits,
    /// the one with the lowest peak.
    pub best: BestSplit,
}

/// Layers that use the same always-live variables, such as constants and untied weights. Each
/// stage with any of these layers needs a copy of the variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SharedVariables {
    /// The names of the layers that use the always-live variables, in layer order.
    pub layers: LayerNames,
    /// Bytes of the always-live variables that all of `layers` use, summed over all tiles.
    pub bytes: u64,
}

/// Returns the proof that the split of `search` is the best. If the search was greedy, if the user
/// gave the split, or if no split fits, the proof has only the name of the objective.
pub fn proof(search: &SearchResult<'_>) -> Proof {
    let (optimal, objectives) = match &search.outcome {
        Outcome::Best(best) => (best.is_shortest, best.proofs.clone()),
        _ => Default::default(),
    };
    Proof {
        objective: option_name(&search.costs.request().goal),
        optimal,
        objectives,
    }
}

impl Inputs<'_> {
    /// Returns why no split fits, and what would help; `None` if a split fits or the search was
    /// greedy. `named` has the variables to list for the stage that exceeds its limit most.
    pub(super) fn refusal(
        &self,
        search: &SearchResult<'_>,
        named: &NamedVariables,
    ) -> Option<Refusal> {
        let Outcome::Refused(refused) = &search.outcome else {
            return None;
        };
        let (refusal, claims) = (&refused.refusal, &search.claims);
        let certificate = &refusal.certificate;
        let with_memory = claims.with_memory.as_ref();
        let on_more_ipus = claims.on_more_ipus.as_ref();
        Some(Refusal {
            reason: refusal.cause,
            limit: search.costs.request().highest_limit(),
            ranges: refused.over_limit.clone(),
            cuts_before: self.names(certificate.cuts_before.iter().copied()),
            stages_needed: certificate.needed.map(|stages| stages as u32),
            smallest_limit: with_memory.map(|claim| claim.costs.request().highest_limit()),
            smallest_tile_memory: with_memory.and_then(Claim::memory),
            with_memory: with_memory.map(|claim| self.changed(claim)),
            ipus_tried: claims.ipus_tried.map(|ipus| ipus as u32),
            fewest_ipus: on_more_ipus.map(|claim| claim.best.all_ipus() as u32),
            on_more_ipus: on_more_ipus.map(|claim| self.changed(claim)),
            kept_together: refusal.kept_together.iter().map(kept_by).collect(),
            relaxations: (claims.relaxed.iter())
                .map(|relaxed| {
                    let (constraints, weights) = relaxed.given_up();
                    RelaxationFacts {
                        constraints,
                        weights,
                        answer: self.changed(relaxed),
                    }
                })
                .collect(),
            most_over: refused.most_over.clone(),
            advice: refused.advice.clone(),
            largest_variables: named.lacking.clone(),
        })
    }

    /// Compares the split that the user gave with the best split. Returns `None` if the user gave
    /// no split, or if the search for the best split found none.
    pub(super) fn given(&self, search: &SearchResult<'_>) -> Option<GivenSplit> {
        Some(GivenSplit {
            broken_constraints: search.shown.broken.iter().map(broken).collect(),
            best: self.best_split(search.claims.without_given.as_ref()?),
        })
    }
}

/// Returns the report's name for a constraint that a split breaks: the option that the user typed.
/// If the constraint is that a tied weight stays on one IPU, returns a text such as `the tie of
/// wte`.
pub fn broken(constraint: &Constraint) -> String {
    constraint.weight().map_or_else(
        || constraint.origin.to_string(),
        |weight| format!("the tie of {weight}"),
    )
}

/// Returns the report's name for a constraint that keeps layers in one stage: the option that the
/// user typed. If the constraint is a tied weight, which several layers share, returns the name of
/// the weight and the option that unties it.
fn kept_by(constraint: &Constraint) -> String {
    constraint.weight().map_or_else(
        || constraint.origin.to_string(),
        |weight| format!("{weight}; {}", weight.one_ipu()),
    )
}
