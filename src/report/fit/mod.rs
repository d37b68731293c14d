//! Whether a compilation fits, IPU by IPU, and how far it is from the prediction (docs/model.md, "A
//! compiled pipeline").
//!
//! `build` makes the facts from a recorded profile, and `against` compares them with the report of
//! an earlier run that predicted the stages. Every output form shows what `tables` and `sentences`
//! make of them.

mod against;
mod build;
pub(super) mod sentences;
pub(super) mod tables;
#[cfg(test)]
mod tests;

pub use against::AgainstError;
pub use build::FitInputs;

use crate::profile::CodeKind;
use crate::profile::PipelineName;
use crate::report::recorded::sum;
use crate::report::{CategoryBytes, Curve, FullestTile, Fullness, LayerNames};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a recorded compilation fits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Does every tile of every IPU fit?
    pub fits: bool,
    /// Bytes that each tile may take: the highest limit of any IPU.
    pub limit: u64,
    /// The limits by IPU, if they differ.
    pub limits: Option<Vec<u64>>,
    /// Number of tiles of each IPU. Tiles are numbered across all IPUs.
    pub tiles_per_ipu: u32,
    /// Number of replicas that the model was compiled for, which all run the same program.
    pub replicas: u32,
    /// Number of replicas that the profile lists, one after the other.
    pub listed_replicas: u32,
    /// Number of lowered variables; `null` if the profile has none. Then the parts of tiles come
    /// from `memory_by_category`.
    pub variables: Option<u64>,
    /// Do names of variables show what a pipeline keeps? Otherwise stashes and accumulators are
    /// among the variables.
    pub has_names: bool,
    /// Number of liveness steps of the program; `null` if unknown.
    pub steps: Option<u32>,
    /// Every IPU that the profile lists.
    pub ipus: Vec<IpuFit>,
    /// The comparison with the prediction, if one was given.
    pub against: Option<Against>,
}

/// The recorded memory of one IPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpuFit {
    /// The IPU.
    pub ipu: u32,
    /// Does every tile of the IPU fit?
    pub fits: bool,
    /// The layers that run on the IPU, in order; `null` if their names are unknown.
    pub layers: Option<LayerNames>,
    /// Bytes summed over all tiles of the IPU, without gaps.
    pub total: u64,
    /// Number of tiles that are over the limit or have overflowed.
    pub tiles_over: u32,
    /// Bytes beyond the memory of a tile, with gaps, summed over all tiles of the IPU.
    pub overflowed: u64,
    /// The fullest tile, which decides whether the IPU fits.
    pub fullest_tile: RecordedTileFacts,
    /// How full the tiles of the IPU are.
    pub tiles: Fullness,
    /// Bytes by category, in the order of the profile; empty if it has none. Variables that share
    /// memory at different steps all count.
    pub categories: Vec<CategoryBytes>,
    /// Bytes by the names of variables; `null` without lowered variables or names.
    pub named: Option<NamedBytes>,
    /// Bytes of the IPU over the steps of the program, summed over its tiles; `null` if unknown.
    pub curve: Option<Curve>,
    /// Executed cycles of all runs; `null` without execution.
    pub cycles: Option<u64>,
}

/// The fullest tile of an IPU; the first one of a tie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedTileFacts {
    /// The tile's number across all IPUs.
    pub tile: u32,
    /// The tile's number on its IPU.
    pub tile_of_ipu: u32,
    /// Bytes in use, without gaps.
    pub bytes: u64,
    /// Bytes that the tile may take.
    pub limit: u64,
    /// The limit less the bytes in use; below 0 if they exceed it.
    pub free: i64,
    /// Bytes in use with the gaps between variables; `null` if unknown.
    pub with_gaps: Option<u64>,
    /// Bytes beyond the tile's memory, with gaps. A tile that overflowed is over, whatever `free`
    /// is.
    pub overflowed: u64,
    /// Bytes of variables that are live on every step.
    pub always_live: u64,
    /// The highest bytes of other variables at one step.
    pub not_always_live: u64,
    /// The first step at which other variables take the most; `null` if unknown.
    pub peak_step: Option<u32>,
    /// The bytes in use by kind of contents.
    pub parts: TileParts,
}

/// Bytes of all variables of an IPU by their names, whether they are live together or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedBytes {
    /// Copies for the micro-batches that are in the pipeline.
    pub stashed: u64,
    /// Bytes that were read back from these copies.
    pub restored: u64,
    /// Accumulators, which sum gradients.
    pub accumulators: u64,
    /// Bytes received from other IPUs.
    pub received: u64,
}

impl Fit {
    /// Returns the IPU with the fewest free bytes below its limit; the first one of a tie.
    pub fn nearest_to_limit(&self) -> Option<&IpuFit> {
        self.ipus.iter().min_by_key(|ipu| ipu.fullest_tile.free)
    }

    /// Returns the IPUs that have tiles over their limit.
    pub fn over(&self) -> impl Iterator<Item = &IpuFit> {
        self.ipus.iter().filter(|ipu| ipu.tiles_over > 0)
    }

    /// Returns the IPUs of the first replica, or all IPUs if only one replica is listed.
    pub fn of_replica(&self) -> &[IpuFit] {
        let count = self.ipus.len() / (self.listed_replicas.max(1) as usize);
        &self.ipus[..count]
    }
}

/// Comparison of the prediction for a pipeline with its recorded compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// The profile that the prediction was made from, under its name in that run.
    pub profile: String,
    /// How stages and IPUs were matched.
    pub matched_by: MatchedBy,
    /// Did the prediction say that the model fits?
    pub predicted_fits: bool,
    /// The number of stages in the prediction.
    pub predicted_stages: u32,
    /// Evidence that the cuts differ from the prediction. Then the numbers of the stages do not
    /// measure the prediction.
    pub cut_elsewhere: Option<CutElsewhere>,
    /// The bytes of `--reserve` that would have covered every stage: the highest reserve of any
    /// stage. `null` if the cuts differ, or if one of the profiles contradicts itself.
    pub reserve: Option<u64>,
    /// Each stage with an IPU, in the order of the stages.
    pub stages: Vec<StageAgainst>,
}

/// How the stages of a prediction were matched with IPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MatchedBy {
    /// By the names of the layers that run on each IPU. Stages without named layers are matched in
    /// order.
    Layers,
    /// In order, since the profile does not say which layers run on which IPU.
    #[default]
    Order,
}

/// Evidence that the cuts of a compilation differ from the prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutElsewhere {
    /// The number of IPUs of one replica, if it is not the number of stages.
    pub ipus: Option<u32>,
    /// The stages whose layers differ from the layers on their IPUs.
    pub stages: Vec<u32>,
    /// The layers on each IPU, as far as their names are known.
    pub recorded: Vec<LayerNames>,
}

/// The prediction and the recording of a stage. Differences are recorded less predicted bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageAgainst {
    /// The stage of the prediction.
    pub stage: u32,
    /// The IPU that runs it.
    pub ipu: u32,
    /// The layers of the stage, as predicted.
    pub layers: LayerNames,
    /// Predicted bytes on the fullest tile of the stage.
    pub predicted: u64,
    /// Recorded bytes on the fullest tile of the IPU.
    pub recorded: u64,
    /// Recorded less predicted bytes on the fullest tiles.
    pub difference: i64,
    /// The fewest bytes of `--reserve` with which the prediction covers the recorded bytes: the
    /// difference, or 0 if the prediction is high enough.
    pub reserve: u64,
    /// Recorded bytes left below the limit on the fullest tile.
    pub free: i64,
    /// The predicted bytes by kind of contents. Accumulators that the profile of one IPU already
    /// has are among the variables on both sides.
    pub predicted_parts: TileParts,
    /// The recorded bytes by kind of contents.
    pub recorded_parts: TileParts,
    /// Predicted bytes over all tiles.
    pub predicted_total: u64,
    /// Recorded bytes over all tiles.
    pub recorded_total: u64,
    /// Recorded less predicted bytes over all tiles.
    pub total_difference: i64,
}

/// Bytes of a tile by kind of contents, as far as both a prediction and a profile show them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileParts {
    /// Data variables that are live at the peak, with variables of the run-time and of host
    /// exchange.
    pub variables: u64,
    /// Copies for the micro-batches that are in the pipeline.
    pub stash: u64,
    /// Accumulators, which sum gradients.
    pub accumulators: u64,
    /// Code of vertex types.
    pub vertex_code: u64,
    /// State of vertex instances.
    pub vertex_state: u64,
    /// Code of internal exchanges.
    pub exchange_code: u64,
    /// Control code.
    pub control_code: u64,
    /// Code of exchanges with the host.
    pub host_exchange_code: u64,
    /// Code of exchanges between IPUs.
    pub global_exchange_code: u64,
    /// Gaps between variables.
    pub gaps: u64,
}

/// Categories of code that belong to no operation, and that grow in a compilation for several IPUs.
pub(in crate::report) const HOST_EXCHANGE: &str = "hostExchangeCode";
pub(in crate::report) const GLOBAL_EXCHANGE: &str = "globalExchangeCode";

impl TileParts {
    /// Returns each part with its name, in the order of tables.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("variables", self.variables),
            ("stash", self.stash),
            ("accumulators", self.accumulators),
            ("vertex code", self.vertex_code),
            ("vertex state", self.vertex_state),
            ("exchange code", self.exchange_code),
            ("control code", self.control_code),
            ("host exchange code", self.host_exchange_code),
            ("global exchange code", self.global_exchange_code),
            ("gaps", self.gaps),
        ]
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        sum(&self.named().map(|(_, bytes)| bytes))
    }

    /// Adds the bytes of a lowered variable with this category. Only `name` distinguishes stash and
    /// accumulators from other variables.
    pub(super) fn add(&mut self, category: &str, name: Option<PipelineName>, bytes: u64) {
        let part = match (CodeKind::of_category(category), category, name) {
            (Some(CodeKind::VertexCode), ..) => &mut self.vertex_code,
            (Some(CodeKind::VertexState), ..) => &mut self.vertex_state,
            (Some(CodeKind::ExchangeCode), ..) => &mut self.exchange_code,
            (Some(CodeKind::ControlCode), ..) => &mut self.control_code,
            (None, HOST_EXCHANGE, _) => &mut self.host_exchange_code,
            (None, GLOBAL_EXCHANGE, _) => &mut self.global_exchange_code,
            (None, _, Some(PipelineName::Stashed)) => &mut self.stash,
            (None, _, Some(PipelineName::Accumulator)) => &mut self.accumulators,
            (None, ..) => &mut self.variables,
        };
        *part = part.saturating_add(bytes);
    }

    /// Returns the predicted parts of the fullest tile of a stage.
    pub(super) fn predicted(tile: &FullestTile) -> Self {
        let parts = &tile.parts;
        let of_overhead = tile.overhead_code.unwrap_or_default();
        let overhead = parts.overhead.saturating_sub(of_overhead.total());
        let of_pipeline = sum(&[parts.waiting, parts.passing, parts.state]);
        Self {
            variables: sum(&[parts.variables, of_pipeline, overhead]),
            stash: parts.stash,
            accumulators: parts.accumulators,
            vertex_code: sum(&[parts.vertex_code, of_overhead.vertex_code]),
            vertex_state: sum(&[parts.vertex_state, of_overhead.vertex_state]),
            exchange_code: sum(&[parts.exchange_code, of_overhead.exchange_code]),
            control_code: sum(&[parts.control_code, of_overhead.control_code]),
            host_exchange_code: of_overhead.host_exchange_code,
            global_exchange_code: of_overhead.global_exchange_code,
            gaps: parts.gaps,
        }
    }

    /// Returns the parts with the stash, the accumulators, or both among the variables, unless they
    /// are distinguished from them.
    pub(super) fn with_named(mut self, has_stash: bool, has_accumulators: bool) -> Self {
        if !has_stash {
            self.variables = sum(&[self.variables, std::mem::take(&mut self.stash)]);
        }
        if !has_accumulators {
            self.variables = sum(&[self.variables, std::mem::take(&mut self.accumulators)]);
        }
        self
    }
}
