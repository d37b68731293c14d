//! Why nothing fits and what would help, and how a given split compares.

use super::{
    Amount, Bytes, Count, Phrase, Sentence, code, fill, layers, name, other_split, say, stages,
    text,
};
use crate::report::step::three_digits;
use crate::report::{
    Advice, AdviceFacts, Change, GivenSplit, OverLimit, Refusal, RelaxationFacts, Report,
};
use crate::solve::Cause;
use crate::wording::{counted, displayed};

/// The reasons why there is no split.
pub(in crate::report) struct Obstacles {
    /// The proof that no split fits.
    pub(in crate::report) proves: Sentence,
    /// One line for each range of layers over the limit.
    pub(in crate::report) ranges: Vec<Sentence>,
    /// Lines about constraints that keep layers together or apart.
    pub(in crate::report) others: Vec<Sentence>,
}

/// Returns the reasons why no split fits.
pub(in crate::report) fn refusal(refusal: &Refusal) -> Obstacles {
    let proves = match (refusal.reason, refusal.stages_needed) {
        (Cause::TooFewIpus, Some(needed)) => too_few(refusal, needed),
        (Cause::PinsOrLimits, Some(needed)) => fill(
            "{} IPUs would be enough with the highest limit and without pins: the pins, or the \
             lower limits of some IPUs, prevent it",
            [Count(needed.into())],
        ),
        (Cause::Pipeline, _) => say(
            "the layers by themselves would fit, but not with what the pipeline keeps for the \
             micro-batches under way",
        ),
        _ => say("no number of IPUs is enough: these layers must stay together"),
    };
    let is_proof = matches!(refusal.reason, Cause::TooLarge | Cause::TooFewIpus);
    let ranges = refusal.ranges.iter().filter(|_| is_proof);
    let kept = refusal.kept_together.iter();
    let kept = kept.map(|what| fill("kept together by {}", [name(what)]));
    let cuts = Some(&refusal.cuts_after).filter(|cuts| !cuts.is_empty());
    let cuts = cuts.map(|cuts| fill("a cut is required after each of {}", [layers(cuts)]));
    Obstacles {
        proves,
        ranges: ranges.map(over_limit).collect(),
        others: kept.chain(cuts).collect(),
    }
}

/// Says how many IPUs are needed, as ranges of layers that cannot share an IPU.
fn too_few(refusal: &Refusal, needed: u32) -> Sentence {
    let (are, end) = match refusal.ranges.len() {
        1 => ("is", ""),
        _ => ("are", ", each by itself, and meet only at their ends"),
    };
    fill(
        "at least {} are needed: {} of layers {} over the limit of {}{}",
        [
            text(counted(needed, "IPU")),
            text(counted(refusal.ranges.len(), "range")),
            text(are),
            Amount(refusal.limit),
            text(end),
        ],
    )
}

fn over_limit(range: &OverLimit) -> Sentence {
    let step = range.step.map(|step| format!(" at step {step}"));
    let step = text(step.unwrap_or_default());
    let own = [
        layers(&range.layers),
        Amount(range.bytes),
        text(range.tile),
        step,
    ];
    fill("{}: {} on tile {}{}", own)
}

/// Returns ways out, each with the option to type.
pub(in crate::report) fn help(report: &Report, refusal: &Refusal) -> Vec<Sentence> {
    let mut lines = Vec::new();
    let others = || report.pipeline.iter().flat_map(|own| &own.alternatives);
    lines.extend(others().filter(|other| other.fits).map(other_split));
    let split = report.split.as_ref();
    match &refusal.on_more_ipus {
        Some(split) => lines.push(other_split(split)),
        None if split.is_none_or(|split| split.too_large.is_empty()) => {
            lines.push(say("no number of IPUs is enough for this limit"));
        }
        None => {}
    }
    let advice = refusal.advice.iter();
    let enough = advice.flat_map(|advice| &advice.changes);
    lines.extend(enough.filter(|change| change.is_enough).map(|change| {
        let option = code("--micro-batch 2 --at-micro-batch 1");
        let line = "with half the micro-batch it fits, by an estimate: this frees {} ({})";
        fill(line, [Amount(change.frees), option])
    }));
    // A tile cannot have more memory than the target. Beyond that, the bytes over the limit say
    // enough.
    let target = report.provenance.target.bytes_per_tile;
    let memory = refusal
        .smallest_tile_memory
        .filter(|&bytes| bytes <= target);
    if let (Some(memory), Some(split)) = (memory, split) {
        let ipus = text(counted(split.stages.len(), "IPU"));
        lines.push(fill(
            "with {} on each tile it would fit on {} ({})",
            [
                Amount(memory),
                ipus,
                code(format!("--mem-per-tile {memory}")),
            ],
        ));
    }
    let relaxed = refusal.relaxations.iter();
    lines.extend(relaxed.map(|own| without(own).and(fill(" it fits: {}", [stages(&own.stages)]))));
    lines.extend(others().filter(|other| !other.fits).map(other_split));
    lines
}

/// Says where the most memory is lacking, and which variables take the most of it.
pub(in crate::report) fn in_the_way(report: &Report) -> Option<Sentence> {
    let advice = report.refusal.as_ref()?.advice.as_ref()?;
    let head = fill(
        "the most memory is missing in {}: {} on tile {}",
        [
            layers(&advice.layers),
            Amount(advice.bytes),
            text(advice.tile),
        ],
    );
    let split = report.split.as_ref();
    let limit = split.map(|split| fill(" of {}", [Bytes(split.limit)]));
    Some(head.and_if(limit).and(largest(report, advice)))
}

/// Lists changes that free memory there, and that were not tried or are not enough by themselves.
pub(in crate::report) fn advice(report: &Report) -> Vec<Sentence> {
    let advice = report
        .refusal
        .as_ref()
        .and_then(|refusal| refusal.advice.as_ref());
    let tried = report.pipeline.iter().flat_map(|own| &own.alternatives);
    let tried: Vec<&str> = tried.map(|other| &*other.options).collect();
    let is_news = |change: &&Advice| {
        let option = match change.change {
            Change::StateOffChip => "--optimizer-state off-chip",
            Change::Checkpoints => "--recompute layer",
            Change::Interleaved => "--schedule tf-interleaved",
            _ => return !change.is_enough,
        };
        !tried.contains(&option)
    };
    let changes = advice.into_iter().flat_map(|advice| &advice.changes);
    let changes = changes.filter(is_news);
    changes.map(frees).collect()
}

/// Lists the largest variables where the most memory is lacking, or says in parentheses how to see
/// them.
fn largest(report: &Report, advice: &AdviceFacts) -> Sentence {
    let all = advice.largest.iter();
    let all = all.map(|variable| fill("{} {}", [name(&variable.name), Amount(variable.bytes)]));
    let all = Sentence::join(all, ", ");
    match (advice.largest.is_empty(), report.liveness.is_some()) {
        (true, true) => all,
        (true, false) => say(" (run on the profile to see the names of the variables)"),
        (false, _) => say("; the largest variables are ").and(all),
    }
}

/// Describes a change, and the bytes that it frees.
fn frees(advice: &Advice) -> Sentence {
    let bytes = Amount(advice.frees);
    let by = |change: &str, option| fill(change, [code(option), bytes.clone()]);
    match advice.change {
        Change::StateOffChip => by(
            "optimizer state outside the IPUs ({}) frees {}",
            "--optimizer-state off-chip",
        ),
        Change::Checkpoints => by(
            "a checkpoint for each layer ({}) frees {}",
            "--recompute layer",
        ),
        Change::Interleaved => by(
            "the interleaved schedule ({}) frees {}",
            "--schedule tf-interleaved",
        ),
        Change::SerializedWeight => fill(
            "the operations of {} in two parts ({}, {}; over IPUs {}) free at most {}",
            [
                name(advice.weight.as_deref().unwrap_or_default()),
                code("poptorch.serializedMatMul"),
                code("embedding_serialization_factor"),
                code("serialized_embedding_splits_per_ipu"),
                bytes,
            ],
        ),
        Change::MemoryProportion => by(
            "a lower {} (0.6 by default, not below 0.05) frees at most {}",
            "availableMemoryProportion",
        ),
        Change::HalfMicroBatch => fill("half the micro-batch frees, by an estimate, {}", [bytes]),
        Change::HalfPrecision => fill(
            "16 bits instead of 32 for weights and state free at most {}",
            [bytes],
        ),
    }
}

/// Names the constraints that prevent a split: `without --pin 1=0 and with wte untied`.
fn without(relaxation: &RelaxationFacts) -> Sentence {
    let list = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| displayed(name)).collect();
        Phrase::List(names.join(", "))
    };
    let constraints = fill("without {}", [list(&relaxation.constraints)]);
    let weights = fill(
        "with {} untied ({})",
        [list(&relaxation.weights), code("--untie")],
    );
    match (
        relaxation.constraints.is_empty(),
        relaxation.weights.is_empty(),
    ) {
        (_, true) => constraints,
        (true, false) => weights,
        (false, false) => constraints.text(" and ").and(weights),
    }
}

/// Compares a given split with the best one.
pub(in crate::report) fn given(report: &Report) -> Option<Sentence> {
    let (given, split) = (report.given.as_ref()?, report.split.as_ref()?);
    let begin = match given.best.fits {
        true => "the best split is",
        false => "the best split, which does not fit either, is",
    };
    let bytes = split.fullest().map_or(0, |stage| stage.fullest_tile.bytes);
    Some(fill(
        "{} {} with {} on the fullest tile; yours has {}{}",
        [
            text(begin),
            stages(&given.best.stages),
            Amount(given.best.fullest_tile_bytes),
            Amount(bytes),
            text(times_of_both(report, given)),
        ],
    ))
}

/// Gives the times of a step of the best split and of the given one, if both are known.
fn times_of_both(report: &Report, given: &GivenSplit) -> String {
    let own = report.step.as_ref().and_then(|step| step.milliseconds);
    let best = given.best.step.as_ref();
    let times = best.and_then(|step| step.milliseconds).zip(own);
    times.map_or(String::new(), |(best, own)| {
        let [best, own] = [best, own].map(three_digits);
        format!("; a step takes {best} ms, and {own} ms with yours")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PseudoLayers;
    use crate::report::Units;

    #[test]
    fn what_stands_in_the_way_is_named() {
        let text = |constraints: &[&str], weights: &[&str]| {
            let sentence = without(&RelaxationFacts {
                constraints: constraints.iter().map(|name| name.to_string()).collect(),
                weights: weights.iter().map(|name| name.to_string()).collect(),
                stages: Vec::new(),
            });
            sentence.plain(Units::Bytes, PseudoLayers::InAndOut)
        };
        assert_eq!(text(&["--pin 1=0"], &[]), "without --pin 1=0");
        assert_eq!(text(&[], &["a", "b"]), "with a, b untied (--untie)");
        let both = text(&["--pin 1=0"], &["a"]);
        assert_eq!(both, "without --pin 1=0 and with a untied (--untie)");
    }
}
