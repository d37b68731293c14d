//! Compares a report with an earlier report: which layers grew, how the stages changed, and whether
//! the split still fits. [`read`] reads an earlier report, which `--export-json` wrote.

mod tables;
#[cfg(test)]
mod tests;

use super::{LayerMemory, Report, VERSION};
use crate::message::{FileError, GIVE_REPORT, Warning, unusable};
use crate::model::PseudoLayers;
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

/// The comparison of a report with an earlier report on the same model.
#[derive(Debug)]
pub struct Comparison<'a> {
    reports: [&'a Report; 2],
    /// The layers of both reports, in the order of the later report. Layers that only the earlier
    /// report has come last.
    layers: Vec<ComparedLayer<'a>>,
    /// Reasons why the numbers of the two reports may not be comparable, such as different limits.
    pub warnings: Vec<Warning>,
}

/// The memory of one layer in the two compared reports, the earlier one first; `None` for a report
/// that lacks the layer.
type ComparedLayer<'a> = [Option<&'a LayerMemory>; 2];

impl<'a> Comparison<'a> {
    /// Compares an `earlier` report with a `later` one. Layers are compared by name, and stages by
    /// index.
    pub fn new(earlier: &'a Report, later: &'a Report) -> Self {
        Self {
            reports: [earlier, later],
            layers: layers(earlier, later),
            warnings: warnings(earlier, later),
        }
    }

    /// Returns whether the split fits in the earlier and in the later report; `None` for a report
    /// without a split.
    fn fits(&self) -> [Option<bool>; 2] {
        self.reports
            .map(|report| report.split.as_ref().map(|split| split.fits))
    }

    /// Returns whether the split of the later report no longer fits. An earlier report without a
    /// split counts as one whose split fitted.
    pub fn is_worse(&self) -> bool {
        let [before, now] = self.fits();
        before != Some(false) && now == Some(false)
    }

    /// Returns the layers that need more bytes in the later report than in the earlier one, on
    /// their fullest tile or over all tiles. Each has its name and two numbers of bytes: its growth
    /// on the fullest tile, and its growth over all tiles.
    fn grown(&self) -> impl Iterator<Item = (&str, [i128; 2])> {
        self.layers
            .iter()
            .filter_map(|layer| Some((self.name(layer)?, growth(layer)?)))
            .filter(|(_, growth)| growth.iter().any(|&bytes| bytes > 0))
    }

    /// Returns the name of a layer as the later report shows it, or as the earlier report does if
    /// the later one lacks the layer.
    fn name(&self, layer: &ComparedLayer<'a>) -> Option<&'a str> {
        let name = |side: usize| Some(self.reports[side].pseudo_layers.name_of(&layer[side]?.name));
        name(1).or_else(|| name(0))
    }
}

/// Returns by how many bytes a layer grew from the earlier to the later report (below 0 if it
/// shrank): on its fullest tile, and over all tiles. Returns `None` for a new or removed layer.
fn growth(layer: &ComparedLayer<'_>) -> Option<[i128; 2]> {
    let on_tile = more(layer.map(|memory| Some(memory?.fullest_tile_bytes)))?;
    Some([on_tile, more(layer.map(|memory| Some(memory?.total)))?])
}

/// Returns how many bytes more the later report has than the earlier one; `None` if either number
/// is missing.
fn more([before, now]: [Option<u64>; 2]) -> Option<i128> {
    Some(i128::from(now?) - i128::from(before?))
}

fn layers<'a>(earlier: &'a Report, later: &'a Report) -> Vec<ComparedLayer<'a>> {
    let mut left: Vec<&LayerMemory> = earlier.layers.iter().collect();
    let mut layers: Vec<ComparedLayer<'a>> = later
        .layers
        .iter()
        .map(|now| {
            let name = later.pseudo_layers.name_of(&now.name);
            let is_same =
                |before: &&LayerMemory| earlier.pseudo_layers.name_of(&before.name) == name;
            let place = left.iter().position(is_same);
            [place.map(|place| left.remove(place)), Some(now)]
        })
        .collect();
    layers.extend(left.into_iter().map(|before| [Some(before), None]));
    layers
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

/// The two fields by which [`read`] recognizes a report. They are in reports of every version.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    format: Value,
    version: Value,
}

/// Reads a report from the JSON text `bytes`. The format and the version are checked first, so that
/// an error names the cause.
///
/// # Errors
/// For any input that is not a complete report of this [`VERSION`].
pub fn read(bytes: &[u8]) -> Result<Report, FileError> {
    let head: Head = serde_json::from_slice(bytes).or_else(|error| match error.classify() {
        Category::Data => Ok(Head::default()),
        _ => unusable(format!("it is not JSON: {error}; {GIVE_REPORT}")),
    })?;
    if head.format != "popliner-report" {
        return unusable(format!(
            "its format is {} instead of \"popliner-report\"; {GIVE_REPORT}",
            excerpt(&head.format)
        ));
    }
    if head.version != VERSION {
        return unusable(format!(
            "it is a report of version {}, and this popliner reads version {VERSION}; write it \
             again with --export-json of this popliner",
            excerpt(&head.version)
        ));
    }
    // The text is parsed again, now as a whole report: an error of parsing text has a line number,
    // which an error of converting a parsed JSON value lacks.
    serde_json::from_slice(bytes).or_else(|error| {
        unusable(format!(
            "it is a report of version {VERSION}, but not a complete one: {error}; {GIVE_REPORT}"
        ))
    })
}

/// Upper bound on the characters of a JSON value that an error quotes.
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
