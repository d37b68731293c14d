//! Sentences about a compilation, and about the prediction for it.

use super::facts::{Against, CutElsewhere, Fit, IpuFit, MatchedBy, StageAgainst};
use crate::report::sentences::{Sentence, say};
use crate::report::text::{counted, signed_share};
use crate::wording::listed;

/// Returns the heading of a report on a compilation.
pub(in crate::report) fn verdict(fit: &Fit) -> String {
    let all = fit.ipus.len() as u64;
    match fit.over().count() as u64 {
        0 => format!("The compiled model fits on {}", counted(all, "IPU")),
        _ if all == 1 => "The compiled model does not fit on its IPU".to_string(),
        over => format!(
            "The compiled model does not fit on {over} of {}",
            counted(all, "IPU")
        ),
    }
}

/// Says which IPUs do not fit, or else which one is nearest to its limit; then what the profile
/// lacks or cannot show.
pub(in crate::report) fn lines(fit: &Fit) -> Vec<Sentence> {
    let mut lines: Vec<Sentence> = fit.over().map(over).collect();
    if lines.is_empty() {
        lines.extend(fit.nearest_to_limit().map(nearest));
    }
    if fit.replicas > 1 {
        let replicas = fit.replicas;
        lines.push(say(if fit.listed_replicas > 1 {
            format!("compiled for {replicas} identical replicas; the profile lists all of them")
        } else {
            format!("compiled for {replicas} identical replicas; the profile lists one of them")
        }));
    }
    if fit.variables.is_none() {
        let lost = "the profile has no lowered variables, so popliner cannot show what a pipeline \
                    keeps, and at which step a tile is fullest; record it with ";
        lines.push(say(lost).code("autoReport.outputLoweredVars"));
    }
    lines
}

fn over(ipu: &IpuFit) -> Sentence {
    let tile = &ipu.fullest_tile;
    let line = say(format!("IPU {} does not fit: tile ", ipu.ipu))
        .count(tile.tile)
        .text(" has ")
        .amount(tile.bytes);
    let line = match tile.bytes.checked_sub(tile.limit) {
        Some(over @ 1..) => line.text(", ").bytes(over).text(" over the limit of "),
        _ => line.text(" of "),
    };
    let line = line
        .bytes(tile.limit)
        .text("; ")
        .count(ipu.tiles_over)
        .text(if ipu.tiles_over == 1 {
            " tile is over"
        } else {
            " tiles are over"
        });
    if ipu.overflowed == 0 {
        return line;
    }
    let line = line.text(", with ");
    let line = line.amount(ipu.overflowed);
    line.text(" beyond the memory of their tiles")
}

fn nearest(ipu: &IpuFit) -> Sentence {
    let tile = &ipu.fullest_tile;
    say(format!("IPU {} is nearest to the limit: tile ", ipu.ipu))
        .count(tile.tile)
        .text(" has ")
        .amount(tile.bytes)
        .text(" of ")
        .bytes(tile.limit)
}

/// Says how the prediction compares: how stages and IPUs were matched, where the cuts differ, the
/// difference of each stage, which stage is nearest to its limit, and which reserve would have been
/// enough.
pub(in crate::report) fn against(against: &Against) -> Vec<Sentence> {
    let mut lines = vec![say(match against.matched_by {
        MatchedBy::Layers => "stages and IPUs were matched by the layers that run there",
        MatchedBy::Order => {
            "stages and IPUs were matched in order, since no names of layers say what runs where \
             (is there a debug.cbor, and does the layer regex match its names?)"
        }
    })];
    if let Some(cut) = &against.cut_elsewhere {
        lines.push(elsewhere(cut, against));
        return lines;
    }
    lines.extend(against.stages.iter().map(stage));
    if let Some(nearest) = against.nearest_to_limit() {
        let line = say(format!("stage {} is nearest to its limit: ", nearest.stage));
        let bytes = nearest.free.unsigned_abs();
        let line = line.amount(bytes);
        lines.push(line.text(if nearest.free < 0 {
            " over it"
        } else {
            " are free"
        }));
    }
    lines.extend(against.reserve.map(reserve));
    lines
}

/// Gives the `--reserve` that every stage would have needed.
fn reserve(bytes: u64) -> Sentence {
    match bytes {
        0 => say("the prediction was enough for every stage: no ")
            .code("--reserve")
            .text(" was needed"),
        _ => say("with ")
            .code(format!("--reserve {bytes}"))
            .text(" the prediction would have been enough for every stage"),
    }
}

/// Gives the differences of a stage.
fn stage(stage: &StageAgainst) -> Sentence {
    let line = say(format!("stage {} on IPU {}: ", stage.stage, stage.ipu));
    let line = match stage.difference {
        0 => return line.text("as predicted"),
        difference => more_or_less(line, difference),
    };
    let line = line.text(format!(
        " than predicted ({})",
        signed_share(stage.difference, stage.predicted)
    ));
    match stage.worst_part() {
        Some((part, difference)) => {
            more_or_less(line.text(format!(", most of all {part}: ")), difference)
        }
        None => line,
    }
}

fn more_or_less(line: Sentence, difference: i64) -> Sentence {
    let line = line.amount(difference.unsigned_abs());
    line.text(if difference < 0 { " less" } else { " more" })
}

/// Says that the pipeline was cut elsewhere than predicted.
fn elsewhere(cut: &CutElsewhere, against: &Against) -> Sentence {
    let line = say("the pipeline was cut elsewhere than predicted: ");
    let stages: Vec<String> = cut.stages.iter().map(u32::to_string).collect();
    let line = match (cut.ipus, stages.len()) {
        (Some(count), _) => line.text(format!(
            "it has {} and the prediction {}",
            counted(count, "IPU"),
            counted(against.predicted_stages, "stage")
        )),
        (None, 1) => line.text(format!("stage {} has other layers", stages[0])),
        (None, _) => line.text(format!("stages {} have other layers", listed(&stages))),
    };
    let line = match cut.recorded.is_empty() {
        true => line,
        false => line
            .text("; the IPUs have the layers ")
            .stages(&cut.recorded),
    };
    line.text(" (predict the split that was compiled, with ")
        .code("--layers-per-ipu")
        .text(" or ")
        .code("--check-splits")
        .text(", and compare with that)")
}
