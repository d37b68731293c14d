//! Cycles of layers and stages.

use super::columns::{Bar, Columns};
use super::widgets::{folded, number, table};
use super::{short, stage_groups};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::{grouped, share, shown};
use crate::report::{Execution, ExecutionSource, LayerCycles, Report};
use maud::{Markup, html};

const STAGES: [Column; 4] = [
    Column::new("Stage", Kind::Count, ""),
    Column::new("Bar", Kind::Bar, ""),
    Column::new("Cycles", Kind::Count, "/cycles"),
    Column::new("Of the slowest", Kind::Share, ""),
];

const LAYERS: [Column; 3] = [
    Column::new("Layer", Kind::Layers, ""),
    Column::new("Stage", Kind::Count, ""),
    Column::new("Cycles", Kind::Count, "/cycles"),
];

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
    let mut stages = Table::new("cycles-by-stage", &STAGES);
    for (place, stage) in execution.stages.iter().enumerate() {
        let bar = Cell::Bar {
            parts: vec![("variables", "cycles", stage.cycles)],
            whole: slowest,
        };
        let cells = cells![
            stage.stage,
            bar,
            stage.cycles,
            Cell::Share(stage.cycles, slowest)
        ];
        stages.row(format!("/execution/stages/{place}"), cells);
    }
    html! {
        h3 { "Balance of the stages" }
        p {
            "The slowest stage sets the pace of a pipeline. All stages together work "
            (share(busy, whole)) " of the time that it takes for each of them: what is missing, they wait."
        }
        (table("Cycles by stage", &stages))
    }
}

fn by_layer(report: &Report, execution: &Execution) -> Markup {
    let column = |layer: &LayerCycles| {
        let name = report.pseudo_layers.shown(&layer.name);
        Bar {
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
    let mut layers = Table::of_layers("cycles-by-layer", &LAYERS, report.pseudo_layers);
    for (place, layer) in execution.layers.iter().enumerate() {
        let cells = cells![
            Cell::Layer(layer.name.clone()),
            report.stage_of(place),
            layer.cycles
        ];
        layers.row(format!("/execution/layers/{place}"), cells);
    }
    html! {
        h3 { "By layer" }
        figure { (columns.drawing()) }
        (folded("Table of the layers", table("Cycles by layer", &layers)))
    }
}
