//! The pipeline that stages are weighed for, and what others would need.

use super::{Sentence, say};
use crate::memory::{Accumulator, Recompute, Schedule};
use crate::model::Framework;
use crate::report::{PipelineAlternative, PipelineFacts, Report};

/// What was chosen and why, and how the profile was recorded.
pub(in crate::report) fn pipeline(report: &Report) -> Vec<Sentence> {
    let Some(facts) = &report.pipeline else {
        return Vec::new();
    };
    let mut lines = vec![chosen(facts)];
    lines.extend(recorded(facts));
    lines.extend(by_default(facts));
    lines
}

fn chosen(facts: &PipelineFacts) -> Sentence {
    let framework = facts.framework;
    if facts.schedule == Schedule::None {
        let why = match (facts.schedule_by_default, facts.is_training) {
            (false, _) => "stages are weighed as parts of the one-IPU compilation".to_string(),
            (true, false) => "inference keeps nothing for several batches".to_string(),
            (true, true) => format!(
                "pipelines of {framework} are written by hand, and what they keep is not known"
            ),
        };
        let line = say(format!("pipeline: schedule none, since {why}"));
        return match facts.schedule_by_default && facts.is_training {
            true => line.text("; see ").code("--schedule"),
            false => line,
        };
    }
    let what = match facts.is_training {
        true => format!(", recompute {}", facts.recompute),
        false => String::new(),
    };
    let why = match (facts.schedule_by_default, facts.recompute_by_default) {
        (false, false) => "as requested".to_string(),
        (true, _) => format!("usual for {framework} training"),
        (false, true) => "the schedule as requested".to_string(),
    };
    let adds_accumulators = facts.trains() && !facts.recorded_accumulation;
    let accumulators = match (adds_accumulators, facts.accumulator) {
        (false, _) => "",
        (true, Accumulator::AsWeight) => ", accumulators as their weights",
        (true, Accumulator::Float16) => ", accumulators of 16 bits",
        (true, Accumulator::Float32) => ", accumulators of 32 bits",
    };
    say(format!(
        "pipeline: schedule {}{what}{accumulators} ({why})",
        facts.schedule
    ))
}

/// What is less exact because of how the profile was recorded.
fn recorded(facts: &PipelineFacts) -> Option<Sentence> {
    if !facts.trains() {
        return None;
    }
    let with = |is_so| if is_so { "with" } else { "without" };
    let line = say(format!(
        "recorded {} gradient accumulation and {} recomputation",
        with(facts.recorded_accumulation),
        with(facts.recorded_recomputation)
    ));
    let accumulation = "accumulators are added for the weights that are updated, beside \
                        gradients that may be kept until the update";
    let recomputation = "it has only what recomputation keeps";
    Some(
        match (facts.recorded_accumulation, facts.recorded_recomputation) {
            (true, false) => line,
            (false, false) => line.text(format!(": {accumulation}")),
            (true, true) => line.text(format!(": {recomputation}")),
            (false, true) => line.text(format!(": {accumulation}; {recomputation}")),
        },
    )
}

/// What must be set in the framework for a default.
fn by_default(facts: &PipelineFacts) -> Option<Sentence> {
    let bytes = facts.without_recomputation?;
    let is_ours = facts.recompute_by_default && facts.recompute != Recompute::None;
    let head = match facts.framework {
        _ if !is_ours => return None,
        Framework::Poptorch => "PopTorch recomputes by itself",
        _ => "recomputation must be turned on, as the configuration of --emit does",
    };
    let line = say(format!("{head}; without it this split needs ")).amount(bytes);
    Some(
        line.text(" on its fullest tile (")
            .code("--recompute none")
            .text(")"),
    )
}

/// A line for each other pipeline that was looked at.
pub(in crate::report) fn alternatives(facts: &PipelineFacts) -> Vec<Sentence> {
    facts.alternatives.iter().map(alternative).collect()
}

fn alternative(own: &PipelineAlternative) -> Sentence {
    let sign = if own.change < 0 { "-" } else { "+" };
    let verdict = if own.fits {
        "it fits"
    } else {
        "it does not fit"
    };
    say("with ")
        .code(&*own.options)
        .text(format!(" {verdict}: the best split "))
        .stages(&own.stages)
        .text(" needs ")
        .amount(own.fullest_tile_bytes)
        .text(format!(" ({sign}"))
        .bytes(own.change.unsigned_abs())
        .text(") on its fullest tile")
}
