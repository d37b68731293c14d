//! The report as one page for the browser: a single file that needs no
//! network, with drawings in SVG, a table below each, and a script (`scripts`).
//!
//! Names come from files and may be anything. `maud` escapes all text and
//! attributes; what the script needs is in elements of its own; and a policy in
//! the head lets no script run but the one whose hash it names, and nothing be
//! fetched.

mod chart_data;
mod columns;
mod curve;
mod cuts;
mod dense;
mod execution;
mod execution_strip;
mod fit;
mod layers;
mod live_steps;
mod liveness;
mod memory;
mod proof;
mod refusal;
mod scripts;
mod stages;
mod summary;
mod sweep;
#[cfg(test)]
mod tests;
mod tile_map;
mod tiles;
mod verdict;
mod what_if;
mod widgets;

use crate::report::text::shown;
use crate::report::{Band, Report};
use chart_data::{Charts, data_element};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use scripts::{SCRIPT, SCRIPT_HASH};

const STYLE: &str = include_str!("style.css");

/// The SHA-256 of the style, which a test compares.
const STYLE_HASH: &str = "aE2WjIOGXU+nO2jf2zU5el2fMiOCXlR5oY5PCRZPhhM=";

/// How large a page becomes at most by the numbers for the script.
const MAX_PAGE: usize = 2_400_000;
/// How many of them what-if has at most.
const MAX_WHAT_IF: usize = 2_000_000;
/// What a page has beside its sections, style and script.
const FRAME: usize = 10_000;

/// What the page may do: draw itself and run its own script.
fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{STYLE_HASH}'; script-src 'sha256-{SCRIPT_HASH}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// The whole configurations that fit; `None` when they were not requested.
fn plan(report: &Report) -> Option<Markup> {
    let rows = report
        .plan
        .as_ref()
        .map(|_| crate::report::plan_table(report))?;
    Some(html! {
        @for line in super::plan::sentences(report) { p { (widgets::sentence(report, &line)) } }
        (widgets::table("Configurations that fit", &rows))
    })
}

/// The whole page.
pub fn text(report: &Report) -> String {
    let bands = report.liveness.as_ref().map_or(&[][..], |l| &l.bands[..]);
    let mut charts = Charts::new(bands, report.pseudo_layers);
    let sections = sections(report, &mut charts);
    let title = report.heading();
    let header = verdict::header(report, &title);
    let charts = charts.json();
    let bodies = sections.iter().map(|section| section.body.0.len());
    let texts = [&header.0, &charts, STYLE, SCRIPT].map(str::len);
    let used = FRAME + bodies.chain(texts).sum::<usize>();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(format!("popliner {}", shown(&report.provenance.popliner)));
                title { (title) " \u{2013} PopLiner" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header)
                (navigation(&sections))
                main {
                    @for section in &sections {
                        section id=(section.id) {
                            h2 { (section.name) }
                            (section.body)
                        }
                        "\n"
                    }
                }
                footer { "Made by PopLiner " (shown(&report.provenance.popliner)) ". All bytes are exact; steps and tiles count from 0." }
                div id="tip" role="status" {}
                (data_element("charts", Some(charts)))
                (data_for_tools(report, MAX_PAGE.saturating_sub(used)))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// What the script needs where the reader tries something, in at most `room` bytes: the
/// numbers of what-if, which can be as many as there is room for, come last.
fn data_for_tools(report: &Report, room: usize) -> Markup {
    let tile_map = tile_map::data(report);
    let room = room.saturating_sub(tile_map.as_ref().map_or(0, String::len));
    let live_steps = live_steps::data(report, room / 2);
    let room = room - live_steps.as_ref().map_or(0, String::len);
    let what_if = what_if::data(report, room.min(MAX_WHAT_IF));
    html! {
        (data_element("tile-map-data", tile_map))
        (data_element("live-steps-data", live_steps))
        (data_element("what-if-data", what_if))
    }
}

/// A part of the page.
struct Section {
    id: &'static str,
    name: &'static str,
    body: Markup,
}

/// All parts that the report has, in order.
fn sections(report: &Report, charts: &mut Charts) -> Vec<Section> {
    let all = match &report.fit {
        Some(_) => Vec::from(of_compilation(report, charts)),
        None => Vec::from(of_model(report, charts)),
    };
    let section = |(id, name, body): (_, _, Option<Markup>)| {
        Some(Section {
            id,
            name,
            body: body?,
        })
    };
    all.into_iter().filter_map(section).collect()
}

/// The id, the name, and what is there.
type Part = (&'static str, &'static str, Option<Markup>);

/// The parts of a page about a compilation.
fn of_compilation(report: &Report, charts: &mut Charts) -> [Part; 7] {
    [
        ("ipus", "IPUs", fit::ipus(report)),
        ("against", "Against the prediction", fit::against(report)),
        ("memory", "Recorded memory", fit::memory(report, charts)),
        ("liveness", "Liveness by IPU", fit::liveness(report, charts)),
        ("execution", "Execution by IPU", fit::execution(report)),
        ("summary", "Summary", Some(summary::section(report))),
        ("made", "How it was made", Some(summary::made(report))),
    ]
}

/// The parts of a page about a model and its split.
fn of_model(report: &Report, charts: &mut Charts) -> [Part; 19] {
    [
        ("refusal", "Why it does not fit", refusal::section(report)),
        ("given", "Beside the best", refusal::given(report)),
        ("split", "Split", verdict::split(report)),
        ("what-if", "What if", what_if::section(report)),
        ("constraints", "Constraints", proof::constraints(report)),
        ("stages", "Stages", stages::section(report, charts)),
        ("cuts", "Cuts", cuts::section(report)),
        ("tied-weights", "Tied weights", cuts::tied_weights(report)),
        (
            "shared-variables",
            "Shared variables",
            cuts::shared_variables(report),
        ),
        ("proof", "Proof", proof::section(report)),
        ("sweep", "Numbers of IPUs", sweep::section(report)),
        ("liveness", "Liveness", liveness::section(report, charts)),
        ("live-steps", "Step by step", live_steps::section(report)),
        ("plan", "Plan", plan(report)),
        ("memory", "Recorded memory", memory::section(report, charts)),
        ("layers", "Layers", Some(layers::section(report))),
        ("execution", "Execution", execution::section(report)),
        ("summary", "Summary", Some(summary::section(report))),
        ("made", "How it was made", Some(summary::made(report))),
    ]
}

fn navigation(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Sections" {
            @for section in sections {
                a href=(format!("#{}", section.id)) { (section.name) }
            }
        }
    }
}

/// Whether the band of a layer has the other tint: stages take turns; without
/// a split, layers do.
fn tints<'a>(report: &Report, bands: impl Iterator<Item = &'a Band>) -> Vec<(&'a Band, bool)> {
    let place = |band: &Band| match &report.split {
        Some(split) => split
            .stages
            .iter()
            .position(|stage| stage.layers.contains(&band.layer)),
        None => report
            .layers
            .iter()
            .position(|layer| layer.name == band.layer),
    };
    bands
        .map(|band| (band, place(band).is_some_and(|place| place % 2 == 1)))
        .collect()
}

/// The groups of columns when each layer has one: long and short name of the
/// stage, and its layers.
fn stage_groups(report: &Report) -> Vec<(String, String, usize)> {
    let Some(split) = &report.split else {
        return Vec::new();
    };
    let stages = split.stages.iter();
    let placed = stages.map(|own| {
        let short = own.stage.to_string();
        (format!("IPU {short}"), short, own.positions.len())
    });
    let placed_layers = split.stages.last().map_or(0, |last| last.positions.end);
    let left = report.layers.len().saturating_sub(placed_layers as usize);
    let left = (left > 0).then(|| ("in no stage".to_string(), "none".to_string(), left));
    placed.chain(left).collect()
}

/// A name below a drawing, where there is little room.
fn short(name: &str) -> String {
    const MOST: usize = 8;
    if name.chars().count() > MOST {
        name.chars().take(MOST - 1).collect::<String>() + "\u{2026}"
    } else {
        name.to_string()
    }
}
