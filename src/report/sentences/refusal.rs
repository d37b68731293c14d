//! Why nothing fits and what would help, and how a given split compares.

use super::other_split;
use super::pipeline::needing;
use crate::report::phrases::{Amount, Bytes, Phrase, code, layers, name, stages, with_commas};
use crate::report::step::three_digits;
use crate::report::{Advice, Change, GivenSplit, OverLimit, Refusal, RelaxationFacts, Report};
use crate::solve::Cause;
use crate::wording::{counted, displayed};

/// Says why no split of the shown layers fits in the shown pipeline.
pub fn why_none_fits(refusal: &Refusal) -> String {
    match (refusal.reason, refusal.stages_needed) {
        (Cause::TooFewIpus, Some(needed)) => too_few(refusal, needed),
        (Cause::PinsOrLimits, _) => "the pins, or the lower limits of some IPUs, prevent every \
                                     split"
            .to_string(),
        (Cause::Pipeline, _) => "the layers by themselves would fit, but not with what the \
                                 pipeline keeps for the micro-batches under way"
            .to_string(),
        _ => "these layers must stay together, and are over the limit".to_string(),
    }
}

/// Lists what prevents a split: the ranges of layers that exceed the limit, the constraints that
/// keep layers together, and the cuts that constraints require.
pub fn obstacles(refusal: &Refusal) -> Vec<String> {
    let is_proof = matches!(refusal.reason, Cause::TooLarge | Cause::TooFewIpus);
    let ranges = refusal.ranges.iter().filter(|_| is_proof);
    let kept = refusal.kept_together.iter();
    let kept = kept.map(|constraint| format!("kept together by {}", name(constraint)));
    let cuts = Some(&refusal.cuts_before).filter(|cuts| !cuts.is_empty());
    let cuts = cuts.map(|cuts| format!("a cut is required before each of {}", layers(cuts)));
    ranges.map(over_limit).chain(kept).chain(cuts).collect()
}

/// Says that these layers need at least `needed` stages in this pipeline, since ranges of layers
/// exceed the limit and each range needs a cut of its own.
fn too_few(refusal: &Refusal, needed: u32) -> String {
    let (are, end) = match refusal.ranges.len() {
        1 => ("is", ""),
        _ => ("are", ", each by itself, and meet only at their ends"),
    };
    let stages = counted(needed, "stage");
    let ranges = counted(refusal.ranges.len(), "range");
    let limit = Amount(refusal.limit);
    format!(
        "these layers need at least {stages} in this pipeline: {ranges} of layers {are} over the \
         limit of {limit}{end}"
    )
}

fn over_limit(range: &OverLimit) -> String {
    let (own, bytes, tile) = (layers(&range.layers), Amount(range.bytes), range.tile);
    let step = range.step.map(|step| format!(" at step {step}"));
    format!("{own}: {bytes} on tile {tile}{}", step.unwrap_or_default())
}

/// Returns the ways to make the model fit if no split does, one sentence for each, with the option
/// to type: other pipelines, more IPUs, more memory, or dropped constraints. Each is the answer to
/// the request with this option.
pub fn help(report: &Report, refusal: &Refusal) -> Vec<String> {
    let others = || report.pipeline.iter().flat_map(|own| &own.alternatives);
    let mut lines: Vec<String> = others()
        .filter(|other| other.fits)
        .map(other_split)
        .collect();
    lines.extend(on_more_ipus(refusal));
    // A tile cannot have more memory than the target. Beyond that, the bytes over the limit say
    // enough.
    let target = report.provenance.target.bytes_per_tile;
    let memory = refusal
        .smallest_tile_memory
        .filter(|&bytes| bytes <= target);
    if let (Some(memory), Some(split)) = (memory, &refusal.with_memory) {
        let ipus = counted(split.ipus, "IPU");
        let (memory, option) = (Amount(memory), code(&*split.options));
        lines.push(format!(
            "with {memory} on each tile it would fit on {ipus} ({option})"
        ));
    }
    lines.extend(
        refusal
            .relaxations
            .iter()
            .map(|own| format!("{} it fits: {}", without(own), stages(&own.answer.stages))),
    );
    lines.extend(passed_on(report, refusal));
    lines.extend(others().filter(|other| !other.fits).map(other_split));
    lines
}

/// Number of layers from which a shared weight is said to be passed on instead. An embedding that is
/// also the head has two.
const MANY: usize = 3;

/// Says how a weight that many layers read can be on one IPU though a split fits only without its
/// tie, with the bytes that then pass each cut; `None` if there is no such weight.
fn passed_on(report: &Report, refusal: &Refusal) -> Option<String> {
    let untied = |weight: &str| {
        let mut relaxations = refusal.relaxations.iter();
        relaxations.any(|own| own.weights.iter().any(|other| other == weight))
    };
    let mut ties = report.tied_weights.iter();
    let tie = ties.find(|tie| tie.layers.len() >= MANY && untied(&tie.weight))?;
    Some(format!(
        "the model can also read {} once in In and pass it on as an activation, {} over each cut",
        name(&tie.weight),
        Amount(tie.bytes)
    ))
}

/// Says on how many IPUs the model fits at least, or that it fits on no number that was tried;
/// `None` if none was tried.
fn on_more_ipus(refusal: &Refusal) -> Option<String> {
    let Some(split) = &refusal.on_more_ipus else {
        let tried = counted(refusal.ipus_tried?, "IPU");
        return Some(format!("it does not fit on up to {tried} either"));
    };
    let needed = counted(split.ipus, "IPU");
    Some(format!(
        "at least {needed} are needed; {}",
        needing(split, "")
    ))
}

/// Says which layers exceed the limit most, on which tile, and which variables take the most bytes
/// there; `None` if a split fits.
pub fn missing_memory(report: &Report) -> Option<String> {
    let refusal = report.refusal.as_ref()?;
    let stage = refusal.most_over.as_ref()?;
    let (own, bytes, tile) = (layers(&stage.layers), Amount(stage.bytes), stage.tile);
    let (limit, largest) = (Bytes(stage.limit), largest(report, refusal));
    Some(format!(
        "the most memory is missing in {own}: {bytes} of {limit} on tile {tile}{largest}"
    ))
}

/// Lists changes of the model that free memory on the tile that exceeds its limit most. Empty if a
/// split fits.
pub fn advice(report: &Report) -> Vec<String> {
    let refusal = report.refusal.iter();
    refusal
        .flat_map(|refusal| &refusal.advice)
        .map(frees)
        .collect()
}

/// Lists the largest variables on the tile that exceeds its limit most. If their names are unknown,
/// says how to see them.
fn largest(report: &Report, refusal: &Refusal) -> String {
    let all = refusal.largest_variables.iter();
    let all = all.map(|variable| format!("{} {}", name(&variable.name), Amount(variable.bytes)));
    match (all.len() == 0, report.liveness.is_some()) {
        (true, true) => String::new(),
        (true, false) => " (run on the profile to see the names of the variables)".to_string(),
        (false, _) => format!("; the largest variables are {}", with_commas(all)),
    }
}

/// Describes a change of the model or its options, and the bytes that it frees.
fn frees(advice: &Advice) -> String {
    let bytes = Amount(advice.frees);
    match advice.change {
        Change::SerializedWeight => {
            let weight = name(advice.weight.as_deref().unwrap_or_default());
            let [poptorch, option, over_ipus] = [
                "poptorch.serializedMatMul",
                "embedding_serialization_factor",
                "serialized_embedding_splits_per_ipu",
            ]
            .map(code);
            format!(
                "the operations of {weight} in two parts ({poptorch}, {option}; over IPUs \
                 {over_ipus}) free at most {bytes}"
            )
        }
        Change::MemoryProportion => {
            let option = code("availableMemoryProportion");
            format!("a lower {option} (0.6 by default, not below 0.05) frees at most {bytes}")
        }
        Change::HalfPrecision => {
            format!("16 bits instead of 32 for weights and state free at most {bytes}")
        }
    }
}

/// Names the constraints without which a split fits, such as `without --pin 1=0 and with wte
/// untied`.
fn without(relaxation: &RelaxationFacts) -> String {
    let list =
        |names: &[String]| Phrase::List(with_commas(names.iter().map(|name| displayed(name))));
    let RelaxationFacts {
        constraints,
        weights,
        ..
    } = relaxation;
    let without = format!("without {}", list(constraints));
    let untied = format!("with {} untied ({})", list(weights), code("--untie"));
    match (constraints.is_empty(), weights.is_empty()) {
        (_, true) => without,
        (true, false) => untied,
        (false, false) => format!("{without} and {untied}"),
    }
}

/// Compares the split that the user gave with the best split by the bytes on their fullest tiles
/// and by the time of a step; `None` if none was given.
pub fn given(report: &Report) -> Option<String> {
    let (given, split) = (report.given.as_ref()?, report.split.as_ref()?);
    let fits = match given.best.fits {
        true => "",
        false => ", which does not fit either,",
    };
    let own = split.fullest().map_or(0, |stage| stage.fullest_tile.bytes);
    let [best, own] = [given.best.fullest_tile_bytes, own].map(Amount);
    let (stages, times) = (stages(&given.best.stages), times_of_both(report, given));
    Some(format!(
        "the best split{fits} is {stages} with {best} on the fullest tile; yours has {own}{times}"
    ))
}

/// Says how long a step takes with the best split and with the given split; empty if either time is
/// unknown.
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
    use crate::report::phrases::Sentence;

    #[test]
    fn what_stands_in_the_way_is_named() {
        let text = |constraints: &[&str], weights: &[&str]| {
            let sentence = without(&RelaxationFacts {
                constraints: constraints.iter().map(|name| name.to_string()).collect(),
                weights: weights.iter().map(|name| name.to_string()).collect(),
                ..RelaxationFacts::default()
            });
            Sentence::from(sentence).plain(Units::Bytes, PseudoLayers::InAndOut)
        };
        assert_eq!(text(&["--pin 1=0"], &[]), "without --pin 1=0");
        assert_eq!(text(&[], &["a", "b"]), "with a, b untied (--untie)");
        let both = text(&["--pin 1=0"], &["a"]);
        assert_eq!(both, "without --pin 1=0 and with a untied (--untie)");
    }
}
