//! The report as data in the page, within a bound on its size: large data is compressed, and if it
//! is still too large, parts that only drawings need are left out.

use crate::escape::json_in_script;
use crate::report::Report;
use crate::report::json::Document;
use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// Upper bound on the data of a page, in bytes.
const MAX_DATA: usize = 2_200_000;
/// Data up to this size, in bytes, is not compressed, so that people can read it in the page.
const SMALL: usize = 100_000;

/// The parts of a report that a page leaves out, one after the other, until the data is within the
/// bound.
const LEFT_OUT: [fn(&mut Report); 8] = [
    // The bytes of each layer at each step, except on the fullest tile.
    |report| {
        let steps = report.live_steps.iter_mut();
        let others = steps.flat_map(|steps| &mut steps.others);
        others.for_each(|tile| tile.layers.clear());
    },
    // The variables at each step, except on the fullest tile.
    |report| {
        let steps = report.live_steps.iter_mut();
        steps.for_each(|steps| steps.others.clear());
    },
    // Half of the ranges of layers whose bytes the reader sees when cuts are moved.
    |report| {
        let split = report.split.iter().flat_map(|split| &split.stages);
        let ends: Vec<u32> = split.map(|stage| stage.positions.end).collect();
        if let Some(ranges) = report.what_if.as_ref().filter(|_| report.split.is_some()) {
            report.what_if = ranges.narrowed(ranges.bytes.len() / 2, &ends);
        }
    },
    // The largest variables of a tile, except on the 200 fullest tiles.
    |report| {
        let variables = report.memory.tile_map.as_mut();
        if let Some(lists) = variables.and_then(|map| map.variables.as_mut()) {
            lists.tiles.truncate(200);
            lists.largest.truncate(200);
        }
    },
    // All other ranges of layers: cuts cannot be moved.
    |report| report.what_if = None,
    // The variables at each step.
    |report| report.live_steps = None,
    // The contents of each tile.
    |report| report.memory.tile_map = None,
    // What the framework and the application say about themselves.
    |report| (report.provenance.framework, report.provenance.app) = (None, None),
];

/// Returns an element that contains the report.
pub(super) fn element_of(report: &Report) -> String {
    within(report, MAX_DATA)
}

/// Returns the element in at most `most` bytes, or as small as possible. Fast compression is tried
/// first.
pub(super) fn within(report: &Report, most: usize) -> String {
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
