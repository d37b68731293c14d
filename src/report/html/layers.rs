//! Every layer by itself.

use super::stage_of;
use super::widgets::{cell, json_name, parts, parts_legend, stacked, table};
use crate::model::PseudoLayers;
use crate::report::document::Report;
use maud::{Markup, html};

const COLUMNS: [&str; 11] = [
    "Layer",
    "",
    "#All tiles",
    "#Variables",
    "#Vertex code",
    "#Vertex state",
    "#Exchange code",
    "#Control code",
    "#Fullest tile",
    "#Bytes there",
    "#IPU",
];

/// Parts that only stages have.
const OF_STAGES: [&str; 2] = ["overhead", "gaps"];

/// The table of layers, with a bar of their parts.
pub(super) fn section(report: &Report) -> Markup {
    let most = report.layers.iter().map(|layer| layer.total).max();
    let most = most.unwrap_or(0).max(1);
    let rows = html! {
        @for (place, layer) in report.layers.iter().enumerate() {
            tr data-at=(format_args!("/layers/{place}")) {
                td.name { (report.pseudo_layers.shown(&layer.name)) }
                td.draw { (stacked(&parts(&layer.parts), most, None, 12)) }
                (cell("/total", layer.total))
                @for (class, _, bytes) in parts(&layer.parts) {
                    @if !OF_STAGES.contains(&class) {
                        (cell(format_args!("/parts/{}", json_name(class)), bytes))
                    }
                }
                (cell("/fullest_tile", layer.fullest_tile.into()))
                (cell("/fullest_tile_bytes", layer.fullest_tile_bytes))
                td.n { @if let Some(stage) = stage_of(report, place) { (stage) } @else { "\u{2013}" } }
            }
        }
    };
    html! {
        p { "Each layer as if it stood alone, without what comes with every stage; summed over all tiles, each at its own peak. " (around(report.pseudo_layers)) }
        (parts_legend())
        (table("Layers", &COLUMNS, rows))
    }
}

/// What the pseudo-layers stand for.
fn around(pseudo_layers: PseudoLayers) -> &'static str {
    match pseudo_layers {
        PseudoLayers::NoneFirst => "None are the operations without a layer.",
        PseudoLayers::InAndOut => "In is what runs before the layers, Out what runs after them.",
        PseudoLayers::OutWithIn => {
            "In is what runs before the layers, Out what runs after them; both run on the first IPU."
        }
    }
}
