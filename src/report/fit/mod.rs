//! Whether a compilation fits, IPU by IPU, and how far it is from the prediction (docs/model.md, "A
//! compiled pipeline").
//!
//! `build` makes the facts from a recorded profile, and `against` compares them with the report of
//! an earlier run that predicted the stages. Every output form shows what `tables` and `sentences`
//! make of them.

mod against;
mod build;
mod parts;
pub(super) mod sentences;
pub(super) mod tables;
#[cfg(test)]
mod tests;

pub use against::{Against, AgainstError, CutElsewhere, MatchedBy, StageAgainst};
pub use build::FitInputs;
pub use parts::TileParts;
pub(super) use parts::{GLOBAL_EXCHANGE, HOST_EXCHANGE};

use super::{CategoryBytes, Curve, Fullness, LayerNames};
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
