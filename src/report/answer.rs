//! The answer of a search or the reason why there is none, and the comparison of a given split with
//! the best one.

use super::build::{Inputs, NamedVariables};
use super::{BestSplit, LiveVariable};
use crate::search::{Advice, AdviceFor, Answer, SearchResult};
use crate::solve::{BottleneckProof, Cause, Constraint, Needed, ObjectiveProof, Plan, Relaxation};
use crate::time::narrow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of layers; `None` for the first position of the layer order.
pub type LayerNames = Vec<Option<String>>;

/// The proof that the split is the best.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The requested objective: `peak`, `fewest`, `communication`, `cycles` or `time`.
    pub objective: String,
    /// Is no split better by the objective? If true, the integer program was solved to optimality
    /// and the dynamic program agrees in every number; for `time`, every split that could be faster
    /// was tried. A search without proof, or a given split, has `false` and no numbers.
    pub optimal: bool,
    /// For `time`, a lower bound on the cycles of a step of any split that fits; otherwise `null`.
    pub step_at_least: Option<u64>,
    /// Proof for each number by which splits are compared, the most important first. If
    /// the fastest split was searched for (`time`), there is one entry: the fewest possible cycles of
    /// the slowest stage.
    pub objectives: Vec<ObjectiveProof>,
    /// Ranges of layers that prove that the highest number of any stage cannot be lower.
    pub bottlenecks: Vec<BottleneckProof>,
}

/// Why there is no split that fits, and what would help.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The reason why there is no split.
    pub reason: Cause,
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// Ranges of layers that are each over the limit and meet only at their end layers. Each range
    /// needs a cut of its own.
    pub ranges: Vec<OverLimit>,
    /// Layers after which a cut is required. These cuts count in the proof.
    pub cuts_after: LayerNames,
    /// Lower bound on stages, as the ranges prove. `null` if no number is enough.
    pub stages_needed: Option<u32>,
    /// The lowest limit of a stage on each tile, in bytes, with which a split fits on the given
    /// IPUs. The reserve is not included.
    pub smallest_limit: Option<u64>,
    /// The lowest `--mem-per-tile` with which a split fits, in bytes: `smallest_limit` and the
    /// reserve.
    pub smallest_tile_memory: Option<u64>,
    /// The fewest IPUs on which a split fits; `null` if no number is enough.
    pub fewest_ipus: Option<u32>,
    /// The best split on the fewest IPUs that are enough and that the framework accepts.
    pub on_more_ipus: Option<BestSplit>,
    /// Constraints and tied weights that keep layers together that are too large as one stage.
    pub kept_together: Vec<String>,
    /// Splits that fit without some constraints or with some weights untied; empty if no such split
    /// fits, or if there are neither constraints nor tied weights.
    pub relaxations: Vec<RelaxationFacts>,
    /// The stage that lacks the most memory, and changes that would free memory there.
    pub advice: Option<AdviceFacts>,
}

/// Changes that would free memory, and the place that lacks the most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceFacts {
    /// The layers of the stage that is furthest over its limit, or one layer that is too large by
    /// itself.
    pub layers: LayerNames,
    /// The fullest tile of the layers.
    pub tile: u32,
    /// Bytes of the layers on `tile`.
    pub bytes: u64,
    /// The largest variables that are live on `tile` at its peak; empty if their names are unknown,
    /// such as for a saved model.
    pub largest: Vec<LiveVariable>,
    /// The changes, the most certain first.
    pub changes: Vec<Advice>,
}

/// Constraints and tied weights that prevent every split, and the best split without them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelaxationFacts {
    /// The constraints, as the user gave them.
    pub constraints: Vec<String>,
    /// The names of the tied weights.
    pub weights: Vec<String>,
    /// The layers of each stage of the best split without them.
    pub stages: Vec<LayerNames>,
}

/// Layers that are over the limit together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverLimit {
    /// The layers, in order.
    pub layers: LayerNames,
    /// Their fullest tile as one stage; the first one of a tie.
    pub tile: u32,
    /// The first step at which variables take the most on `tile`; `null` if the layers have no
    /// steps.
    pub step: Option<u32>,
    /// Bytes on `tile`.
    pub bytes: u64,
}

/// Comparison of a given split with the best one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenSplit {
    /// Broken constraints, as the user gave them, and broken ties of weights.
    pub broken_constraints: Vec<String>,
    /// The best split, or if none fits, the one with the lowest peak.
    pub best: BestSplit,
}

/// A weight that several layers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TiedWeightFacts {
    /// The name of the weight.
    pub weight: String,
    /// Bytes of the weight over all tiles.
    pub bytes: u64,
    /// The layers that use the weight, in order, `null` for In.
    pub layers: LayerNames,
    /// Was the weight untied with `--untie`? Otherwise a split has it on one IPU.
    pub untied: bool,
    /// The stages of the split that use the weight; empty without a split. There are several if the
    /// weight is untied, the search ignores ties, or the split was given.
    pub stages: Vec<u32>,
}

/// Layers that use the same always-live variables, such as constants and untied weights. Each stage
/// with one of these layers needs a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedVariables {
    /// The layers, in order.
    pub layers: LayerNames,
    /// Bytes of the variables, over all tiles.
    pub bytes: u64,
}

/// Upper bound on the groups of layers that share variables in a report.
const MAX_SHARED: usize = 100;

/// Returns the proof that the split is the best. For a greedy search or a given split, it has only
/// the name of the objective.
pub(super) fn proof(found: &SearchResult<'_>) -> Proof {
    let request = &found.costs.request();
    let none = Proof {
        objective: request.goal.key().to_string(),
        ..Proof::default()
    };
    let (Answer::Best { solution, .. }, None) = (&found.answer, &request.given) else {
        return none;
    };
    Proof {
        optimal: solution.step.is_none_or(|step| step.is_optimal),
        step_at_least: solution.step.map(|step| narrow(step.at_least)),
        objectives: solution.proofs.clone(),
        bottlenecks: solution.bottlenecks.clone(),
        ..none
    }
}

/// Returns the constraints on the split as options, without tied weights.
pub(super) fn constraints(found: &SearchResult<'_>) -> Vec<String> {
    found.costs.request().constraints.iter().map(text).collect()
}

impl Inputs<'_> {
    /// Returns the layers of each stage.
    pub(super) fn layers_of(&self, plan: &Plan) -> Vec<LayerNames> {
        let stages = plan.stages().iter().cloned();
        stages.map(|stage| self.names(stage)).collect()
    }

    /// Returns the reason why nothing fits, and what would help; `None` if a split fits.
    pub(super) fn refusal(
        &self,
        found: &SearchResult<'_>,
        named: &NamedVariables,
    ) -> Option<Refusal> {
        let Answer::Refused(refused) = &found.answer else {
            return None;
        };
        let (request, infeasible) = (found.costs.request(), &refused.infeasible);
        let certificate = &infeasible.certificate;
        let ranges = refused.over_limit.iter().map(|(range, memory)| OverLimit {
            layers: self.names(range.clone()),
            tile: memory.max_tile() as u32,
            step: memory.peak_step(),
            bytes: memory.max_tile_bytes(),
        });
        let lowest = infeasible.lowest_peak.as_ref().map(|best| best.score.peak);
        let relaxations = infeasible.relaxations.iter();
        Some(Refusal {
            reason: infeasible.cause,
            limit: request.highest_limit(),
            ranges: ranges.collect(),
            cuts_after: (certificate.cuts_after.iter())
                .map(|&position| self.name(position))
                .collect(),
            stages_needed: match certificate.needed {
                Needed::Stages(stages) => Some(stages as u32),
                Needed::Unsplittable => None,
            },
            smallest_limit: lowest,
            smallest_tile_memory: lowest.map(|bytes| request.options.reserve.beside(bytes)),
            fewest_ipus: infeasible.fewest.map(|ipus| ipus as u32),
            on_more_ipus: refused.on_more_ipus.as_ref().map(|best| {
                let options = format!("--num-ipus {}", best.ipus);
                self.other_split(found, best, (options, lowest.unwrap_or(0)))
            }),
            kept_together: infeasible.kept_together.iter().map(kept_by).collect(),
            relaxations: relaxations
                .map(|relaxation| self.relaxation(relaxation))
                .collect(),
            advice: refused
                .advice
                .as_ref()
                .map(|advice| self.advice(advice, named)),
        })
    }

    fn advice(&self, advice: &AdviceFor, named: &NamedVariables) -> AdviceFacts {
        AdviceFacts {
            layers: self.names(advice.stage.positions.clone()),
            tile: advice.fullest.max_tile() as u32,
            bytes: advice.fullest.max_tile_bytes(),
            largest: named.lacking.clone(),
            changes: advice.advice.clone(),
        }
    }

    fn relaxation(&self, relaxation: &Relaxation) -> RelaxationFacts {
        let without = || relaxation.without.iter();
        let options = without().filter(|constraint| constraint.weight().is_none());
        let weights = without().filter_map(Constraint::weight);
        RelaxationFacts {
            constraints: options.map(text).collect(),
            weights: weights.map(|weight| weight.name.clone()).collect(),
            stages: self.layers_of(&relaxation.solution.plan),
        }
    }

    /// Compares the given split with the best one; `None` if no split was given.
    pub(super) fn given(&self, found: &SearchResult<'_>) -> Option<GivenSplit> {
        found.costs.request().given.as_ref()?;
        let replicas = found.costs.request().options.step.replicas;
        Some(GivenSplit {
            broken_constraints: found.shown.broken.iter().map(broken).collect(),
            best: self.best_split(found, &found.best()?, replicas),
        })
    }

    /// Returns the groups of layers that use the same always-live variables.
    pub(super) fn shared_variables(&self, shared: Vec<(Vec<u32>, u64)>) -> Vec<SharedVariables> {
        let groups = shared.into_iter().take(MAX_SHARED);
        let groups = groups.map(|(layers, bytes)| SharedVariables {
            layers: self.names(layers.into_iter().map(|layer| layer as usize)),
            bytes,
        });
        groups.collect()
    }
}

fn text(constraint: &Constraint) -> String {
    constraint.origin.to_string()
}

/// Names a constraint that the split breaks.
pub(super) fn broken(constraint: &Constraint) -> String {
    match constraint.weight() {
        Some(weight) => format!("the tie of {weight}"),
        None => text(constraint),
    }
}

/// Names the constraint that keeps layers together; for a tied weight with the option that lifts
/// it.
fn kept_by(constraint: &Constraint) -> String {
    match constraint.weight() {
        Some(weight) => format!("{weight}; {}", weight.one_ipu()),
        None => text(constraint),
    }
}
