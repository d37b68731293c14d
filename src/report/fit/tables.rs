//! Tables of a compilation, and of the prediction for it.

use super::{IpuFit, RecordedTileFacts, StageComparison};
use crate::report::Report;
use crate::report::cell::Cell;
use crate::report::fields::{FilledColumn, fields, items, placed, table};
use crate::report::table::{RowBar, Table};
use crate::wording::signed_share;

const IPUS: [FilledColumn<IpuFit>; 33] = fields![IpuFit;
    Always "IPU" Count (.ipu),
    NotZero "Layers" Layers (.layers),
    Always "Fits" Text (.fits),
    Always "Limit" Bytes (.fullest_tile.limit),
    Always "Tile" Count (.fullest_tile.tile),
    Always "On its IPU" Count (.fullest_tile.tile_of_ipu),
    Always "Peak memory" Bytes (.fullest_tile.bytes),
    ForPeople "Of the limit" Share (|ipu, _, _| Cell::Share(ipu.fullest_tile.bytes, ipu.fullest_tile.limit)),
    Always "Free" Free (.fullest_tile.free),
    NotZero "Tiles over" Count (.tiles_over),
    NotZero "Overflowed" Bytes (.overflowed),
    Always "Median tile" Bytes (.tiles.median),
    Always "95th percentile tile" Bytes (.tiles.percentile_95),
    Always "All tiles" Bytes (.total),
    Always "Variables" Bytes (.fullest_tile.parts.variables),
    Always "Stash" Bytes (.fullest_tile.parts.stash),
    Always "Accumulators" Bytes (.fullest_tile.parts.accumulators),
    Always "Vertex code" Bytes (.fullest_tile.parts.vertex_code),
    Always "Vertex state" Bytes (.fullest_tile.parts.vertex_state),
    Always "Exchange code" Bytes (.fullest_tile.parts.exchange_code),
    Always "Control code" Bytes (.fullest_tile.parts.control_code),
    Always "Host exchange code" Bytes (.fullest_tile.parts.host_exchange_code),
    Always "Global exchange code" Bytes (.fullest_tile.parts.global_exchange_code),
    Always "Fragmentation" Bytes (.fullest_tile.parts.gaps),
    Always "With fragmentation" Bytes (.fullest_tile.with_gaps),
    Always "Always live" Bytes (.fullest_tile.always_live),
    Always "Not always live" Bytes (.fullest_tile.not_always_live),
    Always "Peak step" Count (.fullest_tile.peak_step),
    Always "All stashed" Bytes (.named?.stashed),
    Always "All restored" Bytes (.named?.restored),
    Always "All accumulators" Bytes (.named?.accumulators),
    Always "All received" Bytes (.named?.received),
    Always "Cycles" Count (.cycles),
];

/// Makes the table of IPUs: a row for each listed IPU, with the bytes of its fullest tile by what
/// they hold.
pub(in crate::report) fn ipus(report: &Report) -> Table {
    let ipus = report.fit.iter().flat_map(|fit| &fit.ipus);
    let bars = ipus
        .map(|ipu| &ipu.fullest_tile)
        .map(|&RecordedTileFacts { bytes, limit, .. }| RowBar { bytes, limit });
    Table {
        for_people: "IPU, Layers, Peak memory, Of the limit, Free, Tiles over, Overflowed, (Median \
         tile)",
        bars: bars.collect(),
        ..Table::of("fit", &IPUS, report, items!(report, fit?.ipus))
    }
}

/// Makes the table of categories: for each IPU, a row for each category with bytes on it.
pub(in crate::report) fn categories(report: &Report) -> Table {
    let all = report
        .fit
        .iter()
        .flat_map(|fit| &fit.ipus)
        .flat_map(|ipu| ipu.categories.iter().map(|category| (ipu.ipu, category)));
    let used = all.filter(|(_, category)| category.all_tiles > 0);
    table!("fit-categories", used, |(ipu, category)| {
        Count "IPU": ipu,
        Text "Category": &*category.name,
        Bytes "All tiles": category.all_tiles,
        Bytes "On the fullest tile": category.fullest_tile,
    })
}

const STAGES: [FilledColumn<StageComparison>; 13] = fields![StageComparison;
    Always "Stage" Count (.stage),
    Always "IPU" Count (.ipu),
    Always "Layers" Layers (.layers),
    Always "Predicted" Bytes (.predicted),
    Always "Recorded" Bytes (.recorded),
    Always "Difference" Change (.difference),
    ForPeople "Of the predicted" Text (|stage, _, _| signed_share(stage.difference, stage.predicted).into()),
    Always "Reserve" Bytes (.reserve),
    Always "Free" Free (.free),
    Always "Most of it" Text (|stage, _, _| stage.worst_part().map(|part| part.name).into()),
    Always "All tiles predicted" Bytes (.predicted_total),
    Always "All tiles recorded" Bytes (.recorded_total),
    Always "Difference of all tiles" Change (.total_difference),
];

/// Makes the table of predicted stages that were matched with an IPU: a row for each, with its
/// predicted and recorded bytes on the fullest tile and over all tiles.
pub(in crate::report) fn stages(report: &Report) -> Table {
    let comparison = report.comparison().into_iter();
    let stages = comparison.flat_map(|comparison| &comparison.stages);
    Table {
        for_people: "Stage, IPU, Layers, Predicted, Recorded, Difference, Of the predicted, \
         Reserve, (Free), Most of it",
        ..Table::of(
            "compare-stages",
            &STAGES,
            report,
            placed("/fit/comparison/stages", stages),
        )
    }
}

/// Makes the table of kinds of contents: for each stage, a row for each kind with recorded or
/// predicted bytes on the fullest tile.
pub(in crate::report) fn parts(report: &Report) -> Table {
    let comparison = report.comparison().into_iter();
    let stages = comparison.flat_map(|comparison| &comparison.stages);
    let parts = stages.flat_map(|stage| stage.parts().map(move |part| (stage, part)));
    let used = parts.filter(|(_, part)| part.predicted.max(part.recorded) > 0);
    table!("compare-parts", used, |(stage, part)| {
        Count "Stage": stage.stage,
        Count "IPU": stage.ipu,
        Text "Part": part.name,
        Bytes "Predicted": part.predicted,
        Bytes "Recorded": part.recorded,
        Change "Difference": part.difference,
    })
}

/// Makes the table of kinds of contents whose recorded bytes differ from the prediction, stage by
/// stage.
pub(in crate::report) fn changed_parts(report: &Report) -> Table {
    let mut table = parts(report);
    let is_changed = |cell: Option<&Cell>| cell.is_some_and(|bytes| *bytes != Cell::Number(0));
    table.rows.retain(|row| is_changed(row.cells.last()));
    table
}
