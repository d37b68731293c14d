//! Whole configurations: the number of IPUs, the pipeline, and the split.

use super::cell::Cell;
use super::fields::{Field, fields, items};
use super::sentences::{Sentence, nearly_full, say};
use super::step::three_digits;
use super::table::Table;
use super::text::counted;
use super::{LayerNames, Report};
use crate::memory::{Pipeline, Recompute, Schedule, StatePlace};
use crate::wording::listed;
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
    pub rows: Vec<PlanRow>,
    /// Is the first row recommended? If nothing fits with the requested place of optimizer state,
    /// rows with another place are not recommended.
    #[serde(default)]
    pub has_recommendation: bool,
}

impl PlanFacts {
    /// Returns the recommended configuration.
    pub fn recommended(&self) -> Option<&PlanRow> {
        self.rows.first().filter(|_| self.has_recommendation)
    }
}

/// A configuration that fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRow {
    /// The IPUs of one replica: one for each stage.
    pub ipus: u32,
    /// Number of replicas that the IPUs are enough for.
    pub replicas: u32,
    /// The order in which stages work on micro-batches.
    pub schedule: Schedule,
    /// The activations that are recomputed.
    pub recompute: Recompute,
    /// The place of optimizer state. Sharded state is divided among all replicas.
    pub state: StatePlace,
    /// Bytes that a step of one replica loads from memory outside the IPUs and stores there; `null`
    /// if all state is on the chip, or without cycles.
    pub streamed_bytes: Option<u64>,
    /// Is some time unknown and not in the cycles, such as state that is loaded without
    /// `--streaming-bandwidth`, or gathered from replicas? Such rows come last and are not compared
    /// with the others.
    pub lacks_time: bool,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The stage with the fewest free bytes below its limit.
    pub fullest_stage: u32,
    /// Bytes on the fullest tile of each stage.
    pub stage_bytes: Vec<u64>,
    /// The stage that takes the most cycles for a micro-batch; `null` without cycles.
    pub slowest_stage: Option<u32>,
    /// The lowest limit of the configuration's IPUs.
    pub limit: u64,
    /// `limit` less `fullest_tile_bytes`.
    pub free: i64,
    /// Cycles of a step of one replica; `null` without cycles in the profile.
    pub cycles: Option<u64>,
    /// The micro-batches of the step.
    pub micro_batches: Option<u64>,
    /// The time of the step, in milliseconds; `null` if the clock is unknown.
    pub milliseconds: Option<f64>,
    /// The share of the step that an always full pipeline would take.
    pub efficiency: Option<f64>,
    /// Samples of all replicas per second; `null` if the samples of a micro-batch or the clock are
    /// unknown.
    pub samples_per_second: Option<f64>,
    /// Does the step take no more than `--max-step-ms`?
    pub is_within: bool,
    /// Is the step proven to be the shortest of all splits in this pipeline with at most as much
    /// memory?
    pub is_shortest: bool,
    /// The layers of each stage.
    pub stages: Vec<LayerNames>,
    /// The end of each stage in positions of the layer order, exclusive.
    pub ends: Vec<u32>,
    /// The command that gives only this configuration; empty without a command line.
    pub command: String,
}

const PLAN: [Field<PlanRow>; 19] = fields![PlanRow;
    Always "IPUs" Count (.ipus),
    Always "Replicas" Count (.replicas),
    Always "Schedule" Text (|row, _, _| row.schedule.to_string().into()),
    Always "Recompute" Text (|row, _, _| row.recompute.to_string().into()),
    Always "Peak memory" Bytes (.fullest_tile_bytes),
    Always "Of the limit" Share (|row, _, _| Cell::Share(row.fullest_tile_bytes, row.limit)),
    Always "Micro-batches" Count (.micro_batches),
    Always "Cycles of a step" Count (.cycles),
    Always "Step (ms)" Count (|row, _, _| decimals(row.milliseconds, 3)),
    Always "Efficiency" Count (|row, _, _| decimals(row.efficiency, 3)),
    Always "Samples a second" Count (|row, _, _| decimals(row.samples_per_second, 1)),
    Always "In time" Text (.is_within),
    Always "Layers of each stage" Layers (.stages),
    Always "Command" Text (.command),
    Always "Optimizer state" Text (|row, _, _| row.state.to_string().into()),
    Always "Streamed" Bytes (.streamed_bytes),
    ForPeople "Micro-batch" Count (|row, _, _| row.time_of_micro_batch().into()),
    ForPeople "State" Text (|row, _, _| elsewhere(row).into()),
    Always "Micro-batch (ms)" Count (|row, _, _| decimals(row.milliseconds_of_micro_batch(), 3)),
];

impl PlanRow {
    /// Returns the time of a step divided by its micro-batches, in milliseconds.
    fn milliseconds_of_micro_batch(&self) -> Option<f64> {
        let milliseconds = self.milliseconds?;
        Some(milliseconds / self.micro_batches?.max(1) as f64)
    }

    fn time_of_micro_batch(&self) -> Option<String> {
        let milliseconds = self.milliseconds_of_micro_batch()?;
        Some(format!("{milliseconds:.3} ms"))
    }
}

/// Makes the table of configurations: a row each.
pub fn table(report: &Report) -> Table {
    Table {
        for_people: "IPUs, (Replicas), Schedule, Recompute, Peak memory, Micro-batch, State, Of \
         the limit, (Micro-batches), (Cycles of a step), (Step (ms)), (Efficiency), (Samples a \
         second), (In time), Layers of each stage, Streamed",
        ..Table::of("plan", &PLAN, report, items!(report, plan?.rows))
    }
}

/// Names the place of the optimizer state, unless it is on the chip.
fn elsewhere(row: &PlanRow) -> Option<String> {
    (row.state != StatePlace::OnChip).then(|| row.state.to_string())
}

fn decimals(number: Option<f64>, decimals: usize) -> Cell {
    number.map(|number| format!("{number:.decimals$}")).into()
}

/// Says where the recommended configuration has the most memory and takes the most time, or that
/// nothing fits.
pub(super) fn sentences(report: &Report) -> Vec<Sentence> {
    let Some(plan) = &report.plan else {
        return Vec::new();
    };
    let first = plan.recommended();
    let mut lines: Vec<Sentence> = first.map(bottlenecks).into_iter().collect();
    let full = first.filter(|row| row.ipus > 1);
    lines.extend(full.and_then(|row| nearly_full(row.fullest_tile_bytes, row.limit)));
    if plan.rows.is_empty() {
        lines.push(say(format!(
            "no configuration fits on {}",
            counted(plan.max_ipus, "IPU")
        )));
    }
    if plan.rows.iter().any(|row| row.cycles.is_none()) {
        lines.push(say(
            "the profile has no cycles, so popliner cannot compute times: record it with \
             \"profiler.includeCycleEstimates\":\"true\", or run the model",
        ));
    }
    lines.extend(not_compared(plan));
    lines
}

/// Says which rows are not compared with the others, and why.
fn not_compared(plan: &PlanFacts) -> Option<Sentence> {
    let rows = || plan.rows.iter().filter(|row| row.lacks_time);
    let count = rows().count();
    let is_sharded = rows().any(|row| row.state.is_sharded());
    let is_streamed = rows().any(|row| row.streamed_bytes.is_some());
    let mut why = Vec::new();
    if is_streamed {
        why.push("to load and store state (give --streaming-bandwidth)");
    }
    if is_sharded {
        why.push("to gather state from replicas");
    }
    (count > 0 && !why.is_empty()).then(|| {
        say(format!(
            "the last {} with optimizer state elsewhere {} not compared with the others: the step \
             does not include the time {}",
            counted(count, "row"),
            if count == 1 { "is" } else { "are" },
            why.join(" and ")
        ))
    })
}

/// Says which stage has the most memory, which is the slowest, and how long a step takes.
fn bottlenecks(row: &PlanRow) -> Sentence {
    let mut line = say(format!(
        "stage {} needs the most memory: ",
        row.fullest_stage
    ))
    .amount(row.fullest_tile_bytes)
    .text(" of ")
    .bytes(row.limit);
    if let Some(stage) = row.slowest_stage.filter(|_| row.ipus > 1) {
        line = line.text(format!("; stage {stage} is the slowest"));
    }
    let batches = match row.micro_batches {
        Some(batches) => counted(batches, "micro-batch"),
        None => return line,
    };
    match row.milliseconds {
        Some(time) => line.text(format!(
            "; a step of {batches} takes {} ms",
            three_digits(time)
        )),
        None => line,
    }
}

/// Says which options the search tried, and which it did not.
pub(super) fn tried(report: &Report) -> Option<Sentence> {
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
    Some(say(format!(
        "tried: {numbers} IPUs, schedule {}, recompute {}, optimizer state {}; not tried: other \
         numbers of micro-batches",
        tried(|pipeline| pipeline.schedule.to_string()),
        tried(|pipeline| pipeline.recompute.to_string()),
        tried(|pipeline| pipeline.state.to_string())
    )))
}

/// Says which configuration is recommended, and why.
pub(super) fn recommended(report: &Report) -> Option<Sentence> {
    let plan = report.plan.as_ref()?;
    let row = plan.recommended()?;
    let line = Sentence::default().stages(&row.stages);
    let pipeline = match (row.schedule, row.recompute) {
        (Schedule::None, _) => String::new(),
        (schedule, recompute) => format!(" with --schedule {schedule} --recompute {recompute}"),
    };
    let replicas = match row.state.is_sharded() {
        true => format!(", {}", counted(row.replicas, "replica")),
        false => String::new(),
    };
    let why = match (row.cycles, plan.max_ipus) {
        (None, _) => "the fewest IPUs".to_string(),
        (Some(_), 1) => "the fastest on 1 IPU".to_string(),
        (Some(_), ipus) => format!("the fastest on up to {}", counted(ipus, "IPU")),
    };
    Some(line.text(format!(
        " fits on {}{pipeline}{replicas}: {why}",
        counted(row.ipus, "IPU"),
    )))
}
