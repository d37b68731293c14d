//! What the compiler recorded: by tile, by category, and what explains it.

use super::chart_data::{Chart, Charts};
use super::widgets::{folded, legend, number, rounded, scale, sentence, stacked, table, ticks};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::grouped;
use crate::report::{CategoryBytes, CoverageFacts, Report, TileTotals, sentences};
use maud::{Markup, html};
use std::fmt::Write;

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
        @if !memory.categories.is_empty() {
            (by_category(&memory.categories))
        }
        @if let Some(coverage) = &memory.coverage {
            (covered(report, coverage))
        }
    })
}

const HEIGHT: u32 = 200;
const ABOVE: u32 = 16;
const BELOW: u32 = 20;

fn by_tile(tiles: &TileTotals, limit: u64, charts: &mut Charts) -> Markup {
    let (drawing, gaps) = (
        tile_drawing(tiles, limit, charts),
        tiles.with_gaps.is_some(),
    );
    let sum = |bytes: &[u64]| bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>();
    html! {
        h3 { "By tile" }
        (legend(if gaps { &[("variables", "Bytes in use"), ("gaps", "With gaps")][..] } else { &[("variables", "Bytes in use")] }))
        figure {
            (drawing)
            figcaption {
                "Tile " (number("/memory/tiles/fullest", tiles.fullest.into())) " is the fullest. The dashed line is the memory of a tile. All tiles together have "
                (grouped(u64::try_from(sum(&tiles.total)).unwrap_or(u64::MAX))) " bytes without gaps"
                @if let Some(with_gaps) = &tiles.with_gaps {
                    ", " (grouped(u64::try_from(sum(with_gaps)).unwrap_or(u64::MAX))) " with gaps"
                }
                "."
            }
        }
        (folded("Table of the fullest tiles", tile_table(tiles)))
    }
}

fn tile_drawing(tiles: &TileTotals, limit: u64, charts: &mut Charts) -> Markup {
    let most = tiles.total.iter().chain(tiles.with_gaps.iter().flatten());
    let most = most.copied().max().unwrap_or(0).max(limit).max(1);
    let most = most.saturating_add(most / 8);
    let room = HEIGHT - ABOVE - BELOW;
    let y = |bytes: u64| {
        let y = f64::from(ABOVE) + f64::from(room) * (1.0 - bytes as f64 / most as f64);
        (y * 10.0).round() / 10.0
    };
    let mut series = vec![
        ("bytes in use", tiles.total.clone()),
        ("always live", tiles.always_live.clone()),
        ("most of others", tiles.not_always_live.clone()),
    ];
    series.extend(tiles.with_gaps.clone().map(|bytes| ("with gaps", bytes)));
    let last = tiles.total.len().saturating_sub(1) as u32;
    let number = charts.add(Chart {
        what: "tile",
        first: 0,
        last,
        at: (0..=last).collect(),
        fixed: Vec::new(),
        series,
        adds: false,
        banded: false,
    });
    html! {
        div.plot {
        (scale(HEIGHT, ticks(most).into_iter().map(|tick| (tick, y(tick)))))
        svg height=(HEIGHT) role="img" aria-label="Bytes of each tile" data-chart=(number) {
            @for tick in ticks(most) { line.grid x1="0" x2="100%" y1=(y(tick)) y2=(y(tick)) {} }
            svg y=(ABOVE) width="100%" height=(room) preserveAspectRatio="none"
                viewBox=(format!("0 0 {} 1000", tiles.total.len())) {
                @if let Some(with_gaps) = &tiles.with_gaps { path.gaps d=(outline(with_gaps, most)) {} }
                path.variables d=(outline(&tiles.total, most)) {}
            }
            line.limit x1="0" x2="100%" y1=(y(limit)) y2=(y(limit)) {}
            text.limit-text.halo x="100%" y=(y(limit) - 4.0) text-anchor="end" { "tile memory " (rounded(limit)) }
            text.axis x="0" y=(HEIGHT - 5) { "tile 0" }
            text.axis x="100%" y=(HEIGHT - 5) text-anchor="end" { (last) }
            line.cursor x1="0" x2="0" y1=(ABOVE) y2=(HEIGHT - BELOW) {}
        }
        }
    }
}

/// The outline over all tiles, each one wide.
fn outline(bytes: &[u64], most: u64) -> String {
    let mut path = String::from("M0 1000");
    let mut last = 1000;
    for (tile, &bytes) in bytes.iter().enumerate() {
        let next = (1000.0 * (1.0 - bytes as f64 / most as f64)).round() as i64;
        if next != last {
            let _ = write!(path, "H{tile}V{next}");
            last = next;
        }
    }
    let _ = write!(path, "H{}V1000Z", bytes.len());
    path
}

/// The maximum number of tiles in the table.
const FULLEST: usize = 20;

const TILES: [Column; 5] = [
    Column::new("Tile", Kind::Count, ""),
    Column::new("Bytes in use", Kind::Bytes, "/memory/tiles/total/{}"),
    Column::new("With gaps", Kind::Bytes, "/memory/tiles/with_gaps/{}"),
    Column::new("Always live", Kind::Bytes, "/memory/tiles/always_live/{}"),
    Column::new(
        "Most of others",
        Kind::Bytes,
        "/memory/tiles/not_always_live/{}",
    ),
];

fn tile_table(tiles: &TileTotals) -> Markup {
    let mut fullest: Vec<usize> = (0..tiles.total.len()).collect();
    fullest.sort_by_key(|&tile| std::cmp::Reverse(tiles.total[tile]));
    fullest.truncate(FULLEST);
    let mut table_of = Table::new("tiles", &TILES);
    for tile in fullest {
        let with_gaps = tiles.with_gaps.as_ref().and_then(|own| own.get(tile));
        let cells = cells![
            tile,
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
    table("Fullest tiles", &table_of)
}

const CATEGORIES: [Column; 4] = [
    Column::text("Category"),
    Column::new("Bytes", Kind::Bar, ""),
    Column::new("All tiles", Kind::Bytes, "/all_tiles"),
    Column::new("Fullest tile", Kind::Bytes, "/fullest_tile"),
];

fn by_category(categories: &[CategoryBytes]) -> Markup {
    let mut order: Vec<usize> = (0..categories.len()).collect();
    order.retain(|&place| categories[place].all_tiles > 0);
    order.sort_by_key(|&place| std::cmp::Reverse(categories[place].all_tiles));
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
