//! What is live step by step: the numbers for the script, what it fills in, and the
//! table for those who read without it.

use super::chart_data::for_script;
use super::dense::{MAX_NUMBER, changes};
use super::widgets::{filled, legend, long, number, table};
use crate::report::table::{Cell, Column, Kind, Table, cells};
use crate::report::text::shown;
use crate::report::{Curve, LiveSteps, Liveness, Report, VariableAtSteps};
use maud::{Markup, html};
use serde::Serialize;
use std::collections::HashMap;

/// What the script needs. Lists by chosen step are packed ([`changes`]).
#[derive(Serialize)]
struct LiveStepsData {
    first: u32,
    last: u32,
    turn: Option<u32>,
    limit: u64,
    on_tile: Line,
    all_tiles: Line,
    steps: String,
    /// All distinct texts of programs and operations; others are places in it.
    texts: Vec<String>,
    programs: Vec<usize>,
    operations: Vec<Option<usize>>,
    counts: String,
    bytes: String,
    not_always_live: String,
    categories: Vec<(String, String)>,
    layers: Vec<(String, String)>,
    in_every_stage: String,
    variables: Vec<Variable>,
}

/// A curve: bytes that do not change, and where the others do.
#[derive(Serialize)]
struct Line {
    fixed: u64,
    always_live: u64,
    at: String,
    bytes: String,
}

/// A name, the place of its category, its bytes, the places of its layers, whether it
/// is always live, and from which to which chosen step it is live.
type Variable = (
    String,
    Option<usize>,
    u64,
    Vec<usize>,
    bool,
    Vec<(usize, usize)>,
);

/// The tool and the table; `None` where nothing is known.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let own = report.live_steps.as_ref()?;
    Some(html! {
        p {
            "What is live on tile " (number("/live_steps/tile", own.tile.into()))
            ", the fullest, at " (own.steps.len()) " chosen steps: peaks, where layers and stages begin and end, "
            "and the highest and lowest points between."
        }
        p.soft id="live-steps-without" { "The reader cannot go from step to step here: either the browser runs no scripts, or the numbers are too many or too large for a page. The table below has the same steps." }
        div id="live-steps-tool" hidden {
            (controls(report, own))
            (legend(&[("variables", "Live at the step"), ("always", "Always live"), ("overhead", "Code and the like"), ("chosen", "What the filter leaves")]))
            div.plot {
                svg.scale id="live-steps-scale" height="260" aria-hidden="true" {}
                svg id="live-steps-chart" height="260" tabindex="0" role="slider" aria-label="Step of the program" {}
            }
            p.soft.hint { "Move the pointer over the chart, or give it the focus and press the arrow keys, Page Up, Page Down, Home or End. A click holds a step and lets it go; dragging, or + and -, changes the steps that are shown, and 0 shows all." }
            div id="live-steps-step" {
                p id="live-steps-said" role="status" {}
                p.soft.name id="live-steps-runs" {}
                dl.figures id="live-steps-totals" {}
                h3 id="live-steps-heading" { "Largest variables" }
                (filled("live-steps-variables", "Largest live variables at the step", &VARIABLES))
                p.soft id="live-steps-others" {}
                div.pair {
                    div { h3 { "By category" } (filled("live-steps-categories", "Live bytes by category at the step", &SUMS)) }
                    div { h3 { "By layer" } (filled("live-steps-layers", "Live bytes by layer at the step", &SUMS))
                        p.soft { "What several layers use counts in each." } }
                }
            }
        }
        (long("Table of the chosen steps", chosen(report, own)))
    })
}

fn controls(report: &Report, own: &LiveSteps) -> Markup {
    let layers = own.layers.iter().enumerate();
    let (first, last) = (own.steps.first(), own.steps.last());
    html! {
        div.controls {
            label { "Layer "
                select id="live-steps-layer" {
                    option value="" { "all" }
                    @for (place, layer) in layers { option value=(place) { (report.pseudo_layers.shown(&layer.name)) } }
                    option value="every" { "in every stage" }
                }
            }
            label { "Name contains " input id="live-steps-name" type="search"; }
            label { input id="live-steps-changing" type="checkbox"; " without those that are always live" }
        }
        div.controls {
            label { "Steps from " input id="live-steps-from" type="number" step="1" min=[first] max=[last]; }
            label { "to " input id="live-steps-to" type="number" step="1" min=[first] max=[last]; }
            button type="button" id="live-steps-in" { "Zoom in" }
            button type="button" id="live-steps-out" { "Zoom out" }
            button type="button" id="live-steps-whole" { "All steps" }
        }
    }
}

const VARIABLES: [Column; 5] = [
    Column::new("Variable", Kind::Name, ""),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::text("Category"),
    Column::new("Layers", Kind::Layers, ""),
    Column::text("Live at chosen steps"),
];

/// By category or by layer.
const SUMS: [Column; 3] = [
    Column::text("Of"),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::new("Share", Kind::Share, ""),
];

const CHOSEN: [Column; 6] = [
    Column::new("Step", Kind::Count, "/live_steps/steps/{}"),
    Column::new("Runs", Kind::Name, ""),
    Column::new("Variables live", Kind::Count, "/live_steps/counts/{}"),
    Column::new("Their bytes", Kind::Bytes, "/live_steps/bytes/{}"),
    Column::new(
        "Not always live, all tiles",
        Kind::Bytes,
        "/live_steps/not_always_live/{}",
    ),
    Column::new("Largest not always live", Kind::Name, ""),
];

fn chosen(report: &Report, own: &LiveSteps) -> Markup {
    let mut rows = Table::of_layers("live-steps", &CHOSEN, report.pseudo_layers);
    for (place, &step) in own.steps.iter().enumerate() {
        let is_live = |own: &&VariableAtSteps| {
            let mut spans = own.live.iter();
            !own.is_always_live && spans.any(|&(from, to)| (from..=to).contains(&step))
        };
        let largest = own.variables.iter().find(is_live);
        let largest = largest.map_or(Cell::Empty, |own| Cell::from(&*own.name));
        let cells = cells![
            step,
            own.programs.get(place).map_or("", |own| own.as_str()),
            own.counts.get(place).copied(),
            own.bytes.get(place).copied(),
            own.not_always_live.get(place).copied(),
            largest,
        ];
        rows.row(place.to_string(), cells);
    }
    table("Chosen steps", &rows)
}

/// The numbers for the script; `None` where they take more than `room` bytes, or lists
/// do not fit together.
pub(super) fn data(report: &Report, room: usize) -> Option<String> {
    let own = report.live_steps.as_ref().filter(|own| is_whole(own))?;
    let liveness = report.liveness.as_ref()?;
    let text = for_script(&LiveStepsData::new(report, own, liveness));
    (text.len() <= room).then_some(text)
}

/// Has every list an entry for each step, as in a report that was not changed?
fn is_whole(own: &LiveSteps) -> bool {
    let categories = own.categories.iter().map(|own| &own.bytes);
    let layers = own.layers.iter().map(|own| &own.bytes);
    let lists = [
        &own.counts,
        &own.bytes,
        &own.not_always_live,
        &own.in_every_stage,
    ];
    let mut lists = lists.into_iter().chain(categories).chain(layers);
    let count = own.steps.len();
    let texts = [own.programs.len(), own.operations.len()];
    let is_whole =
        |list: &Vec<u64>| list.len() == count && list.iter().all(|&own| own < MAX_NUMBER);
    count > 0 && texts == [count; 2] && lists.all(is_whole)
}

impl LiveStepsData {
    fn new(report: &Report, own: &LiveSteps, liveness: &Liveness) -> Self {
        let mut texts = DistinctTexts::default();
        let programs = own.programs.iter().map(|text| texts.place(text)).collect();
        let operations = own.operations.iter();
        let operations = operations.map(|text| Some(texts.place(text.as_ref()?)));
        let operations = operations.collect();
        let curve = &liveness.fullest_tile_curve;
        let layers = own.layers.iter();
        let categories = own.categories.iter();
        Self {
            first: curve.first_step,
            last: curve.last_step,
            turn: liveness.turn,
            limit: report.provenance.target.bytes_per_tile,
            on_tile: Line::new(curve),
            all_tiles: Line::new(&liveness.all_tiles),
            steps: changes(own.steps.iter().copied()),
            texts: texts.all,
            programs,
            operations,
            counts: changes(own.counts.iter().copied()),
            bytes: changes(own.bytes.iter().copied()),
            not_always_live: changes(own.not_always_live.iter().copied()),
            categories: categories
                .map(|own| (shown(&own.name), changes(own.bytes.iter().copied())))
                .collect(),
            layers: layers
                .map(|own| {
                    (
                        report.pseudo_layers.shown(&own.name),
                        changes(own.bytes.iter().copied()),
                    )
                })
                .collect(),
            in_every_stage: changes(own.in_every_stage.iter().copied()),
            variables: own
                .variables
                .iter()
                .map(|variable| packed(own, variable))
                .collect(),
        }
    }
}

impl Line {
    fn new(curve: &Curve) -> Self {
        Self {
            fixed: curve.fixed,
            always_live: curve.always_live,
            at: changes(curve.steps.iter().copied()),
            bytes: changes(curve.bytes.iter().copied()),
        }
    }
}

fn packed(steps: &LiveSteps, own: &VariableAtSteps) -> Variable {
    let category = steps.categories.iter();
    let category = category
        .clone()
        .position(|category| category.name == own.category);
    let layer = |name: &Option<String>| steps.layers.iter().position(|layer| layer.name == *name);
    let place = |step: &u32| steps.steps.binary_search(step).ok();
    let span = |(from, to): &(u32, u32)| Some((place(from)?, place(to)?));
    (
        shown(&own.name),
        category,
        own.bytes,
        own.layers.iter().filter_map(layer).collect(),
        own.is_always_live,
        own.live.iter().filter_map(span).collect(),
    )
}

/// Texts, each once.
#[derive(Default)]
struct DistinctTexts<'a> {
    all: Vec<String>,
    places: HashMap<&'a str, usize>,
}

impl<'a> DistinctTexts<'a> {
    fn place(&mut self, text: &'a str) -> usize {
        *self.places.entry(text).or_insert_with(|| {
            self.all.push(shown(text));
            self.all.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::dense::tests::read_changes;
    use crate::report::testing::report;

    #[test]
    fn the_script_gets_places_in_lists() {
        let report = report();
        let data: serde_json::Value =
            serde_json::from_str(&data(&report, 1 << 20).unwrap()).unwrap();
        assert_eq!(
            data["texts"],
            serde_json::json!(["OnTileExecute fwd", "DoExchange", "0/MatMul"])
        );
        assert_eq!(data["programs"], serde_json::json!([0, 1, 1]));
        assert_eq!(data["operations"], serde_json::json!([2, null, 2]));
        assert_eq!(read_changes(data["steps"].as_str().unwrap()), [0, 3, 5]);
        let largest = serde_json::json!(["weights#0", 0, 649_988, [1], true, [[0, 2]]]);
        assert_eq!(data["variables"][0], largest);
        let moving = serde_json::json!(["activations#1", 1, 649_988, [1, 2], false, [[1, 1]]]);
        assert_eq!(data["variables"][1], moving);
    }

    #[test]
    fn what_does_not_fit_together_is_left_out() {
        let with = |change: &dyn Fn(&mut LiveSteps)| {
            let mut report = report();
            change(report.live_steps.as_mut().unwrap());
            assert!(section(&report).is_some());
            data(&report, 1 << 20)
        };
        assert!(with(&|_| {}).is_some());
        assert_eq!(with(&|own| own.counts.truncate(1)), None);
        assert_eq!(with(&|own| own.layers[0].bytes.clear()), None);
        assert_eq!(with(&|own| own.bytes[0] = MAX_NUMBER), None);
        assert_eq!(with(&|own| own.programs.push("x".into())), None);
        assert_eq!(data(&report(), 100), None);
    }
}
