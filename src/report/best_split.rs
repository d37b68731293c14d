//! The best split of one pipeline on a number of IPUs: a row of a sweep or a plan, or another split
//! that is compared with the shown one.

use super::LayerNames;
use super::build::Inputs;
use super::cell::Cell;
use super::step::StepFacts;
use crate::memory::{Recompute, Schedule, StatePlace};
use crate::search::{Candidate, SearchResult, free_bytes};
use crate::time::narrow;
use serde::{Deserialize, Serialize};

/// The best split of one pipeline on a number of IPUs. If no split fits there, the split with the
/// lowest peak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BestSplit {
    /// Number of IPUs of one replica. If some of them stay empty, the split has fewer stages.
    pub ipus: u32,
    /// Number of replicas that run the split: the number of the run. In a plan, the number of
    /// replicas for which the available IPUs are enough.
    pub replicas: u64,
    /// The order in which the stages work on micro-batches.
    pub schedule: Schedule,
    /// The activations that the pipeline recomputes in the backward pass.
    pub recompute: Recompute,
    /// The place of optimizer state between updates. Sharded state is divided among all replicas.
    pub state: StatePlace,
    /// Whether every stage of the split is within its limit.
    pub fits: bool,
    /// Bytes that a stage may take on each tile: the lowest limit of the IPUs that have a stage.
    /// The limits of IPUs can differ.
    pub limit: u64,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The number of the stage with the fewest free bytes on its fullest tile; the first one of a
    /// tie.
    pub fullest_stage: u32,
    /// The free bytes on the fullest tile of `fullest_stage`; below 0 if the split does not fit.
    pub free: i64,
    /// Bytes on the fullest tile of each stage, in order.
    pub stage_bytes: Vec<u64>,
    /// Bytes of the variables that cross cuts, over all tiles. A variable counts at each cut that
    /// it crosses.
    pub cut_bytes: u64,
    /// Cycles of the slowest stage for one micro-batch; `null` if the profile has no cycles.
    pub slowest_stage_cycles: Option<u64>,
    /// The time of a step of this split; `null` if the profile has no cycles.
    pub step: Option<StepFacts>,
    /// Whether part of the step's time is unknown and not in its cycles: optimizer state is
    /// gathered from replicas, or loaded from off the chip without `--streaming-bandwidth`.
    pub lacks_time: bool,
    /// Whether the search proved that no split of this pipeline on these IPUs, with at most the
    /// bytes on the fullest tile of this one, has a shorter step; `false` if it did not prove this.
    pub is_shortest: bool,
    /// The names of the layers of each stage, in order.
    pub stages: Vec<LayerNames>,
    /// The first layer of each stage but stage 0, as a position in the layer order (0 for In).
    pub cuts: Vec<u32>,
    /// Why this number of IPUs is practical, such as `one machine`, and how many IPUs stay empty;
    /// `null` if there is nothing to say.
    pub hint: Option<String>,
    /// The options, as a user types them, that differ from the run's for this split, such as
    /// `--recompute layer`; empty in a sweep and in a plan.
    pub options: String,
    /// How many bytes `fullest_tile_bytes` has more than the split without `options`, below 0 for
    /// less. 0 in a sweep and in a plan.
    pub change: i64,
    /// The command that prints only this configuration; empty except in a plan that the command
    /// made.
    pub command: String,
}

impl BestSplit {
    /// Returns the cycles of a step divided by its micro-batches, rounded up; `None` without
    /// cycles.
    pub(super) fn cycles_of_micro_batch(&self) -> Option<u64> {
        let step = self.step.as_ref()?;
        Some(step.cycles.div_ceil(step.micro_batches.max(1)))
    }

    pub(super) fn number(&self, number: fn(&StepFacts) -> Option<f64>, decimals: usize) -> Cell {
        let number = self.step.as_ref().and_then(number);
        number.map(|number| format!("{number:.decimals$}")).into()
    }
}

impl Inputs<'_> {
    /// Describes `best`, a split that the search found, as `replicas` replicas run it. The fields
    /// that compare it with another split (`options` and `change`) and `command` are empty.
    pub(super) fn best_split(
        &self,
        search: &SearchResult<'_>,
        best: &Candidate,
        replicas: u64,
    ) -> BestSplit {
        let costs = &search.costs;
        let (plan, score) = (&best.solution.plan, &best.solution.score);
        let limits = (0..plan.stages().len()).map(|ipu| costs.limit_of(ipu));
        let peaks = limits.clone().zip(&best.peaks);
        let free = peaks.map(|(limit, &peak)| free_bytes(limit, peak));
        let fullest = (0..).zip(free).min_by_key(|&(_, free)| free);
        let (fullest_stage, free) = fullest.unwrap_or((0, 0));
        BestSplit {
            ipus: best.ipus as u32,
            replicas,
            schedule: best.pipeline.schedule,
            recompute: best.pipeline.recompute,
            state: best.pipeline.state,
            fits: best.fits,
            limit: limits.min().unwrap_or(0),
            fullest_tile_bytes: score.peak,
            fullest_stage,
            free,
            stage_bytes: best.peaks.clone(),
            cut_bytes: narrow(score.cut_bytes),
            slowest_stage_cycles: score.slowest_cycles.map(narrow),
            step: StepFacts::of_candidate(costs, best, replicas),
            lacks_time: best.lacks_time(costs.request().options.step.streaming_bandwidth),
            is_shortest: best.solution.is_shortest == Some(true),
            stages: self.layers_of(plan),
            cuts: plan.cuts().map(|cut| cut as u32).collect(),
            hint: hint(best.ipus, score.stages),
            ..BestSplit::default()
        }
    }

    /// Describes `other`, the best split with changed `options`, which are written as a user types
    /// them, for the run's number of replicas. `now` is the number of bytes on the fullest tile
    /// without the change.
    pub(super) fn other_split(
        &self,
        search: &SearchResult<'_>,
        other: &Candidate,
        (options, now): (String, u64),
    ) -> BestSplit {
        BestSplit {
            options,
            change: free_bytes(other.solution.score.peak, now),
            ..self.best_split(search, other, search.costs.request().options.step.replicas)
        }
    }
}

/// Says why a number of IPUs is practical (one machine, a pod, or a power of two, which the number
/// of IPUs of a replica must be), and how many IPUs `stages` leave empty; `None` if there is
/// nothing to say.
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
