//! What flows over each cut, what a cut doubles, and what moving it would do;
//! and what keeps layers together.

use super::widgets::{sentence, table};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::{Report, SharedVariables, sentences, tables};
use maud::{Markup, html};

/// All cuts; `None` when there is none.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let cuts = tables::cuts(report);
    (!cuts.rows.is_empty()).then(|| html! {
        p { "Bytes of the distinct variables that flow over each cut, in either direction. Those on their way to a stage further off count at every cut that they cross. What is always live and used on both sides is doubled: each side needs a copy." }
        (table("Cuts", &cuts))
        (moves(report))
    })
}

/// With more cuts than this the page must stay small.
const MAX_MOVED: usize = 32;

const MOVES: [Column; 7] = [
    Column::text("Cut"),
    Column::new("Layer", Kind::Layers, ""),
    Column::new("To IPU", Kind::Count, "/to_stage"),
    Column::new(
        "Fullest tile before the cut",
        Kind::Bytes,
        "/fullest_tile_bytes/0",
    ),
    Column::new("Change", Kind::Change, "/change/0"),
    Column::new(
        "Fullest tile after it",
        Kind::Bytes,
        "/fullest_tile_bytes/1",
    ),
    Column::new("Change after it", Kind::Change, "/change/1"),
];

fn moves(report: &Report) -> Markup {
    if report.cuts.len() > MAX_MOVED {
        return html! { p.soft { "With this many cuts, what moving one layer over each would do is in the JSON form of the report alone." } };
    }
    let mut moves = Table::of_layers("moves", &MOVES, report.pseudo_layers);
    for (place, cut) in report.cuts.iter().enumerate() {
        for (number, own) in cut.moves.iter().enumerate() {
            let cells = cells![
                tables::over(cut.after_stage),
                Cell::Layers(own.layers.clone()),
                own.to_stage,
                own.fullest_tile_bytes[0],
                own.change[0],
                own.fullest_tile_bytes[1],
                own.change[1],
            ];
            moves.row(format!("/cuts/{place}/moves/{number}"), cells);
        }
    }
    html! {
        @if !moves.rows.is_empty() {
            h3 { "Moving one layer over a cut" }
            p.soft { "What the fullest tiles of both neighbours would have then, and how much more or less than now that is." }
            (table("Moving one layer over a cut", &moves))
        }
    }
}

/// The maximum number of tied weights that are shown.
const MAX_TIED: usize = 20;

/// Weights that several layers use; `None` when there are none.
pub(super) fn tied_weights(report: &Report) -> Option<Markup> {
    let others = report.tied_weights.len().saturating_sub(MAX_TIED);
    let shown = report.tied_weights.iter().take(MAX_TIED);
    let shown = shown.map(|own| sentences::tied_weight(own, report.pseudo_layers));
    (!report.tied_weights.is_empty()).then(|| {
        html! {
            p { "Weights that several layers use. Frameworks put a weight on one IPU, so these layers and all between them are in one stage." }
            ul { @for tied in shown { li { (sentence(report, &tied)) } } }
            @if others > 0 { p.soft { "And " (others) " more in the JSON form of the report." } }
        }
    })
}

/// The maximum number of groups of layers that share variables that are shown.
const MAX_SHARED: usize = 20;

const SHARED: [Column; 3] = [
    Column::new("Layers", Kind::Layers, ""),
    Column::new("Shared", Kind::Bar, ""),
    Column::new("Bytes", Kind::Bytes, "/bytes"),
];

/// Layers that use the same variables; `None` when there are none.
pub(super) fn shared_variables(report: &Report) -> Option<Markup> {
    let groups = &report.shared_variables;
    let whole = groups.iter().map(|own| own.bytes).max()?.max(1);
    let mut shared = Table::of_layers("shared-variables", &SHARED, report.pseudo_layers);
    for (place, own) in groups.iter().enumerate().take(MAX_SHARED) {
        let SharedVariables { layers, bytes } = own;
        let bar = Cell::Bar {
            parts: vec![("always", "shared", *bytes)],
            whole,
        };
        let cells = cells![Cell::Layers(layers.clone()), bar, *bytes];
        shared.row(format!("/shared_variables/{place}"), cells);
    }
    let others = groups.len().saturating_sub(MAX_SHARED);
    Some(html! {
        p { "Layers that use the same variables that are always live, such as constants. A cut between them doubles the bytes." }
        (table("Shared variables", &shared))
        @if others > 0 { p.soft { "And " (others) " more in the JSON form of the report." } }
    })
}
