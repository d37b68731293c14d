//! The whole model over the steps, and the variables at its peak.

use super::chart_data::Charts;
use super::curve::Drawing;
use super::tints;
use super::widgets::{folded, legend, number, scrolling, table, table_row};
use crate::model::PseudoLayers;
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::{grouped, shown};
use crate::report::{Liveness, PeakVariables, Report};
use maud::{Markup, html};

/// Both curves, the bands of layers, and the largest variables.
pub(super) fn section(report: &Report, charts: &mut Charts) -> Option<Markup> {
    let liveness = report.liveness.as_ref()?;
    let bands = tints(report, liveness.bands.iter());
    let drawing = |curve, at, limit, label| Drawing {
        curve,
        at,
        bands: &bands,
        pseudo_layers: report.pseudo_layers,
        limit,
        turn: liveness.turn,
        height: 260,
        rows: 40,
        label,
    };
    let on_tile = drawing(
        &liveness.fullest_tile_curve,
        "/liveness/fullest_tile_curve",
        Some(report.provenance.target.bytes_per_tile),
        "Bytes of the whole model on its fullest tile over the steps",
    )
    .figure(charts);
    let all = drawing(
        &liveness.all_tiles,
        "/liveness/all_tiles",
        None,
        "Bytes of the whole model over the steps, all tiles",
    )
    .figure(charts);
    Some(html! {
        p {
            "The whole model as it was compiled, over its "
            (number("/liveness/steps", liveness.steps.into()))
            " steps. Bands are the steps of layers" @if report.split.is_some() { ", tinted by IPU" } ". "
            @match liveness.turn {
                Some(turn) => { "The backward pass begins at step " (number("/liveness/turn", turn.into())) "." },
                None => "There is no backward pass: it is inference, or the contexts do not tell.",
            }
        }
        (colours())
        h3 { "Tile " (number("/liveness/fullest_tile", liveness.fullest_tile.into())) ", the fullest, against its memory" }
        (on_tile)
        h3 { "All tiles together" }
        (all)
        (band_table(report.pseudo_layers, liveness))
        @if let Some(live) = &liveness.peak_variables {
            h3 { "Variables that are live at the peak" }
            (variables(report.pseudo_layers, live, "/liveness/peak_variables", usize::MAX))
        }
    })
}

/// What the colours of a curve mean.
pub(super) fn colours() -> Markup {
    legend(&[
        ("variables", "Live at the step"),
        ("always", "Always live"),
        ("overhead", "Code and the like"),
    ])
}

const BANDS: [Column; 3] = [
    Column::new("Layer", Kind::Layers, ""),
    Column::new("From step", Kind::Count, "/from"),
    Column::new("To step", Kind::Count, "/to"),
];

fn band_table(pseudo_layers: PseudoLayers, liveness: &Liveness) -> Markup {
    let mut bands = Table::of_layers("bands", &BANDS, pseudo_layers);
    for (place, band) in liveness.bands.iter().enumerate() {
        let cells = cells![Cell::Layer(band.layer.clone()), band.from, band.to];
        bands.row(format!("/liveness/bands/{place}"), cells);
    }
    folded(
        "Table of the layers over the steps",
        table("Layers over the steps", &bands),
    )
}

const VARIABLES: [Column; 4] = [
    Column::new("Variable", Kind::Name, ""),
    Column::text("Category"),
    Column::new("Layers", Kind::Layers, ""),
    Column::new("Bytes", Kind::Bytes, "/bytes"),
];

/// The largest variables at a peak, at most `most`, and how much the others are.
pub(super) fn variables(
    pseudo_layers: PseudoLayers,
    live: &PeakVariables,
    at: &str,
    most: usize,
) -> Markup {
    let named = &live.largest[..live.largest.len().min(most)];
    let largest: u64 = named.iter().map(|variable| variable.bytes).sum();
    let mut variables = Table::of_layers("variables", &VARIABLES, pseudo_layers);
    for (place, own) in named.iter().enumerate() {
        let layers = match own.layers.as_slice() {
            [] => "\u{2013}".into(),
            _ => Cell::Layers(own.layers.clone()),
        };
        let cells = cells![&*own.name, &*own.category, layers, own.bytes];
        variables.row(format!("{at}/largest/{place}"), cells);
    }
    let others = live.count.saturating_sub(named.len() as u64);
    let rows = html! {
        @for row in &variables.rows { (table_row(&variables, row)) }
        @if others > 0 {
            tr.soft {
                td colspan="3" { (grouped(others)) " others" }
                td.n { (grouped(live.bytes.saturating_sub(largest))) }
            }
        }
    };
    html! {
        p.soft {
            "On tile " (number(format_args!("{at}/tile"), live.tile.into()))
            " at step " (number(format_args!("{at}/step"), live.step.into())) " "
            (number(format_args!("{at}/count"), live.count)) " variables are live with "
            (number(format_args!("{at}/bytes"), live.bytes)) " bytes."
        }
        (categories(live, at, most))
        (scrolling("Largest live variables", &VARIABLES, rows))
    }
}

/// The bytes at a peak by category, the largest `most` of them.
fn categories(live: &PeakVariables, at: &str, most: usize) -> Markup {
    const FEW: usize = 8;
    let named = &live.categories[..live.categories.len().min(most)];
    let whole = live.bytes.max(1);
    if !named.is_empty() && most <= FEW {
        return html! {
            p.soft {
                "Most by category:"
                @for (place, category) in named.iter().enumerate() {
                    " " span.name { (shown(&category.name)) } " "
                    (number(format_args!("{at}/categories/{place}/bytes"), category.bytes))
                }
            }
        };
    }
    let mut categories = Table::new("live-categories", &CATEGORIES);
    for (place, own) in named.iter().enumerate() {
        let bar = Cell::Bar {
            parts: vec![("variables", "live", own.bytes)],
            whole,
        };
        let cells = cells![
            &*own.name,
            bar,
            own.bytes,
            Cell::Share(own.bytes, live.bytes)
        ];
        categories.row(format!("{at}/categories/{place}"), cells);
    }
    html! {
        @if !named.is_empty() { (table("Live bytes by category", &categories)) }
    }
}

const CATEGORIES: [Column; 4] = [
    Column::text("Category"),
    Column::new("Live", Kind::Bar, ""),
    Column::new("Bytes", Kind::Bytes, "/bytes"),
    Column::new("Share", Kind::Share, ""),
];
