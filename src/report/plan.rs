//! Whole configurations: how many IPUs, which pipeline, which split.

use super::fields::{Field, fields, items};
use super::sentences::{Sentence, say};
use super::table::{Cell, ForPeople, Table};
use super::text::ipus;
use super::{LayerNames, Report};
use crate::memory::{Pipeline, Recompute, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configurations that fit, of which no other is better in all of IPUs, time and memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFacts {
    /// How many IPUs there are.
    pub max_ipus: u32,
    /// The numbers of IPUs that were tried.
    pub ipus_tried: Vec<u32>,
    /// The pipelines that were tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// The configurations, the recommended one first: that which gets the most
    /// micro-batches done on all IPUs, with as many replicas as there are IPUs for, and
    /// without cycles the one with the fewest IPUs. Empty where nothing fits.
    pub rows: Vec<PlanRow>,
}

/// A configuration that fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRow {
    /// The IPUs of one replica: one for each stage.
    pub ipus: u32,
    /// How many replicas there are IPUs for.
    pub replicas: u32,
    /// The order of work.
    pub schedule: Schedule,
    /// What is recomputed.
    pub recompute: Recompute,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile_bytes: u64,
    /// The lowest limit of its IPUs.
    pub limit: u64,
    /// What that leaves free.
    pub free: i64,
    /// Cycles of a step of one replica; `null` without cycles in the profile.
    pub cycles: Option<u64>,
    /// The micro-batches of that step.
    pub micro_batches: Option<u64>,
    /// The time of the step, where the clock is known.
    pub milliseconds: Option<f64>,
    /// The part of the step that a pipeline which is always full would take.
    pub efficiency: Option<f64>,
    /// Samples of all replicas in a second, where the samples of a micro-batch and the
    /// clock are known.
    pub samples_per_second: Option<f64>,
    /// Does the step take no more than `--max-step-ms`?
    pub is_within: bool,
    /// Is its step shown to be the shortest of all splits with as much memory, or less, in
    /// this pipeline?
    pub is_shortest: bool,
    /// The layers of each stage.
    pub stages: Vec<LayerNames>,
    /// Where each stage ends, in positions of the layer order; the end exclusive.
    pub ends: Vec<u32>,
    /// The command that gives it alone; empty without a command.
    pub command: String,
}

const PLAN: [Field<PlanRow>; 14] = fields![PlanRow;
    Always "IPUs" Count (.ipus),
    Always "Replicas" Count (.replicas),
    Always "Schedule" Text (|own, _, _| own.schedule.to_string().into()),
    Always "Recompute" Text (|own, _, _| own.recompute.to_string().into()),
    Always "Peak memory" Bytes (.fullest_tile_bytes),
    Always "Of the limit" Share (|own, _, _| Cell::Share(own.fullest_tile_bytes, own.limit)),
    Always "Micro-batches" Count (.micro_batches),
    Always "Cycles of a step" Count (.cycles),
    Always "Step (ms)" Text (|own, _, _| decimals(own.milliseconds, 3)),
    Always "Efficiency" Text (|own, _, _| decimals(own.efficiency, 3)),
    Always "Samples a second" Text (|own, _, _| decimals(own.samples_per_second, 1)),
    Always "In time" Text (.is_within),
    Always "Layers of each stage" Layers (.stages),
    Always "Command" Text (.command),
];

const PLAN_FOR_PEOPLE: [ForPeople; 13] = [
    ("IPUs", true),
    ("Replicas", true),
    ("Schedule", true),
    ("Recompute", true),
    ("Peak memory", true),
    ("Of the limit", true),
    ("Micro-batches", false),
    ("Cycles of a step", false),
    ("Step (ms)", true),
    ("Efficiency", true),
    ("Samples a second", false),
    ("In time", false),
    ("Layers of each stage", true),
];

/// A row for each configuration.
pub fn table(report: &Report) -> Table {
    Table {
        for_people: &PLAN_FOR_PEOPLE,
        ..Table::of("plan", &[&PLAN], report, items!(report, plan?.rows))
    }
}

fn decimals(number: Option<f64>, decimals: usize) -> Cell {
    number.map(|number| format!("{number:.decimals$}")).into()
}

/// What is recommended and why, and what was not tried.
pub(super) fn sentences(report: &Report) -> Vec<Sentence> {
    let Some(plan) = &report.plan else {
        return Vec::new();
    };
    let mut lines: Vec<Sentence> = plan
        .rows
        .first()
        .map(|row| recommended(plan, row))
        .into_iter()
        .collect();
    if plan.rows.is_empty() {
        lines.push(say(format!(
            "no configuration fits on {}",
            ipus(plan.max_ipus.into())
        )));
    }
    if plan.rows.iter().any(|row| row.cycles.is_none()) {
        lines.push(say(
            "the profile has no cycles, so that time is not known: record it with \
             \"profiler.includeCycleEstimates\":\"true\", or run the model",
        ));
    }
    lines.push(tried(plan));
    lines
}

/// Among what the configurations were found, and what was left out.
fn tried(plan: &PlanFacts) -> Sentence {
    let numbers: Vec<String> = plan.ipus_tried.iter().map(u32::to_string).collect();
    let schedules: Vec<String> = distinct(
        plan.pipelines_tried
            .iter()
            .map(|own| own.schedule.to_string()),
    );
    let recomputations = plan
        .pipelines_tried
        .iter()
        .map(|own| own.recompute.to_string());
    say(format!(
        "tried: {} IPUs, schedule {}, recompute {}; not tried: optimizer state off-chip or \
         sharded, accumulators off-chip, checkpoints of single layers, other micro-batches",
        numbers.join(", "),
        schedules.join(", "),
        distinct(recomputations).join(", ")
    ))
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn recommended(plan: &PlanFacts, row: &PlanRow) -> Sentence {
    let line = say(format!("recommended: {} ", ipus(row.ipus.into()))).stages(&row.stages);
    let replicas = match row.replicas {
        0 | 1 => String::new(),
        replicas => {
            format!(", {replicas} replicas (the exchange of gradients between them is not counted)")
        }
    };
    let why = match row.cycles {
        None => "the fewest IPUs",
        Some(_) => "the most micro-batches in a time",
    };
    line.text(format!(
        "{replicas}, {why} on {}",
        ipus(plan.max_ipus.into())
    ))
}
