//! The tables of a compilation, and of what was predicted of it.

use super::{Against, Fit, IpuFit, StageAgainst, TileParts};
use crate::model::PseudoLayers;
use crate::report::Report;
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::signed_share;

/// The tables for programs: IPUs and their categories, and what was predicted. Shares
/// are left out, which programs compute themselves.
pub fn all(report: &Report) -> Vec<Table> {
    let Some(fit) = &report.fit else {
        return Vec::new();
    };
    let mut tables = vec![ipus(fit).without("Of the limit"), categories(fit)];
    if let Some(against) = &fit.against {
        let stages = stages(against, report.pseudo_layers);
        tables.extend([stages.without("Of the predicted"), parts(against)]);
    }
    tables
}

/// The columns of parts, in the order of [`TileParts::bytes`].
const PARTS: [Column; 10] = [
    Column::new("Variables", Kind::Bytes, "/fullest_tile/parts/variables"),
    Column::new("Stash", Kind::Bytes, "/fullest_tile/parts/stash"),
    Column::new(
        "Accumulators",
        Kind::Bytes,
        "/fullest_tile/parts/accumulators",
    ),
    Column::new(
        "Vertex code",
        Kind::Bytes,
        "/fullest_tile/parts/vertex_code",
    ),
    Column::new(
        "Vertex state",
        Kind::Bytes,
        "/fullest_tile/parts/vertex_state",
    ),
    Column::new(
        "Exchange code",
        Kind::Bytes,
        "/fullest_tile/parts/exchange_code",
    ),
    Column::new(
        "Control code",
        Kind::Bytes,
        "/fullest_tile/parts/control_code",
    ),
    Column::new(
        "Host exchange code",
        Kind::Bytes,
        "/fullest_tile/parts/host_exchange_code",
    ),
    Column::new(
        "Global exchange code",
        Kind::Bytes,
        "/fullest_tile/parts/global_exchange_code",
    ),
    Column::new("Gaps", Kind::Bytes, "/fullest_tile/parts/gaps"),
];

const IPUS: [Column; 14] = [
    Column::new("IPU", Kind::Count, "/ipu"),
    Column::new("Layers", Kind::Layers, ""),
    Column::text("Fits"),
    Column::new("Limit", Kind::Bytes, "/fullest_tile/limit"),
    Column::new("Tile", Kind::Count, "/fullest_tile/tile"),
    Column::new("On its IPU", Kind::Count, "/fullest_tile/tile_of_ipu"),
    Column::new("Peak memory", Kind::Bytes, "/fullest_tile/bytes"),
    Column::new("Of the limit", Kind::Share, ""),
    Column::new("Free", Kind::Free, "/fullest_tile/free"),
    Column::new("Tiles over", Kind::Count, "/tiles_over"),
    Column::new("Overflowed", Kind::Bytes, "/overflowed"),
    Column::new("Median tile", Kind::Bytes, "/tiles/median"),
    Column::new("95th percentile tile", Kind::Bytes, "/tiles/percentile_95"),
    Column::new("All tiles", Kind::Bytes, "/total"),
];

/// After the parts.
const MORE_OF_IPUS: [Column; 9] = [
    Column::new("With gaps", Kind::Bytes, "/fullest_tile/with_gaps"),
    Column::new("Always live", Kind::Bytes, "/fullest_tile/always_live"),
    Column::new(
        "Most of others",
        Kind::Bytes,
        "/fullest_tile/not_always_live",
    ),
    Column::new("Peak step", Kind::Count, "/fullest_tile/peak_step"),
    Column::new("All stashed", Kind::Bytes, "/named/stashed"),
    Column::new("All restored", Kind::Bytes, "/named/restored"),
    Column::new("All accumulators", Kind::Bytes, "/named/accumulators"),
    Column::new("All received", Kind::Bytes, "/named/received"),
    Column::new("Cycles", Kind::Count, "/cycles"),
];

/// A row for each IPU; its parts are those on its fullest tile.
pub(in crate::report) fn ipus(fit: &Fit) -> Table {
    let columns = [&IPUS[..], &PARTS, &MORE_OF_IPUS].concat();
    let mut table = Table::of_layers("fit", &columns, PseudoLayers::default());
    for own in &fit.ipus {
        table.row(format!("/fit/ipus/{}", own.ipu), ipu_cells(own));
    }
    table
}

fn ipu_cells(own: &IpuFit) -> Vec<Cell> {
    let full = &own.fullest_tile;
    let mut cells = cells![
        own.ipu,
        own.layers.clone().map_or(Cell::Empty, Cell::Layers),
        own.fits,
        full.limit,
        full.tile,
        full.tile_of_ipu,
        full.bytes,
        Cell::Share(full.bytes, full.limit),
        full.free,
        own.tiles_over,
        own.overflowed,
        own.tiles.median,
        own.tiles.percentile_95,
        own.total,
    ];
    cells.extend(full.parts.bytes().map(Cell::from));
    cells.extend(cells![
        full.with_gaps,
        full.always_live,
        full.not_always_live,
        full.peak_step,
        own.named.map(|own| own.stashed),
        own.named.map(|own| own.restored),
        own.named.map(|own| own.accumulators),
        own.named.map(|own| own.received),
        own.cycles,
    ]);
    cells
}

const CATEGORIES: [Column; 4] = [
    Column::new("IPU", Kind::Count, ""),
    Column::text("Category"),
    Column::new("All tiles", Kind::Bytes, "/all_tiles"),
    Column::new("On the fullest tile", Kind::Bytes, "/fullest_tile"),
];

/// A row for each category that an IPU has bytes of, IPU by IPU.
pub(in crate::report) fn categories(fit: &Fit) -> Table {
    let mut table = Table::new("fit-categories", &CATEGORIES);
    for ipu in &fit.ipus {
        let categories = ipu.categories.iter().enumerate();
        for (place, own) in categories.filter(|(_, own)| own.all_tiles > 0) {
            let at = format!("/fit/ipus/{}/categories/{place}", ipu.ipu);
            table.row(
                at,
                cells![ipu.ipu, &*own.name, own.all_tiles, own.fullest_tile],
            );
        }
    }
    table
}

const STAGES: [Column; 12] = [
    Column::new("Stage", Kind::Count, "/stage"),
    Column::new("IPU", Kind::Count, "/ipu"),
    Column::new("Layers", Kind::Layers, ""),
    Column::new("Predicted", Kind::Bytes, "/predicted"),
    Column::new("Recorded", Kind::Bytes, "/recorded"),
    Column::new("Difference", Kind::Change, "/difference"),
    Column::text("Of the predicted"),
    Column::new("Free", Kind::Free, "/free"),
    Column::text("Most of it"),
    Column::new("All tiles predicted", Kind::Bytes, "/predicted_total"),
    Column::new("All tiles recorded", Kind::Bytes, "/recorded_total"),
    Column::new("Difference of all tiles", Kind::Change, "/total_difference"),
];

/// The columns about fullest tiles.
pub(in crate::report) const FOR_PEOPLE: [&str; 9] = [
    "Stage",
    "IPU",
    "Layers",
    "Predicted",
    "Recorded",
    "Difference",
    "Of the predicted",
    "Free",
    "Most of it",
];

/// A row for each stage that has an IPU: its fullest tile and all tiles.
pub(in crate::report) fn stages(against: &Against, pseudo_layers: PseudoLayers) -> Table {
    let mut table = Table::of_layers("against", &STAGES, pseudo_layers);
    for (place, own) in against.stages.iter().enumerate() {
        let worst = own.worst_part().map(|(part, _)| part);
        let cells = cells![
            own.stage,
            own.ipu,
            Cell::Layers(own.layers.clone()),
            own.predicted,
            own.recorded,
            own.difference,
            signed_share(own.difference, own.predicted),
            own.free,
            worst,
            own.predicted_total,
            own.recorded_total,
            own.total_difference,
        ];
        table.row(format!("/fit/against/stages/{place}"), cells);
    }
    table
}

pub(in crate::report) const PART_ROWS: [Column; 6] = [
    Column::new("Stage", Kind::Count, ""),
    Column::new("IPU", Kind::Count, ""),
    Column::text("Part"),
    Column::new("Predicted", Kind::Bytes, ""),
    Column::new("Recorded", Kind::Bytes, ""),
    Column::new("Difference", Kind::Change, ""),
];

/// A row for each stage and part of its fullest tile that either side has.
pub(in crate::report) fn parts(against: &Against) -> Table {
    let mut table = Table::new("against-parts", &PART_ROWS);
    for own in &against.stages {
        for row in part_rows(own) {
            table.row("", row);
        }
    }
    table
}

fn part_rows(own: &StageAgainst) -> Vec<Vec<Cell>> {
    let (predicted, recorded) = (own.predicted_parts.bytes(), own.recorded_parts.bytes());
    let differences = own.part_differences();
    let parts = (0..TileParts::NAMES.len()).filter(|&part| predicted[part].max(recorded[part]) > 0);
    let row = |part: usize| {
        cells![
            own.stage,
            own.ipu,
            TileParts::NAMES[part],
            predicted[part],
            recorded[part],
            differences[part],
        ]
    };
    let learnt = (own.learnt != 0).then(|| {
        let part = "learnt before";
        let empty = Cell::Empty;
        cells![
            own.stage,
            own.ipu,
            part,
            own.learnt,
            empty,
            own.learnt.saturating_neg()
        ]
    });
    parts.map(row).chain(learnt).collect()
}
