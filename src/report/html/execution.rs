//! Cycles of layers and stages.

use super::columns::{Bar, Columns};
use super::execution_strip::{Amount, Strip};
use super::widgets::{folded, legend, number, sentence, table};
use super::{short, stage_groups};
use crate::report::step;
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::{grouped, share, shown};
use crate::report::{Execution, ExecutionSource, LayerCycles, Report, StageCycles};
use maud::{Markup, html};

const STAGES: [Column; 7] = [
    Column::new("Stage", Kind::Count, ""),
    Column::new("Bar", Kind::Bar, ""),
    Column::new("Cycles", Kind::Count, "/cycles"),
    Column::new("Compute", Kind::Count, ""),
    Column::new("Exchange", Kind::Count, "/exchange"),
    Column::new("Exchange share", Kind::Share, ""),
    Column::new("Of the slowest", Kind::Share, ""),
];

const LAYERS: [Column; 6] = [
    Column::new("Layer", Kind::Layers, ""),
    Column::new("Stage", Kind::Count, ""),
    Column::new("Cycles", Kind::Count, "/cycles"),
    Column::new("Compute", Kind::Count, ""),
    Column::new("Exchange", Kind::Count, "/exchange"),
    Column::new("Exchange share", Kind::Share, ""),
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
        @for line in step::sentences(report) { p { (sentence(report, &line)) } }
        (strip(report, execution))
        @if !execution.stages.is_empty() { (by_stage(execution)) }
        (by_layer(report, execution))
    })
}

fn strip(report: &Report, execution: &Execution) -> Markup {
    let unplaced = execution.unplaced.filter(|&cycles| cycles > 0);
    let other = execution.other.filter(|&cycles| cycles > 0);
    let strip = Strip::new(report, execution);
    html! {
        @if is_divided(execution) { (meaning(strip.has_neither())) }
        figure {
            (strip.drawing())
            figcaption {
                "Each box is as wide as its cycles."
                @if let Some(cycles) = unplaced {
                    " In no layer: " (number("/execution/unplaced", cycles))
                    @if let Some(exchange) = execution.unplaced_exchange {
                        ", of them exchange " (number("/execution/unplaced_exchange", exchange))
                    }
                    "."
                }
                @if let Some(cycles) = other {
                    " Stream copies, syncs and control flow: " (number("/execution/other", cycles)) "."
                }
            }
        }
        @if !execution.stages.is_empty() {
            p.soft id="execution-shown" role="status" hidden {}
        }
    }
}

/// Is it known of all layers what exchanges take?
fn is_divided(execution: &Execution) -> bool {
    execution.layers.iter().all(|own| own.exchange.is_some())
}

fn meaning(has_neither: bool) -> Markup {
    let all = [
        ("compute", "Compute sets"),
        ("exchange", "Exchanges between tiles"),
        ("overhead", "Neither"),
    ];
    legend(&all[..if has_neither { 3 } else { 2 }])
}

fn by_stage(execution: &Execution) -> Markup {
    let slowest = execution.stages.iter().map(|stage| stage.cycles).max();
    let slowest = slowest.unwrap_or(0).max(1);
    let mut stages = Table::new("cycles-by-stage", &STAGES);
    for (place, stage) in execution.stages.iter().enumerate() {
        let amount = Amount::new(stage.cycles, stage.exchange);
        let bar = Cell::Bar {
            parts: amount.parts(),
            whole: slowest,
        };
        let cells = cells![
            stage.stage,
            bar,
            stage.cycles,
            amount.compute(),
            amount.exchange,
            exchange_share(amount),
            Cell::Share(stage.cycles, slowest)
        ];
        stages.row(format!("/execution/stages/{place}"), cells);
    }
    html! {
        h3 { "Balance of the stages" }
        (balance(&execution.stages))
        (table("Cycles by stage", &known(stages, is_divided(execution))))
    }
}

/// Without the columns that nothing is known of.
fn known(table: Table, is_divided: bool) -> Table {
    if is_divided {
        return table;
    }
    let unknown = ["Compute", "Exchange", "Exchange share"].into_iter();
    unknown.fold(table, Table::without)
}

/// What of the cycles exchanges take.
fn exchange_share(amount: Amount) -> Option<Cell> {
    let exchange = amount.exchange?;
    (amount.cycles > 0).then_some(Cell::Share(exchange, amount.cycles))
}

/// Which stage the others wait for, and how long.
fn balance(stages: &[StageCycles]) -> Markup {
    let all = stages.iter().enumerate();
    // The first of several.
    let Some((place, slowest)) = all.rev().max_by_key(|(_, stage)| stage.cycles) else {
        return html! {};
    };
    let amounts = stages
        .iter()
        .map(|own| Amount::new(own.cycles, own.exchange));
    let busy = Amount::sum(amounts);
    let whole = slowest.cycles.saturating_mul(stages.len() as u64);
    let waiting = whole.saturating_sub(busy.cycles);
    html! {
        p {
            "The slowest stage sets the pace of a pipeline: IPU " (slowest.stage) " with "
            (number(format_args!("/execution/stages/{place}/cycles"), slowest.cycles)) " cycles, "
            (share(waiting, busy.cycles)) " over the mean of all stages. All stages together work "
            (share(busy.cycles, whole)) " of the time that it takes for each of them: what is missing, "
            (grouped(waiting)) " cycles of " (grouped(whole)) ", they wait."
            @if let Some(exchange) = busy.exchange {
                " Exchanges between tiles take " (share(exchange, busy.cycles)) " of what they work."
            }
        }
    }
}

fn by_layer(report: &Report, execution: &Execution) -> Markup {
    let column = |layer: &LayerCycles| {
        let name = report.pseudo_layers.shown(&layer.name);
        Bar {
            height: layer.cycles,
            class: "compute",
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
        let amount = Amount::new(layer.cycles, layer.exchange);
        let cells = cells![
            Cell::Layer(layer.name.clone()),
            report.stage_of(place),
            layer.cycles,
            amount.compute(),
            amount.exchange,
            exchange_share(amount)
        ];
        layers.row(format!("/execution/layers/{place}"), cells);
    }
    let layers = known(layers, is_divided(execution));
    html! {
        h3 { "By layer" }
        figure { (columns.drawing()) }
        (folded("Table of the layers", table("Cycles by layer", &layers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::report;

    fn page(change: impl FnOnce(&mut Report)) -> String {
        let mut report = report();
        change(&mut report);
        section(&report).expect("cycles").into_string()
    }

    fn of_execution(change: impl FnOnce(&mut Execution)) -> String {
        page(|report| change(report.execution.as_mut().unwrap()))
    }

    #[test]
    fn the_slowest_stage_and_what_the_others_wait_are_named() {
        let page = page(|_| ());
        let sentence = "IPU 1 with <span data-json=\"/execution/stages/1/cycles\">590</span> \
            cycles, 18.0 % over the mean of all stages. All stages together work 84.8 % of the \
            time that it takes for each of them: what is missing, 180 cycles of 1,180, they \
            wait. Exchanges between tiles take 11.4 % of what they work.";
        assert!(page.contains(sentence), "{page}");
        // Of several that are as slow, the first.
        let page = of_execution(|own| own.stages[0].cycles = 590);
        assert!(page.contains("pipeline: IPU 0 with"), "{page}");
    }

    #[test]
    fn every_box_is_as_wide_as_its_cycles() {
        let page = page(|_| ());
        for (at, place) in [
            ("/execution", "x=\"0%\" y=\"0\" width=\"100%\""),
            // In their stages of 410 and 590 cycles.
            (
                "/execution/layers/1",
                "x=\"2.44%\" y=\"42\" width=\"97.56%\"",
            ),
            (
                "/execution/layers/4",
                "x=\"98.31%\" y=\"42\" width=\"1.69%\"",
            ),
            (
                "/execution/unplaced",
                "x=\"96.81%\" y=\"42\" width=\"2.9%\"",
            ),
            ("/execution/other", "x=\"99.71%\" y=\"42\" width=\"0.29%\""),
        ] {
            let expected = format!("<svg class=\"box\" data-box=\"{at}\" {place}");
            assert!(page.contains(&expected), "{expected}: {page}");
        }
        for place in [
            "x=\"0%\" y=\"42\" width=\"39.69%\"",
            "x=\"39.69%\" y=\"42\" width=\"57.12%\"",
        ] {
            assert!(
                page.contains(&format!("<svg class=\"group\" {place}")),
                "{page}"
            );
        }
        // Layer 1 takes none.
        assert!(!page.contains("data-box=\"/execution/layers/2\""));
        let tip = "IPU 0\n410 cycles, 39.7 % of all\ncompute: 300\nexchange: 110\"";
        assert!(page.contains(tip), "{page}");
        assert!(
            page.contains("3 cycles, 0.3 % of all\nneither: 3\""),
            "{page}"
        );
    }

    #[test]
    fn without_a_split_there_are_no_stages() {
        let page = page(|report| {
            report.split = None;
            report.execution.as_mut().unwrap().stages.clear();
        });
        assert!(!page.contains("/execution/stages") && !page.contains("execution-shown"));
        assert!(page.contains("data-box=\"/execution/layers/1\""));
        assert!(page.contains("height=\"84\" role=\"img\""));
    }

    #[test]
    fn what_an_earlier_report_does_not_know_is_left_out() {
        let page = of_execution(|own| {
            (own.unplaced, own.unplaced_exchange, own.other) = (None, None, None);
            own.layers.iter_mut().for_each(|own| own.exchange = None);
            own.stages.iter_mut().for_each(|own| own.exchange = None);
        });
        for word in ["Compute", "Exchange", "compute:", "rect class=\"exchange\""] {
            assert!(!page.contains(word), "{word}: {page}");
        }
        // The total has 33 more than the layers.
        assert!(page.contains("In none of these\n33 cycles"), "{page}");
    }

    /// Lists of unequal length, and sums beyond all numbers.
    #[test]
    fn damaged_numbers_are_drawn_too() {
        let page = of_execution(|own| {
            own.total = Some(1);
            own.layers[1].cycles = u64::MAX;
            own.layers[3].cycles = u64::MAX;
            own.layers[1].exchange = Some(u64::MAX);
            own.layers[4].exchange = Some(u64::MAX);
            own.layers.extend(vec![own.layers[0].clone(); 3]);
            own.stages.pop();
            own.stages[0].exchange = Some(u64::MAX);
        });
        assert!(page.contains("data-box=\"/execution/layers/7\"") && !page.contains("NaN"));
        let page = of_execution(|own| {
            own.layers.clear();
            own.stages.iter_mut().for_each(|own| own.cycles = 0);
        });
        assert!(page.contains("data-box=\"/execution/unplaced\""), "{page}");
    }
}
