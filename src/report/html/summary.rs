//! The compilation, and how the report was made.

use super::widgets::{number, table};
use crate::report::table::{Column, Kind, Table, cells};
use crate::report::text::shown;
use crate::report::{BuildOption, Fit, Report};
use maud::{Markup, html};
use serde_json::Value;

/// The target, the compilation and its options.
pub(super) fn section(report: &Report) -> Markup {
    let made = &report.provenance;
    let target = &made.target;
    html! {
        dl.facts {
            dt { "Target" }
            dd {
                (shown(&target.architecture)) ", " (number("/provenance/target/tiles", target.tiles.into()))
                " tiles of " (number("/provenance/target/bytes_per_tile", target.bytes_per_tile)) " bytes"
                @if let Some(fit) = &report.fit {
                    ", " (number("/fit/tiles_per_ipu", fit.tiles_per_ipu.into())) " on each IPU"
                }
                @if let Some(hertz) = target.clock_hz {
                    ", " (number("/provenance/target/clock_hz", hertz)) " Hz"
                }
            }
            dt { "Poplar version" }
            dd { (known(&made.poplar)) }
            dt { "Compiled" }
            dd { (known(&made.compiled)) }
            @if let Some(fit) = &report.fit { (of_compilation(fit)) }
        }
        @if let Some(options) = &made.options { (build_options(options)) }
        @for (name, value) in [("framework.json", &made.framework), ("app.json", &made.app)] {
            @if let Some(value) = value { (beside(name, value)) }
        }
    }
}

/// How many replicas and variables were compiled.
fn of_compilation(fit: &Fit) -> Markup {
    html! {
        dt { "Replicas" }
        dd {
            (number("/fit/replicas", fit.replicas.into()))
            @if fit.replicas > 1 { ", of which " (number("/fit/listed_replicas", fit.listed_replicas.into())) " in the profile" }
        }
        dt { "Lowered variables" }
        dd {
            @match fit.variables {
                Some(count) => {
                    (number("/fit/variables", count))
                    @if !fit.has_names { ", whose names do not tell what a pipeline keeps" }
                }
                None => span.soft { "not recorded" },
            }
        }
    }
}

fn known(fact: &Option<String>) -> Markup {
    match fact {
        Some(fact) => html! { (shown(fact)) },
        None => html! { span.soft { "not recorded" } },
    }
}

const OPTIONS: [Column; 3] = [
    Column::text("Option"),
    Column::text("Value"),
    Column::text("Of"),
];

fn build_options(options: &[BuildOption]) -> Markup {
    let mut rows = Table::new("options", &OPTIONS);
    for option in options {
        rows.row("", cells![&*option.name, &*option.value, &*option.of]);
    }
    html! {
        h3 { "Options that are not their defaults" }
        @if options.is_empty() { p.soft { "None." } }
        @else { (table("Options", &rows)) }
    }
}

const ENTRIES: [Column; 2] = [Column::text("Name"), Column::new("Value", Kind::Name, "")];

/// The maximum number of entries of a file beside the profile that are shown.
const MAX_ENTRIES: usize = 200;

/// A file beside the profile, as names and values.
fn beside(name: &str, value: &Value) -> Markup {
    let mut entries = Vec::new();
    flatten(String::new(), value, &mut entries);
    let mut rows = Table::new("beside", &ENTRIES);
    for (name, value) in entries.iter().take(MAX_ENTRIES) {
        rows.row("", cells![&**name, &**value]);
    }
    html! {
        h3 { (name) }
        (table(name, &rows))
        @if entries.len() > MAX_ENTRIES {
            p.soft { "And " (entries.len() - MAX_ENTRIES) " more." }
        }
    }
}

fn flatten(name: String, value: &Value, entries: &mut Vec<(String, String)>) {
    let inside = |key: &str| {
        if name.is_empty() {
            key.to_string()
        } else {
            format!("{name}.{key}")
        }
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(inside(key), value, entries);
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                flatten(inside(&place.to_string()), value, entries);
            }
        }
        Value::String(text) => entries.push((name, text.clone())),
        other => entries.push((name, other.to_string())),
    }
}

/// The files, the version and the arguments.
pub(super) fn made(report: &Report) -> Markup {
    let made = &report.provenance;
    html! {
        dl.facts {
            dt { @if made.files.saved_model { "Saved model" } @else { "Profile" } }
            dd { code { (shown(&made.files.profile)) } }
            @if let Some(debug) = &made.files.debug {
                dt { "Debug contexts" }
                dd { code { (shown(debug)) } }
            }
            dt { "Arguments" }
            dd {
                @for argument in &made.arguments { code { (shown(argument)) } " " }
            }
            @if report.fit.is_none() {
                dt { "Memory model" }
                dd { (shown(&made.memory_model)) }
            }
            @if let Some(against) = report.fit.as_ref().and_then(|fit| fit.against.as_ref()) {
                dt { "Predicted from" }
                dd { code { (shown(&against.profile)) } }
            }
            dt { "PopLiner" }
            dd { "version " (shown(&made.popliner)) ", report version " (number("/version", report.version.into())) }
        }
    }
}
