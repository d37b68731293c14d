//! The correction of predictions by a compiled pipeline, in a file of its own
//! (docs/model.md, "A compiled pipeline").

use super::{Against, StageAgainst, TileParts};
use crate::escape::json;
use crate::limits;
use crate::memory::{Correction, Pipeline, PlacedStage};
use crate::message::{GIVE_CALIBRATION, Warning};
use crate::model::{Model, Positions};
use crate::report::text::{displayed, printable, signed_share};
use crate::report::{LayerNames, Report, Stage};
use crate::witnesses::TOLERATED;
use crate::wording::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// The form and version that a document states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CalibrationFormat {
    /// A calibration of this tool.
    #[serde(rename = "popliner-calibration")]
    PoplinerCalibration,
}

/// The version of the documents that are written here.
pub const CALIBRATION_VERSION: u32 = 2;
/// The version before it, whose documents do not say what they belong to.
const WITHOUT_MODEL: u32 = 1;

/// The bytes that the IPUs of a compiled pipeline needed beyond the prediction. Added to
/// the prediction of the same split, it gives what was recorded; what is carried to
/// other splits is an estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Always `popliner-calibration`.
    pub format: CalibrationFormat,
    /// The version of this document.
    #[schemars(range(min = WITHOUT_MODEL, max = CALIBRATION_VERSION))]
    pub version: u32,
    /// The version of the tool.
    pub popliner: String,
    /// The model that was compiled, by the profile of one IPU that it was predicted from;
    /// in all documents but those of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<CalibratedModel>,
    /// The pipeline that was predicted.
    pub pipeline: Pipeline,
    /// Each IPU of the pipeline, in the order of its stages.
    pub ipus: Vec<CalibratedIpu>,
}

/// The facts that tell one model from another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedModel {
    /// Its layers, in order, without pseudo-layers.
    pub layers: Vec<String>,
    /// Bytes over all tiles that the compiler recorded of it on one IPU.
    pub bytes: u64,
    /// Tiles of that IPU.
    pub tiles: u32,
    /// Memory of each tile.
    pub bytes_per_tile: u64,
}

/// The bytes that an IPU needed beyond the prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedIpu {
    /// Its stage.
    pub stage: u32,
    /// The layers of the stage, in order; `null` for In.
    pub layers: LayerNames,
    /// Bytes on its fullest tile, as the rules predict them.
    pub predicted: u64,
    /// As they were recorded.
    pub recorded: u64,
    /// The difference, which is added to predictions: below 0 where less was needed.
    pub learnt: i64,
    /// That difference as a part of what was predicted, for people.
    pub learnt_share: String,
    /// The part of it that belongs to the IPU by its place, wherever the cuts are: code.
    pub carried: i64,
    /// The difference by what the tile holds, without what is as predicted.
    pub parts: Vec<LearntPart>,
}

/// The bytes of one part of a tile beyond the prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LearntPart {
    /// Its name, such as `global exchange code`.
    pub part: String,
    /// The difference.
    pub learnt: i64,
}

/// Why nothing can be calibrated, or a correction cannot be used.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The compiled pipeline is not the predicted one.
    #[error(
        "nothing can be calibrated, since the pipeline was cut elsewhere than predicted; predict the \
         split that was compiled, with --layers-per-ipu or --check-splits, and compare with that"
    )]
    CutElsewhere,
    /// The prediction is of a search that knows no pipelines.
    #[error(
        "nothing can be calibrated from a prediction of the classic memory model or of the greedy \
         search; predict without --memory-model classic and --solver greedy"
    )]
    NoPipeline,
    /// It is not JSON, or not a calibration.
    #[error("it is no calibration: {0}; {GIVE_CALIBRATION}")]
    OtherFormat(serde_json::Error),
    /// It was written by another version of this tool.
    #[error(
        "it is a calibration of version {0}, and this popliner reads version \
         {CALIBRATION_VERSION}; write it again with --calibrate of this popliner"
    )]
    OtherVersion(u32),
    /// It is of other layers than those of the model.
    #[error(
        "it was calibrated on a model with a layer {0}, which this one does not have; give the \
         calibration of this model, and the same --layer-name-regex as for the prediction"
    )]
    OtherLayers(String),
    /// It is of another model.
    #[error(
        "it was calibrated on another model: one of {0}, and this one is of {1}; give the calibration \
         of this model, or make one with --calibrate"
    )]
    OtherModel(String, String),
    /// The prediction, or what was compiled, contradicts itself.
    #[error(
        "nothing can be calibrated from a profile that contradicts itself; predict and compile from \
         whole profiles"
    )]
    Incomplete,
    /// Its numbers do not add up.
    #[error(
        "stage {stage} was predicted to need {predicted} bytes and needed {recorded}, so nothing \
         else can be calibrated than the difference, of which its parts are; {GIVE_CALIBRATION}"
    )]
    OtherSum {
        /// The stage.
        stage: u32,
        /// The prediction.
        predicted: u64,
        /// The recorded bytes.
        recorded: u64,
    },
    /// It has a number that no tile can have.
    #[error("stage {0} has {1} bytes, more than any tile has; {GIVE_CALIBRATION}")]
    OutOfRange(u32, i64),
    /// It has no IPUs.
    #[error("it has no IPUs; {GIVE_CALIBRATION}")]
    Empty,
}

impl Calibration {
    /// The calibration from `against`, for the stages of `prediction`.
    ///
    /// # Errors
    /// When the compiled pipeline is not the predicted one.
    pub fn new(prediction: &Report, against: &Against) -> Result<Self, CalibrationError> {
        if !prediction.has_verdict() {
            return Err(CalibrationError::Incomplete);
        }
        if against.cut_elsewhere.is_some() {
            return Err(CalibrationError::CutElsewhere);
        }
        let facts = prediction.pipeline.as_ref();
        let facts = facts.ok_or(CalibrationError::NoPipeline)?;
        Ok(Self {
            format: CalibrationFormat::PoplinerCalibration,
            version: CALIBRATION_VERSION,
            popliner: env!("CARGO_PKG_VERSION").to_string(),
            model: Some(CalibratedModel::predicted(prediction)),
            pipeline: facts.pipeline(),
            ipus: against.stages.iter().map(CalibratedIpu::new).collect(),
        })
    }

    /// Reads a calibration.
    ///
    /// # Errors
    /// For anything else, first of all another format or version.
    pub fn read(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let read: Self = serde_json::from_slice(bytes).map_err(CalibrationError::OtherFormat)?;
        if !(WITHOUT_MODEL..=CALIBRATION_VERSION).contains(&read.version) {
            return Err(CalibrationError::OtherVersion(read.version));
        }
        if read.ipus.is_empty() {
            return Err(CalibrationError::Empty);
        }
        read.ipus.iter().try_for_each(CalibratedIpu::check)?;
        Ok(read)
    }

    /// A warning about a document that does not say what it belongs to.
    pub fn warning(&self) -> Option<Warning> {
        let is_unknown = self.model.is_none();
        is_unknown.then(|| {
            Warning::new(
                "the calibration does not say which model it was calibrated on, as those of version \
                 1, so it may be another one; write it again with --calibrate",
            )
        })
    }

    /// Does it belong to `model` with these positions?
    ///
    /// # Errors
    /// When it was calibrated on another one.
    pub fn check(&self, model: &Model, positions: &Positions) -> Result<(), CalibrationError> {
        let Some(learnt_from) = &self.model else {
            return Ok(());
        };
        let this = CalibratedModel::of(model, positions);
        if learnt_from.is_like(&this) {
            return Ok(());
        }
        let texts = [learnt_from, &this].map(ToString::to_string);
        let [learnt_from, this] = texts;
        Err(CalibrationError::OtherModel(learnt_from, this))
    }

    /// The document.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        json(text.expect("it has neither maps nor numbers that JSON lacks") + "\n")
    }

    /// The JSON Schema of the document, which `schema/calibration-v2.schema.json`
    /// holds.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Calibration)
    }

    /// The correction that is added to predictions of a model with these layers in
    /// `pipeline`. In another pipeline no stage is one of those that were
    /// compiled.
    ///
    /// # Errors
    /// When the model does not have these layers.
    pub fn correction(
        &self,
        positions: &Positions,
        pipeline: Pipeline,
    ) -> Result<Correction, CalibrationError> {
        let names = self.ipus.iter().flat_map(|ipu| ipu.layers.iter().flatten());
        if let Some(other) = names
            .into_iter()
            .find(|name| positions.find(name).is_none())
        {
            return Err(CalibrationError::OtherLayers(printable(other)));
        }
        let count = self.ipus.len();
        let stages = self.ipus.iter().enumerate().filter_map(|(stage, ipu)| {
            let range = ipu.positions(positions)?;
            let after = Some(count - 1 - stage);
            let placed = PlacedStage {
                positions: range,
                after,
            };
            Some((placed, ipu.learnt))
        });
        let carried: Vec<i64> = self.ipus.iter().map(|ipu| ipu.carried).collect();
        let (first, last) = (carried[0], carried[count - 1]);
        // An IPU between two exchanges with both: what either end lacks, it lacks.
        let between = carried.get(1..count - 1).unwrap_or_default();
        let middle = between.iter().copied().max();
        let middle = middle.unwrap_or(first.max(last));
        let correction = Correction {
            stages: stages.collect(),
            first,
            middle,
            last,
            alone: if count == 1 { first } else { 0 },
        };
        Ok(if pipeline == self.pipeline {
            correction
        } else {
            correction.carried()
        })
    }
}

impl CalibratedModel {
    fn predicted(report: &Report) -> Self {
        let split = report.split.as_ref();
        let stages = split.into_iter().flat_map(|split| &split.stages);
        let tiles = report.memory.tiles.as_ref();
        let target = &report.provenance.target;
        Self {
            layers: stages
                .flat_map(Stage::named_layers)
                .map(str::to_string)
                .collect(),
            bytes: tiles
                .into_iter()
                .flat_map(|tile| &tile.total)
                .fold(0, |sum, &bytes| u64::saturating_add(sum, bytes)),
            tiles: target.tiles,
            bytes_per_tile: target.bytes_per_tile,
        }
    }

    fn of(model: &Model, positions: &Positions) -> Self {
        let totals = model.recorded.tiles.iter().map(|tile| tile.total);
        Self {
            layers: positions.layers().to_vec(),
            bytes: totals.fold(0, u64::saturating_add),
            tiles: model.target.num_tiles,
            bytes_per_tile: model.target.bytes_per_tile,
        }
    }

    /// Is it the same model? What the compiler makes of it may differ a little from one
    /// compilation to the next.
    fn is_like(&self, other: &Self) -> bool {
        let difference = u128::from(self.bytes.abs_diff(other.bytes));
        difference * u128::from(TOLERATED) <= u128::from(self.bytes)
            && self.layers == other.layers
            && (self.tiles, self.bytes_per_tile) == (other.tiles, other.bytes_per_tile)
    }
}

impl fmt::Display for CalibratedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = match &self.layers[..] {
            [] => String::new(),
            [only] => format!(" ({})", displayed(only)),
            [first, .., last] => format!(" ({} to {})", displayed(first), displayed(last)),
        };
        write!(
            f,
            "{}{ends} with {} on {} of {} each",
            counted(self.layers.len(), "layer"),
            counted(self.bytes, "byte"),
            counted(self.tiles, "tile"),
            counted(self.bytes_per_tile, "byte")
        )
    }
}

impl CalibratedIpu {
    /// Do its numbers add up, and are they those of a tile?
    fn check(&self) -> Result<(), CalibrationError> {
        let Self {
            stage,
            predicted,
            recorded,
            learnt,
            carried,
            ..
        } = *self;
        let mut numbers = [learnt, carried].into_iter();
        let is_out = |bytes: &i64| bytes.unsigned_abs() > limits::BYTES_OF_TILE;
        if let Some(bytes) = numbers.find(is_out) {
            return Err(CalibrationError::OutOfRange(stage, bytes));
        }
        let of_code = self
            .parts
            .iter()
            .filter(|part| TileParts::is_code(&part.part));
        let code = of_code.fold(0, |sum, part| i64::saturating_add(sum, part.learnt));
        let difference = crate::search::free_bytes(recorded, predicted);
        if recorded == 0 || learnt != difference || carried != code {
            return Err(CalibrationError::OtherSum {
                stage,
                predicted,
                recorded,
            });
        }
        Ok(())
    }

    fn new(stage: &StageAgainst) -> Self {
        // The correction of an earlier calibration is no part of the rules.
        let raw = i128::from(stage.predicted) - i128::from(stage.learnt);
        let predicted = u64::try_from(raw.max(0)).unwrap_or(u64::MAX);
        let learnt = crate::search::free_bytes(stage.recorded, predicted);
        let parts = TileParts::NAMES.into_iter().zip(stage.part_differences());
        let parts = parts.filter(|(_, learnt)| *learnt != 0);
        Self {
            stage: stage.stage,
            layers: stage.layers.clone(),
            predicted,
            recorded: stage.recorded,
            learnt,
            learnt_share: signed_share(learnt, predicted),
            carried: stage.code_difference(),
            parts: parts
                .map(|(part, learnt)| LearntPart {
                    part: part.to_string(),
                    learnt,
                })
                .collect(),
        }
    }

    /// The positions of its layers; `None` where the model does not have them next to
    /// each other.
    fn positions(&self, positions: &Positions) -> Option<Range<usize>> {
        let name = |layer: &Option<String>| match layer {
            None => Some(0),
            Some(layer) => positions.find(layer),
        };
        let found: Option<Vec<usize>> = self.layers.iter().map(name).collect();
        let mut found = found?;
        found.sort_unstable();
        // Out that is on the first IPU has the first position too.
        found.dedup();
        let range = *found.first()?..found.last()? + 1;
        (range.len() == found.len()).then_some(range)
    }
}
