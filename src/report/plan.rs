//! The best split for each number of IPUs, and whole configurations: the number of IPUs, the
//! pipeline, and the split.

use super::build::Inputs;
use super::phrases::{Amount, Bytes, nearly_full, stages};
use super::step::three_digits;
use super::{BestSplit, Report};
use crate::memory::{Pipeline, Schedule};
use crate::search::{Candidate, IpuCount, SearchResult};
use crate::wording::{counted, listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configurations that fit (`--plan`): the number of IPUs, the pipeline and the split of each.
/// No other configuration is better than one of them in IPUs, time and memory at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFacts {
    /// Number of available IPUs, over all replicas.
    pub max_ipus: u32,
    /// The numbers of IPUs of a replica that the search tried, ascending.
    pub ipus_tried: Vec<u32>,
    /// The pipelines that the search tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// The configurations that fit; empty if nothing fits. The recommended one comes first, and is
    /// the best split of `--solve` with the same options. Next come the others with the requested
    /// place of optimizer state, the fastest first, and then those with another place.
    pub rows: Vec<BestSplit>,
    /// Whether the first of `rows` is recommended. If nothing fits with the requested place of
    /// optimizer state, configurations with another place are not recommended.
    pub has_recommendation: bool,
}

impl PlanFacts {
    /// Returns the recommended configuration; `None` if there is none.
    pub fn recommended(&self) -> Option<&BestSplit> {
        self.rows.first().filter(|_| self.has_recommendation)
    }
}

/// The best split for each number of IPUs (`--sweep`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// Whether each row of the sweep is the best split of several pipelines. Otherwise, all rows
    /// are splits of one pipeline.
    pub compares_pipelines: bool,
    /// The best split for each number of IPUs, in ascending order of this number.
    pub rows: Vec<BestSplit>,
}

impl Inputs<'_> {
    /// Returns the best split for each number of IPUs; `None` unless `--sweep` was given.
    pub(super) fn sweep(&self, search: &SearchResult<'_>) -> Option<Sweep> {
        let request = search.costs.request();
        let rows = search.best_by_ipus().into_iter();
        let rows = rows.filter(|row| match request.ipus {
            IpuCount::Exactly(ipus) => row.ipus <= ipus,
            IpuCount::UpTo(_) => true,
        });
        request.options.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            compares_pipelines: search.open_pipelines > 1,
            rows: rows
                .map(|row| self.best_split(search, row, request.options.step.replicas))
                .collect(),
        })
    }

    /// Returns the configurations that fit; `None` unless `--plan` was given.
    pub(super) fn plan(&self, search: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = search.plan.as_ref()?;
        let row = |row: &Candidate| {
            let replicas = (front.ipus / row.ipus).max(1);
            self.best_split(search, row, replicas as u64)
        };
        Some(PlanFacts {
            max_ipus: front.ipus as u32,
            ipus_tried: front.numbers.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: front.configurations.iter().map(row).collect(),
            has_recommendation: front.has_answer,
        })
    }
}

/// Says which stage of the recommended configuration needs the most memory and which is the
/// slowest, or that nothing fits. Then says which times are unknown.
pub(super) fn sentences(report: &Report) -> Vec<String> {
    let Some(plan) = &report.plan else {
        return Vec::new();
    };
    let first = plan.recommended();
    let mut lines: Vec<String> = first.map(bottlenecks).into_iter().collect();
    let full = first.filter(|row| row.ipus > 1);
    lines.extend(full.and_then(|row| nearly_full(row.fullest_tile_bytes, row.limit)));
    if plan.rows.is_empty() {
        let ipus = counted(plan.max_ipus, "IPU");
        lines.push(format!("no configuration fits on {ipus}"));
    }
    if plan.rows.iter().any(|row| row.step.is_none()) {
        let line = "the profile has no cycles, so popliner cannot compute times: record it with \
                    \"profiler.includeCycleEstimates\":\"true\", or run the model";
        lines.push(line.to_string());
    }
    lines.extend(not_compared(plan));
    lines
}

/// Says that the last rows of the plan, with optimizer state off the chip or sharded, are not
/// compared with the others since part of their time is unknown; `None` if all times are known.
fn not_compared(plan: &PlanFacts) -> Option<String> {
    let rows = || plan.rows.iter().filter(|row| row.lacks_time);
    let is_sharded = rows().any(|row| row.state.is_sharded());
    let is_streamed = (rows().flat_map(|row| &row.step)).any(|step| step.streamed_bytes.is_some());
    let times = match (is_streamed, is_sharded) {
        (false, false) => return None,
        (true, false) => "to load and store state (give --streaming-bandwidth)",
        (false, true) => "to gather state from replicas",
        (true, true) => {
            "to load and store state (give --streaming-bandwidth) and to gather state from replicas"
        }
    };
    let count = rows().count();
    let (rows, are) = (counted(count, "row"), if count == 1 { "is" } else { "are" });
    Some(format!(
        "the last {rows} with optimizer state elsewhere {are} not compared with the others: the \
         step does not include the time {times}"
    ))
}

/// Says which stage of a split needs the most memory, which stage is the slowest, and how long a
/// step takes.
fn bottlenecks(row: &BestSplit) -> String {
    let (stage, bytes, limit) = (row.fullest_stage, row.fullest_tile_bytes, row.limit);
    let (bytes, limit) = (Amount(bytes), Bytes(limit));
    let mut line = format!("stage {stage} needs the most memory: {bytes} of {limit}");
    let Some(step) = &row.step else {
        return line;
    };
    if row.ipus > 1 {
        line += &format!("; stage {} is the slowest", step.slowest_stage);
    }
    if let Some(time) = step.milliseconds {
        let batches = counted(step.micro_batches, "micro-batch");
        line += &format!("; a step of {batches} takes {} ms", three_digits(time));
    }
    line
}

/// Says which numbers of IPUs, schedules, recomputations and places of optimizer state the search
/// for the plan tried; `None` without a plan.
pub(super) fn tried(report: &Report) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let numbers = match &plan.ipus_tried[..] {
        [first, .., last] if (*last - *first) as usize + 1 == plan.ipus_tried.len() => {
            format!("{first} to {last}")
        }
        numbers => listed(&numbers.iter().map(u32::to_string).collect::<Vec<_>>()),
    };
    let tried = |name: fn(&Pipeline) -> String| {
        let mut names: Vec<String> = Vec::new();
        for pipeline in &plan.pipelines_tried {
            let name = name(pipeline);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let schedules = tried(|pipeline| pipeline.schedule.to_string());
    let recompute = tried(|pipeline| pipeline.recompute.to_string());
    let state = tried(|pipeline| pipeline.state.to_string());
    Some(format!(
        "tried: {numbers} IPUs, schedule {schedules}, recompute {recompute}, optimizer state \
         {state}; not tried: other numbers of micro-batches"
    ))
}

/// Says which configuration of the plan is recommended, and why; `None` if none is.
pub(super) fn recommended(report: &Report) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let row = plan.recommended()?;
    let pipeline = match (row.schedule, row.recompute) {
        (Schedule::None, _) => String::new(),
        (schedule, recompute) => format!(" with --schedule {schedule} --recompute {recompute}"),
    };
    let is_sharded = row.state.is_sharded();
    let replicas = is_sharded.then(|| format!(", {}", counted(row.replicas, "replica")));
    let replicas = replicas.unwrap_or_default();
    let why = match (&row.step, plan.max_ipus) {
        (None, _) => "the fewest IPUs".to_string(),
        (Some(_), 1) => "the fastest on 1 IPU".to_string(),
        (Some(_), ipus) => format!("the fastest on up to {}", counted(ipus, "IPU")),
    };
    let (stages, ipus) = (stages(&row.stages), counted(row.ipus, "IPU"));
    Some(format!(
        "{stages} fits on {ipus}{pipeline}{replicas}: {why}"
    ))
}
