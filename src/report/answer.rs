//! The answer of a search or the reason why there is none, and the comparison of a given split with
//! the best one.

use super::build::{Inputs, NamedVariables};
use super::{BestSplit, LayerNames, LiveVariable};
use crate::search::{AdviceFor, Answer, OverLimit, SearchResult};
use crate::solve::{Cause, Constraint, Needed, ObjectiveProof, Plan, Relaxation};
use serde::{Deserialize, Serialize};

/// The proof that the split is the best.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proof {
    /// The objective that the user requested: `peak`, `fewest`, `communication`, `cycles` or
    /// `time`.
    pub objective: String,
    /// Whether no split is better by the objective. If true, the integer program was solved to
    /// optimality and the dynamic program agrees in every number; for `time`, every split that
    /// could be faster was tried. For a greedy search and a split that the user gave, `false`, and
    /// all other fields but `objective` are empty.
    pub optimal: bool,
    /// The best value of each number by which splits are compared, as both solvers found it, the
    /// most important number first. With the objective `time` there is one entry: the fewest
    /// possible cycles of the slowest stage.
    pub objectives: Vec<ObjectiveProof>,
}

/// Why no split fits, and what would help.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The kind of reason: a range of layers that is too large, too few IPUs, pins or limits, or
    /// the pipeline.
    pub reason: Cause,
    /// Bytes that a stage may take on each tile, which is the memory of a tile less the reserve:
    /// the highest limit of any IPU.
    pub limit: u64,
    /// Ranges of consecutive layers that each exceed the limit as one stage, and overlap at most in
    /// their end layers. Each range needs a cut of its own, so together they prove how many stages
    /// are needed.
    pub ranges: Vec<OverLimit>,
    /// The layers before which the user requires a cut. These cuts count in the proof of
    /// `stages_needed`.
    pub cuts_before: LayerNames,
    /// A lower bound on the number of stages, proven by `ranges` and `cuts_before`; `null` if no
    /// number of stages is enough.
    pub stages_needed: Option<u32>,
    /// The lowest `limit` in bytes with which a split fits on the requested IPUs; `null` if no
    /// limit is enough.
    pub smallest_limit: Option<u64>,
    /// The lowest `--mem-per-tile` in bytes with which a split fits on the requested IPUs:
    /// `smallest_limit` and the reserve; `null` if no memory is enough.
    pub smallest_tile_memory: Option<u64>,
    /// The fewest IPUs on which a split fits; `null` if no number is enough.
    pub fewest_ipus: Option<u32>,
    /// The best split on the fewest IPUs that are enough and that the framework accepts; `null` if
    /// no number is enough.
    pub on_more_ipus: Option<BestSplit>,
    /// What keeps layers in one stage although these layers exceed the limit together: each
    /// constraint as the option that the user typed, each tied weight by its name and the option
    /// that unties it.
    pub kept_together: Vec<String>,
    /// Splits that fit if some constraints are dropped or some weights are untied; empty if no such
    /// split fits, or if there are neither constraints nor tied weights.
    pub relaxations: Vec<RelaxationFacts>,
    /// The stage that exceeds its limit most, and changes of the model or its options that would
    /// free memory there; `null` if no stage exceeds its limit.
    pub advice: Option<AdviceFor>,
    /// At most 3 variables that are live on the fullest tile of the stage of `advice`, at the
    /// stage's peak, the largest first; empty if names of variables are unavailable, such as in a
    /// saved model.
    pub largest_variables: Vec<LiveVariable>,
}

/// A split that fits after some constraints are dropped or some tied weights are untied.
// The solver has its own type, `Relaxation`: it compares constraints and scores, which a reader of
// reports cannot use, and has no names of layers and options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RelaxationFacts {
    /// The dropped constraints, as the options that the user typed.
    pub constraints: Vec<String>,
    /// The names of the untied weights.
    pub weights: Vec<String>,
    /// The layers of each stage of the best split without these constraints and ties.
    pub stages: Vec<LayerNames>,
}

/// The comparison of a split that the user gave with the best split.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GivenSplit {
    /// The constraints that the given split breaks, as the options that the user typed, and the
    /// ties of weights that it breaks, such as `the tie of wte`.
    pub broken_constraints: Vec<String>,
    /// The best split; if none fits, the split with the lowest peak.
    pub best: BestSplit,
}

/// Layers that use the same always-live variables, such as constants and untied weights. Each stage
/// with any of these layers needs a copy of the variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharedVariables {
    /// The names of the layers that use the variables, in order.
    pub layers: LayerNames,
    /// Bytes of the variables that all of the layers use, summed over all tiles.
    pub bytes: u64,
}

/// Upper bound on the groups of layers that share variables in a report.
const MAX_SHARED: usize = 100;

/// Returns the proof that the split is the best. For a greedy search, a split that the user gave,
/// and a search in which nothing fits, the proof has only the name of the objective.
pub(super) fn proof(search: &SearchResult<'_>) -> Proof {
    let request = &search.costs.request();
    let none = Proof {
        objective: request.goal.key().to_string(),
        ..Proof::default()
    };
    let (Answer::Best { solution, .. }, None) = (&search.answer, &request.given) else {
        return none;
    };
    Proof {
        optimal: solution.is_shortest.unwrap_or(true),
        objectives: solution.proofs.clone(),
        ..none
    }
}

/// Returns the constraints on the split as the options that the user typed, without tied weights.
pub(super) fn constraints(search: &SearchResult<'_>) -> Vec<String> {
    let constraints = search.costs.request().constraints.iter();
    constraints.map(text).collect()
}

impl Inputs<'_> {
    /// Returns the names of the layers of each stage of `plan`, which is a split.
    pub(super) fn layers_of(&self, plan: &Plan) -> Vec<LayerNames> {
        let stages = plan.stages().iter().cloned();
        stages.map(|stage| self.names(stage)).collect()
    }

    /// Returns the reason why nothing fits, and what would help; `None` if a split fits or the
    /// search was greedy. `named` has the variables to list for the stage that exceeds its limit
    /// most.
    pub(super) fn refusal(
        &self,
        search: &SearchResult<'_>,
        named: &NamedVariables,
    ) -> Option<Refusal> {
        let Answer::Refused(refused) = &search.answer else {
            return None;
        };
        let (request, infeasible) = (search.costs.request(), &refused.infeasible);
        let certificate = &infeasible.certificate;
        let lowest = infeasible.lowest_peak.as_ref().map(|best| best.score.peak);
        let relaxations = infeasible.relaxations.iter();
        Some(Refusal {
            reason: infeasible.cause,
            limit: request.highest_limit(),
            ranges: refused.over_limit.clone(),
            cuts_before: (certificate.cuts_before.iter())
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
                self.other_split(search, best, (options, lowest.unwrap_or(0)))
            }),
            kept_together: infeasible.kept_together.iter().map(kept_by).collect(),
            relaxations: relaxations
                .map(|relaxation| self.relaxation(relaxation))
                .collect(),
            advice: refused.advice.clone(),
            largest_variables: named.lacking.clone(),
        })
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

    /// Compares the split that the user gave with the best one; `None` if no split was given, or no
    /// other one was found.
    pub(super) fn given(&self, search: &SearchResult<'_>) -> Option<GivenSplit> {
        search.costs.request().given.as_ref()?;
        let replicas = search.costs.request().options.step.replicas;
        Some(GivenSplit {
            broken_constraints: search.shown.broken.iter().map(broken).collect(),
            best: self.best_split(search, &search.best()?, replicas),
        })
    }

    /// Converts groups of layers that use the same always-live variables (their positions, and the
    /// bytes of the variables) to entries of the report. Keeps the order, and only the first
    /// [`MAX_SHARED`].
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

/// Names a constraint that a split breaks: the option that the user typed, or the tied weight.
pub(super) fn broken(constraint: &Constraint) -> String {
    match constraint.weight() {
        Some(weight) => format!("the tie of {weight}"),
        None => text(constraint),
    }
}

/// Names a constraint that keeps layers in one stage: the option that the user typed, or the tied
/// weight with the option that unties it.
fn kept_by(constraint: &Constraint) -> String {
    match constraint.weight() {
        Some(weight) => format!("{weight}; {}", weight.one_ipu()),
        None => text(constraint),
    }
}
