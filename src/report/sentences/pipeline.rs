//! Sentences about the pipeline of the stages, about the memory that other pipelines would need, and
//! about another micro-batch.

use super::{Amount, Count, Sentence, code, fill, in_parentheses, name, say, stages, text};
use crate::memory::{Accumulator, Recompute, Schedule, StatePlace};
use crate::model::Framework;
use crate::report::step::three_digits;
use crate::report::{BestSplit, Estimate, PipelineFacts, Report, StageUpdate};
use crate::wording::{counted, grouped};

/// Says which pipeline was chosen and why, and how the profile was recorded.
pub(in crate::report) fn pipeline(report: &Report) -> Vec<Sentence> {
    let Some(facts) = &report.pipeline else {
        return Vec::new();
    };
    let mut lines = vec![chosen(facts)];
    lines.extend(recorded(facts));
    lines.extend(by_default(facts));
    lines.extend(no_state(facts));
    let fullest = report.split.as_ref().and_then(|split| split.fullest());
    lines.extend(fullest.and_then(|stage| {
        let update = stage.pipeline.as_ref()?.update.as_ref()?;
        update.decides.then(|| deciding(stage.stage, update))
    }));
    lines
}

/// Names the place of optimizer state, unless it is on the chip and not sharded.
fn elsewhere(facts: &PipelineFacts) -> String {
    let mut text = String::new();
    if facts.pipeline.state != StatePlace::OnChip {
        text += &format!(", optimizer state {}", facts.pipeline.state);
    }
    if facts.pipeline.state.is_sharded() {
        text += &format!(" over {} replicas", facts.pipeline.replicas);
    }
    text
}

/// Says that the profile has no optimizer state to move elsewhere.
fn no_state(facts: &PipelineFacts) -> Option<Sentence> {
    let is_none = facts.state_bytes == Some(0);
    is_none.then(|| {
        say(format!(
            "the profile has no optimizer state, so {} only makes updates and passes count \
             separately",
            facts.pipeline.state
        ))
    })
}

/// Says that the update of weights decides the peak, so that moving state gains nothing.
fn deciding(stage: u32, update: &StageUpdate) -> Sentence {
    let of = match update.weights.as_slice() {
        [] => Sentence::default(),
        [one] => fill(" of {}", [name(one)]),
        [first, ..] => {
            let count = text(update.weights.len());
            fill(" of {} weights at once, such as {}", [count, name(first)])
        }
    };
    say(format!("stage {stage} needs the most memory in the update"))
        .and(of)
        .and(fill(
            ": {} on tile {}, {} of them for the update; the passes need {}. Split into N parts \
             (serialised), the update would need an Nth of that",
            [
                Amount(update.bytes),
                text(update.tile),
                Amount(update.taken),
                Amount(update.in_passes),
            ],
        ))
}

/// Names the pipeline, and says whether the tool chose it.
fn chosen(facts: &PipelineFacts) -> Sentence {
    let why = match (facts.schedule_by_default, facts.recompute_by_default) {
        _ if facts.pipeline.schedule == Schedule::None => return named(facts),
        (false, false) => "as requested",
        (true, true) => "chosen automatically",
        (true, false) => "the schedule chosen automatically",
        (false, true) => "the recomputation chosen automatically",
    };
    let found = match facts.state_is_first_fit {
        true => "; the optimizer state in the first place of --optimizer-state auto that fits",
        false => "",
    };
    named(facts).text(format!(" ({why}{found})"))
}

/// Names the pipeline; if there is none, says why.
pub(in crate::report) fn named(facts: &PipelineFacts) -> Sentence {
    let framework = facts.framework;
    if facts.pipeline.schedule == Schedule::None {
        let why = match (facts.schedule_by_default, facts.is_training) {
            (false, _) => {
                " as requested: it adds no pipeline costs to the one-IPU compilation".to_string()
            }
            (true, false) => " since inference keeps nothing for several batches".to_string(),
            (true, true) => format!(
                " since pipelines of {framework} are written by hand, so popliner cannot know what \
                 they keep"
            ),
        };
        let elsewhere = elsewhere(facts);
        let line = say(format!("pipeline: schedule none{elsewhere},{why}"));
        return match facts.schedule_by_default && facts.is_training {
            true => line.and(fill("; see {}", [code("--schedule")])),
            false => line,
        };
    }
    let what = match facts.is_training {
        true => format!(", recompute {}", facts.pipeline.recompute),
        false => String::new(),
    };
    let adds_accumulators = facts.trains() && !facts.recorded_accumulation;
    let accumulators = match (adds_accumulators, facts.pipeline.accumulator) {
        (false, _) => "",
        (true, Accumulator::AsWeight) => ", accumulators like their weights",
        (true, Accumulator::Float16) => ", 16-bit accumulators",
        (true, Accumulator::Float32) => ", 32-bit accumulators",
    };
    say(format!(
        "pipeline: schedule {}{what}{accumulators}{}",
        facts.pipeline.schedule,
        elsewhere(facts)
    ))
}

/// Says which numbers are less exact because of how the profile was recorded.
fn recorded(facts: &PipelineFacts) -> Option<Sentence> {
    let has_state_elsewhere = facts.recorded_state_off_chip || facts.recorded_state_sharded;
    let is_usual = facts.recorded_accumulation && !facts.recorded_recomputation;
    if !facts.trains() || is_usual && !has_state_elsewhere {
        return None;
    }
    let with = |is_so| if is_so { "with" } else { "without" };
    let line = say(format!(
        "recorded {} gradient accumulation and {} recomputation",
        with(facts.recorded_accumulation),
        with(facts.recorded_recomputation)
    ));
    let line = match (facts.recorded_state_off_chip, facts.recorded_state_sharded) {
        (false, false) => line,
        (true, false) => line.text(", and with tensors that are loaded from outside the IPUs"),
        (false, true) => line.text(", and with tensors that are gathered from replicas"),
        (true, true) => line.text(
            ", and with tensors that are loaded from outside the IPUs and gathered from replicas",
        ),
    };
    let accumulation = "accumulators are added for the weights that are updated, and gradients \
                        end with the passes";
    let recomputation = "the profile has only the activations that recomputation keeps";
    Some(
        match (facts.recorded_accumulation, facts.recorded_recomputation) {
            (false, false) => line.text(format!(": {accumulation}")),
            (true, false) => line.text(": the profile has these only while they are used"),
            (true, true) => line.text(format!(": {recomputation}")),
            (false, true) => line.text(format!(": {accumulation}; {recomputation}")),
        },
    )
}

/// Says how to turn on recomputation if the tool chose it, and what the split needs without it.
fn by_default(facts: &PipelineFacts) -> Option<Sentence> {
    let bytes = facts.without_recomputation?;
    let is_ours = facts.recompute_by_default && facts.pipeline.recompute != Recompute::None;
    let head = match facts.framework {
        _ if !is_ours => return None,
        Framework::Poptorch => "PopTorch recomputes by itself",
        _ => "turn recomputation on, as the configuration of --emit does",
    };
    Some(fill(
        "{}; without it this split needs {} on its fullest tile ({})",
        [text(head), Amount(bytes), code("--recompute none")],
    ))
}

/// Returns a line for each other pipeline, if the split fits in the chosen one.
pub(in crate::report) fn beside_what_fits(facts: &PipelineFacts) -> Vec<Sentence> {
    let line = |other: &BestSplit| match other.fits {
        true => needing(other, " the best split "),
        false => other_split(other),
    };
    facts.alternatives.iter().map(line).collect()
}

/// Says whether the best split with changed options fits, its memory, and the time of a step.
pub(in crate::report) fn other_split(alternative: &BestSplit) -> Sentence {
    match alternative.fits {
        true => needing(alternative, " it fits: the best split "),
        false => needing(alternative, " it does not fit: the best split "),
    }
}

/// Gives the memory that the best split needs with other options, and the time of its step.
fn needing(alternative: &BestSplit, verdict: &str) -> Sentence {
    let bytes = Amount(alternative.fullest_tile_bytes);
    let split = [
        code(&*alternative.options),
        text(verdict),
        stages(&alternative.stages),
        bytes,
    ];
    fill("with {}{}{} needs {} ", split)
        .and(in_parentheses(alternative.change))
        .text(" on its fullest tile")
        .and_if(time(alternative))
}

/// Gives the time of a step, if the split fits.
fn time(alternative: &BestSplit) -> Option<Sentence> {
    let step = alternative.step.as_ref().filter(|_| alternative.fits)?;
    let time = say(format!(
        ", and a step of {} takes {} ms",
        counted(step.micro_batches, "micro-batch"),
        three_digits(step.milliseconds?)
    ));
    let bytes = step.streamed_bytes;
    let streamed = bytes.filter(|_| step.streaming_is_counted == Some(false));
    let more = " and the time to load and store {} outside the IPUs";
    Some(time.and_if(streamed.map(|bytes| fill(more, [Amount(bytes)]))))
}

impl Estimate {
    /// Adds to a heading that the numbers are an estimate.
    pub(in crate::report) fn of_heading(self, heading: &str) -> String {
        format!(
            "{heading}, by an estimate for micro-batches of {}",
            grouped(self.micro_batch)
        )
    }

    /// Says that the numbers are an estimate, and gives the largest micro-batch that fits.
    pub(in crate::report) fn sentences(&self) -> [Sentence; 2] {
        let numbers = [Count(self.micro_batch), Count(self.recorded_micro_batch)];
        let largest = match self.largest_micro_batch {
            Some(largest) => fill(
                "the largest micro-batch that fits, by the same estimate, is {}",
                [Count(largest)],
            ),
            None => say("not even a micro-batch of 1 fits, by the same estimate"),
        };
        let what = "this is an estimate for micro-batches of {}, and the profile was recorded with \
                    {}: compile it to be sure";
        [fill(what, numbers), largest]
    }
}
