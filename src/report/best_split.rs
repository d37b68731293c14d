//! Describes splits other than the report's: each is the best split for the user's request with
//! some options changed. Examples are a row of a sweep (the best split for one number of IPUs) and
//! a row of a plan (a number of IPUs, a pipeline, and the split).

use super::{Inputs, StepFacts};
use crate::{
    memory::{Pipeline, Recompute, Schedule, StatePlace},
    model::LayerNames,
    search::{Claim, SearchResult, free_bytes},
    time::narrow,
    wording::join,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The best split for the user's request with some options changed or, if none fits, the split
/// with the lowest peak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BestSplit {
    /// Number of IPUs that the split may use, over all replicas; if IPUs stay empty, the split
    /// has fewer stages.
    pub ipus: u32,
    /// Number of replicas of the pipeline that work in parallel, at least 1.
    pub replicas: u64,
    /// The order in which the stages of this split process micro-batches.
    pub schedule: Schedule,
    /// Which activations the pipeline recomputes in the backward pass instead of stashing them.
    pub recompute: Recompute,
    /// The place of optimizer state between updates. Sharded state is divided among all
    /// replicas.
    pub state: StatePlace,
    /// Whether every stage of the split is within its limit on every tile.
    pub fits: bool,
    /// Bytes that `fullest_stage` may take on each tile, which is the memory of a tile less the
    /// reserve.
    pub limit: u64,
    /// The peak of the split: the bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The index of the stage with the fewest free bytes on its fullest tile; the first one of
    /// a tie.
    pub fullest_stage: u32,
    /// The free bytes on the fullest tile of `fullest_stage`; below 0 if the split does not
    /// fit.
    pub free: i64,
    /// For each stage, in order, the bytes on its fullest tile.
    pub stage_bytes: Vec<u64>,
    /// The available memory proportion of each stage, in order; empty unless profiles of
    /// several proportions are given (`--amp`).
    pub amps: Vec<f64>,
    /// Bytes of the variables that cross cuts between stages, over all tiles. A variable is
    /// added once for each cut that it crosses.
    pub cut_bytes: u64,
    /// Cycles of the slowest stage for one micro-batch; `null` if the profile has no cycles.
    pub slowest_stage_cycles: Option<u64>,
    /// The time of one step (all micro-batches and the weight update) in this split's pipeline;
    /// `null` if the profile has no cycles.
    pub step: Option<StepFacts>,
    /// Whether `step` leaves out a time that is unknown: the time to gather optimizer state from
    /// replicas or, without `--streaming-bandwidth`, the time to load it from off the chip.
    pub lacks_time: bool,
    /// For each stage, in order, the names of its layers.
    pub stages: Vec<LayerNames>,
    /// Why `ipus` is a practical number of IPUs, such as `one machine`, and how many of the
    /// IPUs stay empty; `null` if neither applies.
    pub hint: Option<String>,
    /// The options by which this split's request differs from the user's command, such as
    /// `--recompute layer`; empty for the answer to the user's own request.
    pub options: String,
    /// How many bytes `fullest_tile_bytes` is above the peak of the report's own split; below 0 if
    /// the peak is lower. Computed only for the splits in the report's `refusal` and `pipeline`; 0
    /// in all others.
    pub change: i64,
    /// The command line that gives this split as its answer. Empty in the report's list `sizes`
    /// (the best split for each recorded micro-batch size), and if the report was made without a
    /// command line.
    pub command: String,
}

impl BestSplit {
    pub(super) fn bytes_of_fullest_stage(&self) -> u64 {
        self.stage_bytes
            .get(self.fullest_stage as usize)
            .copied()
            .unwrap_or(self.fullest_tile_bytes)
    }

    /// Returns one of the numbers about the time of a training step, such as its milliseconds, as
    /// text with `decimals` decimals; `None` if the number is unknown. The function `number` says
    /// which of the numbers in [`StepFacts`] is meant.
    pub(super) fn number(
        &self,
        number: fn(&StepFacts) -> Option<f64>,
        decimals: usize,
    ) -> Option<String> {
        let number = number(self.step.as_ref()?)?;
        Some(format!("{number:.decimals$}"))
    }
}

/// The configurations that fit (`--plan`): the number of IPUs, the pipeline and the split of
/// each. No other configuration is better than a listed one in IPUs, time and memory at once,
/// but some that differ little from a listed one are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PlanFacts {
    /// Number of IPUs that a configuration may use, over all replicas.
    pub max_ipus: u32,
    /// The numbers of IPUs for which the search for a plan tried to find a split, ascending.
    pub ipus_tried: Vec<u32>,
    /// The pipelines (schedule, recomputation, place of optimizer state, replicas) that the
    /// search for a plan tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// At most 8 configurations that fit; empty if no configuration fits. The recommended
    /// configuration comes first, and the others follow from fast to slow (without cycles, from
    /// few to many IPUs). Configurations with an unknown part of their time come last.
    pub rows: Vec<BestSplit>,
}

/// The best split for each number of IPUs (`--sweep`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Sweep {
    /// Bytes that a stage may take on each tile. If the limits of IPUs differ, the highest one.
    pub limit: u64,
    /// Whether several pipelines (schedule, recomputation, place of optimizer state) were tried for
    /// each number of IPUs. If false, the splits of all rows are in one pipeline.
    pub compares_pipelines: bool,
    /// The best split for each number of IPUs, ascending by number of IPUs.
    pub rows: Vec<BestSplit>,
}

impl Inputs<'_> {
    /// Returns the best split for each number of IPUs; `None` unless the user gave `--sweep`.
    pub(super) fn sweep(&self, search: &SearchResult<'_>) -> Option<Sweep> {
        let request = search.costs.request();
        request.options.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            compares_pipelines: search.open_pipelines > 1,
            rows: self.best_splits(&search.claims.sweep),
        })
    }

    /// Returns the configurations that fit; `None` unless the user gave `--plan`.
    pub(super) fn plan(&self, search: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = search.claims.plan.as_ref()?;
        Some(PlanFacts {
            max_ipus: search.all_ipus() as u32,
            ipus_tried: front.ipus.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: self.best_splits(&front.rows),
        })
    }

    /// Returns the best split for each recorded size of a micro-batch, in ascending order of size;
    /// an empty list if only one size was recorded.
    pub(super) fn sizes(&self, search: &SearchResult<'_>) -> Vec<BestSplit> {
        let mut sizes = self.best_splits(&search.claims.sizes);
        sizes.iter_mut().for_each(|size| size.command.clear());
        sizes
    }

    fn best_splits(&self, claims: &[Claim<'_>]) -> Vec<BestSplit> {
        claims.iter().map(|claim| self.best_split(claim)).collect()
    }

    /// Describes the split of `claim`: the best split for the user's request with some options
    /// changed. The field `change` stays 0; use [`changed`](Self::changed) to compare the split
    /// with the report's.
    pub(super) fn best_split(&self, claim: &Claim<'_>) -> BestSplit {
        let Claim { costs, best, .. } = claim;
        let (plan, score) = (&best.solution.plan, &best.solution.score);
        let (free, fullest_stage) = (best.peaks.iter().enumerate())
            .map(|(stage, &peak)| (free_bytes(costs.limit_of(stage), peak), stage))
            .min()
            .unwrap_or((0, 0));
        BestSplit {
            ipus: best.all_ipus() as u32,
            replicas: best.replicas as u64,
            schedule: best.pipeline.schedule,
            recompute: best.pipeline.recompute,
            state: best.pipeline.state,
            fits: best.fits,
            limit: costs.limit_of(fullest_stage),
            fullest_tile_bytes: score.peak,
            fullest_stage: fullest_stage as u32,
            free,
            stage_bytes: best.peaks.clone(),
            amps: plan
                .profiles()
                .iter()
                .filter_map(|&profile| costs.proportion(profile))
                .collect(),
            cut_bytes: narrow(score.cut_bytes),
            slowest_stage_cycles: score.slowest_cycles.map(narrow),
            step: StepFacts::of(costs, plan, score.step),
            lacks_time: best.lacks_time,
            stages: plan
                .stages()
                .iter()
                .cloned()
                .map(|stage| costs.memory().positions().layer_names(stage))
                .collect(),
            hint: hint(best.ipus, score.stages),
            options: join(
                claim
                    .change
                    .iter()
                    .map(ToString::to_string)
                    .filter(|word| !word.is_empty()),
                " ",
            ),
            command: (self.command)(&claim.change),
            ..BestSplit::default()
        }
    }

    /// Describes the split of `claim`: the best split for the user's request with some options
    /// changed. Sets the field `change` to the peak of this split minus the peak of the report's
    /// own split, in bytes.
    pub(super) fn changed(&self, claim: &Claim<'_>) -> BestSplit {
        let peaks = self.search.iter().flat_map(|search| &search.shown.peaks);
        BestSplit {
            change: free_bytes(claim.best.peak_bytes(), peaks.copied().max().unwrap_or(0)),
            ..self.best_split(claim)
        }
    }
}

/// Returns a note on a split into `stages` stages on `ipus` IPUs, such as `a POD16; 2 stay empty`:
/// whether the number of IPUs is one machine, a pod or a power of two, and how many IPUs have no
/// stage. Returns `None` if there is nothing to note.
fn hint(ipus: usize, stages: usize) -> Option<String> {
    let size = match ipus {
        1 => Some("one IPU"),
        4 => Some("one machine, a POD4"),
        16 => Some("a POD16"),
        64 => Some("a POD64"),
        _ if ipus.is_power_of_two() => Some("a power of two"),
        _ => None,
    };
    let idle = ipus.saturating_sub(stages);
    let stay = if idle == 1 { "stays" } else { "stay" };
    let empty = (idle > 0).then(|| format!("{idle} {stay} empty"));
    let both = Vec::from_iter(size.map(str::to_string).into_iter().chain(empty));
    (!both.is_empty()).then(|| both.join("; "))
}
