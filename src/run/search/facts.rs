//! What the solver said, for the report.

use super::{Outcome, SearchRequest, explained};
use crate::cli::Options;
use crate::report::document::{
    CutFacts, Judged, LayerNames, Move, OverLimit, Proof, ProvenBottleneck, ProvenObjective,
    Refusal, RefusalReason, RelaxationFacts, Sweep, SweepRow, Tie,
};
use crate::report::{Split, free_bytes, layer_name, layer_names};
use crate::run::subject::Subject;
use crate::solve::{
    self, Cause, Constraint, Goal, Infeasible, Limits, Needed, Objective, Plan, Problem, Refused,
    Relaxation, Solution,
};
use anyhow::Result;
use std::ops::Range;

/// How many ties a report names.
const MAX_TIES: usize = 100;

/// What shows that the answer is the best. A greedy search and a split that
/// was given have no proof, but the name of the objective.
pub(super) fn proof(options: &Options, answer: &Outcome, is_given: bool) -> Proof {
    let goal = options.objective;
    let objective = match goal {
        Goal::Peak => "peak",
        Goal::Fewest => "fewest",
        Goal::Communication => "communication",
        Goal::Cycles => "cycles",
    };
    let mut proof = Proof {
        objective: objective.to_string(),
        ..Proof::default()
    };
    let Outcome::Best(solution) = answer else {
        return proof;
    };
    if is_given {
        return proof;
    }
    proof.optimal = true;
    let objectives = solution.proofs.iter().map(|proof| ProvenObjective {
        objective: key(proof.objective).to_string(),
        integer_program: proof.integer_program.to_string(),
        dynamic_program: proof.dynamic_program.to_string(),
    });
    proof.objectives = objectives.collect();
    let bottlenecks = solution.bottlenecks.iter().map(|proof| ProvenBottleneck {
        objective: key(proof.objective).to_string(),
        below: proof.threshold.to_string(),
        stages_needed: match proof.refusal {
            Refused::TooManyStages(stages) => Some(stages as u32),
            Refused::Infeasible => None,
        },
    });
    proof.bottlenecks = bottlenecks.collect();
    proof
}

impl Subject<'_> {
    fn name(&self, layer: usize) -> Option<String> {
        layer_name(&self.placement.positions, layer)
    }

    fn names(&self, layers: Range<usize>) -> LayerNames {
        layer_names(&self.placement.positions, layers)
    }

    fn stages_of(&self, plan: &Plan) -> Vec<LayerNames> {
        let stages = plan.stages().iter().cloned();
        stages.map(|stage| self.names(stage)).collect()
    }

    /// Why nothing fits, and what would help.
    pub(super) fn refusal(&self, request: &SearchRequest, infeasible: &Infeasible) -> Refusal {
        let certificate = &infeasible.certificate;
        let ranges = certificate.ranges.clone();
        let weighed = ranges.iter().zip(self.memory.stages(&ranges));
        let range = |(range, memory): (&Range<usize>, crate::memory::StageMemory)| OverLimit {
            layers: self.names(range.clone()),
            tile: memory.max_tile() as u32,
            step: memory.peak_steps.get(memory.max_tile()).copied().flatten(),
            bytes: memory.max_tile_bytes(),
        };
        let cuts_after = certificate.cuts_after.iter();
        let lowest = infeasible.lowest_peak.as_ref().map(|best| best.score.peak);
        Refusal {
            reason: match infeasible.cause {
                Cause::TooLarge => RefusalReason::TooLarge,
                Cause::TooFewIpus => RefusalReason::TooFewIpus,
                Cause::PinsOrLimits => RefusalReason::PinsOrLimits,
            },
            limit: request.limits().highest(),
            ranges: weighed.map(range).collect(),
            cuts_after: cuts_after.map(|&position| self.name(position)).collect(),
            stages_needed: match certificate.needed {
                Needed::Stages(stages) => Some(stages as u32),
                Needed::Unsplittable => None,
            },
            smallest_limit: lowest,
            smallest_tile_memory: lowest.map(|bytes| self.options.reserve.beside(bytes)),
            fewest_ipus: infeasible.fewest.map(|ipus| ipus as u32),
            kept_together: infeasible.kept_together.iter().map(kept_by).collect(),
            relaxations: (infeasible.relaxations.iter())
                .map(|relaxation| self.relaxation(relaxation))
                .collect(),
        }
    }

    fn relaxation(&self, relaxation: &Relaxation) -> RelaxationFacts {
        let without = || relaxation.without.iter();
        let orders = without().filter(|constraint| constraint.weight().is_none());
        let weights = without().filter_map(Constraint::weight);
        RelaxationFacts {
            orders: orders.map(said).collect(),
            weights: weights.map(|weight| weight.name.clone()).collect(),
            stages: self.stages_of(&relaxation.solution.plan),
        }
    }

    /// The best split, beside the one that was given.
    pub(super) fn beside(&self, best: &Solution, fits: bool, broken: Vec<String>) -> Judged {
        Judged {
            broken_orders: broken,
            best_fits: fits,
            best_stages: self.stages_of(&best.plan),
            best_fullest_tile_bytes: best.score.peak,
            best_cut_bytes: narrow(best.score.cut_bytes),
            best_slowest_stage_cycles: best.score.slowest_cycles.map(narrow),
        }
    }

    /// The best split for each number of IPUs; where none fits, the one that
    /// would need the least.
    pub(super) fn sweep(&self, request: &SearchRequest, problem: &Problem<'_>) -> Result<Sweep> {
        let fitting = solve::sweep(problem).map_err(explained)?;
        let unlimited = Problem {
            limits: Limits::Same(u64::MAX),
            goal: Goal::Peak,
            ..*problem
        };
        let others = match fitting.iter().all(Option::is_some) {
            true => Vec::new(),
            false => solve::sweep(&unlimited).map_err(explained)?,
        };
        let row = |(number, solution): (usize, Option<Solution>)| {
            let fits = solution.is_some();
            let other = || others.get(number).cloned().flatten();
            let solution = solution.or_else(other)?;
            Some(self.row(number + 1, fits, &solution, problem))
        };
        Ok(Sweep {
            limit: request.limits().highest(),
            rows: fitting.into_iter().enumerate().filter_map(row).collect(),
        })
    }

    fn row(&self, ipus: usize, fits: bool, solution: &Solution, problem: &Problem<'_>) -> SweepRow {
        let peaks = solution.plan.stages().iter().enumerate();
        let free = peaks.filter_map(|(stage, range)| {
            let limit = problem.limits.of(stage)?;
            let peak = problem.costs.peak(range.clone())?;
            Some(free_bytes(limit, peak))
        });
        SweepRow {
            ipus: ipus as u32,
            fits,
            fullest_tile_bytes: solution.score.peak,
            free: free.min().unwrap_or(0),
            cut_bytes: narrow(solution.score.cut_bytes),
            slowest_stage_cycles: solution.score.slowest_cycles.map(narrow),
            stages: self.stages_of(&solution.plan),
            hint: hint(ipus, solution.score.stages),
        }
    }

    /// Layers that use the same variables that are always live, as
    /// [`MemoryModel::ties`](crate::memory::MemoryModel::ties) has them.
    pub(super) fn named_ties(&self, ties: &[(Vec<u32>, u64)]) -> Vec<Tie> {
        let named = ties.iter().take(MAX_TIES).map(|(layers, bytes)| Tie {
            layers: layer_names(
                &self.placement.positions,
                layers.iter().map(|&layer| layer as usize),
            ),
            bytes: *bytes,
        });
        named.collect()
    }

    /// For each cut what flows over it, what it would have to double of `ties`,
    /// and, where all ranges of layers were weighed, what moving a layer would
    /// do.
    pub(super) fn cuts(
        &self,
        ties: &[(Vec<u32>, u64)],
        split: &Split,
        problem: &Problem<'_>,
        all: bool,
    ) -> Vec<CutFacts> {
        let cut = |(number, sides): (usize, &[Range<usize>])| {
            let crosses = |layers: &[u32]| {
                let is_before = |&layer: &u32| (layer as usize) < sides[0].end;
                layers.iter().any(is_before) && !layers.iter().all(is_before)
            };
            let crossing = ties.iter().filter(|(layers, _)| crosses(layers));
            CutFacts {
                bytes: problem.cut_bytes[sides[0].end - 1],
                duplicated: crossing.map(|&(_, bytes)| bytes).sum(),
                moves: match all {
                    true => self.moves(split, number, sides, problem),
                    false => Vec::new(),
                },
            }
        };
        split.ranges().windows(2).enumerate().map(cut).collect()
    }

    /// What moving the layer on either side of a cut over it would do.
    fn moves(
        &self,
        split: &Split,
        number: usize,
        sides: &[Range<usize>],
        problem: &Problem<'_>,
    ) -> Vec<Move> {
        let peak = |range: Range<usize>| problem.costs.peak(range);
        let (start, at, end) = (sides[0].start, sides[0].end, sides[1].end);
        let now = [0, 1].map(|side| split.stages[number + side].mem.max_tile_mem);
        let moved = |at: usize, layers: Range<usize>, to: usize| {
            let bytes = [peak(start..at)?, peak(at..end)?];
            let change = [0, 1].map(|side| free_bytes(bytes[side], now[side]));
            Some(Move {
                layers: self.names(layers),
                to_stage: to as u32,
                fullest_tile_bytes: bytes,
                change,
            })
        };
        let back = (at > start + 1).then(|| moved(at - 1, at - 1..at, number + 1));
        let on = (at + 1 < end).then(|| moved(at + 1, at..at + 1, number));
        back.into_iter().chain(on).flatten().collect()
    }
}

/// What keeps layers together, and what lifts that.
fn kept_by(constraint: &Constraint) -> String {
    match constraint.weight() {
        Some(weight) => format!("{weight}; {}", weight.one_ipu()),
        None => said(constraint),
    }
}

fn said(constraint: &Constraint) -> String {
    constraint.origin.to_string()
}

/// What programs call a number.
fn key(objective: Objective) -> &'static str {
    match objective {
        Objective::Peak => "peak",
        Objective::Stages => "stages",
        Objective::Squares => "squares",
        Objective::CutBytes => "cut_bytes",
        Objective::Cycles => "cycles",
        Objective::EarliestCuts => "earliest_cuts",
    }
}

/// Sums over cuts and stages, as reports show them.
fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Sizes in which IPUs come, and powers of two, which IPUs of a replica must
/// be; and numbers that leave IPUs empty.
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
    match (size, idle) {
        (size, 0) => size.map(str::to_string),
        (Some(size), idle) => Some(format!("{size}; {idle} stay empty")),
        (None, idle) => Some(format!("{idle} stay empty")),
    }
}
