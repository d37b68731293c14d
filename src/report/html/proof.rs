//! What shows that the split is the best, and what it had to obey.

use super::widgets::{decimal, number, table};
use crate::report::document::{Proof, ProvenBottleneck, Report};
use crate::report::text::shown;
use maud::{Markup, html};

/// The numbers of both programs; `None` without a search.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let proof = report.proof.as_ref()?;
    let rows = html! {
        @for (place, own) in proof.objectives.iter().enumerate() {
            @let at = format!("/proof/objectives/{place}");
            tr {
                td.name { (shown(&own.objective)) }
                (decimal(format_args!("{at}/integer_program"), &own.integer_program))
                (decimal(format_args!("{at}/dynamic_program"), &own.dynamic_program))
            }
        }
    };
    let columns = ["Number", "#Integer program", "#Dynamic program"];
    Some(html! {
        (verdict(proof))
        @if !proof.objectives.is_empty() {
            p.soft { "Splits are compared by these numbers, the first weighing most." }
            (table("Numbers of both programs", &columns, rows))
        }
        @for (place, own) in proof.bottlenecks.iter().enumerate() { (bottleneck(place, own)) }
    })
}

fn verdict(proof: &Proof) -> Markup {
    html! {
        p {
            "The objective was " code { (shown(&proof.objective)) } ". "
            @if proof.optimal {
                "The split is " strong.good { "optimal" } ": the integer program was solved to \
                optimality, and the dynamic program agrees in every number."
            } @else {
                "Nothing shows that this split is the best: it was given, none fits, or the \
                search proves nothing."
            }
        }
    }
}

fn bottleneck(place: usize, own: &ProvenBottleneck) -> Markup {
    let at = format!("/proof/bottlenecks/{place}");
    html! {
        p {
            "Why the " span.name { (shown(&own.objective)) } " cannot be lower: the next lower number of any range of layers is "
            span data-json=(format_args!("{at}/below")) { (super::widgets::digits(&own.below)) }
            @match own.stages_needed {
                Some(needed) => {
                    ", and with no stage above it at least "
                    (number(format_args!("{at}/stages_needed"), needed.into()))
                    " stages would be needed, more than there may be."
                },
                None => ", and with no stage above it no number of stages is enough.",
            }
        }
    }
}

/// What the split had to obey; `None` without orders.
pub(super) fn orders(report: &Report) -> Option<Markup> {
    let broken = |order: &String| {
        let judged = report.judged.as_ref();
        judged.is_some_and(|judged| judged.broken_orders.contains(order))
    };
    (!report.orders.is_empty()).then(|| {
        html! {
            p { "What the split had to obey, as it was given." }
            ul {
                @for order in &report.orders {
                    li { code { (shown(order)) } @if broken(order) { " " span.bad { "broken" } } }
                }
            }
        }
    })
}
