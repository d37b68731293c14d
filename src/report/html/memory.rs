//! What the compiler recorded: by tile, by category, and what explains it.

use super::chart_data::Charts;
use super::tile_map;
use super::tiles::{Block, TileDrawing};
use super::widgets::{folded, legend, number, sentence, stacked, table};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::grouped;
use crate::report::{CategoryBytes, CoverageFacts, Report, TileTotals, sentences};
use maud::{Markup, html};

/// All that the profile recorded; `None` when it recorded nothing.
pub(super) fn section(report: &Report, charts: &mut Charts) -> Option<Markup> {
    let memory = &report.memory;
    if memory.tiles.is_none() && memory.categories.is_empty() {
        return None;
    }
    Some(html! {
        p { "The whole model on one IPU, as the compiler recorded it." }
        @if let Some(tiles) = &memory.tiles {
            (by_tile(tiles, report.provenance.target.bytes_per_tile, charts))
        }
        @if let Some(map) = tile_map::part(report) { (map) }
        @if !memory.categories.is_empty() {
            (by_category(&memory.categories))
        }
        @if let Some(coverage) = &memory.coverage {
            (covered(report, coverage))
        }
    })
}

fn by_tile(tiles: &TileTotals, limit: u64, charts: &mut Charts) -> Markup {
    let all = Block {
        ipu: None,
        tiles: 0..tiles.total.len(),
        limit,
    };
    let drawing = TileDrawing {
        tiles,
        blocks: vec![all],
        limit: "tile memory",
        label: "Bytes of each tile".into(),
    };
    html! {
        h3 { "By tile" }
        (tiles_legend(tiles))
        figure {
            (drawing.drawing(charts))
            figcaption { (fullest_of_all(tiles)) " The dashed line is the memory of a tile. " (sums(tiles)) }
        }
        (folded("Table of the fullest tiles", tile_table(tiles, None)))
    }
}

/// What the colours of tiles mean.
pub(super) fn tiles_legend(tiles: &TileTotals) -> Markup {
    let entries = [("variables", "Bytes in use"), ("gaps", "With gaps")];
    let gaps = usize::from(tiles.with_gaps.is_some());
    legend(&entries[..1 + gaps])
}

/// Which tile is the fullest.
pub(super) fn fullest_of_all(tiles: &TileTotals) -> Markup {
    html! { "Tile " (number("/memory/tiles/fullest", tiles.fullest.into())) " is the fullest." }
}

/// What all tiles have together.
pub(super) fn sums(tiles: &TileTotals) -> Markup {
    let sum = |bytes: &[u64]| bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>();
    let sum = |bytes: &[u64]| grouped(u64::try_from(sum(bytes)).unwrap_or(u64::MAX));
    html! {
        "All tiles together have " (sum(&tiles.total)) " bytes without gaps"
        @if let Some(with_gaps) = &tiles.with_gaps {
            ", " (sum(with_gaps)) " with gaps"
        }
        "."
    }
}

/// The maximum number of tiles in the table.
const FULLEST: usize = 20;

const TILES: [Column; 7] = [
    Column::new("Tile", Kind::Count, ""),
    Column::new("IPU", Kind::Count, ""),
    Column::new("On its IPU", Kind::Count, ""),
    Column::new("Bytes in use", Kind::Bytes, "/memory/tiles/total/{}"),
    Column::new("With gaps", Kind::Bytes, "/memory/tiles/with_gaps/{}"),
    Column::new("Always live", Kind::Bytes, "/memory/tiles/always_live/{}"),
    Column::new(
        "Most of others",
        Kind::Bytes,
        "/memory/tiles/not_always_live/{}",
    ),
];

/// The fullest tiles; of several IPUs with the place on their IPU.
pub(super) fn tile_table(tiles: &TileTotals, tiles_per_ipu: Option<u32>) -> Markup {
    let of_ipu = tiles_per_ipu.map(|tiles| tiles.max(1) as usize);
    let mut fullest: Vec<usize> = (0..tiles.total.len()).collect();
    fullest.sort_by_key(|&tile| std::cmp::Reverse(tiles.total[tile]));
    fullest.truncate(FULLEST);
    let mut table_of = Table::new("tiles", &TILES);
    for tile in fullest {
        let with_gaps = tiles.with_gaps.as_ref().and_then(|own| own.get(tile));
        let cells = cells![
            tile,
            of_ipu.map(|tiles| tile / tiles),
            of_ipu.map(|tiles| tile % tiles),
            tiles.total[tile],
            with_gaps.copied(),
            tiles.always_live.get(tile).copied(),
            tiles.not_always_live.get(tile).copied(),
        ];
        table_of.row(tile.to_string(), cells);
    }
    if tiles.with_gaps.is_none() {
        table_of = table_of.without("With gaps");
    }
    if of_ipu.is_none() {
        table_of = table_of.without("IPU").without("On its IPU");
    }
    table("Fullest tiles", &table_of)
}

const CATEGORIES: [Column; 4] = [
    Column::text("Category"),
    Column::new("Bytes", Kind::Bar, ""),
    Column::new("All tiles", Kind::Bytes, "/all_tiles"),
    Column::new("Fullest tile", Kind::Bytes, "/fullest_tile"),
];

/// The places of the categories that have bytes, those with most first.
pub(super) fn largest_first(categories: &[CategoryBytes]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..categories.len()).collect();
    order.retain(|&place| categories[place].all_tiles > 0);
    order.sort_by_key(|&place| std::cmp::Reverse(categories[place].all_tiles));
    order
}

fn by_category(categories: &[CategoryBytes]) -> Markup {
    let order = largest_first(categories);
    let whole = order
        .first()
        .map_or(1, |&place| categories[place].all_tiles);
    let mut rows = Table::new("categories", &CATEGORIES);
    for place in order {
        let own = &categories[place];
        let bar = Cell::Bar {
            parts: vec![("variables", "all tiles", own.all_tiles)],
            whole,
        };
        let cells = cells![&*own.name, bar, own.all_tiles, own.fullest_tile];
        rows.row(format!("/memory/categories/{place}"), cells);
    }
    html! {
        h3 { "By category" }
        p.soft { "Variables that share memory at different steps all count here, so the categories of a tile can add up to more than it has in use." }
        (table("Categories", &rows))
    }
}

const COVERAGE: [Column; 4] = [
    Column::text("Part"),
    Column::text("What it is"),
    Column::new("Bytes", Kind::Bytes, "{}"),
    Column::new("Share", Kind::Share, ""),
];

/// What explains the fullest tile.
fn covered(report: &Report, coverage: &CoverageFacts) -> Markup {
    let bar = [
        ("variables", "Layers", coverage.layers),
        ("exchange-code", "Assigned", coverage.assigned),
        ("overhead", "Overhead", coverage.overhead),
    ];
    let sum: u128 = bar.iter().map(|&(_, _, bytes)| u128::from(bytes)).sum();
    let whole = u64::try_from(sum)
        .unwrap_or(u64::MAX)
        .max(coverage.recorded);
    let mut rows = Table::new("coverage", &COVERAGE);
    let mut row = |name: &str, what: &str, field: &str, bytes: u64| {
        let cells = cells![name, what, bytes, Cell::Share(bytes, coverage.recorded)];
        rows.row(format!("/memory/coverage/{field}"), cells);
    };
    let what = "operations that have a layer by their names";
    row("Layers", what, "layers", coverage.layers);
    let what = "other operations, in the place where they count";
    row("Assigned", what, "assigned", coverage.assigned);
    if coverage.by_touch > 0 {
        let what = "of the assigned, in every place that touches it, since nothing says more";
        row("By touch", what, "by_touch", coverage.by_touch);
    }
    row(
        "Overhead",
        "what every stage needs",
        "overhead",
        coverage.overhead,
    );
    let rest = cells!["Rest", "what nothing explains", coverage.rest, Cell::Empty];
    rows.row("/memory/coverage/rest", rest);
    html! {
        h3 { "Coverage" }
        p { (sentence(report, &sentences::coverage(coverage))) }
        (legend(&bar.map(|(class, name, _)| (class, name))))
        figure { (stacked(&bar, whole, None, 16)) }
        (table("Coverage", &rows))
    }
}
