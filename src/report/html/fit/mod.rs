//! A compilation as it was recorded, IPU by IPU.

mod against;
mod tiles;

pub(super) use against::section as against;
pub(super) use tiles::{blocks, section as memory};

use super::chart_data::Charts;
use super::curve::Drawing;
use super::widgets::{folded, legend, limits, number, sentence, signed, stacked, table};
use crate::report::fit::{sentences, tables};
use crate::report::sentences::Sentence;
use crate::report::table::{Cell, Column, Kind, Table, When, cells};
use crate::report::text::{capital, grouped, share};
use crate::report::{Curve, Fit, IpuFit, Report, TileParts};
use maud::{Markup, html};

/// The figures in the head of the page.
pub(super) fn figures(report: &Report, fit: &Fit) -> Markup {
    let over = fit.over().count();
    html! {
        dl.figures {
            @if let Some(own) = fit.nearest_to_limit() { (nearest(fit, own)) }
            div {
                dt { "IPUs" }
                dd {
                    (fit.ipus.len())
                    small { @if over == 0 { "all fit" } @else { (over) " do not fit" } }
                }
            }
            div {
                dt { "Tiles over the limit" }
                dd {
                    (grouped(fit.ipus.iter().map(|own| u64::from(own.tiles_over)).sum()))
                    small { "of " (number("/provenance/target/tiles", report.provenance.target.tiles.into())) }
                }
            }
            @if let Some(steps) = fit.steps {
                div { dt { "Steps" } dd { (number("/fit/steps", steps.into())) } }
            }
        }
    }
}

/// The tile that has least free.
fn nearest(fit: &Fit, own: &IpuFit) -> Markup {
    let tile = &own.fullest_tile;
    let at = format!("/fit/ipus/{}/fullest_tile", own.ipu);
    html! {
        div {
            dt { @if fit.limits.is_some() { "Tile nearest to its limit" } @else { "Fullest tile" } }
            dd {
                (number(format_args!("{at}/bytes"), tile.bytes))
                small {
                    "bytes, " (share(tile.bytes, tile.limit)) " of the limit; tile "
                    (number(format_args!("{at}/tile_of_ipu"), tile.tile_of_ipu.into())) " of IPU " (own.ipu)
                }
            }
        }
        div {
            dt { "Free there" }
            dd.bad[tile.free < 0] {
                (signed(format_args!("{at}/free"), tile.free))
                small { "bytes of " (number(format_args!("{at}/limit"), tile.limit)) }
            }
        }
    }
}

/// The class of the colour of each part, in the order of [`TileParts::bytes`].
const COLOURS: [&str; TileParts::NAMES.len()] = [
    "variables",
    "stash",
    "accumulators",
    "vertex-code",
    "vertex-state",
    "exchange-code",
    "control-code",
    "overhead",
    "waiting",
    "gaps",
];

/// A bar of what a tile holds.
fn bar(parts: &TileParts) -> Vec<(&'static str, &'static str, u64)> {
    let named = COLOURS.into_iter().zip(TileParts::NAMES);
    let named = named.zip(parts.bytes());
    named
        .map(|((class, name), bytes)| (class, name, bytes))
        .collect()
}

/// What the colours of those parts mean that there are bytes of.
fn parts_legend<'a>(all: impl Iterator<Item = &'a TileParts> + Clone) -> Markup {
    let is_there = |part: &usize| all.clone().any(|parts| parts.bytes()[*part] > 0);
    let names = TileParts::NAMES.map(capital);
    let there = (0..names.len()).filter(is_there);
    let entries: Vec<_> = there.map(|part| (COLOURS[part], &*names[part])).collect();
    legend(&entries)
}

/// Sentences as a list.
fn said(report: &Report, lines: &[Sentence], fits: bool) -> Markup {
    html! {
        div.notes.bad[!fits] { ul { @for line in lines { li { (sentence(report, line)) } } } }
    }
}

/// Whether each IPU fits, and what its fullest tile holds.
pub(super) fn ipus(report: &Report) -> Option<Markup> {
    let fit = report.fit.as_ref()?;
    let tiles = fit.ipus.iter().map(|own| &own.fullest_tile);
    Some(html! {
        (said(report, &sentences::lines(fit), fit.fits))
        h3 { "Memory on the fullest tile of each IPU" }
        (parts_legend(tiles.map(|tile| &tile.parts)))
        figure { (ipu_bars(fit)) }
        (ipu_tables(report, fit))
    })
}

fn ipu_bars(fit: &Fit) -> Markup {
    let tiles = fit.ipus.iter().map(|own| &own.fullest_tile);
    let most = tiles.map(|tile| tile.bytes.max(tile.limit)).max();
    let most = most.unwrap_or(0).max(1);
    html! {
        div.bars {
            @for own in &fit.ipus {
                @let tile = &own.fullest_tile;
                div.label { "IPU " (own.ipu) }
                (stacked(&bar(&tile.parts), most, Some(tile.limit), 20))
                div.value.bad[!own.fits] { (share(tile.bytes, tile.limit)) }
            }
        }
        figcaption { (limits("/fit", fit.limit, &fit.limits)) }
    }
}

/// What is in the table in sight.
const IPUS: [&str; 13] = [
    "IPU",
    "Layers",
    "Fits",
    "Fullest tile",
    "On its IPU",
    "Bytes there",
    "Limit",
    "Of the limit",
    "Free there",
    "Tiles over",
    "Overflowed",
    "Median tile",
    "All tiles",
];

/// What is folded away, after the number of the IPU.
const MORE: [&str; 19] = [
    "Variables",
    "Stash",
    "Accumulators",
    "Vertex code",
    "Vertex state",
    "Exchange code",
    "Control code",
    "Host exchange code",
    "Global exchange code",
    "Gaps",
    "With gaps",
    "Always live",
    "Most of others",
    "Peak step",
    "All stashed",
    "All restored",
    "All accumulators",
    "All received",
    "95th percentile tile",
];

fn ipu_tables(report: &Report, fit: &Fit) -> Markup {
    let all = tables::ipus(report);
    let plain = all.clone().only(&IPUS);
    let mut plain = plain.without_zeros();
    if fit.limits.is_none() {
        // It is the same for all, and stands above.
        plain = plain.without("Limit");
    }
    let more = [&["IPU"][..], &MORE].concat();
    let mut more = all.only(&more);
    (more.columns.iter_mut().skip(1)).for_each(|own| own.when = When::NotZero);
    let more = more.without_zeros();
    html! {
        (table("IPUs", &plain))
        (folded("Table of what the fullest tiles hold", html! {
            p.soft {
                "By part and by how long it lives on the fullest tile. What is stashed, restored, accumulated and "
                "received is summed over all tiles and steps, as far as names tell it."
            }
            (table("Fullest tiles by part", &more))
        }))
    }
}

/// How many curves are in sight.
const IN_SIGHT: usize = 4;

/// The bytes of each IPU over the steps; `None` without any.
pub(super) fn liveness(report: &Report, charts: &mut Charts) -> Option<Markup> {
    let fit = report.fit.as_ref()?;
    let curves = fit.ipus.iter();
    let curves = curves.filter_map(|own| Some((own.ipu, own.curve.as_ref()?)));
    let curves: Vec<(u32, &Curve)> = curves.collect();
    if curves.is_empty() {
        return None;
    }
    let figures: Vec<_> = curves
        .iter()
        .map(|(ipu, own)| (ipu, curve(report, *ipu, own, charts)))
        .collect();
    Some(html! {
        p {
            "What is live on each IPU over the steps of the program, summed over all its tiles. All IPUs count the same "
            @if let Some(steps) = fit.steps { (number("/fit/steps", steps.into())) " " }
            "steps; each has a scale of its own."
        }
        (legend(&[("variables", "Live at the step"), ("always", "Always live")]))
        @for (place, (ipu, figure)) in figures.into_iter().enumerate() {
            @if place < IN_SIGHT { h3 { "IPU " (ipu) } (figure) }
            @else { (folded(&format!("IPU {ipu}"), figure)) }
        }
    })
}

fn curve(report: &Report, ipu: u32, curve: &Curve, charts: &mut Charts) -> Markup {
    let drawing = Drawing {
        curve,
        at: &format!("/fit/ipus/{ipu}/curve"),
        bands: &[],
        pseudo_layers: report.pseudo_layers,
        limit: None,
        turn: None,
        height: 160,
        rows: 40,
        label: &format!("Bytes of IPU {ipu} over the steps, all its tiles"),
    };
    drawing.figure(charts)
}

const CYCLES: [Column; 4] = [
    Column::new("IPU", Kind::Count, "/ipu"),
    Column::new("Bar", Kind::Bar, ""),
    Column::new("Cycles", Kind::Count, "/cycles"),
    Column::new("Of the slowest", Kind::Share, ""),
];

/// The cycles of each IPU; `None` where none were recorded.
pub(super) fn execution(report: &Report) -> Option<Markup> {
    let fit = report.fit.as_ref()?;
    let cycles = fit.ipus.iter().filter_map(|own| own.cycles);
    let slowest = cycles.max()?.max(1);
    let mut rows = Table::new("cycles-by-ipu", &CYCLES);
    for own in &fit.ipus {
        let Some(cycles) = own.cycles else { continue };
        let bar = Cell::Bar {
            parts: vec![("compute", "all", cycles)],
            whole: slowest,
        };
        let cells = cells![own.ipu, bar, cycles, Cell::Share(cycles, slowest)];
        rows.row(format!("/fit/ipus/{}", own.ipu), cells);
    }
    Some(html! {
        p { "Cycles in which each IPU computed, over all runs that were recorded. The IPU with most sets the pace of a pipeline: the others wait for it." }
        (table("Cycles by IPU", &rows))
    })
}
