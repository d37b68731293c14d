//! The best split for each number of IPUs, and whole configurations: the number of IPUs, the
//! pipeline, and the split.

use super::build::Inputs;
use super::sentences::{Amount, Bytes, nearly_full, stages};
use super::step::three_digits;
use super::{BestSplit, Report};
use crate::memory::{Pipeline, Schedule};
use crate::search::{Candidate, IpuCount, SearchResult};
use crate::wording::{counted, listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configurations that fit. No other configuration is better in IPUs, time and memory at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFacts {
    /// Number of available IPUs.
    pub max_ipus: u32,
    /// The numbers of IPUs that were tried.
    pub ipus_tried: Vec<u32>,
    /// The pipelines that were tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// The configurations, the recommended one first, which is the best split of `--solve` with the
    /// same options. Next come the others with the requested place of optimizer state, the fastest
    /// first, and then the rest. Empty if nothing fits.
    pub rows: Vec<BestSplit>,
    /// Is the first row recommended? If nothing fits with the requested place of optimizer state,
    /// rows with another place are not recommended.
    pub has_recommendation: bool,
}

impl PlanFacts {
    /// Returns the recommended configuration.
    pub fn recommended(&self) -> Option<&BestSplit> {
        self.rows.first().filter(|_| self.has_recommendation)
    }
}

/// The best split for each number of IPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// Is each row the best of several pipelines? Otherwise all rows are in one pipeline.
    pub compares_pipelines: bool,
    /// One row for each number of IPUs, ascending.
    pub rows: Vec<BestSplit>,
}

impl Inputs<'_> {
    /// Returns the best split for each number of IPUs, when a sweep was requested.
    pub(super) fn sweep(&self, found: &SearchResult<'_>) -> Option<Sweep> {
        let request = found.costs.request();
        let rows = found.best_by_ipus().into_iter();
        let rows = rows.filter(|row| match request.ipus {
            IpuCount::Exactly(ipus) => row.ipus <= ipus,
            IpuCount::UpTo(_) => true,
        });
        request.options.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            compares_pipelines: found.open_pipelines > 1,
            rows: rows
                .map(|row| self.best_split(found, row, request.options.step.replicas))
                .collect(),
        })
    }

    /// Returns the configurations, when a search for them was requested.
    pub(super) fn plan(&self, found: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = found.plan.as_ref()?;
        let row = |row: &Candidate| {
            let replicas = (front.ipus / row.ipus).max(1);
            self.best_split(found, row, replicas as u64)
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

/// Says where the recommended configuration has the most memory and takes the most time, or that
/// nothing fits.
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

/// Says which rows are not compared with the others, and why.
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

/// Says which stage has the most memory, which is the slowest, and how long a step takes.
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

/// Says which options the search tried, and which it did not.
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

/// Says which configuration is recommended, and why.
pub(super) fn recommended(report: &Report) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let row = plan.recommended()?;
    let pipeline = match (row.schedule, row.recompute) {
        (Schedule::None, _) => String::new(),
        (schedule, recompute) => format!(" with --schedule {schedule} --recompute {recompute}"),
    };
    let replicas = match row.state.is_sharded() {
        true => format!(", {}", counted(row.replicas, "replica")),
        false => String::new(),
    };
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
