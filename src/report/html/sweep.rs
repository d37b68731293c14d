//! The best split for each number of IPUs.

use super::columns::{Column, Columns};
use super::refusal::fits;
use super::widgets::{cell, signed_cell, table};
use crate::report::document::{Report, SweepRow};
use crate::report::text::{grouped, share, shown};
use maud::{Markup, html};

/// The fullest tile by the number of IPUs; `None` when that was not asked for.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let sweep = report.sweep.as_ref()?;
    let columns = Columns {
        columns: sweep.rows.iter().map(column).collect(),
        groups: Vec::new(),
        limit: Some(sweep.limit),
        on_edges: false,
        in_bytes: true,
        height: 220,
        label: "Bytes on the fullest tile by the number of IPUs",
    };
    let with_cycles = sweep
        .rows
        .iter()
        .any(|row| row.slowest_stage_cycles.is_some());
    let mut names = vec![
        "#IPUs",
        "Fits",
        "#Fullest tile",
        "#Of the limit",
        "#Free there",
        "#Over all cuts",
    ];
    if with_cycles {
        names.push("#Cycles of the slowest stage");
    }
    names.extend(["Layers of each", "Note"]);
    let rows = html! {
        @for (place, row) in sweep.rows.iter().enumerate() {
            @let at = format!("/sweep/rows/{place}");
            tr {
                (cell(format_args!("{at}/ipus"), row.ipus.into()))
                (fits(row.fits))
                (cell(format_args!("{at}/fullest_tile_bytes"), row.fullest_tile_bytes))
                td.n { (share(row.fullest_tile_bytes, sweep.limit)) }
                (signed_cell(format_args!("{at}/free"), row.free))
                (cell(format_args!("{at}/cut_bytes"), row.cut_bytes))
                @if with_cycles {
                    @match row.slowest_stage_cycles {
                        Some(cycles) => (cell(format_args!("{at}/slowest_stage_cycles"), cycles)),
                        None => td.n { "\u{2013}" },
                    }
                }
                td.name.list { (report.pseudo_layers.shown_stages(&row.stages)) }
                td { @if let Some(hint) = &row.hint { (shown(hint)) } }
            }
        }
    };
    Some(html! {
        p {
            "The fullest tile of the best split for each number of IPUs; where none fits, of the one that needs the least."
            @if report.split.as_ref().is_some_and(|split| split.limits.is_some()) {
                " The limits differ by IPU: the line and the shares are those of the highest."
            }
        }
        figure { (columns.drawing()) }
        (table("Numbers of IPUs", &names, rows))
    })
}

fn column(row: &SweepRow) -> Column {
    Column {
        height: row.fullest_tile_bytes,
        class: if row.fits { "variables" } else { "over" },
        name: row.ipus.to_string(),
        tip: format!(
            "{} IPUs\n{} bytes on the fullest tile\n{}",
            row.ipus,
            grouped(row.fullest_tile_bytes),
            if row.fits { "fits" } else { "does not fit" }
        ),
    }
}
