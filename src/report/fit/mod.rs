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

/// Whether a compilation fits, as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Does every tile of every IPU fit?
    pub fits: bool,
    /// Bytes that each tile may take: the highest of all IPUs.
    pub limit: u64,
    /// Those bytes by IPU, when they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<u64>>,
    /// Tiles of each IPU. Tiles are numbered through over all IPUs.
    pub tiles_per_ipu: u32,
    /// Replicas that the model was compiled for, which all run the same program.
    pub replicas: u32,
    /// How many of them the profile lists, one after the other.
    pub listed_replicas: u32,
    /// How many lowered variables there are; `null` when the profile has none, and
    /// parts of tiles are those of `memory_by_category`.
    pub variables: Option<u64>,
    /// Do the names of variables tell what a pipeline keeps? Else stashes and
    /// accumulators are among the variables.
    pub has_names: bool,
    /// How many liveness steps the program has, when that is known.
    pub steps: Option<u32>,
    /// Every IPU that the profile lists.
    pub ipus: Vec<IpuFit>,
    /// The prediction, when one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
}

/// The recording of one IPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpuFit {
    /// Its number.
    pub ipu: u32,
    /// Does every tile of it fit?
    pub fits: bool,
    /// The layers that run on it, in order; `null` when their names are not known.
    pub layers: Option<LayerNames>,
    /// All its bytes: the sum over its tiles, without gaps.
    pub total: u64,
    /// How many of its tiles are over the limit, or have overflowed.
    pub tiles_over: u32,
    /// Bytes beyond the memory of a tile, with gaps, over all its tiles.
    pub overflowed: u64,
    /// The tile that decides whether it fits: the fullest.
    pub fullest_tile: RecordedTileFacts,
    /// How full its tiles are.
    pub tiles: Fullness,
    /// By category, in the order of the profile; empty when it has none. Variables
    /// that share memory at different steps all count.
    pub categories: Vec<CategoryBytes>,
    /// Bytes by the names of variables; `null` without lowered variables or names.
    pub named: Option<NamedBytes>,
    /// Its bytes over the steps of the program, over all its tiles; `null` when
    /// they are not known.
    pub curve: Option<Curve>,
    /// Executed cycles, over all runs; `null` without execution.
    pub cycles: Option<u64>,
}

/// The fullest tile of an IPU; the first of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedTileFacts {
    /// Its number over all IPUs.
    pub tile: u32,
    /// Its number on its IPU.
    pub tile_of_ipu: u32,
    /// Its bytes in use, without gaps.
    pub bytes: u64,
    /// Bytes that it may take.
    pub limit: u64,
    /// The limit less its bytes; below 0 when they are more.
    pub free: i64,
    /// Its bytes with the gaps between variables, when that is known.
    pub with_gaps: Option<u64>,
    /// Bytes beyond its memory, with gaps: then it is over whatever is free.
    pub overflowed: u64,
    /// Variables that are live on every step.
    pub always_live: u64,
    /// The maximum that other variables take at one step.
    pub not_always_live: u64,
    /// The first step at which they do; `null` when it is not known.
    pub peak_step: Option<u32>,
    /// Its bytes there by what they hold.
    pub parts: TileParts,
}

/// Bytes of all variables of an IPU by what their names tell, whether live together
/// or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedBytes {
    /// Copies for the micro-batches under way.
    pub stashed: u64,
    /// Bytes that were taken out of these.
    pub restored: u64,
    /// Accumulators, which sum up gradients.
    pub accumulators: u64,
    /// Bytes that came from other IPUs.
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
