//! The report as data in the page, within a bound on its size: compressed if that is smaller, and
//! without some of the data for drawings if it would be too large.

use super::json_in_script;
use crate::report::json::Document;
use crate::report::{Report, WhatIf};
use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// Upper bound on the data of a page, in bytes.
const MAX_DATA: usize = 2_200_000;
/// Data up to this size, in bytes, is not compressed, so that people can read it in the page.
const SMALL: usize = 100_000;

/// Steps that shrink a report, applied in order until its data is within the bound.
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

/// Returns an element that contains the report.
pub(super) fn data(report: &Report) -> String {
    data_within(report, MAX_DATA)
}

/// Returns the element in at most `most` bytes, or as small as possible. Fast compression is tried
/// first.
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
