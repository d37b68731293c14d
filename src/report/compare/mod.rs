//! Comparison of a report with an earlier one: layers that grew, stages, and the verdict.
//!
//! [`Comparison::new`] is a pure function of two reports; [`read`] reads one
//! that `--export-json` wrote.

mod read;
mod tables;
#[cfg(test)]
mod tests;

pub use read::{CompareError, read};

use super::{LayerMemory, Report};
use crate::message::Warning;
use crate::model::PseudoLayers;

/// Two reports of the same model, one made before the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Every layer of either report, in the order of the later one; removed layers come last.
    pub layers: Vec<LayerChange>,
    /// Every stage of either report.
    pub stages: Vec<StageChange>,
    /// The earlier verdict; `None` if the earlier report has no split.
    pub before: Option<Verdict>,
    /// The later verdict; `None` if the later report has no split.
    pub now: Option<Verdict>,
    /// Reasons why the numbers of the two reports may not be comparable.
    pub warnings: Vec<Warning>,
}

/// Bytes of one layer as a stage of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerBytes {
    /// Bytes on the layer's fullest tile.
    pub fullest_tile: u64,
    /// Sum over all tiles.
    pub total: u64,
}

/// One layer, before and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChange {
    /// The layer's name for people.
    pub name: String,
    /// `None` for a new layer.
    pub before: Option<LayerBytes>,
    /// `None` for a removed layer.
    pub now: Option<LayerBytes>,
}

/// One stage, before and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageChange {
    /// The stage's number, from 0.
    pub stage: usize,
    /// `None` if the earlier split has fewer stages.
    pub before: Option<StageBytes>,
    /// `None` if the later split has fewer stages.
    pub now: Option<StageBytes>,
}

/// Layers and bytes of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageBytes {
    /// Names of the stage's layers for people, in order.
    pub layers: Vec<String>,
    /// Bytes on the stage's fullest tile.
    pub fullest_tile: u64,
}

/// The verdict on a split, and the numbers behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Does the model fit?
    pub fits: bool,
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// Upper bound on stages.
    pub max_stages: u32,
    /// Number of stages of the split.
    pub stages: usize,
    /// Bytes on the fullest tile of any stage.
    pub fullest_tile: u64,
    /// Micro-batches and cycles of a step; `None` without cycles.
    pub step: Option<(u64, u64)>,
}

impl Comparison {
    /// Compares an `earlier` report with a `later` one. Layers are matched by name, stages by
    /// number.
    pub fn new(earlier: &Report, later: &Report) -> Self {
        Self {
            layers: layers(earlier, later),
            stages: stages(earlier, later),
            before: Verdict::of(earlier),
            now: Verdict::of(later),
            warnings: warnings(earlier, later),
        }
    }

    /// Are the verdict, the stages and the layers equal in both reports?
    pub fn is_unchanged(&self) -> bool {
        self.before == self.now
            && self.stages.iter().all(|stage| stage.before == stage.now)
            && self.layers.iter().all(|layer| layer.before == layer.now)
    }

    /// Does the model no longer fit? False if it did not fit before. If the earlier report has no
    /// verdict, it counts as fitting.
    pub fn is_worse(&self) -> bool {
        let fitted = self.before.is_none_or(|before| before.fits);
        fitted && self.now.is_some_and(|now| !now.fits)
    }

    /// Returns the layers that need more bytes than before on their fullest tile or over all tiles,
    /// with both differences in this order.
    pub fn grown(&self) -> impl Iterator<Item = (&LayerChange, i128, i128)> {
        self.layers.iter().filter_map(|layer| {
            let (tile, total) = layer.growth()?;
            (tile > 0 || total > 0).then_some((layer, tile, total))
        })
    }
}

impl LayerChange {
    /// Returns the growth in bytes on the fullest tile and over all tiles; `None` for a new or
    /// removed layer.
    pub fn growth(&self) -> Option<(i128, i128)> {
        let (before, now) = (self.before?, self.now?);
        Some((
            more(before.fullest_tile, now.fullest_tile),
            more(before.total, now.total),
        ))
    }
}

impl Verdict {
    /// Returns the verdict of a report; `None` without a split.
    fn of(report: &Report) -> Option<Self> {
        let split = report.split.as_ref()?;
        let stages = split.stages.iter();
        let step = report.step.as_ref();
        Some(Self {
            fits: split.fits,
            limit: split.limit,
            max_stages: split.max_stages,
            stages: split.stages.len(),
            fullest_tile: stages.map(|s| s.fullest_tile.bytes).max().unwrap_or(0),
            step: step.map(|step| (step.micro_batches, step.cycles)),
        })
    }
}

/// Returns `now` less `before`.
fn more(before: u64, now: u64) -> i128 {
    i128::from(now) - i128::from(before)
}

fn layers(earlier: &Report, later: &Report) -> Vec<LayerChange> {
    // Several layers can have one name, which joins the capture groups of a regex.
    let mut left: Vec<Option<&LayerMemory>> = earlier.layers.iter().map(Some).collect();
    let mut changes: Vec<LayerChange> = Vec::with_capacity(later.layers.len());
    for now in &later.layers {
        let name = later.pseudo_layers.name_of(&now.name);
        let same = |layer: &&mut Option<&LayerMemory>| {
            layer.is_some_and(|layer| earlier.pseudo_layers.name_of(&layer.name) == name)
        };
        let before = left.iter_mut().find(same).and_then(Option::take);
        changes.push(LayerChange {
            name: name.to_string(),
            before: before.map(LayerBytes::of),
            now: Some(LayerBytes::of(now)),
        });
    }
    changes.extend(left.into_iter().flatten().map(|gone| LayerChange {
        name: earlier.pseudo_layers.name_of(&gone.name).to_string(),
        before: Some(LayerBytes::of(gone)),
        now: None,
    }));
    changes
}

impl LayerBytes {
    fn of(layer: &LayerMemory) -> Self {
        Self {
            fullest_tile: layer.fullest_tile_bytes,
            total: layer.total,
        }
    }
}

fn stages(earlier: &Report, later: &Report) -> Vec<StageChange> {
    let stage = |report: &Report, number: usize| {
        let stage = report.split.as_ref()?.stages.get(number)?;
        let layers = report.pseudo_layers.names_of(&stage.layers).into_iter();
        Some(StageBytes {
            layers: layers.map(String::from).collect(),
            fullest_tile: stage.fullest_tile.bytes,
        })
    };
    let count = |report: &Report| report.split.as_ref().map_or(0, |split| split.stages.len());
    let stages = 0..count(earlier).max(count(later));
    let stages = stages.map(|number| StageChange {
        stage: number,
        before: stage(earlier, number),
        now: stage(later, number),
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
    let mut warnings = Vec::new();
    let mut differs = |what: &str, before: String, now: String| {
        if before != now {
            warnings.push(Warning::new(format!(
                "compared with another report: {what} was {before} and is {now}; run both with the \
                 same options to compare only the model"
            )));
        }
    };
    let facts = |report: &Report| {
        let limit = report.memory.limit.to_string();
        let tiles = report.provenance.target.tiles.to_string();
        let around = around(report.pseudo_layers).to_string();
        [report.provenance.memory_model.clone(), around, limit, tiles]
    };
    let names = [
        "the memory model",
        "what is before and after the layers",
        "the limit of a tile",
        "the number of tiles",
    ];
    let pairs = facts(earlier).into_iter().zip(facts(later));
    for (what, (before, now)) in names.into_iter().zip(pairs) {
        differs(what, before, now);
    }
    if earlier.split.is_none() {
        warnings.push(Warning::new(
            "compared with another report: it has no split; write it again with --solve",
        ));
    }
    warnings
}
