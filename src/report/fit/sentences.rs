//! Sentences about a compilation, and about the prediction for it.

use super::{Against, CutElsewhere, Fit, IpuFit, MatchedBy, StageAgainst};
use crate::report::sentences::{
    Amount, Bytes, Count, Phrase, Sentence, code, fill, say, stages, text,
};
use crate::wording::listed;
use crate::wording::{counted, signed_share};

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
                    keeps, and at which step a tile is fullest; record it with {}";
        lines.push(fill(lost, [code("autoReport.outputLoweredVars")]));
    }
    lines
}

fn over(ipu: &IpuFit) -> Sentence {
    let tile = &ipu.fullest_tile;
    let over = tile.bytes.checked_sub(tile.limit).filter(|&over| over > 0);
    let over = over.map(|over| fill(", {} over the limit", [Bytes(over)]));
    let are = if ipu.tiles_over == 1 {
        "tile is"
    } else {
        "tiles are"
    };
    let overflowed = Some(ipu.overflowed).filter(|&bytes| bytes > 0);
    let beyond = ", with {} beyond the memory of their tiles";
    fill(
        "IPU {} does not fit: tile {} has {}",
        [text(ipu.ipu), Count(tile.tile.into()), Amount(tile.bytes)],
    )
    .and_if(over)
    .and(fill(
        " of {}; {} {} over",
        [Bytes(tile.limit), Count(ipu.tiles_over.into()), text(are)],
    ))
    .and_if(overflowed.map(|bytes| fill(beyond, [Amount(bytes)])))
}

fn nearest(ipu: &IpuFit) -> Sentence {
    let tile = &ipu.fullest_tile;
    let line = "IPU {} is nearest to the limit: tile {} has {} of {}";
    let (tile, bytes, limit) = (tile.tile, tile.bytes, tile.limit);
    fill(
        line,
        [
            text(ipu.ipu),
            Count(tile.into()),
            Amount(bytes),
            Bytes(limit),
        ],
    )
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
    lines.extend(against.nearest_to_limit().map(|nearest| {
        let are = if nearest.free < 0 {
            "over it"
        } else {
            "are free"
        };
        let bytes = Amount(nearest.free.unsigned_abs());
        fill(
            "stage {} is nearest to its limit: {} {}",
            [text(nearest.stage), bytes, text(are)],
        )
    }));
    lines.extend(against.reserve.map(reserve));
    lines
}

/// Gives the `--reserve` that every stage would have needed.
fn reserve(bytes: u64) -> Sentence {
    match bytes {
        0 => fill(
            "the prediction was enough for every stage: no {} was needed",
            [code("--reserve")],
        ),
        _ => fill(
            "with {} the prediction would have been enough for every stage",
            [code(format!("--reserve {bytes}"))],
        ),
    }
}

/// Gives the differences of a stage.
fn stage(stage: &StageAgainst) -> Sentence {
    let on = format!("stage {} on IPU {}", stage.stage, stage.ipu);
    if stage.difference == 0 {
        return say(on + ": as predicted");
    }
    let share = signed_share(stage.difference, stage.predicted);
    let [bytes, more] = more_or_less(stage.difference);
    let worst = stage.worst_part().map(|(part, difference)| {
        let [bytes, more] = more_or_less(difference);
        fill(", most of all {}: {} {}", [text(part), bytes, more])
    });
    fill(
        "{}: {} {} than predicted ({})",
        [text(on), bytes, more, text(share)],
    )
    .and_if(worst)
}

/// Returns the bytes of a difference, and its direction.
fn more_or_less(difference: i64) -> [Phrase; 2] {
    let more = if difference < 0 { "less" } else { "more" };
    [Amount(difference.unsigned_abs()), text(more)]
}

/// Says that the pipeline was cut elsewhere than predicted.
fn elsewhere(cut: &CutElsewhere, against: &Against) -> Sentence {
    let numbers: Vec<String> = cut.stages.iter().map(u32::to_string).collect();
    let other = match (cut.ipus, numbers.len()) {
        (Some(count), _) => format!(
            "it has {} and the prediction {}",
            counted(count, "IPU"),
            counted(against.predicted_stages, "stage")
        ),
        (None, 1) => format!("stage {} has other layers", numbers[0]),
        (None, _) => format!("stages {} have other layers", listed(&numbers)),
    };
    let recorded = Some(&cut.recorded).filter(|recorded| !recorded.is_empty());
    let recorded = recorded.map(|own| fill("; the IPUs have the layers {}", [stages(own)]));
    say(format!(
        "the pipeline was cut elsewhere than predicted: {other}"
    ))
    .and_if(recorded)
    .and(fill(
        " (predict the split that was compiled, with {} or {}, and compare with that)",
        ["--layers-per-ipu", "--check-splits"].map(code),
    ))
}
