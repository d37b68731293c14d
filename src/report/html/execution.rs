//! Cycles of layers and stages.

use super::columns::{Column, Columns};
use super::widgets::{cell, folded, number, stacked, table};
use super::{short, stage_groups, stage_of};
use crate::report::document::{Execution, ExecutionSource, Report};
use crate::report::text::{grouped, share, shown};
use maud::{Markup, html};

/// Cycles by stage and by layer; `None` when the profile has none.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let execution = report.execution.as_ref()?;
    let source = match execution.source {
        ExecutionSource::ExecutedSteps => "measured when the model ran",
        ExecutionSource::CompileTimeEstimates => "estimated by the compiler",
    };
    Some(html! {
        p {
            "Cycles as " (source) "."
            @if let Some(total) = execution.total {
                " All together: " (number("/execution/total", total)) "."
            }
        }
        @if !execution.stages.is_empty() { (by_stage(execution)) }
        (by_layer(report, execution))
    })
}

fn by_stage(execution: &Execution) -> Markup {
    let slowest = execution.stages.iter().map(|stage| stage.cycles).max();
    let slowest = slowest.unwrap_or(0).max(1);
    let cycles = execution
        .stages
        .iter()
        .map(|stage| u128::from(stage.cycles));
    let [busy, whole] = [
        cycles.sum::<u128>(),
        u128::from(slowest) * execution.stages.len() as u128,
    ];
    let [busy, whole] = [busy, whole].map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
    let rows = html! {
        @for (place, stage) in execution.stages.iter().enumerate() {
            tr {
                td { "IPU " (stage.stage) }
                td.draw { (stacked(&[("variables", "cycles", stage.cycles)], slowest, None, 12)) }
                (cell(format_args!("/execution/stages/{place}/cycles"), stage.cycles))
                td.n { (share(stage.cycles, slowest)) }
            }
        }
    };
    html! {
        h3 { "Balance of the stages" }
        p {
            "The slowest stage sets the pace of a pipeline. All stages together work "
            (share(busy, whole)) " of the time that it takes for each of them: what is missing, they wait."
        }
        (table("Cycles by stage", &["Stage", "", "#Cycles", "#Of the slowest"], rows))
    }
}

fn by_layer(report: &Report, execution: &Execution) -> Markup {
    let column = |layer: &crate::report::document::LayerCycles| {
        let name = report.pseudo_layers.shown(&layer.name);
        Column {
            height: layer.cycles,
            class: "variables",
            name: short(&name),
            tip: format!(
                "{}\n{} cycles",
                shown(&report.pseudo_layers.named(&layer.name)),
                grouped(layer.cycles)
            ),
        }
    };
    let columns = Columns {
        columns: execution.layers.iter().map(column).collect(),
        groups: stage_groups(report),
        limit: None,
        on_edges: false,
        in_bytes: false,
        height: 150,
        label: "Cycles of each layer",
    };
    let rows = html! {
        @for (place, layer) in execution.layers.iter().enumerate() {
            tr {
                td.name { (report.pseudo_layers.shown(&layer.name)) }
                td.n { @if let Some(stage) = stage_of(report, place) { (stage) } @else { "\u{2013}" } }
                (cell(format_args!("/execution/layers/{place}/cycles"), layer.cycles))
            }
        }
    };
    html! {
        h3 { "By layer" }
        figure { (columns.drawing()) }
        (folded("Table of the layers", table("Cycles by layer", &["Layer", "#IPU", "#Cycles"], rows)))
    }
}
