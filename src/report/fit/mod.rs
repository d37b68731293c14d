//! Shows whether a recorded compilation fits, IPU by IPU, and how much its memory differs from the
//! prediction (docs/model.md, "A compiled pipeline").
//!
//! `build` makes the facts from a recorded profile. `comparison` compares the facts with the report
//! of an earlier run, which predicted the stages. `tables` and `sentences` show the facts in every
//! output form.

mod build;
mod comparison;
pub(super) mod sentences;
pub(super) mod tables;
#[cfg(test)]
mod tests;

pub use build::FitInputs;
pub use comparison::PartComparison;

use crate::{
    model::LayerNames,
    profile::{CodeKind, PipelineName},
    report::{CategoryBytes, Curve, FullestTile, Fullness, sum},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::mem;

/// Whether a compilation that Poplar recorded fits, IPU by IPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Fit {
    /// Whether every tile of every IPU is within its limit and, with the gaps between variables,
    /// within its memory. The gaps are ignored if the limit is above this memory
    /// (`--mem-per-tile`).
    pub fits: bool,
    /// Bytes that a stage may take on each tile; the highest limit if the limits of IPUs
    /// differ.
    pub limit: u64,
    /// Bytes that each tile may take, one number for each IPU; `null` if all IPUs have one
    /// limit.
    pub limits: Option<Vec<u64>>,
    /// Number of tiles of each IPU. Tiles are numbered across all IPUs.
    pub tiles_per_ipu: u32,
    /// Number of replicas that the model was compiled for, which all run the same program.
    pub replicas: u32,
    /// Number of replicas whose IPUs the profile lists: only one, or all, one replica after the
    /// other.
    pub listed_replicas: u32,
    /// Number of lowered variables in the profile; `null` if the profile has none, in which
    /// case the bytes of a tile are known only by recorded category.
    pub variables: Option<u64>,
    /// Whether the names of variables show which variables are stashes and accumulators of a
    /// pipeline. If not, their bytes are part of other variables.
    pub has_names: bool,
    /// Number of liveness steps of the program; `null` if unknown.
    pub steps: Option<u32>,
    /// The recorded memory of each IPU that the profile lists, in order.
    pub ipus: Vec<IpuFit>,
    /// The comparison with an earlier report, which predicted the stages (`--compare`); `null`
    /// if no report was given.
    pub comparison: Option<FitComparison>,
}

/// The recorded memory of one IPU, and whether it fits.
// `IpuFit` (recorded) and `Stage` (predicted) are separate types, and so are `RecordedTileFacts`
// and `FullestTile`, since they have little in common: only what is in the types `Fullness`,
// `Curve` and `TileParts`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct IpuFit {
    /// The index of the IPU, from 0.
    pub ipu: u32,
    /// Whether every tile of the IPU is within its limit and, with the gaps between variables,
    /// within its memory. The gaps are ignored if the limit is above this memory
    /// (`--mem-per-tile`).
    pub fits: bool,
    /// The names of the layers that run on the IPU, in order; `null` if they are unknown.
    pub layers: Option<LayerNames>,
    /// Bytes in use on the IPU, summed over all its tiles, without gaps between variables.
    pub total: u64,
    /// Number of the IPU's tiles that do not fit. The bytes of such a tile are over its limit or,
    /// with the gaps between variables, over the memory of a tile. The gaps are ignored if the
    /// limit is above this memory (`--mem-per-tile`).
    pub tiles_over: u32,
    /// Bytes that the IPU's tiles need beyond the memory of a tile, with the gaps between
    /// variables, summed over these tiles.
    pub overflowed: u64,
    /// The tile of the IPU that has the most bytes in use.
    pub fullest_tile: RecordedTileFacts,
    /// How the bytes in use are distributed over the tiles of the IPU.
    pub tiles: Fullness,
    /// Bytes of the IPU by category of variables, in the order of the profile; empty if the
    /// profile has no categories. Variables that use one address at different steps all count.
    pub categories: Vec<CategoryBytes>,
    /// Bytes of the IPU's stashes, accumulators and received tensors, which the names of
    /// variables show; `null` without lowered variables or names.
    pub named: Option<NamedBytes>,
    /// Bytes of the IPU at each step of the program, summed over its tiles; `null` if unknown.
    pub curve: Option<Curve>,
    /// Measured cycles of the IPU over all runs of the program; `null` if the profile has no
    /// execution.
    pub cycles: Option<u64>,
}

/// The fullest tile of an IPU, as the compiler recorded it; of equally full tiles, the first
/// one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RecordedTileFacts {
    /// The index of the IPU's fullest tile, counted across all IPUs.
    pub tile: u32,
    /// The index of the fullest tile among the tiles of its IPU, from 0.
    pub tile_of_ipu: u32,
    /// Bytes in use on the fullest tile, without gaps between variables.
    pub bytes: u64,
    /// Bytes that may be in use on each tile of the IPU: the memory of a tile, as the profile or
    /// `--mem-per-tile` gives it, less the bytes that must stay free (`--reserve`).
    pub limit: u64,
    /// The bytes that stay free on the tile: `limit` less `bytes`, below 0 if the limit is
    /// exceeded.
    pub free: i64,
    /// Bytes in use on the fullest tile with the gaps between variables; `null` if unknown.
    pub with_gaps: Option<u64>,
    /// Bytes by which the contents of the tile, including gaps between variables, exceed its
    /// memory. If above 0, the tile does not fit, even if `free` is 0 or more, unless `limit` is
    /// above this memory (`--mem-per-tile`).
    pub overflowed: u64,
    /// Bytes on the tile of the variables that are live on every step of the program.
    pub always_live: u64,
    /// The most bytes that all variables which are not always live take on the tile at any one
    /// step.
    pub not_always_live: u64,
    /// The first step at which the variables that are not always live take the most bytes on
    /// the tile; `null` if unknown.
    pub peak_step: Option<u32>,
    /// The bytes of the fullest tile by kind of contents, such as variables or code.
    pub parts: TileParts,
}

/// Bytes of the variables of an IPU that exist only in a pipeline, such as stashed tensors, summed
/// over tiles. Their names show their purpose. All of these variables are added up, even if they
/// are never live at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct NamedBytes {
    /// Bytes of stashed tensors, that is, of the copies for micro-batches between their forward
    /// and backward pass.
    pub stashed: u64,
    /// Bytes of the tensors that are restored from the stash for the backward pass.
    pub restored: u64,
    /// Bytes of gradient accumulators, which sum gradients over micro-batches.
    pub accumulators: u64,
    /// Bytes of the tensors that the IPU receives from other IPUs.
    pub received: u64,
}

impl Fit {
    /// Returns the IPUs that do not fit, that is, that have tiles over their limit or their memory.
    pub fn over(&self) -> impl Iterator<Item = &IpuFit> {
        self.ipus.iter().filter(|ipu| ipu.tiles_over > 0)
    }

    /// Returns the IPUs of the first replica, which are all IPUs if the profile lists only one
    /// replica.
    pub fn of_replica(&self) -> &[IpuFit] {
        let count = self.ipus.len() / (self.listed_replicas.max(1) as usize);
        &self.ipus[..count]
    }
}

/// The comparison of the predicted stages of a pipeline with its recorded compilation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FitComparison {
    /// The path of the profile from which the stages were predicted, as the report of the
    /// prediction has it.
    pub profile: String,
    /// How each predicted stage was matched with an IPU.
    pub matched_by: MatchedBy,
    /// Whether the model fits according to the prediction.
    pub predicted_fits: bool,
    /// The number of pipeline stages in the prediction.
    pub predicted_stages: u32,
    /// Evidence that the compilation was cut at other layers than predicted; `null` if there is
    /// none. With other cuts, the differences of the stages say nothing about the prediction.
    pub cut_elsewhere: Option<CutElsewhere>,
    /// The smallest `--reserve`, in bytes, that would have covered the bytes missing in the
    /// prediction of any stage; `null` if the compilation was cut at other layers than predicted,
    /// or if a profile contradicts itself.
    pub reserve: Option<u64>,
    /// The comparison of each predicted stage that was matched with an IPU, in the order of the
    /// stages.
    pub stages: Vec<StageComparison>,
}

/// How the stages of a prediction were matched with IPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MatchedBy {
    /// Predicted stages were matched with IPUs by the names of the layers that run on each IPU.
    /// Stages without named layers were matched in order.
    Layers,
    /// Predicted stages were matched with IPUs in order, since the profile does not say which
    /// layers run on which IPU.
    #[default]
    Order,
}

/// Evidence that a compilation was cut at other layers than the prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CutElsewhere {
    /// The number of IPUs of one replica; `null` if there are as many IPUs as predicted stages.
    pub ipus: Option<u32>,
    /// The indices of the predicted stages whose layers differ from the layers on the IPU with
    /// which the stage was matched.
    pub stages: Vec<u32>,
    /// The names of the layers on each IPU of the compilation, as far as they are known.
    pub recorded: Vec<LayerNames>,
}

/// The predicted and the recorded bytes of one pipeline stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StageComparison {
    /// The index of the predicted stage.
    pub stage: u32,
    /// The index of the IPU that the stage was matched with.
    pub ipu: u32,
    /// The names of the layers of the stage, as the prediction has them.
    pub layers: LayerNames,
    /// Predicted bytes on the fullest tile of the stage.
    pub predicted: u64,
    /// Recorded bytes on the fullest tile of the IPU.
    pub recorded: u64,
    /// Recorded bytes on the fullest tile of the IPU minus predicted bytes on the fullest tile
    /// of the stage.
    pub difference: i64,
    /// The smallest `--reserve`, in bytes, that would have covered the bytes missing in the
    /// prediction of the stage: `difference`, or 0 if the difference is below 0.
    pub reserve: u64,
    /// Recorded bytes that stay free below the limit on the IPU's fullest tile; below 0 if the
    /// limit is exceeded.
    pub free: i64,
    /// The predicted bytes on the fullest tile by kind of contents. If the recorded compilation
    /// has no names of variables, `predicted_parts` and `recorded_parts` count the stash and
    /// the accumulators as variables. They also count accumulators as variables if the profile
    /// from which the stages were predicted has accumulators.
    pub predicted_parts: TileParts,
    /// The recorded bytes on the fullest tile of the IPU by kind of contents, such as variables
    /// or code.
    pub recorded_parts: TileParts,
    /// Predicted bytes of the stage, summed over all tiles.
    pub predicted_total: u64,
    /// Recorded bytes of the IPU, summed over all tiles.
    pub recorded_total: u64,
    /// Recorded bytes of the IPU minus predicted bytes of the stage, each summed over all
    /// tiles.
    pub total_difference: i64,
}

/// Bytes of a tile by kind of contents, for the kinds that predictions and profiles both
/// distinguish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileParts {
    /// Bytes of data variables that are live at the peak, including variables of the run-time
    /// and of host exchange.
    pub variables: u64,
    /// Bytes of stashed tensors, that is, of the copies for micro-batches between their forward
    /// and backward pass.
    pub stash: u64,
    /// Bytes of gradient accumulators, which sum gradients over micro-batches.
    pub accumulators: u64,
    /// Bytes of vertex code, that is, of codelets.
    pub vertex_code: u64,
    /// Bytes of vertex state, that is, of the fields of vertex instances.
    pub vertex_state: u64,
    /// Bytes of code for exchanges between tiles of one IPU.
    pub exchange_code: u64,
    /// Bytes of control code, which runs the program's steps.
    pub control_code: u64,
    /// Bytes of code for exchanges with the host.
    pub host_exchange_code: u64,
    /// Bytes of code for exchanges between IPUs.
    pub global_exchange_code: u64,
    /// Bytes of gaps between variables, which no variable uses.
    pub gaps: u64,
}

/// The names of the profile's categories of code for exchanges with the host and between IPUs. This
/// code belongs to no operation, and it grows when a model is compiled for several IPUs.
pub(super) const HOST_EXCHANGE: &str = "hostExchangeCode";
pub(super) const GLOBAL_EXCHANGE: &str = "globalExchangeCode";

impl TileParts {
    /// Returns the name and the bytes of each kind of data and code on a tile, such as variables or
    /// vertex code, in the order of the columns of tables.
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

    /// Returns the sum of the bytes of all kinds of contents of a tile, such as variables and code.
    pub fn total(&self) -> u64 {
        sum(self.named().map(|(_, bytes)| bytes))
    }

    /// Adds the bytes of a lowered variable to its kind of contents, such as vertex code. The kind
    /// follows from `category`, the variable's category in the profile. For a variable of data,
    /// `name` says whether its name marks it as part of the stash or as an accumulator; all others
    /// count as variables.
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

    /// Converts the predicted bytes of `tile`, the fullest tile of a stage, to the kinds of
    /// contents that a profile also distinguishes. Other predicted bytes, such as transfer buffers,
    /// count as variables.
    pub(super) fn predicted(tile: &FullestTile) -> Self {
        let parts = &tile.parts;
        let code = tile.overhead_code.unwrap_or_default();
        Self {
            variables: sum([
                parts.variables,
                parts.waiting,
                parts.passing,
                parts.state,
                parts.overhead.saturating_sub(code.total()),
            ]),
            stash: parts.stash,
            accumulators: parts.accumulators,
            vertex_code: sum([parts.vertex_code, code.vertex_code]),
            vertex_state: sum([parts.vertex_state, code.vertex_state]),
            exchange_code: sum([parts.exchange_code, code.exchange_code]),
            control_code: sum([parts.control_code, code.control_code]),
            gaps: parts.gaps,
            ..code
        }
    }

    /// Counts the stash as variables if `has_stash` is false, and the accumulators if
    /// `has_accumulators` is false. The tile can then be compared with one whose record does not
    /// distinguish them from other variables.
    pub(super) fn with_named(mut self, has_stash: bool, has_accumulators: bool) -> Self {
        if !has_stash {
            self.variables = sum([self.variables, mem::take(&mut self.stash)]);
        }
        if !has_accumulators {
            self.variables = sum([self.variables, mem::take(&mut self.accumulators)]);
        }
        self
    }
}
