//! The whole model over the steps, and the variables at its peak.

use super::chart_data::Charts;
use super::curve::Drawing;
use super::tints;
use super::widgets::{cell, folded, legend, number, stacked, table};
use crate::model::PseudoLayers;
use crate::report::document::{Liveness, PeakVariables, Report};
use crate::report::text::{grouped, share, shown};
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
        height: 260,
        rows: 40,
        label,
    };
    let on_tile = drawing(
        &liveness.fullest_tile_curve,
        "/liveness/fullest_tile_curve",
        Some(report.made.target.bytes_per_tile),
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
            " steps. Bands are the steps of layers" @if report.split.is_some() { ", tinted by IPU" } "."
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

fn band_table(pseudo_layers: PseudoLayers, liveness: &Liveness) -> Markup {
    let rows = html! {
        @for (place, band) in liveness.bands.iter().enumerate() {
            tr data-at=(format_args!("/liveness/bands/{place}")) {
                td.name { (pseudo_layers.shown(&band.layer)) }
                (cell("/from", band.from.into()))
                (cell("/to", band.to.into()))
            }
        }
    };
    folded(
        "Table of the layers over the steps",
        table(
            "Layers over the steps",
            &["Layer", "#From step", "#To step"],
            rows,
        ),
    )
}

/// The largest variables at a peak, at most `most`, and how much the others are.
pub(super) fn variables(
    pseudo_layers: PseudoLayers,
    live: &PeakVariables,
    at: &str,
    most: usize,
) -> Markup {
    let named = &live.largest[..live.largest.len().min(most)];
    let largest: u64 = named.iter().map(|variable| variable.bytes).sum();
    let rows = html! {
        @for (place, variable) in named.iter().enumerate() {
            tr {
                td.name.wrap { (shown(&variable.name)) }
                td { (shown(&variable.category)) }
                td.name { (layers(pseudo_layers, &variable.layers)) }
                (cell(format_args!("{at}/largest/{place}/bytes"), variable.bytes))
            }
        }
        @let others = live.count.saturating_sub(named.len() as u64);
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
        (table("Largest live variables", &["Variable", "Category", "Layers", "#Bytes"], rows))
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
    let rows = html! {
        @for (place, category) in named.iter().enumerate() {
            tr {
                td.name { (shown(&category.name)) }
                td.draw { (stacked(&[("variables", "live", category.bytes)], whole, None, 8)) }
                (cell(format_args!("{at}/categories/{place}/bytes"), category.bytes))
                td.n { (share(category.bytes, live.bytes)) }
            }
        }
    };
    html! {
        @if !named.is_empty() {
            (table("Live bytes by category", &["Category", "", "#Bytes", "#Share"], rows))
        }
    }
}

fn layers(pseudo_layers: PseudoLayers, layers: &[Option<String>]) -> String {
    match layers.is_empty() {
        true => "\u{2013}".to_string(),
        false => pseudo_layers.shown_list(layers),
    }
}
