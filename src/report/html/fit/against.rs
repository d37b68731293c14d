//! What was predicted of each stage beside what was recorded of its IPU.

use super::super::widgets::{folded, number, scrolling, stacked, table};
use super::{bar, parts_legend, said};
use crate::report::fit::{sentences, tables};
use crate::report::table::Form;
use crate::report::text::{grouped, grouped_signed};
use crate::report::{Against, Report, StageAgainst, TileParts};
use maud::{Markup, html};

/// What is folded away.
const ALL_TILES: [&str; 5] = [
    "Stage",
    "IPU",
    "All tiles predicted",
    "All tiles recorded",
    "Difference of all tiles",
];

/// How far off the prediction was; `None` without one.
pub(in crate::report::html) fn section(report: &Report) -> Option<Markup> {
    let against = report.fit.as_ref()?.against.as_ref()?;
    let stages = tables::stages(report);
    Some(html! {
        (said(report, &sentences::against(against), true))
        // Of other cuts, what differs says nothing.
        @if against.cut_elsewhere.is_none() { (drawings(against)) }
        (table("Stages as predicted and recorded", &stages.clone().shown_in(Form::Markdown)))
        (folded("Table of all tiles together", table("All tiles as predicted and recorded", &stages.only(&ALL_TILES))))
        (folded("Table of the parts", part_table(against)))
    })
}

/// Two bars for each stage.
fn drawings(against: &Against) -> Markup {
    let stages = against.stages.iter();
    let parts = stages.flat_map(|own| [&own.predicted_parts, &own.recorded_parts]);
    let stages = against.stages.iter();
    let most = stages.map(|own| own.predicted.max(own.recorded).max(limit(own)));
    let most = most.max().unwrap_or(0).max(1);
    html! {
        h3 { "Fullest tile of each stage, as predicted and as recorded" }
        (parts_legend(parts))
        figure {
            div.bars {
                @for (place, own) in against.stages.iter().enumerate() {
                    @let at = format!("/fit/against/stages/{place}");
                    div.label { "Stage " (own.stage) ", predicted" }
                    (stacked(&predicted(own), most, Some(limit(own)), 14))
                    div.value.bad[own.predicted > limit(own)] { (number(format_args!("{at}/predicted"), own.predicted)) }
                    div.label { "on IPU " (own.ipu) ", recorded" }
                    (stacked(&bar(&own.recorded_parts), most, Some(limit(own)), 14))
                    div.value.bad[own.free < 0] { (number(format_args!("{at}/recorded"), own.recorded)) }
                }
            }
            figcaption { "Bytes on the fullest tile. The dashed lines are the limits." }
        }
    }
}

/// What the tile may take: recorded are its bytes and what is left.
fn limit(own: &StageAgainst) -> u64 {
    own.recorded.saturating_add_signed(own.free)
}

/// The parts that were predicted, and what an earlier compilation taught to add.
fn predicted(own: &StageAgainst) -> Vec<(&'static str, &'static str, u64)> {
    let mut parts = bar(&own.predicted_parts);
    let learnt = u64::try_from(own.learnt).unwrap_or(0);
    parts.push(("recomputed", "learnt before", learnt));
    parts
}

fn part_table(against: &Against) -> Markup {
    let rows = html! {
        @for (place, own) in against.stages.iter().enumerate() {
            @let at = format!("/fit/against/stages/{place}");
            (part_rows(own, &at))
            @if own.learnt != 0 {
                tr data-at=(at) {
                    (which(own, "learnt before"))
                    td data-json="/learnt" { (grouped_signed(own.learnt)) }
                    td.n { "\u{2013}" }
                    td.n { (grouped_signed(own.learnt.saturating_neg())) }
                }
            }
        }
    };
    scrolling("Parts as predicted and recorded", &tables::PART_ROWS, rows)
}

/// A row for each part that either side has.
fn part_rows(own: &StageAgainst, at: &str) -> Markup {
    let (predicted, recorded) = (own.predicted_parts.bytes(), own.recorded_parts.bytes());
    let differences = own.part_differences();
    html! {
        @for (part, name) in TileParts::NAMES.into_iter().enumerate() {
            @if predicted[part].max(recorded[part]) > 0 {
                @let field = name.replace(' ', "_");
                tr data-at=(at) {
                    (which(own, name))
                    td data-json=(format!("/predicted_parts/{field}")) { (grouped(predicted[part])) }
                    td data-json=(format!("/recorded_parts/{field}")) { (grouped(recorded[part])) }
                    td.n { (grouped_signed(differences[part])) }
                }
            }
        }
    }
}

/// The cells that say what a row is about.
fn which(own: &StageAgainst, part: &str) -> Markup {
    html! {
        td data-json="/stage" { (own.stage) }
        td data-json="/ipu" { (own.ipu) }
        td.name { (part) }
    }
}
