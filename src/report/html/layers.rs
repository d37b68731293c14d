//! Every layer alone.

use super::widgets::{parts_legend, table};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use crate::report::{Report, tables};
use maud::{Markup, html};

/// Parts that only stages have are left out.
const COLUMNS: [&str; 11] = [
    "Layer",
    "Parts",
    "All tiles",
    "Variables",
    "Vertex code",
    "Vertex state",
    "Exchange code",
    "Control code",
    "Tile",
    "Peak memory",
    "Stage",
];

/// The table of layers, with a bar of their parts.
pub(super) fn section(report: &Report) -> Markup {
    html! {
        p { "Each layer as if it stood alone, without what comes with every stage; summed over all tiles, each at its own peak. " (around(report.pseudo_layers)) }
        (parts_legend(&Parts::default()))
        (table("Layers", &tables::layers(report).only(&COLUMNS)))
    }
}

/// What the pseudo-layers mean.
fn around(pseudo_layers: PseudoLayers) -> &'static str {
    match pseudo_layers {
        PseudoLayers::NoneFirst => "None are the operations without a layer.",
        PseudoLayers::InAndOut => "In is what runs before the layers, Out what runs after them.",
        PseudoLayers::OutWithIn => {
            "In is what runs before the layers, Out what runs after them; both run on the first IPU."
        }
    }
}
