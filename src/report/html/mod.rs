//! Writes the HTML page: a fixed document that contains a report as JSON and scripts that show it.
//!
//! The style and the scripts are files of this folder and of `scripts`. The code of this module
//! puts the report into the document, within a bound on its size, and tells a reader whose browser
//! runs no scripts whether the model fits. A large report is compressed; if it is still too large,
//! parts that the page can do without, such as the data of drawings, are left out. A content
//! security policy in the head of the document forbids requests, and allows only the one script
//! whose hash the policy has. A page without a report opens a report that the reader chooses or
//! drops onto the page.

#[cfg(test)]
mod tests;

use super::{Format, Report, sentences, terminal, terminal::TextStyle};
use crate::{
    escape::json_in_script,
    wording::{capital, join},
};
use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

const STYLE: &str = include_str!("style.css");

/// Joins the scripts of the HTML page into one text. The names are those of files in the folder
/// `scripts`, without `.js`, in the order in which the scripts run.
macro_rules! scripts {
    ($($name:literal)*) => {
        concat!("'use strict';\n", $(include_str!(concat!("scripts/", $name, ".js"))),*)
    };
}

/// The scripts of the HTML page. A script uses only scripts before it, except in functions that run
/// later.
const SCRIPT: &str = scripts!(
    "report" "elements" "choice" "tables" "plot" "layer_plot" "colours" "cuts" "tried" "stage"
    "split" "blocks" "tiles" "time" "layers" "configuration" "details" "compare" "page"
);

/// Returns the page that shows `report`, as the text of one HTML document.
pub fn text(report: &Report) -> String {
    document(
        &report.heading(),
        &without_scripts(report),
        &within(report, MAX_DATA),
    )
}

/// Returns an HTML page without a report, which opens reports that its reader chooses.
pub fn viewer() -> String {
    document(
        "Reports",
        "This page needs a browser that runs scripts.",
        "",
    )
}

/// Makes the HTML document of a page from the template `page.html`, whose content security policy
/// has the hashes of [`STYLE`] and [`SCRIPT`]; `BLESS=1 cargo test --lib html` writes the hashes.
/// `without_scripts` is the text for browsers that run no scripts. `data` is the HTML element that
/// contains the report; it is empty for a page without a report.
fn document(title: &str, without_scripts: &str, data: &str) -> String {
    format!(
        include_str!("page.html"),
        title = escaped(title),
        style = STYLE,
        without_scripts = escaped(without_scripts),
        data = data,
        script = SCRIPT,
    )
}

/// Returns what a browser without scripts shows, as plain text: the verdict, the reason why no
/// split fits, the table of the split or of the compilation, and the warnings.
fn without_scripts(report: &Report) -> String {
    let tables = (report.tables(Format::Table).into_iter())
        .map(|table| terminal::for_people(&table, &TextStyle::default()));
    let refusal =
        (report.refusal.iter()).map(|own| capital(&report.plain(sentences::why_none_fits(own))));
    let lines = [report.heading()].into_iter().chain(refusal).chain(tables);
    join(lines.chain(report.warnings_for_people()), "\n")
}

/// Escapes `&`, `<`, `>` and double quotes for use in HTML elements and attributes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Upper bound on the bytes that a report takes in an HTML page, after compression.
const MAX_DATA: usize = 2_200_000;
/// A report of up to this number of bytes is in the HTML page without compression, so that people
/// can read the data there.
const SMALL: usize = 100_000;

/// Each function removes from a report one part that the HTML page can do without, such as the data
/// of a drawing. The functions are applied in this order until the report is small enough for the
/// page.
const LEFT_OUT: [fn(&mut Report); 8] = [
    // A page that is too large loses the live bytes by layer and step, except on the model's
    // fullest tile.
    |report| {
        for tile in report
            .live_steps
            .iter_mut()
            .flat_map(|steps| &mut steps.others)
        {
            tile.layers.clear();
        }
    },
    // A page that is too large loses the live variables of all tiles except the model's fullest
    // tile.
    |report| {
        if let Some(steps) = &mut report.live_steps {
            steps.others.clear();
        }
    },
    // A page that is too large keeps the bytes of at most half of the possible stages, from which
    // it computes the splits that its reader tries. Stages that begin and end near the cuts of the
    // report's split or of the best splits are kept.
    |report| {
        let stages = report.stages().iter().skip(1);
        let cuts = Vec::from_iter(stages.map(|stage| stage.positions.start));
        if let Some(ranges) = report.what_if.as_ref().filter(|_| report.split.is_some()) {
            report.what_if = ranges.narrowed(ranges.profiles[0].bytes.len() / 2, &cuts);
        }
    },
    // A page that is too large loses the lists of the largest variables of each tile, except on the
    // 200 fullest tiles.
    |report| {
        if let Some(map) = &mut report.memory.tile_map
            && let Some(lists) = &mut map.variables
        {
            lists.tiles.truncate(200);
            lists.largest.truncate(200);
        }
    },
    // A page that is too large loses the bytes of all possible stages, so its reader cannot move
    // cuts.
    |report| report.what_if = None,
    // A page that is too large loses its chart of live variables.
    |report| report.live_steps = None,
    // A page that is too large loses its drawing of the bytes on each tile.
    |report| report.memory.tile_map = None,
    // A page that is too large loses the versions and options that the framework and the
    // application wrote beside the profile.
    |report| (report.provenance.framework, report.provenance.app) = (None, None),
];

/// Returns the HTML element that contains the report, in at most `most` bytes if possible. Fast
/// compression is tried first, then the best compression, and then parts of the report are left out
/// in the order of [`LEFT_OUT`].
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
    // Writing JSON to memory does not fail, so there is no error to pass on.
    let json = json_in_script(super::json(report).unwrap_or_default());
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
