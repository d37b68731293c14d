//! Sentences about the pipeline that runs the split, the time of a step in this pipeline, and the
//! memory that splits in other pipelines would need.

use crate::{
    memory::{Accumulator, Recompute, Schedule, StatePlace},
    model::Framework,
    report::phrases::{Amount, Count, code, in_parentheses, name, stages},
    report::step::three_digits,
    report::{BestSplit, PipelineFacts, Report, StepFacts},
    wording::{counted, join},
};

/// Returns the sentences about the pipeline that runs the split: who chose it, how the profile was
/// recorded and which bytes are therefore less exact, and whether the weight update determines the
/// peak.
pub fn pipeline(report: &Report) -> Vec<String> {
    let Some(facts) = &report.pipeline else {
        return Vec::new();
    };
    [
        Some(chosen(report, facts)),
        recorded(facts),
        by_default(facts),
        (facts.state_bytes == Some(0)).then(|| {
            format!(
                "the profile has no optimizer state, so {} only makes updates and passes count \
                 separately",
                facts.pipeline.state
            )
        }),
        deciding(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the sentence which says that the fullest stage needs more memory in the weight update
/// than in the forward and backward passes. Returns `None` if the passes need more, or if optimizer
/// state is neither off the chip nor sharded over replicas.
fn deciding(report: &Report) -> Option<String> {
    let stage = report.split.as_ref()?.fullest()?;
    let update = stage.update().filter(|update| update.decides)?;
    let of = match update.weights.as_slice() {
        [] => String::new(),
        [one] => format!(" of {}", name(one)),
        [first, .., _] => format!(
            " of {} weights at once, such as {}",
            update.weights.len(),
            name(first)
        ),
    };
    Some(format!(
        "stage {} needs the most memory in the update{of}: {} on tile {}, {} of them for the update; \
         the passes need {}. Split into N parts (serialised), the update would need an Nth of that",
        stage.stage,
        Amount(update.bytes),
        update.tile,
        Amount(update.taken),
        Amount(update.in_passes)
    ))
}

/// Returns the sentence that names the pipeline, and says whether the user or popliner chose it.
fn chosen(report: &Report, facts: &PipelineFacts) -> String {
    let by_turns = format!(
        "layers run {} times in a forward pass: sharded, one IPU at a time",
        facts.runs
    );
    let why = match (facts.schedule_by_default, facts.recompute_by_default) {
        _ if facts.pipeline.schedule == Schedule::None => return pipeline_name(facts),
        _ if facts.runs > 1 => &by_turns,
        (false, false) => "as requested",
        (true, true) => "chosen automatically",
        (true, false) => "the schedule chosen automatically",
        (false, true) => "the recomputation chosen automatically",
    };
    let step = report.step.as_ref();
    let place = match facts.pipeline.state {
        StatePlace::OnChip => "",
        // Give no reason why optimizer state is off the chip if the time of a step includes its
        // transfers: the search may have chosen this place to save time rather than memory.
        StatePlace::OffChip if step.is_some_and(|step| step.streaming_is_counted == Some(true)) => {
            ""
        }
        _ if !facts.state_by_default || report.given.is_some() || !report.has_verdict() => "",
        _ if report.fitting_split().is_some() => {
            "; with optimizer state on the chip it does not fit"
        }
        _ => "; the peak is the lowest",
    };
    format!("{} ({why}{place})", pipeline_name(facts))
}

/// Returns the words that name the schedule, the recomputation, the type of accumulators and the
/// place of optimizer state. For the schedule `none`, the words say why there is no pipeline.
pub fn pipeline_name(facts: &PipelineFacts) -> String {
    let (framework, schedule) = (facts.recording.framework, facts.pipeline.schedule);
    let elsewhere = match facts.pipeline.state {
        StatePlace::OnChip => String::new(),
        state if state.is_sharded() => {
            format!(
                ", optimizer state {state} over {} replicas",
                facts.pipeline.replicas
            )
        }
        state => format!(", optimizer state {state}"),
    };
    if schedule == Schedule::None {
        let why = match (facts.schedule_by_default, facts.is_training) {
            (false, _) => {
                "as requested: it adds no pipeline costs to the one-IPU compilation".to_string()
            }
            (true, false) => "since inference keeps nothing for several batches".to_string(),
            (true, true) => format!(
                "since pipelines of {framework} are written by hand, so popliner cannot know what \
                 they keep; see {}",
                code("--schedule")
            ),
        };
        return format!("pipeline: schedule none{elsewhere}, {why}");
    }
    let recompute = if facts.is_training {
        format!(", recompute {}", facts.pipeline.recompute)
    } else {
        String::new()
    };
    let accumulators = match facts.pipeline.accumulator {
        _ if !facts.trains() || facts.recording.accumulates => "",
        Accumulator::AsWeight => ", accumulators in the types of their weights by --accumulator",
        Accumulator::Float16 => ", 16-bit accumulators",
        Accumulator::Float32 => ", 32-bit accumulators",
    };
    format!("pipeline: schedule {schedule}{recompute}{accumulators}{elsewhere}")
}

/// Returns the sentence that says what the profile lacks because of how it was recorded, and what
/// the prediction adds for this. Returns `None` for inference, and for a profile that was recorded
/// with gradient accumulation, without recomputation, and with all tensors on the chip.
fn recorded(facts: &PipelineFacts) -> Option<String> {
    let recording = &facts.recording;
    let places = [
        (recording.loads_state, "loaded from outside the IPUs"),
        (recording.gathers_state, "gathered from replicas"),
    ]
    .into_iter()
    .filter_map(|(is_so, place)| is_so.then_some(place));
    let places = join(places, " and ");
    let is_usual = recording.accumulates && !recording.recomputes;
    if !facts.trains() || is_usual && places.is_empty() {
        return None;
    }
    let state = match &*places {
        "" => String::new(),
        places => format!(", and with tensors that are {places}"),
    };
    let accumulation = "accumulators are added for the weights that are updated, and gradients \
                        end with the passes";
    let recomputation = "the profile has only the activations that recomputation keeps";
    let so = match (recording.accumulates, recording.recomputes) {
        (false, false) => accumulation.to_string(),
        (true, false) => "the profile has these only while they are used".to_string(),
        (true, true) => recomputation.to_string(),
        (false, true) => format!("{accumulation}; {recomputation}"),
    };
    let with = |is_so| if is_so { "with" } else { "without" };
    Some(format!(
        "recorded {} gradient accumulation and {} recomputation{state}: {so}",
        with(recording.accumulates),
        with(recording.recomputes)
    ))
}

/// Returns the sentence which says that the pipeline recomputes activations by default, with the
/// bytes that the split needs without recomputation. Returns `None` if the user chose the
/// recomputation, or if nothing is recomputed.
fn by_default(facts: &PipelineFacts) -> Option<String> {
    let is_ours = facts.recompute_by_default && facts.pipeline.recompute != Recompute::None;
    let head = match facts.recording.framework {
        _ if !is_ours => return None,
        Framework::Poptorch => "PopTorch recomputes by itself",
        _ => "turn recomputation on, as the configuration of --emit does",
    };
    Some(format!(
        "{head}; without it this split needs {} on its fullest tile ({})",
        Amount(facts.without_recomputation?),
        code("--recompute none")
    ))
}

/// Returns a sentence about the best split for each other choice of schedule, recomputation or
/// place of optimizer state that was tried.
pub fn other_pipelines(facts: &PipelineFacts) -> Vec<String> {
    let sentence = |other: &BestSplit| {
        if other.fits {
            needing(other, "")
        } else {
            other_split(other)
        }
    };
    facts.alternatives.iter().map(sentence).collect()
}

/// Returns the sentence which says that several replicas of a smaller pipeline are faster, with the
/// bytes of gradients that the replicas exchange. Returns `None` if replicas are not faster.
pub fn with_replicas(report: &Report) -> Option<String> {
    let facts = report.pipeline.as_ref()?;
    let split = facts.with_replicas.as_ref()?;
    let step = split.step.as_ref()?;
    let batches = counted(
        step.micro_batches.saturating_mul(split.replicas),
        "micro-batch",
    );
    let time = match (step.samples_per_second, step.milliseconds) {
        (Some(samples), _) => format!("process {} samples a second", three_digits(samples)),
        (None, Some(time)) => format!("process {batches} in {} ms", three_digits(time)),
        (None, None) => format!("process {batches} in {} cycles", Count(step.cycles)),
    };
    let exchange = if facts.is_training {
        format!(
            ", beside the time to exchange {} of gradients in each step",
            Amount(facts.gradient_bytes.unwrap_or(0))
        )
    } else {
        String::new()
    };
    Some(format!(
        "{} on {} each {time}{exchange} ({})",
        counted(split.replicas, "replica"),
        counted(u64::from(split.ipus) / split.replicas.max(1), "IPU"),
        code(&*split.options)
    ))
}

/// Returns the sentence about `alternative`, the best split with other command-line options:
/// whether the split fits, how many bytes its fullest tile needs, and how long a step takes.
pub fn other_split(alternative: &BestSplit) -> String {
    let verdict = if alternative.fits {
        " it fits:"
    } else {
        " it does not fit:"
    };
    needing(alternative, verdict)
}

/// Returns the sentence about the memory and time of `alternative`, the best split with other
/// command-line options. The sentence names these options, and continues with the words `verdict`,
/// such as ` it fits:`.
pub fn needing(alternative: &BestSplit, verdict: &str) -> String {
    let state = match alternative.state {
        StatePlace::OnChip => String::new(),
        _ if alternative.options.contains("--optimizer-state") => String::new(),
        state => format!(" and optimizer state {state}"),
    };
    let step = alternative.step.as_ref().filter(|_| alternative.fits);
    let time = step.and_then(time_of).map(|time| format!(", and {time}"));
    let streamed = step
        .filter(|step| time.is_some() && step.streaming_is_counted == Some(false))
        .and_then(time_to_stream);
    format!(
        "with {}{state}{verdict} the best split {} needs {} {} on its fullest tile{}{}",
        code(&*alternative.options),
        stages(&alternative.stages),
        Amount(alternative.fullest_tile_bytes),
        in_parentheses(alternative.change),
        time.unwrap_or_default(),
        streamed.map_or(String::new(), |streamed| format!(" and {streamed}"))
    )
}

/// Returns the words that say how long a step takes; `None` if the time is unknown.
pub fn time_of(step: &StepFacts) -> Option<String> {
    let (batches, time) = (micro_batches(step), three_digits(step.milliseconds?));
    Some(format!("a step of {batches} takes {time} ms"))
}

/// Returns the words for the time that a step takes to load and store optimizer state outside the
/// IPUs, with the number of bytes. Returns `None` if all optimizer state is on the chip.
fn time_to_stream(step: &StepFacts) -> Option<String> {
    Some(format!(
        "the time to load and store {} outside the IPUs",
        Amount(step.streamed_bytes?)
    ))
}

/// Returns the sentences that say how long a step of the split takes, and what takes this time. The
/// list is empty if the split does not fit or the profile has no cycles.
pub fn step(report: &Report) -> Vec<String> {
    let (Some(split), Some(step)) = (report.fitting_split(), &report.step) else {
        return Vec::new();
    };
    [
        Some(time_of_step(step)),
        (split.stages.len() > 1).then(|| made_up_of(step, report.is_sequential())),
        streaming(step),
        with_replicas(report).filter(|_| report.plan.is_none()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the number of micro-batches of a step as text. If the user gave a number that is too low
/// for the pipeline, the text says that the number was raised.
pub fn micro_batches(step: &StepFacts) -> String {
    let batches = counted(step.micro_batches, "micro-batch");
    match step.given_micro_batches {
        Some(given) if given < step.micro_batches => {
            format!("{batches} (raised from {given} to what the pipeline needs)")
        }
        _ => batches,
    }
}

fn time_of_step(step: &StepFacts) -> String {
    let why = match step.given_micro_batches {
        None if step.micro_batches > 1 => " (assumed; give your number with --micro-batches)",
        _ => "",
    };
    let mut line = format!(
        "a step of {}{why} takes {} cycles",
        micro_batches(step),
        Count(step.cycles)
    );
    if let Some(milliseconds) = step.milliseconds {
        line += &format!(", {} ms", three_digits(milliseconds));
    }
    if let Some(samples) = step.samples_per_second {
        line += &format!(", {} samples a second", three_digits(samples));
    }
    match (step.replicas, step.samples_per_second) {
        (1, _) => line,
        (replicas, Some(_)) => format!("{line} on {replicas} replicas"),
        (replicas, None) => format!("{line} on each of {replicas} replicas"),
    }
}

fn made_up_of(step: &StepFacts, is_sequential: bool) -> String {
    let share = |cycles: u64| {
        let share = cycles as f64 * 100.0 / step.cycles.max(1) as f64;
        format!("{share:.1} %")
    };
    let copies = match step.copy_cycles {
        Some(copies) if copies == 0 || copies.saturating_mul(1000) < step.cycles => String::new(),
        Some(copies) => format!(", copies between IPUs {}", share(copies)),
        None => {
            ", the time of copies between IPUs is unknown without a clock frequency".to_string()
        }
    };
    let update = match step.update_cycles {
        0 => String::new(),
        update => format!(", the update {}", share(update)),
    };
    let stages = if is_sequential {
        "one stage works at a time".to_string()
    } else {
        format!(
            "a pipeline that is always full would take {:.1} % of the step, filling and draining take \
             {}",
            step.efficiency * 100.0,
            share(step.ramp_cycles)
        )
    };
    format!(
        "stage {} is the slowest; {stages}{copies}{update}",
        Count(step.slowest_stage.into())
    )
}

/// Returns the sentence that says how many bytes of optimizer state a step loads and stores outside
/// the IPUs, and whether the time of the step includes these transfers. Returns `None` if all
/// optimizer state is on the chip.
fn streaming(step: &StepFacts) -> Option<String> {
    let time = time_to_stream(step)?;
    Some(match step.streaming_is_counted {
        Some(true) => format!("this includes {time}"),
        _ => format!(
            "this does not include {time}: give {}",
            code("--streaming-bandwidth")
        ),
    })
}
