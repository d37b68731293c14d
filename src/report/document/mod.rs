//! The report: all that a run found, in one versioned document.
//!
//! A [`Report`] is plain data that can be written and read back. Every file
//! form is a pure function of it: [`json`](super::json) writes it as it
//! stands, [`csv`](mod@super::csv), [`markdown`](super::markdown) and
//! [`html`](super::html) show it to people. [`Report::new`] makes it.
//!
//! Bytes are exact integers. Steps are indices of liveness steps, from 0, and
//! both ends of a range of steps are inclusive. Tiles and stages count from 0.
//! The name of a layer is `null` for the first position of the layer order, and
//! `"Out"` for Out; [`PseudoLayers`] says what these stand for.
//!
//! The version grows when a field goes or means something else. Fields and
//! whole sections may be added without that, so a reader must pass over those
//! that it does not know.

mod build;
mod downsample;
mod execution;
mod liveness;
mod made;
mod memory;
mod search;
mod split;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;

pub use build::Inputs;
pub(super) use downsample::thin;
pub use execution::{Execution, ExecutionSource, LayerCycles, StageCycles};
pub use liveness::{Band, CategorySum, Curve, LiveVariable, Liveness, Peak, PeakVariables};
pub use made::{BuildOption, Files, Made, TargetFacts};
pub use memory::{CategoryBytes, CoverageFacts, LayerMemory, RecordedMemory, TileTotals};
pub use search::{
    CutFacts, Judged, LayerNames, Move, OverLimit, Proof, ProvenBottleneck, ProvenObjective,
    Refusal, RefusalReason, RelaxationFacts, SearchFacts, Tie, TiedWeightFacts,
};
pub use split::{Bucket, Cut, FullestTile, Fullness, SplitFacts, StageFacts};
pub use sweep::{Sweep, SweepRow};

use crate::model::PseudoLayers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a document says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DocumentFormat {
    /// A report of this tool.
    #[serde(rename = "popliner-report")]
    PoplinerReport,
}

/// The version of the documents that are written here.
pub const VERSION: u32 = 1;

/// All that a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always `popliner-report`.
    pub format: DocumentFormat,
    /// The version of this document.
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    /// From what it was made, and how.
    pub made: Made,
    /// What the compiler recorded of memory.
    pub memory: RecordedMemory,
    /// Which pseudo-layers stand around the layers, and so what the name
    /// `null` means. With `out-with-in` a list of layers that begins with
    /// `null` ends with `"Out"`, since the first IPU runs both.
    pub pseudo_layers: PseudoLayers,
    /// Every layer by itself, in order, the pseudo-layers among them; with
    /// `out-with-in` the first entry is In and Out together.
    pub layers: Vec<LayerMemory>,
    /// The split and its verdict, when one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitFacts>,
    /// What shows that the split is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Why there is no split that fits, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The best split, when one was given to be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// What the split had to obey, as it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<String>,
    /// Weights that several layers use, the most bytes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tied_weights: Vec<TiedWeightFacts>,
    /// Layers that share variables, the most bytes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<Tie>,
    /// What flows from stage to stage; empty without a split.
    pub cuts: Vec<Cut>,
    /// The memory of the whole model over the steps of the program; absent
    /// when the profile has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// The best split for each number of IPUs, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Cycles of layers and stages, where the profile has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// What was unusual about the files or fits the regexes badly, as
    /// sentences.
    pub warnings: Vec<String>,
}

impl Report {
    /// The JSON Schema of the document, which `schema/report-v1.schema.json`
    /// holds.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_all_sections_keeps_to_the_schema_and_reads_back() {
        let report = testing::report();
        let json = serde_json::to_value(&report).unwrap();
        let schema = serde_json::to_value(Report::schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let problems: Vec<_> = validator
            .iter_errors(&json)
            .map(|e| e.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let report = testing::report();
        let mut json = serde_json::to_value(&report).unwrap();
        json["later"] = 1.into();
        json["split"]["stages"][0]["later"] = "more".into();
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }
}
