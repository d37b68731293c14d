//! The page: a fixed document for the browser with the JSON form of a report in it.
//!
//! Style and scripts are files of this folder. The scripts (`scripts`) show the report. The code
//! here puts the report into the document, within a bound on its size, and tells the reader of a
//! browser without scripts whether the model fits. Large data is compressed, and if it is still too
//! large, parts that only drawings need are left out. A policy in the head allows only the one
//! script whose hash it names, and no requests. Without a report the document opens a report that
//! the reader chooses or drops.

#[cfg(test)]
mod tests;

use super::json;
use super::sentences;
use super::terminal::{self, TextStyle};
use super::{Format, Report, join};
use crate::escape::json_in_script;
use crate::wording::capital;
use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// The HTML document, in which names in double braces stand for text that is put in. Its content
/// security policy has the hashes of [`STYLE`] and [`SCRIPT`], which
/// `BLESS=1 cargo test --lib html` writes.
const DOCUMENT: &str = include_str!("page.html");

const STYLE: &str = include_str!("style.css");

/// Joins the files of the folder `scripts` with these names, in the order in which they run.
macro_rules! scripts {
    ($($name:literal)*) => {
        concat!("'use strict';\n", $(include_str!(concat!("scripts/", $name, ".js"))),*)
    };
}

/// The scripts of the page, in order. A script uses only those before it, unless it is called
/// later.
const SCRIPT: &str = scripts!(
    "report" "elements" "choice" "tables" "plot" "layer_plot" "colours" "cuts" "tried" "stage"
    "split" "blocks" "tiles" "time" "layers" "configuration" "details" "compare" "page"
);

/// Returns the page that shows a report, as one HTML document.
pub fn text(report: &Report) -> String {
    document(
        &report.heading(),
        &without_scripts(report),
        &within(report, MAX_DATA),
    )
}

/// Returns the page without a report, which opens reports that the reader chooses.
pub fn viewer() -> String {
    document(
        "Reports",
        "This page needs a browser that runs scripts.",
        "",
    )
}

/// Returns the page with a title, a text for browsers without scripts, and `data`, the HTML element
/// with the report; `data` is empty without a report.
fn document(title: &str, without_scripts: &str, data: &str) -> String {
    let mut pieces = DOCUMENT.split("{{");
    let mut text = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").unwrap_or((piece, ""));
        match name {
            "title" => text += &escaped(title),
            "style" => text += STYLE,
            "without-scripts" => text += &escaped(without_scripts),
            "data" => text += data,
            "script" => text += SCRIPT,
            // A name that is none of the above stays in the page, where a test finds it.
            name => text += &format!("{{{{{name}}}}}"),
        }
        text += rest;
    }
    text
}

/// Writes the verdict, why nothing fits, the table of the split or the compilation, and the
/// warnings as plain text, for a browser that runs no scripts.
fn without_scripts(report: &Report) -> String {
    let tables = report
        .tables(Format::Table)
        .into_iter()
        .map(|table| terminal::for_people(&table, &TextStyle::default()));
    let refusal = report.refusal.iter();
    let refusal = refusal.map(|own| capital(&report.plain(sentences::why_none_fits(own))));
    let lines = [report.heading()].into_iter().chain(refusal).chain(tables);
    join(lines.chain(report.warnings_for_people()), "\n")
}

/// Escapes `&`, `<`, `>` and double quotes, for text in HTML elements and attributes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Upper bound on the bytes that a report takes in a page, after compression.
const MAX_DATA: usize = 2_200_000;
/// The largest size of a report in bytes that is not compressed, so that people can read it in the
/// page.
const SMALL: usize = 100_000;

/// Functions that each remove from a report a part that only drawings need. They are applied in
/// order until the report is small enough for a page.
const LEFT_OUT: [fn(&mut Report); 8] = [
    // Remove the bytes of each layer at each step, except on the fullest tile.
    |report| {
        let steps = report.live_steps.iter_mut();
        steps
            .flat_map(|steps| &mut steps.others)
            .for_each(|tile| tile.layers.clear());
    },
    // Remove the variables at each step, except on the fullest tile.
    |report| {
        if let Some(steps) = &mut report.live_steps {
            steps.others.clear();
        }
    },
    // Remove half of the ranges of layers whose bytes the reader sees when cuts are moved.
    |report| {
        let cuts: Vec<u32> = report
            .stages()
            .iter()
            .map(|stage| stage.positions.start)
            .skip(1)
            .collect();
        if let Some(ranges) = report.what_if.as_ref().filter(|_| report.split.is_some()) {
            report.what_if = ranges.narrowed(ranges.profiles[0].bytes.len() / 2, &cuts);
        }
    },
    // Remove the largest variables of tiles, except of the 200 fullest tiles.
    |report| {
        if let Some(map) = &mut report.memory.tile_map
            && let Some(lists) = &mut map.variables
        {
            lists.tiles.truncate(200);
            lists.largest.truncate(200);
        }
    },
    // Remove all other ranges of layers, so that cuts cannot be moved.
    |report| report.what_if = None,
    // Remove the variables at each step on the fullest tile, too.
    |report| report.live_steps = None,
    // Remove the contents of each tile.
    |report| report.memory.tile_map = None,
    // Remove versions and options that the framework and the application recorded.
    |report| (report.provenance.framework, report.provenance.app) = (None, None),
];

/// Returns an HTML element that contains the report, in at most `most` bytes, or in as few as
/// possible. Fast compression is tried first, then the best one; then parts of the report are left
/// out, in the order of [`LEFT_OUT`].
fn within(report: &Report, most: usize) -> String {
    let mut text = element(report, Compression::fast());
    if text.len() <= most {
        return text;
    }
    text = element(report, Compression::best());
    let mut less = report.clone();
    for leave_out in LEFT_OUT {
        if text.len() <= most {
            break;
        }
        leave_out(&mut less);
        text = element(&less, Compression::best());
    }
    text
}

fn element(report: &Report, compression: Compression) -> String {
    // Writing JSON to memory does not fail.
    let json = json_in_script(json::text(report).unwrap_or_default());
    if json.len() <= SMALL {
        return format!("<script type=\"application/json\" id=\"report\">{json}</script>");
    }
    let mut packed = GzEncoder::new(Vec::new(), compression);
    let written = packed
        .write_all(json.as_bytes())
        .and_then(|()| packed.finish());
    let packed = BASE64_STANDARD.encode(written.unwrap_or_default());
    format!("<script type=\"text/plain\" id=\"packed-report\">{packed}</script>")
}
