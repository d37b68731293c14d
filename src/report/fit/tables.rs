//! Tables of a compilation, and of the prediction for it.

use super::{IpuFit, StageAgainst, TileParts};
use crate::report::fields::{Field, fields, items, placed};
use crate::report::table::{Cell, Column, ForPeople, Kind, Table, cells};
use crate::report::text::signed_share;
use crate::report::{CategoryBytes, Report};

const IPUS: [Field<IpuFit>; 33] = fields![IpuFit;
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

const IPUS_FOR_PEOPLE: [ForPeople; 8] = [
    ("IPU", true),
    ("Layers", true),
    ("Peak memory", true),
    ("Of the limit", true),
    ("Free", true),
    ("Tiles over", true),
    ("Overflowed", true),
    ("Median tile", false),
];

/// Makes the table of IPUs: one row each, with the parts of its fullest tile.
pub(in crate::report) fn ipus(report: &Report) -> Table {
    let ipus = report.fit.iter().flat_map(|fit| &fit.ipus);
    let fullest = ipus.map(|ipu| &ipu.fullest_tile);
    Table {
        for_people: &IPUS_FOR_PEOPLE,
        bars: fullest.map(|tile| (tile.bytes, tile.limit)).collect(),
        ..Table::of("fit", &[&IPUS], report, items!(report, fit?.ipus))
    }
}

const CATEGORIES: [Field<(u32, CategoryBytes)>; 4] = fields![(u32, CategoryBytes);
    Always "IPU" Count (|row, _, _| row.0.into()),
    Always "Category" Text (|row, _, _| (&*row.1.name).into()),
    Always "All tiles" Bytes (|row, _, _| row.1.all_tiles.into()),
    Always "On the fullest tile" Bytes (|row, _, _| row.1.fullest_tile.into()),
];

/// Makes the table of categories: a row for each category with bytes on an IPU, IPU by IPU.
pub(in crate::report) fn categories(report: &Report) -> Table {
    let ipus = report.fit.iter().flat_map(|fit| &fit.ipus);
    let all = ipus.flat_map(|ipu| ipu.categories.iter().map(|row| (ipu.ipu, row.clone())));
    let all: Vec<_> = all.filter(|(_, category)| category.all_tiles > 0).collect();
    let rows = all.iter().map(|category| (String::new(), category));
    Table::of("fit-categories", &[&CATEGORIES], report, rows)
}

const STAGES: [Field<StageAgainst>; 13] = fields![StageAgainst;
    Always "Stage" Count (.stage),
    Always "IPU" Count (.ipu),
    Always "Layers" Layers (.layers),
    Always "Predicted" Bytes (.predicted),
    Always "Recorded" Bytes (.recorded),
    Always "Difference" Change (.difference),
    ForPeople "Of the predicted" Text (|stage, _, _| signed_share(stage.difference, stage.predicted).into()),
    Always "Reserve" Bytes (.reserve),
    Always "Free" Free (.free),
    Always "Most of it" Text (|stage, _, _| stage.worst_part().map(|(part, _)| part).into()),
    Always "All tiles predicted" Bytes (.predicted_total),
    Always "All tiles recorded" Bytes (.recorded_total),
    Always "Difference of all tiles" Change (.total_difference),
];

/// The columns for people, which are about fullest tiles.
const STAGES_FOR_PEOPLE: [ForPeople; 10] = [
    ("Stage", true),
    ("IPU", true),
    ("Layers", true),
    ("Predicted", true),
    ("Recorded", true),
    ("Difference", true),
    ("Of the predicted", true),
    ("Reserve", true),
    ("Free", false),
    ("Most of it", true),
];

/// Makes the table of stages that have an IPU: a row each, with its fullest tile and all tiles.
pub(in crate::report) fn stages(report: &Report) -> Table {
    let against = report.fit.iter().flat_map(|fit| &fit.against);
    let stages = against.flat_map(|against| &against.stages);
    Table {
        for_people: &STAGES_FOR_PEOPLE,
        ..Table::of(
            "against",
            &[&STAGES],
            report,
            placed("/fit/against/stages", stages),
        )
    }
}

pub(in crate::report) const PART_ROWS: [Column; 6] = [
    Column::new("Stage", Kind::Count, ""),
    Column::new("IPU", Kind::Count, ""),
    Column::text("Part"),
    Column::new("Predicted", Kind::Bytes, ""),
    Column::new("Recorded", Kind::Bytes, ""),
    Column::new("Difference", Kind::Change, ""),
];

/// Makes the table of parts: a row for each stage and part of its fullest tile with recorded or
/// predicted bytes.
pub(in crate::report) fn parts(report: &Report) -> Table {
    let against = report.fit.iter().flat_map(|fit| &fit.against);
    let mut table = Table::new("against-parts", &PART_ROWS);
    for stage in against.flat_map(|against| &against.stages) {
        for row in part_rows(stage) {
            table.row("", row);
        }
    }
    table
}

/// Makes the table of parts whose recorded bytes differ from the prediction.
pub(in crate::report) fn changed_parts(report: &Report) -> Table {
    let mut table = parts(report);
    let is_changed = |cell: Option<&Cell>| cell.is_some_and(|bytes| *bytes != Cell::Number(0));
    table.rows.retain(|row| is_changed(row.cells.last()));
    table
}

fn part_rows(stage: &StageAgainst) -> Vec<Vec<Cell>> {
    let (predicted, recorded) = (stage.predicted_parts.bytes(), stage.recorded_parts.bytes());
    let differences = stage.part_differences();
    let parts = (0..TileParts::NAMES.len()).filter(|&part| predicted[part].max(recorded[part]) > 0);
    let row = |part: usize| {
        cells![
            stage.stage,
            stage.ipu,
            TileParts::NAMES[part],
            predicted[part],
            recorded[part],
            differences[part],
        ]
    };
    parts.map(row).collect()
}
