//! Sentences that say why no split fits, what would help, and how the user's split compares with
//! the best split.

use super::{needing, other_split};
use crate::{
    model::Framework,
    report::phrases::{Amount, Bytes, at_step, code, layers, name, stages},
    report::step::three_digits,
    report::{Phrase, Refusal, RelaxationFacts, Report},
    search::{Advice, Change, OverLimit},
    solve::Cause,
    wording::{counted, displayed, join},
};

/// Returns the sentence that says why no split of the model's layers fits in the pipeline.
pub fn why_none_fits(refusal: &Refusal) -> String {
    let why = match (refusal.reason, refusal.stages_needed) {
        (Cause::TooFewIpus, Some(needed)) => {
            let (are, end) = match refusal.ranges.len() {
                1 => ("is", ""),
                _ => ("are", ", each by itself, and meet only at their ends"),
            };
            return format!(
                "these layers need at least {} in this pipeline: {} of layers {are} over the limit \
                 of {}{end}",
                counted(needed, "stage"),
                counted(refusal.ranges.len(), "range"),
                Amount(refusal.limit)
            );
        }
        (Cause::PinsOrLimits, _) => {
            "the pins, or the lower limits of some IPUs, prevent every split"
        }
        (Cause::Pipeline, _) => {
            "the layers by themselves would fit, but not with what the pipeline keeps for the \
             micro-batches under way"
        }
        _ => "these layers must stay together, and are over the limit",
    };
    why.to_string()
}

/// Returns the sentences that list what prevents a split from fitting: ranges of layers that exceed
/// the limit, constraints that keep layers together, and cuts that constraints require.
pub fn obstacles(refusal: &Refusal) -> Vec<String> {
    let is_proof = matches!(refusal.reason, Cause::TooLarge | Cause::TooFewIpus);
    let kept = refusal
        .kept_together
        .iter()
        .map(|constraint| format!("kept together by {}", name(constraint)));
    let before = &refusal.cuts_before;
    let cuts = (!before.is_empty())
        .then(|| format!("a cut is required before each of {}", layers(before)));
    (refusal.ranges.iter().filter(|_| is_proof).map(over_limit))
        .chain(kept)
        .chain(cuts)
        .collect()
}

fn over_limit(range: &OverLimit) -> String {
    format!(
        "{}: {} on tile {}{}",
        layers(&range.layers),
        Amount(range.bytes),
        range.tile,
        at_step(range.step)
    )
}

/// Returns sentences on the ways to make a model fit for which no split fits: another pipeline,
/// more IPUs, more memory, or fewer constraints. Pipelines in which the model does not fit either
/// come last.
pub fn help(report: &Report, refusal: &Refusal) -> Vec<String> {
    let others = report.pipeline.iter().flat_map(|own| &own.alternatives);
    let (fitting, others): (Vec<_>, Vec<_>) = others.partition(|other| other.fits);
    let mut lines: Vec<String> = fitting.into_iter().map(other_split).collect();
    lines.extend(on_more_ipus(refusal, report.framework()));
    // Propose a larger `--mem-per-tile` only up to the tile memory of the IPU that the profile was
    // compiled for, since more memory does not exist on this IPU.
    if let (Some(memory), Some(split)) = (refusal.smallest_tile_memory, &refusal.with_memory)
        && memory <= report.provenance.target.bytes_per_tile
    {
        lines.push(format!(
            "with {} on each tile it would fit on {} ({})",
            Amount(memory),
            counted(split.ipus, "IPU"),
            code(&*split.options)
        ));
    }
    lines.extend(
        refusal
            .relaxations
            .iter()
            .map(|own| format!("{} it fits: {}", without(own), stages(&own.answer.stages))),
    );
    lines.extend(passed_on(report, refusal));
    lines.extend(others.into_iter().map(other_split));
    lines
}

/// Minimum number of layers that must share a weight before popliner proposes to pass the weight on
/// as an activation. The usual case, an embedding and a head with one weight, has only two layers.
const MANY: usize = 3;

/// Returns the sentence that proposes how a weight of many layers can stay on one IPU: the model
/// reads the weight once and passes it on as an activation. The sentence states the bytes that each
/// cut then carries. Returns `None` unless untying such a weight (giving each IPU its own copy)
/// makes a split fit.
fn passed_on(report: &Report, refusal: &Refusal) -> Option<String> {
    let untied = (refusal.relaxations.iter()).flat_map(|own| &own.weights);
    let tie = (report.tied_weights.iter()).find(|tie| {
        tie.layers.len() >= MANY && untied.clone().any(|weight| *weight == tie.weight)
    })?;
    Some(format!(
        "the model can also read {} once in In and pass it on as an activation, {} over each cut",
        name(&tie.weight),
        Amount(tie.bytes)
    ))
}

/// Returns the sentence that gives the fewest IPUs on which the model fits or, if the model fits on
/// none of the tried numbers of IPUs, says so. Returns `None` if no other numbers were tried.
fn on_more_ipus(refusal: &Refusal, framework: Option<Framework>) -> Option<String> {
    let Some(split) = &refusal.on_more_ipus else {
        return Some(format!(
            "it does not fit on up to {} either",
            counted(refusal.ipus_tried?, "IPU")
        ));
    };
    let powers = match framework {
        Some(Framework::Poptorch) if split.replicas > 1 => {
            " (PopTorch takes powers of 2 for each replica)"
        }
        Some(Framework::Poptorch) => " (PopTorch takes powers of 2)",
        _ => "",
    };
    Some(format!(
        "at least {} are needed{powers}; {}",
        counted(split.ipus, "IPU"),
        needing(split, "")
    ))
}

/// Returns the sentence that says which layers exceed the limit most, on which tile, and which
/// variables take the most bytes on that tile. Returns `None` if a split fits.
pub fn missing_memory(report: &Report) -> Option<String> {
    let refusal = report.refusal.as_ref()?;
    let stage = refusal.most_over.as_ref()?;
    let all = refusal.largest_variables.iter().map(|sum| {
        let (own, name) = (&sum.variable, name(&sum.variable.name));
        match sum.count {
            1 => format!("{name} {}", Amount(own.bytes)),
            count => format!(
                "{name} ({}) {}",
                counted(count, "variable"),
                Amount(own.bytes)
            ),
        }
    });
    let largest = match (all.len() == 0, report.liveness.is_some()) {
        (true, true) => String::new(),
        (true, false) => " (run on the profile to see the names of the variables)".to_string(),
        (false, _) => format!("; the largest variables are {}", join(all, ", ")),
    };
    Some(format!(
        "the most memory is missing in {}: {} of {} on tile {}{largest}",
        layers(&stage.layers),
        Amount(stage.bytes),
        Bytes(stage.limit),
        stage.tile
    ))
}

/// Returns the sentence that describes a change of the model or of its options, and the bytes that
/// the change frees.
pub fn advice(advice: &Advice) -> String {
    let bytes = Amount(advice.frees);
    match advice.change {
        Change::SerializedWeight => {
            format!(
                "the operations of {} in two parts ({}, {}; over IPUs {}) free at most {bytes}",
                name(advice.weight.as_deref().unwrap_or_default()),
                code("poptorch.serializedMatMul"),
                code("embedding_serialization_factor"),
                code("serialized_embedding_splits_per_ipu")
            )
        }
        Change::MemoryProportion => {
            format!(
                "a lower {} (0.6 by default, not below 0.05) frees at most {bytes}",
                code("availableMemoryProportion")
            )
        }
        Change::HalfPrecision => {
            format!("16 bits instead of 32 for weights and state free at most {bytes}")
        }
    }
}

/// Returns the words that name the constraints and ties of weights without which a split fits, such
/// as `without --pin 1=0 and with wte untied`.
fn without(relaxation: &RelaxationFacts) -> String {
    let list =
        |names: &[String]| Phrase::List(join(names.iter().map(|name| displayed(name)), ", "));
    let mut parts = Vec::new();
    if !relaxation.constraints.is_empty() {
        parts.push(format!("without {}", list(&relaxation.constraints)));
    }
    if !relaxation.weights.is_empty() {
        let (weights, option) = (list(&relaxation.weights), code("--untie"));
        parts.push(format!("with {weights} untied ({option})"));
    }
    parts.join(" and ")
}

/// Returns the sentence that compares the user's split with the best split, by the bytes on their
/// fullest tiles and by the time of a step. Returns `None` if the user gave no split.
pub fn given(report: &Report) -> Option<String> {
    let (given, split) = (report.given.as_ref()?, report.split.as_ref()?);
    let fits = if given.best.fits || !report.has_verdict() {
        ""
    } else {
        ", which does not fit either,"
    };
    let steps = [&given.best.step, &report.step];
    let times = match steps.map(|step| step.as_ref()?.milliseconds.map(three_digits)) {
        [Some(best), Some(own)] => format!("; a step takes {best} ms, and {own} ms with yours"),
        _ => String::new(),
    };
    Some(format!(
        "the best split{fits} is {} with {} on the fullest tile; yours has {}{times}",
        stages(&given.best.stages),
        Amount(given.best.fullest_tile_bytes),
        Amount(split.peak())
    ))
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
