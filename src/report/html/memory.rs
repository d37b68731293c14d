//! What the compiler recorded: by tile, by category, and what explains it.

use super::chart_data::{Chart, Charts};
use super::widgets::{cell, folded, legend, number, rounded, scale, signed, stacked, table, ticks};
use crate::report::document::{CategoryBytes, CoverageFacts, Report, TileTotals};
use crate::report::text::{grouped, share, shown};
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
            (by_tile(tiles, report.made.target.bytes_per_tile, charts))
        }
        @if !memory.categories.is_empty() {
            (by_category(&memory.categories))
        }
        @if let Some(coverage) = &memory.coverage {
            (covered(coverage))
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

/// So many tiles stand in the table.
const FULLEST: usize = 20;

fn tile_table(tiles: &TileTotals) -> Markup {
    let mut fullest: Vec<usize> = (0..tiles.total.len()).collect();
    fullest.sort_by_key(|&tile| std::cmp::Reverse(tiles.total[tile]));
    fullest.truncate(FULLEST);
    let lists = [
        ("total", Some(&tiles.total)),
        ("with_gaps", tiles.with_gaps.as_ref()),
        ("always_live", Some(&tiles.always_live)),
        ("not_always_live", Some(&tiles.not_always_live)),
    ];
    let rows = html! {
        @for tile in fullest {
            tr {
                td.n { (tile) }
                @for (field, list) in &lists {
                    @if let Some(list) = list {
                        @match list.get(tile) {
                            Some(&bytes) => (cell(format_args!("/memory/tiles/{field}/{tile}"), bytes)),
                            None => td {},
                        }
                    }
                }
            }
        }
    };
    let mut columns = vec!["#Tile", "#Bytes in use"];
    if tiles.with_gaps.is_some() {
        columns.push("#With gaps");
    }
    columns.extend(["#Always live", "#Most of others"]);
    table("Fullest tiles", &columns, rows)
}

fn by_category(categories: &[CategoryBytes]) -> Markup {
    let mut order: Vec<usize> = (0..categories.len()).collect();
    order.retain(|&place| categories[place].all_tiles > 0);
    order.sort_by_key(|&place| std::cmp::Reverse(categories[place].all_tiles));
    let most = order
        .first()
        .map_or(1, |&place| categories[place].all_tiles);
    let rows = html! {
        @for place in order {
            @let category = &categories[place];
            tr {
                td.name { (shown(&category.name)) }
                td.draw { (stacked(&[("variables", "all tiles", category.all_tiles)], most, None, 12)) }
                (cell(format_args!("/memory/categories/{place}/all_tiles"), category.all_tiles))
                @match category.fullest_tile {
                    Some(bytes) => (cell(format_args!("/memory/categories/{place}/fullest_tile"), bytes)),
                    None => td.n { "\u{2013}" },
                }
            }
        }
    };
    html! {
        h3 { "By category" }
        p.soft { "Variables that share memory at different steps all count here, so the categories of a tile can add up to more than it has in use." }
        (table("Categories", &["Category", "", "#All tiles", "#Fullest tile"], rows))
    }
}

/// Who explains the fullest tile.
fn covered(coverage: &CoverageFacts) -> Markup {
    let parts = [
        (
            "variables",
            "Layers",
            coverage.layers,
            "layers",
            "operations that have a layer by their names",
        ),
        (
            "exchange-code",
            "Assigned",
            coverage.assigned,
            "assigned",
            "other operations, in the place where they count",
        ),
        (
            "overhead",
            "Overhead",
            coverage.overhead,
            "overhead",
            "what every stage needs",
        ),
    ];
    let bar = parts.map(|(class, name, bytes, ..)| (class, name, bytes));
    let sum: u128 = bar.iter().map(|&(_, _, bytes)| u128::from(bytes)).sum();
    let whole = u64::try_from(sum)
        .unwrap_or(u64::MAX)
        .max(coverage.recorded);
    let rows = html! {
        @for (_, name, bytes, field, what) in parts {
            tr {
                td { (name) }
                td.soft { (what) }
                (cell(format_args!("/memory/coverage/{field}"), bytes))
                td.n { (share(bytes, coverage.recorded)) }
            }
            @if field == "assigned" && coverage.by_touch > 0 {
                tr.soft {
                    td {}
                    td { "of these in every place that touches it, since nothing says more" }
                    (cell("/memory/coverage/by_touch", coverage.by_touch))
                    td.n { (share(coverage.by_touch, coverage.recorded)) }
                }
            }
        }
        tr {
            td { "Rest" }
            td.soft { "what nothing explains" }
            td.n { (signed("/memory/coverage/rest", coverage.rest)) }
            td {}
        }
    };
    html! {
        h3 { "Coverage" }
        p { "Who explains the " (number("/memory/coverage/recorded", coverage.recorded)) " bytes that were recorded for tile " (coverage.tile) ", the fullest." }
        (legend(&parts.map(|(class, name, ..)| (class, name))))
        figure { (stacked(&bar, whole, None, 16)) }
        (table("Coverage", &["Part", "", "#Bytes", "#Share"], rows))
    }
}
