//! What shows that the split is the best, and what it had to obey.

use super::widgets::{sentence, table};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::shown;
use crate::report::{Report, sentences};
use maud::{Markup, html};

const OBJECTIVES: [Column; 3] = [
    Column::text("Number"),
    Column::new("Integer program", Kind::Count, "/integer_program"),
    Column::new("Dynamic program", Kind::Count, "/dynamic_program"),
];

const BOTTLENECKS: [Column; 3] = [
    Column::text("Number"),
    Column::new(
        "Next lower number of any range of layers",
        Kind::Count,
        "/below",
    ),
    Column::new("Stages needed for it", Kind::Count, "/stages_needed"),
];

/// The numbers of both programs; `None` without a search.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let proof = report.proof.as_ref()?;
    let mut objectives = Table::new("objectives", &OBJECTIVES);
    for (place, own) in proof.objectives.iter().enumerate() {
        let decimal = |text: &String| Cell::Decimal(text.clone());
        let (integer, dynamic) = (decimal(&own.integer_program), decimal(&own.dynamic_program));
        let cells = cells![&*own.objective, integer, dynamic];
        objectives.row(format!("/proof/objectives/{place}"), cells);
    }
    let mut bottlenecks = Table::new("bottlenecks", &BOTTLENECKS);
    for (place, own) in proof.bottlenecks.iter().enumerate() {
        let below = Cell::Decimal(own.below.clone());
        let cells = cells![&*own.objective, below, own.stages_needed];
        bottlenecks.row(format!("/proof/bottlenecks/{place}"), cells);
    }
    Some(html! {
        p { "The objective was " code { (shown(&proof.objective)) } "." }
        @match sentences::proof(proof) {
            Some(line) => p { (sentence(report, &line)) },
            None => p {
                "Nothing shows that this split is the best: it was given, none fits, or the \
                search proves nothing."
            },
        }
        @if !objectives.rows.is_empty() {
            p.soft { "Splits are compared by these numbers, the first weighing most." }
            (table("Numbers of both programs", &objectives))
        }
        @if !bottlenecks.rows.is_empty() {
            p.soft { "Why these cannot be lower: with no stage above the next lower number, more stages would be needed than there may be." }
            (table("Lower numbers", &bottlenecks))
        }
    })
}

/// What the split had to obey; `None` without constraints.
pub(super) fn constraints(report: &Report) -> Option<Markup> {
    let broken = |own: &String| {
        let given = report.given.as_ref();
        given.is_some_and(|given| given.broken_constraints.contains(own))
    };
    (!report.constraints.is_empty()).then(|| {
        html! {
            p { "What the split had to obey, as it was given." }
            ul {
                @for own in &report.constraints {
                    li { code { (shown(own)) } @if broken(own) { " " span.bad { "broken" } } }
                }
            }
        }
    })
}
