//! The report as data in the page: compressed where that is less, and with less of what
//! tools draw where it would be too much.

use super::json_in_script;
use crate::report::json::Document;
use crate::report::{Report, WhatIf};
use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// How large the data of a page is at most, in bytes.
const MAX_DATA: usize = 2_200_000;
/// Less than this is not compressed: it can be read in the page.
const SMALL: usize = 100_000;

/// The parts of a report that are left out, one after the other, until the rest has room.
const LESS: [fn(&mut Report); 8] = [
    |report| {
        let steps = report.live_steps.iter_mut();
        let others = steps.flat_map(|steps| &mut steps.others);
        others.for_each(|tile| tile.layers.clear());
    },
    |report| {
        if let Some(steps) = &mut report.live_steps {
            steps.others.clear();
        }
    },
    |report| halve(&mut report.what_if, report.split.as_ref().map(ends)),
    |report| {
        let variables = report.memory.tile_map.as_mut();
        if let Some(lists) = variables.and_then(|sheet| sheet.variables.as_mut()) {
            lists.tiles.truncate(200);
            lists.largest.truncate(200);
        }
    },
    |report| report.what_if = None,
    |report| report.live_steps = None,
    |report| report.memory.tile_map = None,
    |report| (report.provenance.framework, report.provenance.app) = (None, None),
];

fn ends(split: &crate::report::Split) -> Vec<u32> {
    split.stages.iter().map(|part| part.positions.end).collect()
}

fn halve(what_if: &mut Option<WhatIf>, split: Option<Vec<u32>>) {
    if let (Some(heights), Some(split)) = (&what_if, split) {
        *what_if = heights.narrowed(heights.bytes.len() / 2, &split);
    }
}

/// An element with the report.
pub(super) fn data(report: &Report) -> String {
    data_within(report, MAX_DATA)
}

/// In at most `most` bytes, or as few as can be: compressed fast where that is enough.
pub(super) fn data_within(report: &Report, most: usize) -> String {
    let mut text = element(report, Compression::fast());
    if text.len() <= most {
        return text;
    }
    text = element(report, Compression::best());
    let mut less = report.clone();
    for step in LESS {
        if text.len() <= most {
            break;
        }
        step(&mut less);
        text = element(&less, Compression::best());
    }
    text
}

fn element(report: &Report, compression: Compression) -> String {
    // Writing to memory does not fail.
    let json = json_in_script(Document::new(report).text().unwrap_or_default());
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
