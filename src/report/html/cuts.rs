//! What flows over each cut, what a cut doubles, and what moving it would do.

use super::widgets::{cell, signed, stacked, table};
use crate::model::PseudoLayers;
use crate::report::document::{Cut, Move, Report, Tie};
use crate::report::tied_weights;
use maud::{Markup, html};

/// All cuts; `None` when there is none.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let most = report.cuts.iter().map(|cut| cut.bytes.max(cut.duplicated));
    let most = most.max()?.max(1);
    let bar = |class, name, bytes| stacked(&[(class, name, bytes)], most, None, 6);
    let rows = html! {
        @for (place, cut) in report.cuts.iter().enumerate() {
            tr {
                td { (of(cut)) }
                td.name { (report.pseudo_layers.shown(&cut.layer_before)) " | " (report.pseudo_layers.shown(&cut.layer_after)) }
                td.draw { (bar("variables", "over the cut", cut.bytes)) (bar("always", "on both sides", cut.duplicated)) }
                (cell(format_args!("/cuts/{place}/bytes"), cut.bytes))
                (cell(format_args!("/cuts/{place}/duplicated"), cut.duplicated))
            }
        }
    };
    let columns = [
        "Cut",
        "Between the layers",
        "",
        "#Over it",
        "#Doubled by it",
    ];
    Some(html! {
        p { "Bytes of the distinct variables that flow over each cut, in either direction. Those on their way to a stage further off count at every cut that they cross. What is always live and used on both sides, each side needs by itself: so many bytes are doubled." }
        (table("Cuts", &columns, rows))
        (moves(report.pseudo_layers, &report.cuts))
    })
}

fn of(cut: &Cut) -> String {
    let stage = u64::from(cut.after_stage);
    format!("IPU {stage} to {}", stage + 1)
}

/// With more cuts than this the page must stay small.
const MAX_MOVED: usize = 32;

fn moves(pseudo_layers: PseudoLayers, cuts: &[Cut]) -> Markup {
    if cuts.len() > MAX_MOVED {
        return html! { p.soft { "What moving one layer over each of so many cuts would do stands in the JSON form of the report alone." } };
    }
    let rows = html! {
        @for (place, cut) in cuts.iter().enumerate() {
            @for (number, change) in cut.moves.iter().enumerate() {
                tr data-at=(format_args!("/cuts/{place}/moves/{number}")) { (move_cells(pseudo_layers, cut, change)) }
            }
        }
    };
    let columns = [
        "Cut",
        "Layer",
        "#To IPU",
        "#Fullest tile before the cut",
        "#Change",
        "#Fullest tile behind it",
        "#Change",
    ];
    html! {
        @if cuts.iter().any(|cut| !cut.moves.is_empty()) {
            h3 { "Moving one layer over a cut" }
            p.soft { "What the fullest tiles of both neighbours would have then, and how much more or less than now that is." }
            (table("Moving one layer over a cut", &columns, rows))
        }
    }
}

fn move_cells(pseudo_layers: PseudoLayers, cut: &Cut, change: &Move) -> Markup {
    html! {
        td { (of(cut)) }
        td.name { (pseudo_layers.shown_list(&change.layers)) }
        (cell("/to_stage", change.to_stage.into()))
        @for side in 0..2 {
            (cell(format_args!("/fullest_tile_bytes/{side}"), change.fullest_tile_bytes[side]))
            td.n.good[change.change[side] < 0] { (signed(format_args!("/change/{side}"), change.change[side])) }
        }
    }
}

/// So many tied weights are shown.
const MAX_TIED: usize = 20;

/// Weights that several layers use; `None` when there are none.
pub(super) fn tied_weights(report: &Report) -> Option<Markup> {
    let others = report.tied_weights.len().saturating_sub(MAX_TIED);
    let shown = report.tied_weights.iter().take(MAX_TIED);
    (!report.tied_weights.is_empty()).then(|| {
        html! {
            p { "Weights that several layers use. Frameworks put a weight on one IPU, so these layers and all between them are in one stage." }
            ul {
                @for tied in shown { li.name { (tied_weights::sentence(tied, report.pseudo_layers)) } }
            }
            @if others > 0 { p.soft { "And " (others) " more in the JSON form of the report." } }
        }
    })
}

/// So many groups of layers that share variables are shown.
const MAX_TIES: usize = 20;

/// Layers that use the same variables; `None` when there are none.
pub(super) fn ties(report: &Report) -> Option<Markup> {
    let most = report.ties.iter().map(|tie| tie.bytes).max()?.max(1);
    let row = |(place, tie): (usize, &Tie)| {
        html! {
            tr {
                td.name.list { (report.pseudo_layers.shown_list(&tie.layers)) }
                td.draw { (stacked(&[("always", "shared", tie.bytes)], most, None, 12)) }
                (cell(format_args!("/ties/{place}/bytes"), tie.bytes))
            }
        }
    };
    let rows = report.ties.iter().enumerate().take(MAX_TIES).map(row);
    let rows = html! { @for row in rows { (row) } };
    let others = report.ties.len().saturating_sub(MAX_TIES);
    Some(html! {
        p { "Layers that use the same variables that are always live, such as constants. A cut between them doubles the bytes." }
        (table("Shared variables", &["Layers", "", "#Bytes"], rows))
        @if others > 0 { p.soft { "And " (others) " more in the JSON form of the report." } }
    })
}
