//! Why nothing fits and what would help, and the best split beside one that
//! was given.

use super::widgets::{sentence, table};
use crate::report::sentences;
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::shown;
use crate::report::{GivenSplit, Refusal, Report, Split};
use maud::{Markup, html};

/// What prevents a split; `None` when something fits.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let refusal = report.refusal.as_ref()?;
    let obstacles = sentences::refusal(refusal);
    Some(html! {
        p { (sentence(report, &obstacles.proves)) }
        (ranges(report, refusal))
        @for line in &obstacles.others { p { (sentence(report, line)) } }
        h3 { "What would help" }
        ul { @for line in sentences::help(report, refusal) { li { (sentence(report, &line)) } } }
    })
}

const RANGES: [Column; 5] = [
    Column::new("Layers", Kind::Layers, ""),
    Column::new("Tile", Kind::Count, "/tile"),
    Column::new("At step", Kind::Count, "/step"),
    Column::new("Peak memory", Kind::Bytes, "/bytes"),
    Column::new("Over the limit", Kind::Bytes, ""),
];

/// The ranges that are over the limit.
fn ranges(report: &Report, refusal: &Refusal) -> Markup {
    let mut ranges = Table::of_layers("over-limit", &RANGES, report.pseudo_layers);
    for (place, range) in refusal.ranges.iter().enumerate() {
        let cells = cells![
            Cell::Layers(range.layers.clone()),
            range.tile,
            range.step,
            range.bytes,
            range.bytes.saturating_sub(refusal.limit),
        ];
        ranges.row(format!("/refusal/ranges/{place}"), cells);
    }
    html! {
        @if !ranges.rows.is_empty() {
            p.soft {
                "Each of these ranges of layers is over the limit as one stage"
                @if refusal.stages_needed.is_some() {
                    ", so each must be cut somewhere inside. No cut serves two of them"
                }
                "."
            }
            (table("Layers over the limit", &ranges))
        }
    }
}

const BOTH: [Column; 6] = [
    Column::text("Split"),
    Column::text("Fits"),
    Column::new("Peak memory", Kind::Bytes, ""),
    Column::new("Over all cuts", Kind::Bytes, ""),
    Column::new("Cycles of the slowest stage", Kind::Count, ""),
    Column::new("Layers of each stage", Kind::Layers, ""),
];

/// The best split beside the one that was given; `None` when none was given.
pub(super) fn given(report: &Report) -> Option<Markup> {
    let (given, split) = (report.given.as_ref()?, report.split.as_ref()?);
    let mut both = Table::of_layers("given", &BOTH, report.pseudo_layers);
    both.row("", given_cells(report, split));
    both.row("", best_cells(given));
    if report.execution.is_none() {
        both = both.without("Cycles of the slowest stage");
    }
    Some(html! {
        @if !given.broken_constraints.is_empty() {
            div.notes.bad { ul {
                @for own in &given.broken_constraints { li.name { "The split breaks " code { (shown(own)) } } }
            } }
        }
        @if let Some(line) = sentences::given(report) { p { (sentence(report, &line)) } }
        (table("The given split and the best", &both))
    })
}

fn given_cells(report: &Report, split: &Split) -> Vec<Cell> {
    let stages = report.execution.iter().flat_map(|own| &own.stages);
    let cut_bytes: i128 = report.cuts.iter().map(|cut| i128::from(cut.bytes)).sum();
    cells![
        "Given",
        split.fits,
        split.fullest().map(|own| own.fullest_tile.bytes),
        cut_bytes,
        stages.map(|own| own.cycles).max(),
        Cell::Stages(split.layers()),
    ]
}

fn best_cells(given: &GivenSplit) -> Vec<Cell> {
    cells![
        "Best",
        given.best_fits,
        given.best_fullest_tile_bytes,
        given.best_cut_bytes,
        given.best_slowest_stage_cycles,
        Cell::Stages(given.best_stages.clone()),
    ]
}
