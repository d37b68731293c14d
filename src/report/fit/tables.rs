//! Makes the tables about a recorded compilation, and about how it differs from the prediction.

use super::{IpuFit, PartComparison, StageComparison};
use crate::{
    report::{Cell, Report, Table, table},
    wording::signed_share,
};

fn all_ipus(report: &Report) -> impl Iterator<Item = &IpuFit> {
    report.fit.iter().flat_map(|fit| &fit.ipus)
}

/// Makes the table of IPUs: a row for each IPU that the profile lists, with the bytes of its
/// fullest tile by kind of contents.
pub fn ipus(report: &Report) -> Table {
    table!("fit", all_ipus(report), |ipu| {
        => []
        "IPU" Count (.ipu),
        NotZero "Layers" Layers (.layers),
        "Fits" Text (report.has_verdict().then_some(ipu.fits)),
        => [.fullest_tile]
        "Limit" Bytes (.limit),
        "Tile" Count (.tile),
        "On its IPU" Count (.tile_of_ipu),
        "Peak memory" Bytes (.bytes),
        ForPeople "Of the limit" Share (Cell::Share(ipu.fullest_tile.bytes, ipu.fullest_tile.limit)),
        "Free" Free (.free),
        => []
        NotZero "Tiles over" Count (.tiles_over),
        NotZero "Overflowed" Bytes (.overflowed),
        "Median tile" Bytes (.tiles.median),
        "95th percentile tile" Bytes (.tiles.percentile_95),
        "All tiles" Bytes (.total),
        => [.fullest_tile.parts]
        "Variables" Bytes (.variables),
        "Stash" Bytes (.stash),
        "Accumulators" Bytes (.accumulators),
        "Vertex code" Bytes (.vertex_code),
        "Vertex state" Bytes (.vertex_state),
        "Exchange code" Bytes (.exchange_code),
        "Control code" Bytes (.control_code),
        "Host exchange code" Bytes (.host_exchange_code),
        "Global exchange code" Bytes (.global_exchange_code),
        "Fragmentation" Bytes (.gaps),
        => [.fullest_tile]
        "With fragmentation" Bytes (.with_gaps),
        "Always live" Bytes (.always_live),
        "Not always live" Bytes (.not_always_live),
        "Peak step" Count (.peak_step),
        => []
        "All stashed" Bytes (.named?.stashed),
        "All restored" Bytes (.named?.restored),
        "All accumulators" Bytes (.named?.accumulators),
        "All received" Bytes (.named?.received),
        "Cycles" Count (.cycles),
    })
    .of(
        report,
        "/fit/ipus",
        "IPU, Layers, Peak memory, Of the limit, Free, Tiles over, Overflowed, (Median tile)",
    )
    .with_bars()
}

/// Makes the table of recorded categories of variables: a row for each IPU and each category that
/// has bytes on this IPU.
pub fn categories(report: &Report) -> Table {
    let used = all_ipus(report).flat_map(|ipu| {
        ipu.categories
            .iter()
            .filter(|own| own.all_tiles > 0)
            .map(|category| (ipu.ipu, category))
    });
    table!("fit-categories", used, |(ipu, category)| {
        "IPU" Count (ipu),
        "Category" Text (&*category.name),
        "All tiles" Bytes (category.all_tiles),
        "On the fullest tile" Bytes (category.fullest_tile),
    })
}

fn compared(report: &Report) -> impl Iterator<Item = &StageComparison> {
    report
        .comparison()
        .into_iter()
        .flat_map(|comparison| &comparison.stages)
}

/// Makes the table that compares stages with their IPUs: a row for each stage, with the predicted
/// and the recorded bytes on the fullest tile and over all tiles.
pub fn stages(report: &Report) -> Table {
    table!("compare-stages", compared(report), |stage| {
        "Stage" Count (.stage),
        "IPU" Count (.ipu),
        "Layers" Layers (.layers),
        "Predicted" Bytes (.predicted),
        "Recorded" Bytes (.recorded),
        "Difference" Change (.difference),
        ForPeople "Of the predicted" Text (signed_share(stage.difference, stage.predicted)),
        "Reserve" Bytes (.reserve),
        "Free" Free (.free),
        "Most of it" Text (stage.worst_part().map(|part| part.name)),
        "All tiles predicted" Bytes (.predicted_total),
        "All tiles recorded" Bytes (.recorded_total),
        "Difference of all tiles" Change (.total_difference),
    })
    .of(
        report,
        "/fit/comparison/stages",
        "Stage, IPU, Layers, Predicted, Recorded, Difference, Of the predicted, \
         Reserve, (Free), Most of it",
    )
}

/// Makes the table that compares predicted and recorded bytes on the fullest tile of each stage:
/// one row per stage and kind of contents, such as code, for the kinds that `is_shown` accepts.
pub fn parts(report: &Report, is_shown: impl Fn(&PartComparison) -> bool) -> Table {
    let parts = compared(report).flat_map(|stage| stage.parts().map(move |part| (stage, part)));
    let shown = parts.filter(|(_, part)| is_shown(part));
    table!("compare-parts", shown, |(stage, part)| {
        "Stage" Count (stage.stage),
        "IPU" Count (stage.ipu),
        "Part" Text (part.name),
        "Predicted" Bytes (part.predicted),
        "Recorded" Bytes (part.recorded),
        "Difference" Change (part.difference),
    })
}
