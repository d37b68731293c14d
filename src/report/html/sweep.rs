//! The best split for each number of IPUs.

use super::columns::{Bar, Columns};
use super::widgets::table;
use crate::report::text::grouped;
use crate::report::{Report, SweepRow, tables};
use maud::{Markup, html};

/// The fullest tile by the number of IPUs; `None` when that was not requested.
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
    let mut rows = tables::sweep(report).without("Stages");
    let mut cycles = sweep.rows.iter().map(|row| row.slowest_stage_cycles);
    if cycles.all(|own| own.is_none()) {
        rows = rows.without("Cycles of the slowest stage");
    }
    Some(html! {
        p {
            "The fullest tile of the best split for each number of IPUs; where none fits, of the one that needs the least."
            @if report.split.as_ref().is_some_and(|split| split.limits.is_some()) {
                " The limits differ by IPU: the line and the shares are those of the highest."
            }
        }
        figure { (columns.drawing()) }
        (table("Numbers of IPUs", &rows))
    })
}

fn column(row: &SweepRow) -> Bar {
    Bar {
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
