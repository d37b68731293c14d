//! Compares a report with an earlier report: which layers grew, how the stages changed, and whether
//! the split still fits.
//!
//! [`Comparison::new`] is a pure function of two reports; [`read`] reads a report that
//! `--export-json` wrote.

mod tables;
#[cfg(test)]
mod tests;

use super::{LayerMemory, Report, VERSION};
use crate::message::{GIVE_REPORT, Warning};
use crate::model::PseudoLayers;
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// The comparison of a report with an earlier one on the same model.
#[derive(Debug)]
pub struct Comparison<'a> {
    reports: [&'a Report; 2],
    /// One entry per layer of either report, in the order of the later report. Layers that only the
    /// earlier report has come last.
    pub layers: Vec<BytesChange>,
    /// One entry per stage of either report, in the order of the stages.
    pub stages: Vec<BytesChange>,
    /// Reasons why the numbers of the two reports may not be comparable, such as different limits.
    pub warnings: Vec<Warning>,
}

/// The bytes of one layer or of one stage, first in the earlier report and then in the later one;
/// `None` for a report that does not have the layer or stage.
pub type BytesChange = [Option<ComparedBytes>; 2];

/// Bytes of a stage, or of a layer as a stage of its own, in one of two compared reports.
#[derive(Debug, PartialEq)]
pub struct ComparedBytes {
    /// The name of the layer, or the names of the stage's layers in order, with spaces between.
    pub layers: String,
    /// Bytes of the layer or stage on its fullest tile.
    pub fullest_tile: u64,
    /// Bytes of a layer, summed over all tiles; `None` for a stage, since stages are compared only
    /// by their fullest tiles.
    pub total: Option<u64>,
}

impl<'a> Comparison<'a> {
    /// Compares an `earlier` report with a `later` one. Layers are matched by name, and stages by
    /// index.
    pub fn new(earlier: &'a Report, later: &'a Report) -> Self {
        Self {
            reports: [earlier, later],
            layers: layers([earlier, later]),
            stages: stages([earlier, later]),
            warnings: warnings(earlier, later),
        }
    }

    /// Returns whether the split fits, first in the earlier report and then in the later one;
    /// `None` for a report without a split.
    fn fits(&self) -> [Option<bool>; 2] {
        self.reports
            .map(|report| report.split.as_ref().map(|split| split.fits))
    }

    /// Returns true if the split of the later report does not fit and the split of the earlier
    /// report does. An earlier report without a split is treated as if its split fitted.
    pub fn is_worse(&self) -> bool {
        let [before, now] = self.fits();
        before != Some(false) && now == Some(false)
    }

    /// Returns the layers of both reports that need more bytes in the later report, on their
    /// fullest tile or over all tiles. Each has its name and its two growths in bytes: on the
    /// fullest tile, and over all tiles.
    fn grown(&self) -> impl Iterator<Item = (&str, [i128; 2])> {
        self.layers
            .iter()
            .filter_map(|layer| Some((&*layer[1].as_ref()?.layers, growth(layer)?)))
            .filter(|(_, growth)| growth.iter().any(|&bytes| bytes > 0))
    }
}

/// Returns the number that `bytes` reads from a layer or stage, first in the earlier report and then
/// in the later one; `None` for a report that does not have the layer or stage.
fn both(change: &BytesChange, bytes: impl Fn(&ComparedBytes) -> Option<u64>) -> [Option<u64>; 2] {
    change.each_ref().map(|memory| bytes(memory.as_ref()?))
}

/// Returns by how many bytes a layer grew, first on its fullest tile and then over all tiles; the
/// numbers are below 0 if the layer shrank. `None` for a new or removed layer, and for a stage.
fn growth(layer: &BytesChange) -> Option<[i128; 2]> {
    let on_tile = more(both(layer, |memory| Some(memory.fullest_tile)))?;
    Some([on_tile, more(both(layer, |memory| memory.total))?])
}

/// Returns the later number of bytes minus the earlier number; `None` if either number is missing.
fn more([before, now]: [Option<u64>; 2]) -> Option<i128> {
    Some(i128::from(now?) - i128::from(before?))
}

fn layers(reports: [&Report; 2]) -> Vec<BytesChange> {
    let [mut left, later] = reports.map(|report| {
        let memory = |layer: &LayerMemory| ComparedBytes {
            layers: report.pseudo_layers.name_of(&layer.name).to_string(),
            fullest_tile: layer.fullest_tile_bytes,
            total: Some(layer.total),
        };
        Vec::from_iter(report.layers.iter().map(memory))
    });
    let mut changes: Vec<BytesChange> = later
        .into_iter()
        .map(|now| {
            let place = left.iter().position(|before| before.layers == now.layers);
            [place.map(|place| left.remove(place)), Some(now)]
        })
        .collect();
    changes.extend(left.into_iter().map(|before| [Some(before), None]));
    changes
}

fn stages(reports: [&Report; 2]) -> Vec<BytesChange> {
    let stage = |report: &Report, number: usize| {
        let stage = report.stages().get(number)?;
        Some(ComparedBytes {
            layers: report.pseudo_layers.names_of(&stage.layers).join(" "),
            fullest_tile: stage.fullest_tile.bytes,
            total: None,
        })
    };
    let [before, now] = reports.map(|report| report.stages().len());
    (0..before.max(now))
        .map(|number| reports.map(|report| stage(report, number)))
        .collect()
}

fn warnings(earlier: &Report, later: &Report) -> Vec<Warning> {
    let facts = |report: &Report| {
        let tiles = report.provenance.target.tiles.to_string();
        let around = match report.pseudo_layers {
            PseudoLayers::NoneFirst => "None before them",
            PseudoLayers::InAndOut => "In before them and Out after them",
            PseudoLayers::OutWithIn => "In and Out before them, on the first IPU",
        };
        [
            ("the memory model", report.provenance.memory_model.clone()),
            ("what is before and after the layers", around.to_string()),
            ("the limit of a tile", report.memory.limit.to_string()),
            ("the number of tiles", tiles),
        ]
    };
    let warning = |text| Warning::new(format!("compared with another report: {text}"));
    let no_split = (earlier.split.is_none())
        .then(|| warning("it has no split; write it again with --solve".to_string()));
    facts(earlier)
        .into_iter()
        .zip(facts(later))
        .filter(|(before, now)| before != now)
        .map(|((subject, before), (_, now))| {
            warning(format!(
                "{subject} was {before} and is {now}; run both with the same options to compare \
                 only the model"
            ))
        })
        .chain(no_split)
        .collect()
}

/// The reason why a file cannot be read as a report to compare with.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The file is not JSON.
    #[error("it is not JSON: {0}; {GIVE_REPORT}")]
    NotJson(serde_json::Error),
    /// The file is JSON, but its field `format` is not that of a report. Contains the value of the
    /// field.
    #[error("its format is {0} instead of \"popliner-report\"; {GIVE_REPORT}")]
    OtherFormat(String),
    /// The file is a report of a version that this program does not read. Contains the version.
    #[error(
        "it is a report of version {0}, and this popliner reads version {VERSION}; write it \
         again with --export-json of this popliner"
    )]
    OtherVersion(String),
    /// The file is a report of the right version, but a field is missing or has a wrong type.
    #[error("it is a report of version {VERSION}, but not a complete one: {0}; {GIVE_REPORT}")]
    Damaged(serde_json::Error),
}

/// The two fields by which [`read`] recognizes a report. Reports of every version have these
/// fields.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

/// Returns the report in the JSON text `bytes`. Checks the format and the version before all other
/// fields.
///
/// # Errors
/// [`CompareError`] for any input that is not a complete report of this [`VERSION`].
pub fn read(bytes: &[u8]) -> Result<Report, CompareError> {
    let head: Head = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => CompareError::OtherFormat("missing".into()),
        _ => CompareError::NotJson(error),
    })?;
    if head.format != "popliner-report" {
        return Err(CompareError::OtherFormat(excerpt(&head.format)));
    }
    if head.version != VERSION {
        return Err(CompareError::OtherVersion(excerpt(&head.version)));
    }
    // Parse the JSON text again instead of converting an already parsed value, since errors of such
    // a conversion have no line number.
    serde_json::from_slice(bytes).map_err(CompareError::Damaged)
}

/// Upper bound on characters of a JSON value that an error quotes.
const MAX_CHARACTERS: usize = 40;

fn excerpt(value: &Value) -> String {
    let text = match value {
        Value::Null => "missing".to_string(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
