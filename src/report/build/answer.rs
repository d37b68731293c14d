//! The answer of a search.

use super::Inputs;
use crate::report::step;
use crate::report::{
    AdviceFacts, GivenSplit, LayerNames, OtherSplit, OverLimit, Proof, Refusal, RelaxationFacts,
    SharedVariables, Sweep, SweepRow,
};
use crate::search::{AdviceFor, Answer, Candidate, IpuCount, SearchResult, free_bytes};
use crate::solve::{Constraint, Infeasible, Needed, Plan, Relaxation, Solution};
use crate::time::narrow;

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
    pub(super) fn stages_of(&self, plan: &Plan) -> Vec<LayerNames> {
        let stages = plan.stages().iter().cloned();
        stages.map(|stage| self.names(stage)).collect()
    }

    /// Returns the reason why nothing fits, and what would help; `None` if a split fits.
    pub(super) fn refusal(&self, found: &SearchResult<'_>) -> Option<Refusal> {
        let Answer::Refused(refused) = &found.answer else {
            return None;
        };
        let Infeasible { certificate, .. } = &refused.infeasible;
        let (request, infeasible) = (found.costs.request(), &refused.infeasible);
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
            smallest_tile_memory: lowest.map(|bytes| request.reserve.beside(bytes)),
            fewest_ipus: infeasible.fewest.map(|ipus| ipus as u32),
            on_more_ipus: refused.on_more_ipus.as_ref().map(|best| OtherSplit {
                options: format!("--num-ipus {}", best.ipus),
                ..self.other_split(found, best, lowest.unwrap_or(0))
            }),
            kept_together: infeasible.kept_together.iter().map(kept_by).collect(),
            relaxations: relaxations
                .map(|relaxation| self.relaxation(relaxation))
                .collect(),
            advice: refused.advice.as_ref().map(|advice| self.advice(advice)),
        })
    }

    fn advice(&self, advice: &AdviceFor) -> AdviceFacts {
        AdviceFacts {
            layers: self.names(advice.stage.positions.clone()),
            tile: advice.fullest.max_tile() as u32,
            bytes: advice.fullest.max_tile_bytes(),
            largest: Vec::new(),
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
            stages: self.stages_of(&relaxation.solution.plan),
        }
    }

    /// Compares the given split with the best one; `None` if no split was given.
    pub(super) fn given(&self, found: &SearchResult<'_>) -> Option<GivenSplit> {
        found.costs.request().given.as_ref()?;
        let Solution { plan, score, .. } = found.answer.best()?;
        Some(GivenSplit {
            broken_constraints: found.shown.broken.iter().map(broken).collect(),
            best_fits: matches!(found.answer, Answer::Best { .. }),
            best_stages: self.stages_of(plan),
            best_fullest_tile_bytes: score.peak,
            best_cut_bytes: narrow(score.cut_bytes),
            best_slowest_stage_cycles: score.slowest_cycles.map(narrow),
            best_milliseconds: step::milliseconds(score.step, &found.costs),
        })
    }

    /// Returns the best split for each number of IPUs, when a sweep was requested.
    pub(super) fn sweep(&self, found: &SearchResult<'_>) -> Option<Sweep> {
        let costs = &found.costs;
        let request = costs.request();
        let is_open = found.sweep_of_all.is_some();
        let candidates = found.sweep_of_all.as_ref().unwrap_or(&found.sweep);
        let max_ipus = match request.ipus {
            IpuCount::Exactly(ipus) => ipus,
            IpuCount::UpTo(_) => usize::MAX,
        };
        let rows = candidates.iter().filter(|row| row.ipus <= max_ipus);
        let row = |row: &Candidate| {
            let score = &row.solution.score;
            SweepRow {
                ipus: row.ipus as u32,
                schedule: is_open.then_some(row.pipeline.schedule),
                recompute: is_open.then_some(row.pipeline.recompute),
                fits: row.fits,
                fullest_tile_bytes: score.peak,
                free: free_of_stages(found, row).min().unwrap_or(0),
                cut_bytes: narrow(score.cut_bytes),
                slowest_stage_cycles: score.slowest_cycles.map(narrow),
                step_cycles: step::cycles(score.step),
                micro_batches: score.step.map(|step| step.micro_batches),
                milliseconds: step::milliseconds(score.step, costs),
                stage_bytes: row.peaks.clone(),
                stages: self.stages_of(&row.solution.plan),
                hint: hint(row.ipus, score.stages),
            }
        };
        request.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            rows: rows.map(row).collect(),
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

/// Returns the bytes that each stage leaves free of its limit.
pub(super) fn free_of_stages(
    found: &SearchResult<'_>,
    candidate: &Candidate,
) -> impl Iterator<Item = i64> {
    let peaks = candidate.peaks.iter().enumerate();
    peaks.map(|(ipu, &peak)| free_bytes(found.costs.limit_of(ipu), peak))
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

/// Says why a number of IPUs is practical (a machine or pod, or a power of two, which the IPUs of a
/// replica must be), and how many IPUs stay empty.
fn hint(ipus: usize, stages: usize) -> Option<String> {
    let size = match ipus {
        1 => Some("one IPU"),
        4 => Some("one machine, a POD4"),
        16 => Some("a POD16"),
        64 => Some("a POD64"),
        _ if ipus.is_power_of_two() => Some("a power of two"),
        _ => None,
    };
    let idle = ipus - stages.min(ipus);
    let empty = match idle {
        0 => None,
        1 => Some("1 stays empty".to_string()),
        idle => Some(format!("{idle} stay empty")),
    };
    let both: Vec<String> = size.map(str::to_string).into_iter().chain(empty).collect();
    (!both.is_empty()).then(|| both.join("; "))
}
