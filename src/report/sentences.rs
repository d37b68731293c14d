//! The sentences that several forms of output show, so that each sentence is written only once.
//!
//! The functions build each sentence with `format!`, and insert each value as a [`Phrase`], which
//! every form of output can write in its own way. A sentence begins with a small letter and has no
//! full stop. A form of output that needs a capital letter or a full stop adds it.

mod explain;
mod pipeline;
mod refusal;

pub use explain::*;
pub use pipeline::*;
pub use refusal::*;

use super::{
    BestSplit, CoverageFacts, Phrase, PlanFacts, Proof, Report, Split, Stage,
    phrases::{Amount, Bytes, Count, code, layers, name, nearly_full, stages},
};
use crate::{
    memory::{Pipeline, Schedule, StatePlace},
    model::Framework,
    wording::{capital, counted, join, listed},
};
use rustc_hash::FxHashSet;

/// Returns the heading of a report on a model, which says whether the split fits, and on how many
/// IPUs.
pub fn verdict(report: &Report) -> String {
    let Some(split) = &report.split else {
        return "Memory of the model".to_string();
    };
    let stages = split.stages.len() as u64;
    let ipus = |stages| on_ipus(stages, split.replicas);
    let max_ipus = ipus(split.max_stages.into());
    if split.fits {
        format!("The model fits on {}", ipus(stages))
    } else if !split.unplaced.is_empty() {
        format!(
            "The search found no room on {max_ipus} for {} of the layers",
            split.unplaced.len()
        )
    } else if stages > u64::from(split.max_stages) {
        format!("The split needs {}, and there are {max_ipus}", ipus(stages))
    } else {
        format!("The model does not fit on {max_ipus}")
    }
}

/// Returns the text of a verdict: the layers of each stage of a split, and on how many IPUs the
/// split fits, or why it does not fit. If `fits` is `None`, the report has no verdict, and the text
/// has only the layers.
pub fn split(report: &Report, split: &Split, fits: Option<bool>) -> String {
    let layers = Phrase::Stages((split.stages.iter().map(|stage| stage.layers.clone())).collect());
    match fits {
        None => return layers.to_string(),
        Some(false) => return format!("{layers} {}", shortfall(report, split)),
        Some(true) => {}
    }
    let count = split.stages.len() as u64;
    let advice = match report.framework() {
        _ if count == 1 => ": a pipeline is not needed".to_string(),
        Some(Framework::Poptorch) if !count.is_power_of_two() => format!(
            "; PopTorch needs a power of 2: use {}",
            count.next_power_of_two() * split.replicas
        ),
        _ => String::new(),
    };
    format!(
        "{layers} fits on {}{advice}",
        on_ipus(count, split.replicas)
    )
}

/// Returns the number of IPUs as text. `replicas` replicas with `ipus` IPUs each give, for example,
/// `4 IPUs (2 replicas of 2)`.
fn on_ipus(ipus: u64, replicas: u64) -> String {
    let all = counted(ipus * replicas, "IPU");
    match replicas {
        1 => all,
        _ => format!("{all} ({} of {ipus})", counted(replicas, "replica")),
    }
}

/// Returns the sentence that says which stage has the fewest free bytes on its fullest tile, and
/// how full this tile is. Returns `None` if the split does not fit.
pub fn most_memory(report: &Report) -> Option<String> {
    let stage = report.fitting_split()?.nearest_to_limit()?;
    let tile = &stage.fullest_tile;
    Some(needs_most(stage.stage, tile.bytes, tile.limit) + &format!(" on tile {}", tile.tile))
}

fn needs_most(stage: u32, bytes: u64, limit: u64) -> String {
    let (bytes, limit) = (Amount(bytes), Bytes(limit));
    format!("stage {stage} needs the most memory: {bytes} of {limit}")
}

/// Returns the sentence that the model also fits on fewer IPUs than the split uses. Returns `None`
/// if fewer IPUs are not enough, or if the split does not fit.
pub fn fewer_ipus(report: &Report) -> Option<String> {
    let split = report.fitting_split()?;
    let used = split.stages.len() as u64 * split.replicas;
    let fewest = split.fewest_ipus.filter(|&ipus| u64::from(ipus) < used)?;
    Some(format!(
        "{} {} enough ({})",
        counted(fewest, "IPU"),
        if fewest == 1 { "is" } else { "are" },
        code(format!("--num-ipus {fewest}"))
    ))
}

/// Returns why a split does not fit, as the end of a sentence whose subject is the split, such as
/// `has 2 stages for 1 IPU`.
pub fn shortfall(report: &Report, split: &Split) -> String {
    if !split.unplaced.is_empty() {
        return format!(
            "is as far as the search got; in no stage: {}",
            layers(&split.unplaced)
        );
    }
    let count = split.stages.len();
    if count > split.max_stages as usize {
        return format!(
            "has {} for {}",
            counted(count, "stage"),
            on_ipus(split.max_stages.into(), split.replicas)
        );
    }
    if let Some(given) = &report.given
        && !given.broken_constraints.is_empty()
    {
        return format!("breaks {}", name(given.broken_constraints.join(", ")));
    }
    let Some(Stage {
        stage,
        fullest_tile: tile,
        ..
    }) = split.nearest_to_limit()
    else {
        return String::new();
    };
    format!(
        "{} tile {} of stage {stage} is {} over the limit of {}",
        if split.is_given {
            "does not fit:"
        } else {
            "is the best, but"
        },
        Count(tile.tile.into()),
        Amount(tile.bytes.saturating_sub(tile.limit)),
        Bytes(tile.limit)
    )
}

/// For each layer that exceeds the limit even as a stage of its own, returns a sentence about the
/// bytes that the layer needs.
pub fn too_large(report: &Report, split: &Split) -> Vec<String> {
    let sentences = split.too_large.iter().map(|layer| {
        let meaning = report.pseudo_layers.meaning(&layer.name);
        format!(
            "{}{} by itself needs {} on tile {}, {} over the limit",
            name(capital(&report.pseudo_layers.in_sentence(&layer.name))),
            meaning.map_or(String::new(), |meaning| format!(" ({meaning})")),
            Amount(layer.fullest_tile_bytes),
            layer.fullest_tile,
            Bytes(layer.fullest_tile_bytes.saturating_sub(split.limit))
        )
    });
    sentences.collect()
}

/// Returns the sentence that says what share of the recorded bytes on the fullest tile the memory
/// model attributes to layers, to other operations, and to contents that every stage needs. The
/// sentence also states the share of variables that count in several layers only because an
/// operation on the whole model, such as a norm of all gradients, uses them.
pub fn coverage(coverage: &CoverageFacts) -> String {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    let by_touch = match coverage.by_touch {
        0 => String::new(),
        bytes => format!(" ({} in every place that uses it)", share(bytes.into())),
    };
    format!(
        "{} of the fullest tile of the whole model, tile {} with {}, is attributed: {} to layers, \
         {} to other operations{by_touch}, {} to every stage",
        share(i128::from(coverage.recorded) - i128::from(coverage.rest)),
        coverage.tile,
        Amount(coverage.recorded),
        share(coverage.layers.into()),
        share(coverage.assigned.into()),
        share(coverage.overhead.into())
    )
}

/// Returns the sentence that states the best values of the objectives, on which the integer program
/// and the dynamic program agree. For the objective `time`, the value is the fewest cycles that the
/// slowest stage can take, and the sentence says whether all splits were tried. Returns `None` if
/// the search proved nothing.
pub fn proof(proof: &Proof) -> Option<String> {
    let numbers = join(
        proof
            .objectives
            .iter()
            .map(|number| format!("{} {}", number.objective.key(), number.integer_program)),
        ", ",
    );
    let slowest = "that the slowest stage takes at least";
    let (head, subject) = match (proof.objective == "time", proof.optimal) {
        (false, _) => ("optimal:", "on"),
        (true, true) => (
            "optimal: all splits were tried, or shown to be no faster;",
            slowest,
        ),
        (true, false) => ("not all splits could be tried;", slowest),
    };
    (!numbers.is_empty()).then(|| {
        format!(
            "{head} the integer program and the dynamic program agree {subject} {}",
            name(numbers)
        )
    })
}

/// Returns the sentences about the configuration that `--plan` recommends: which stage needs the
/// most memory, which stage is the slowest, and whether little memory is left. The list is empty if
/// no configuration is recommended.
pub fn bottlenecks(report: &Report) -> Vec<String> {
    let Some(row) = report.plan.as_ref().and_then(|plan| plan.rows.first()) else {
        return Vec::new();
    };
    let bytes = row.bytes_of_fullest_stage();
    let is_pipeline = row.ipus > 1;
    let mut line = needs_most(row.fullest_stage, bytes, row.limit);
    if let Some(step) = &row.step {
        if is_pipeline {
            line += &format!("; stage {} is the slowest", step.slowest_stage);
        }
        line.extend(time_of(step).map(|time| format!("; {time}")));
    }
    [line]
        .into_iter()
        .chain(nearly_full(bytes, row.limit).filter(|_| is_pipeline))
        .collect()
}

/// Returns the sentences about a plan as a whole: that no configuration fits, that times are
/// unknown or incomplete, or that replicas would be faster.
pub fn plan(report: &Report) -> Vec<String> {
    let Some(plan) = &report.plan else {
        return Vec::new();
    };
    let misses = report.split.as_ref().is_some_and(|split| !split.fits);
    let no_row = (misses && plan.rows.is_empty())
        .then(|| format!("no configuration fits on {}", counted(plan.max_ipus, "IPU")));
    let no_times = plan.rows.iter().any(|row| row.step.is_none()).then(|| {
        "the profile has no cycles, so popliner cannot compute times: record it with \
         \"profiler.includeCycleEstimates\":\"true\", or run the model"
            .to_string()
    });
    let all = [no_row, no_times, not_compared(plan), with_replicas(report)];
    all.into_iter().flatten().collect()
}

/// Returns the sentence about the rows of a plan whose step times are too low, because they leave
/// out the loading of off-chip optimizer state or the gathering of sharded state. These times
/// cannot be compared with others, so their rows are the last ones. Returns `None` if all times are
/// complete.
fn not_compared(plan: &PlanFacts) -> Option<String> {
    let rows = Vec::from_iter(plan.rows.iter().filter(|row| row.lacks_time));
    let is_sharded = rows.iter().any(|row| row.state.is_sharded());
    let loading = "loading and storing optimizer state (give --streaming-bandwidth)";
    let streamed = |row: &&BestSplit| row.step.as_ref()?.streamed_bytes;
    let is_streamed = rows.iter().any(|row| streamed(row).is_some());
    let what = match (is_streamed, is_sharded) {
        (false, false) => return None,
        (true, false) => loading.to_string(),
        (false, true) => "gathering optimizer state from replicas".to_string(),
        (true, true) => format!("{loading} and gathering it from replicas"),
    };
    Some(match rows.len() {
        count if count == plan.rows.len() => format!("the time of a step does not include {what}"),
        1 => format!("the time of the last row does not include {what}"),
        count => format!("the times of the last {count} rows do not include {what}"),
    })
}

/// Returns the sentence that lists what the search for the plan tried: numbers of IPUs, schedules,
/// recomputations and places of optimizer state. Returns `None` if the report has no plan.
pub fn tried(report: &Report) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let numbers = match &plan.ipus_tried[..] {
        [first, .., last] if (*last - *first) as usize + 1 == plan.ipus_tried.len() => {
            format!("{first} to {last}")
        }
        numbers => listed(numbers),
    };
    let tried = |name: fn(&Pipeline) -> String| {
        let mut seen = FxHashSet::default();
        join(
            plan.pipelines_tried
                .iter()
                .map(name)
                .filter(|name| seen.insert(name.clone())),
            ", ",
        )
    };
    Some(format!(
        "tried: {numbers} IPUs, schedule {}, recompute {}, optimizer state {}",
        tried(|pipeline| pipeline.schedule.to_string()),
        tried(|pipeline| pipeline.recompute.to_string()),
        tried(|pipeline| pipeline.state.to_string())
    ))
}

/// Returns the sentence that says which configuration of the plan is recommended, and why. Returns
/// `None` if no configuration is recommended.
pub fn recommended(report: &Report) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let row = plan.rows.first()?;
    let pipeline = match (row.schedule, row.recompute) {
        (Schedule::None, _) => String::new(),
        (schedule, recompute) => format!(" with --schedule {schedule} --recompute {recompute}"),
    };
    let state = match row.state {
        StatePlace::OnChip => String::new(),
        state => format!(", optimizer state {state}"),
    };
    let most = counted(plan.max_ipus, "IPU");
    let why = match report.proof.as_ref().map(|proof| proof.objective.as_str()) {
        Some("time") if row.lacks_time => format!("the fastest such pipeline on up to {most}"),
        Some("time") => format!("the fastest pipeline on up to {most}"),
        Some("fewest") | None => "the fewest IPUs".to_string(),
        Some(objective) => format!("the best by {}", code(format!("--objective {objective}"))),
    };
    Some(format!(
        "{} fits on {}{pipeline}{state}: {why}",
        stages(&row.stages),
        on_ipus(u64::from(row.ipus) / row.replicas.max(1), row.replicas)
    ))
}

/// Returns a sentence about the largest recorded size of a micro-batch that fits, the next size
/// that does not, and the size to record next. Returns `None` if the report compares no sizes.
pub fn next_size(report: &Report) -> Option<String> {
    let (fitting, others): (Vec<_>, Vec<_>) = report.sizes.iter().partition(|size| size.fits);
    let samples = |size: &&BestSplit| size.step.as_ref()?.micro_batch;
    let largest = fitting.last().and_then(samples);
    let mut over = others.iter().filter_map(samples);
    let next = match (largest, over.find(|&size| Some(size) > largest)) {
        (None, None) => return None,
        (Some(fits), None) => format!("{fits} fit, the largest recorded: record larger ones"),
        (_, Some(over)) => {
            let known = match largest {
                Some(fits) => format!("{fits} fit, {over} do not"),
                None => format!("{over} do not fit"),
            };
            let fits = largest.unwrap_or(0);
            match fits.midpoint(over) {
                next if next > fits => format!("{known}: record {next} to know more"),
                _ => known,
            }
        }
    };
    Some(format!("micro-batches of {next}"))
}
