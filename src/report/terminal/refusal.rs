//! Why nothing fits, and what would help; and the best beside what was given.

use super::{TextStyle, layers};
use crate::model::PseudoLayers;
use crate::report::document::{Judged, OverLimit, Refusal, RefusalReason};
use crate::report::{Split, Units, printable, sweep, tied_weights};

/// Some lines under the verdict.
pub fn refusal(refusal: &Refusal, split: &Split, look: &TextStyle) -> String {
    let units = look.units.for_bytes(refusal.limit);
    let mut lines = Vec::new();
    let is_named = refusal.reason == RefusalReason::TooLarge && !split.too_large.is_empty();
    if !is_named {
        lines.extend(certificate(refusal, split.pseudo_layers, units));
    }
    lines.extend(smallest(refusal, split, units));
    lines.extend(fewest(refusal, split));
    lines.extend(refusal.relaxations.iter().map(|relaxation| {
        let shown = printable(&sweep::split(&relaxation.stages, split.pseudo_layers));
        let without = tied_weights::without(relaxation);
        format!("{without} it fits: [ {shown} ]")
    }));
    lines.join("\n")
}

/// The ranges that are over the limit, and what they prove.
fn certificate(refusal: &Refusal, pseudo_layers: PseudoLayers, units: Units) -> Vec<String> {
    let limit = units.amount(refusal.limit);
    let count = refusal.ranges.len();
    let mut lines = match (refusal.reason, refusal.stages_needed) {
        (RefusalReason::TooFewIpus, Some(needed)) => vec![format!(
            "at least {needed} IPUs are needed: {count} ranges of layers are over the limit of \
             {limit}, each by itself, and meet only at their ends"
        )],
        (RefusalReason::PinsOrLimits, Some(needed)) => vec![format!(
            "{needed} IPUs would be enough with the highest limit and without pins: these, or the \
             lower limits of some IPUs, stand in the way"
        )],
        _ => vec!["no number of IPUs is enough: these layers must stay together".to_string()],
    };
    if refusal.reason != RefusalReason::PinsOrLimits {
        let ranges = refusal.ranges.iter();
        lines.extend(ranges.map(|range| over_limit(range, pseudo_layers, units)));
    }
    let kept = refusal.kept_together.iter();
    lines.extend(kept.map(|what| format!("  kept together by {}", printable(what))));
    if !refusal.cuts_after.is_empty() {
        let cuts = layers(pseudo_layers, &refusal.cuts_after);
        lines.push(format!("  and a cut was ordered after each of: {cuts}"));
    }
    lines
}

fn over_limit(range: &OverLimit, pseudo_layers: PseudoLayers, units: Units) -> String {
    let at = match range.step {
        Some(step) => format!("on tile {} at step {step}", range.tile),
        None => format!("on tile {}", range.tile),
    };
    format!(
        "  {}: {} {at}",
        layers(pseudo_layers, &range.layers),
        units.amount(range.bytes)
    )
}

fn smallest(refusal: &Refusal, split: &Split, units: Units) -> Option<String> {
    let memory = refusal.smallest_tile_memory?;
    Some(format!(
        "with {} on each tile it would fit on {} (--mem-per-tile {memory})",
        units.amount(memory),
        ipus(split.max_stages)
    ))
}

fn fewest(refusal: &Refusal, split: &Split) -> Option<String> {
    match refusal.fewest_ipus {
        Some(fewest) => Some(format!(
            "with {} it would fit (--num-ipus {fewest})",
            ipus(fewest as usize)
        )),
        None if split.too_large.is_empty() => {
            Some("no number of IPUs is enough for this limit".to_string())
        }
        None => None,
    }
}

fn ipus(count: usize) -> String {
    match count {
        1 => "1 IPU".to_string(),
        count => format!("{count} IPUs"),
    }
}

/// The best split beside the one that was given.
pub fn beside(judged: &Judged, split: &Split, look: &TextStyle) -> String {
    let stages = printable(&sweep::split(&judged.best_stages, split.pseudo_layers));
    let units = look.units.for_bytes(split.limit);
    let best = units.amount(judged.best_fullest_tile_bytes);
    let given = split
        .fullest()
        .map_or(0, |(_, stage)| stage.mem.max_tile_mem);
    let fits = match judged.best_fits {
        true => "the best split",
        false => "the best split, which does not fit either,",
    };
    format!(
        "{fits} is [ {stages} ] with {best} on the fullest tile; the one given has {}",
        units.amount(given)
    )
}
