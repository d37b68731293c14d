//! Writes the sentences about a recorded compilation, and about how it differs from the prediction.

use super::{CutElsewhere, Fit, FitComparison, IpuFit, MatchedBy, StageComparison};
use crate::{
    report::phrases::{Amount, Bytes, Count, code, stages},
    wording::{counted, listed, signed_share},
};

/// Returns the heading of a report on a compilation, which says whether the compilation fits, and
/// on how many IPUs.
pub fn verdict(fit: &Fit) -> String {
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

/// Returns sentences that say which IPUs do not fit or, if all fit, which IPU is nearest to its
/// limit. Further sentences say which replicas the profile lists, and what cannot be shown without
/// lowered variables.
pub fn lines(fit: &Fit) -> Vec<String> {
    let mut lines: Vec<String> = fit.over().map(over).collect();
    if lines.is_empty() {
        let nearest_ipu = fit.ipus.iter().min_by_key(|ipu| ipu.fullest_tile.free);
        lines.extend(nearest_ipu.map(nearest));
    }
    if fit.replicas > 1 {
        lines.push(format!(
            "compiled for {} identical replicas; the profile lists {} of them",
            fit.replicas,
            if fit.listed_replicas > 1 {
                "all"
            } else {
                "one"
            }
        ));
    }
    if fit.variables.is_none() {
        lines.push(format!(
            "the profile has no lowered variables, so popliner cannot show what a pipeline keeps, \
             and at which step a tile is fullest; record it with {}",
            code("autoReport.outputLoweredVars")
        ));
    }
    lines
}

fn over(ipu: &IpuFit) -> String {
    let tile = &ipu.fullest_tile;
    let by = match tile.bytes.saturating_sub(tile.limit) {
        0 => String::new(),
        over => format!(", {} over the limit", Bytes(over)),
    };
    let beyond = match ipu.overflowed {
        0 => String::new(),
        bytes => format!(", with {} beyond the memory of their tiles", Amount(bytes)),
    };
    format!(
        "IPU {} does not fit: tile {} has {}{by} of {}; {} {} over{beyond}",
        ipu.ipu,
        Count(tile.tile.into()),
        Amount(tile.bytes),
        Bytes(tile.limit),
        Count(ipu.tiles_over.into()),
        if ipu.tiles_over == 1 {
            "tile is"
        } else {
            "tiles are"
        }
    )
}

fn nearest(ipu: &IpuFit) -> String {
    let tile = &ipu.fullest_tile;
    format!(
        "IPU {} is nearest to the limit: tile {} has {} of {}",
        ipu.ipu,
        Count(tile.tile.into()),
        Amount(tile.bytes),
        Bytes(tile.limit)
    )
}

/// Returns sentences that say how predicted stages and IPUs were matched, and where the pipeline
/// was cut at other layers than predicted. If the cuts are as predicted, the sentences say by how
/// many bytes each stage differs from the prediction, which stage is nearest to its limit, and
/// which `--reserve` would have covered the differences.
pub fn comparison(comparison: &FitComparison) -> Vec<String> {
    let matched_by = match comparison.matched_by {
        MatchedBy::Layers => "stages and IPUs were matched by the layers that run there",
        MatchedBy::Order => {
            "stages and IPUs were matched in order, since no names of layers say what runs where \
             (is there a debug.cbor, and does the layer regex match its names?)"
        }
    };
    let mut lines = vec![matched_by.to_string()];
    if let Some(cut) = &comparison.cut_elsewhere {
        lines.push(elsewhere(cut, comparison));
        return lines;
    }
    lines.extend(comparison.stages.iter().map(stage));
    let nearest = comparison.stages.iter().min_by_key(|stage| stage.free);
    lines.extend(nearest.map(|nearest| {
        format!(
            "stage {} is nearest to its limit: {} {}",
            nearest.stage,
            Amount(nearest.free.unsigned_abs()),
            if nearest.free < 0 {
                "over it"
            } else {
                "are free"
            }
        )
    }));
    lines.extend(comparison.reserve.map(reserve));
    lines
}

/// Returns the sentence which says that `--reserve` with this number of `bytes` would have covered
/// the bytes missing in the prediction of every stage. If `bytes` is 0, the sentence says that no
/// reserve was needed.
fn reserve(bytes: u64) -> String {
    match bytes {
        0 => format!(
            "the prediction was enough for every stage: no {} was needed",
            code("--reserve")
        ),
        _ => format!(
            "with {} the prediction would have been enough for every stage",
            code(format!("--reserve {bytes}"))
        ),
    }
}

/// Returns the sentence that says how many bytes more or less than predicted the fullest tile of a
/// stage has, and which kind of contents explains most of them.
fn stage(stage: &StageComparison) -> String {
    let on = format!("stage {} on IPU {}", stage.stage, stage.ipu);
    if stage.difference == 0 {
        return on + ": as predicted";
    }
    let worst = stage.worst_part().map_or(String::new(), |part| {
        format!(
            ", most of all {}: {}",
            part.name,
            more_or_less(part.difference)
        )
    });
    format!(
        "{on}: {} than predicted ({}){worst}",
        more_or_less(stage.difference),
        signed_share(stage.difference, stage.predicted)
    )
}

/// Returns a difference in bytes as text, such as `1,024 bytes less`.
fn more_or_less(difference: i64) -> String {
    let more = if difference < 0 { "less" } else { "more" };
    format!("{} {more}", Amount(difference.unsigned_abs()))
}

/// Returns the sentence that says how the compiled stages differ from the predicted ones in their
/// number or layers, and what the user can do.
fn elsewhere(cut: &CutElsewhere, comparison: &FitComparison) -> String {
    let other = match (cut.ipus, cut.stages.as_slice()) {
        (Some(count), _) => format!(
            "it has {} and the prediction {}",
            counted(count, "IPU"),
            counted(comparison.predicted_stages, "stage")
        ),
        (None, [stage]) => format!("stage {stage} has other layers"),
        (None, stages) => format!("stages {} have other layers", listed(stages)),
    };
    let recorded = match cut.recorded.as_slice() {
        [] => String::new(),
        recorded => format!("; the IPUs have the layers {}", stages(recorded)),
    };
    format!(
        "the pipeline was cut elsewhere than predicted: {other}{recorded} (predict the split that \
         was compiled, with {} or {}, and compare with that)",
        code("--layers-per-ipu"),
        code("--splits")
    )
}
