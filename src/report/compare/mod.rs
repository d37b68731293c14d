//! Comparison of a report with an earlier one: layers that grew, stages, and the verdict.
//!
//! [`Comparison::new`] is a pure function of two reports; [`read`] reads one
//! that `--export-json` wrote.

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

/// Two reports of the same model, one made before the other.
#[derive(Debug, Clone)]
pub struct Comparison<'a> {
    reports: [&'a Report; 2],
    /// Every layer of either report, in the order of the later one; removed layers come last.
    pub layers: Vec<Change>,
    /// Every stage of either report, by number.
    pub stages: Vec<Change>,
    /// Reasons why the numbers of the two reports may not be comparable.
    pub warnings: Vec<Warning>,
}

/// One layer as a stage of its own, or one stage, before and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its memory in the earlier report; `None` if it is new.
    pub before: Option<Memory>,
    /// Its memory in the later report; `None` if it was removed.
    pub now: Option<Memory>,
}

/// Bytes of a layer or a pipeline stage in one of the two compared compilations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The names of the layers for people, in order, with spaces between.
    pub layers: String,
    /// Bytes on the fullest tile.
    pub fullest_tile: u64,
    /// Bytes summed over all tiles; `None` for a stage, which is compared by its fullest tile.
    pub total: Option<u64>,
}

impl<'a> Comparison<'a> {
    /// Compares an `earlier` report with a `later` one. Layers are matched by name, stages by
    /// number.
    pub fn new(earlier: &'a Report, later: &'a Report) -> Self {
        Self {
            reports: [earlier, later],
            layers: layers(earlier, later),
            stages: stages([earlier, later]),
            warnings: warnings(earlier, later),
        }
    }

    /// Are the verdict, the stages and the layers equal in both reports?
    pub fn is_unchanged(&self) -> bool {
        let verdict = self.verdict_table();
        let mut changes = self.stages.iter().chain(&self.layers);
        verdict.rows.iter().all(|row| row.cells[1] == row.cells[2])
            && changes.all(|change| change.before == change.now)
    }

    /// Returns whether the model fits, before and now; `None` for a report without a split.
    fn fits(&self) -> [Option<bool>; 2] {
        let splits = self.reports.map(|report| report.split.as_ref());
        splits.map(|split| split.map(|split| split.fits))
    }

    /// Does the model no longer fit? False if it did not fit before. If the earlier report has no
    /// verdict, it counts as fitting.
    pub fn is_worse(&self) -> bool {
        let [before, now] = self.fits();
        before != Some(false) && now == Some(false)
    }

    /// Returns the layers that need more bytes than before on their fullest tile or over all tiles:
    /// their names, and both differences in this order.
    pub fn grown(&self) -> impl Iterator<Item = (&str, i128, i128)> {
        self.layers.iter().filter_map(|layer| {
            let (tile, total) = layer.growth()?;
            let name = &layer.now.as_ref()?.layers;
            (tile > 0 || total > 0).then_some((&**name, tile, total))
        })
    }
}

impl Change {
    /// Returns a number of bytes before and now.
    fn both(&self, bytes: impl Fn(&Memory) -> Option<u64>) -> [Option<u64>; 2] {
        [&self.before, &self.now].map(|memory| bytes(memory.as_ref()?))
    }

    /// Returns the growth in bytes on the fullest tile and over all tiles; `None` for a new or
    /// removed layer.
    pub fn growth(&self) -> Option<(i128, i128)> {
        let tile = self.both(|memory| Some(memory.fullest_tile));
        Some((more(tile)?, more(self.both(|memory| memory.total))?))
    }
}

/// Returns the later bytes less the earlier ones.
fn more([before, now]: [Option<u64>; 2]) -> Option<i128> {
    Some(i128::from(now?) - i128::from(before?))
}

fn layers(earlier: &Report, later: &Report) -> Vec<Change> {
    let memory = |report: &Report, layer: &LayerMemory| Memory {
        layers: report.pseudo_layers.name_of(&layer.name).to_string(),
        fullest_tile: layer.fullest_tile_bytes,
        total: Some(layer.total),
    };
    let left = earlier.layers.iter();
    let mut left: Vec<Option<Memory>> = left.map(|layer| Some(memory(earlier, layer))).collect();
    let changed = later.layers.iter().map(|layer| {
        let now = memory(later, layer);
        // Several layers can have one name, which joins the capture groups of a regex.
        let is_same = |before: &&mut Option<Memory>| {
            let before = before.as_ref();
            before.is_some_and(|before| before.layers == now.layers)
        };
        let before = left.iter_mut().find(is_same).and_then(Option::take);
        let now = Some(now);
        Change { before, now }
    });
    let mut changes: Vec<Change> = changed.collect();
    let gone = left.into_iter().flatten().map(Some);
    changes.extend(gone.map(|before| Change { before, now: None }));
    changes
}

fn stages(reports: [&Report; 2]) -> Vec<Change> {
    let [before, now] = reports.map(|report| {
        let stages = report.split.iter().flat_map(|split| &split.stages);
        let memory = stages.map(|stage| Memory {
            layers: report.pseudo_layers.names_of(&stage.layers).join(" "),
            fullest_tile: stage.fullest_tile.bytes,
            total: None,
        });
        memory.collect::<Vec<_>>()
    });
    let numbers = 0..before.len().max(now.len());
    let stages = numbers.map(|number| Change {
        before: before.get(number).cloned(),
        now: now.get(number).cloned(),
    });
    stages.collect()
}

/// Describes where the pseudo-layers run.
fn around(pseudo_layers: PseudoLayers) -> &'static str {
    match pseudo_layers {
        PseudoLayers::NoneFirst => "None before them",
        PseudoLayers::InAndOut => "In before them and Out after them",
        PseudoLayers::OutWithIn => "In and Out before them, on the first IPU",
    }
}

fn warnings(earlier: &Report, later: &Report) -> Vec<Warning> {
    let facts = |report: &Report| {
        [
            ("the memory model", report.provenance.memory_model.clone()),
            (
                "what is before and after the layers",
                around(report.pseudo_layers).to_string(),
            ),
            ("the limit of a tile", report.memory.limit.to_string()),
            (
                "the number of tiles",
                report.provenance.target.tiles.to_string(),
            ),
        ]
    };
    let pairs = facts(earlier).into_iter().zip(facts(later));
    let differing = pairs.filter(|(before, now)| before != now);
    let differing = differing.map(|((subject, before), (_, now))| {
        Warning::new(format!(
            "compared with another report: {subject} was {before} and is {now}; run both with the \
             same options to compare only the model"
        ))
    });
    let no_split = earlier.split.is_none().then(|| {
        Warning::new("compared with another report: it has no split; write it again with --solve")
    });
    differing.chain(no_split).collect()
}

/// Reasons why a file cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The file is not JSON.
    #[error("it is not JSON: {0}; {GIVE_REPORT}")]
    NotJson(serde_json::Error),
    /// The file is JSON, but not a report.
    #[error("its format is {0} instead of \"popliner-report\"; {GIVE_REPORT}")]
    OtherFormat(String),
    /// The report has a version that this tool does not read.
    #[error(
        "it is a report of version {0}, and this popliner reads version {VERSION}; write it \
         again with --export-json of this popliner"
    )]
    OtherVersion(String),
    /// The file is a report with a missing or wrong field.
    #[error("it is a report of version {VERSION}, but not a complete one: {0}; {GIVE_REPORT}")]
    Damaged(serde_json::Error),
}

/// The fields that reports of every version have.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

/// Reads a report from JSON.
///
/// # Errors
/// [`CompareError`] for any other input. The format and the version are checked first.
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
    // Parse the text again, since errors of a parsed value have no line number.
    serde_json::from_slice(bytes).map_err(CompareError::Damaged)
}

/// Upper bound on characters of a value in an error.
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
