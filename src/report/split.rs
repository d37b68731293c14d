//! The split of a report: its stages, how full they are, and the bytes that flow between them.

use super::{BestSplit, Curve, LayerMemory, PeakVariables, StagePipeline, StageUpdate, TileParts};
use crate::{
    memory::{Parts, VariableKinds},
    model::{LayerNames, ModuleCalls},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A split of the model into pipeline stages, and whether it fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Split {
    /// Whether the split fits: every stage is within its limit, every layer is in a stage, all
    /// constraints hold, and there are enough IPUs.
    pub fits: bool,
    /// Bytes that a stage may take on each tile. If the limits of IPUs differ, the highest one.
    pub limit: u64,
    /// Number of IPUs of one replica, and so the highest number of stages.
    pub max_stages: u32,
    /// Number of replicas of the pipeline that work in parallel, at least 1.
    pub replicas: u64,
    /// Bytes that a stage may take on each tile, one number for each IPU; `null` if all IPUs
    /// have one limit.
    pub limits: Option<Vec<u64>>,
    /// The fewest IPUs, over all replicas, on which the layers fit if optimizer state stays where
    /// the report has it (on the chip, off the chip or sharded); `null` for a split that the user
    /// gave or that does not fit.
    pub fewest_ipus: Option<u32>,
    /// Whether the user gave the split (`--splits`), which is then compared with the best
    /// split.
    pub is_given: bool,
    /// For each stage except stage 0, the name of its first layer. These names are the value of
    /// `--splits`.
    pub starts: Vec<String>,
    /// The split that a framework such as Optimum makes if the user gives it only the number of
    /// blocks (numbered layers) on each IPU (`layers_per_ipu`); `null` if this is the report's
    /// split.
    pub by_counts: Option<BestSplit>,
    /// The stages of the split, in the order of their layers.
    pub stages: Vec<Stage>,
    /// For each position of the layer order (In, the layers, Out), the modules of the model's code
    /// that the position calls, such as `bert.encoder.layer.3`. Out is last, even if it runs on
    /// the first IPU.
    pub modules: Vec<ModuleCalls>,
    /// Names of the layers that the search could not place in any stage.
    pub unplaced: LayerNames,
    /// Layers that exceed the limit even as a stage of their own; empty if the split fits.
    pub too_large: Vec<LayerMemory>,
}

/// One pipeline stage: consecutive layers that run on one IPU, and their predicted memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Stage {
    /// The index of the stage, from 0, which is also the index of its IPU.
    pub stage: u32,
    /// The available memory proportion with which the stage is compiled, which is that of one
    /// of the profiles; `null` without `--amp`.
    pub amp: Option<f64>,
    /// The name of the stage's first layer; `null` for the position before the layers (In or
    /// None).
    pub layer_from: Option<String>,
    /// The name of the stage's last layer; `Out` for the operations after the last layer, unless
    /// they run on the first IPU together with In. `null` if the stage has only the position before
    /// the layers (In or None).
    pub layer_to: Option<String>,
    /// The names of all layers of the stage, in order.
    pub layers: LayerNames,
    /// The indices of the stage's layers in the report's list of layers; the end is exclusive.
    pub positions: Range<u32>,
    /// Whether Out, the operations after the last layer, runs in the stage.
    pub has_out: bool,
    /// Predicted bytes of the stage, summed over all tiles, each tile at the liveness step of its
    /// own peak.
    pub total: u64,
    /// The predicted bytes of the stage by kind of contents, such as variables or code; their
    /// sum is `total`.
    pub parts: Parts,
    /// The tile that needs the most bytes, which decides whether the stage fits.
    pub fullest_tile: FullestTile,
    /// How the predicted bytes are distributed over the tiles of the stage.
    pub tiles: Fullness,
    /// Bytes of the stage at each liveness step, summed over all tiles; `null` if the stage has no
    /// liveness steps.
    pub all_tiles_curve: Option<Curve>,
    /// Bytes of the stage at each liveness step on its fullest tile; `null` if the stage has no
    /// liveness steps.
    pub fullest_tile_curve: Option<Curve>,
    /// The bytes that the pipeline adds to the stage, such as its stash, and the bytes of its
    /// weight update; `null` if there is no pipeline and optimizer state is neither off the chip
    /// nor sharded over replicas.
    pub pipeline: Option<StagePipeline>,
    /// The largest variables on the fullest tile of the stage at its peak; `null` if names of
    /// variables are unavailable, such as in a saved model.
    pub peak_variables: Option<PeakVariables>,
}

/// The fullest tile of a stage; of several equally full tiles, the first one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct FullestTile {
    /// The index of the stage's fullest tile, from 0.
    pub tile: u32,
    /// Predicted bytes on the stage's fullest tile: the sum of all fields of `parts`.
    pub bytes: u64,
    /// Bytes that the stage may take on the tile, which is the memory of a tile less the
    /// reserve.
    pub limit: u64,
    /// The bytes that stay free on the tile: `limit` less `bytes`, below 0 if the stage does
    /// not fit.
    pub free: i64,
    /// The predicted bytes on the tile by kind of contents, such as variables or code.
    pub parts: Parts,
    /// The bytes of `parts.variables` by kind of variable, such as weights or activations.
    pub variable_kinds: VariableKinds,
    /// The code and vertex state on the tile that every stage needs, whatever its layers are, in
    /// bytes by kind of contents. Kinds that are no code or vertex state, such as variables, are 0.
    /// `null` with `--memory-model classic`, which leaves these bytes out.
    pub overhead_code: Option<TileParts>,
    /// The first liveness step at which variables of the stage take the most bytes on the tile;
    /// `null` if the stage has no liveness steps.
    pub peak_step: Option<u32>,
}

/// The distribution of bytes over the tiles of a stage or an IPU, each tile at its own peak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Fullness {
    /// The bytes of the median tile: the lowest number of bytes that at least half of the tiles
    /// do not exceed.
    pub median: u64,
    /// The 95th percentile of the bytes of tiles: the lowest number that at least 95 % of the
    /// tiles do not exceed.
    pub percentile_95: u64,
    /// The number of tiles in each range of bytes, ascending. 20 ranges of equal width reach
    /// from 0 to the limit; one more, if needed, has all tiles over the limit.
    pub histogram: Vec<Bucket>,
}

/// The number of tiles whose bytes are in one range of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Bucket {
    /// The lower end in bytes of this range of the histogram, inclusive.
    pub from: u64,
    /// The upper end in bytes of this range of the histogram, inclusive; in the range above the
    /// limit, the bytes of the fullest tile.
    pub to: u64,
    /// Number of tiles whose bytes are in this range of the histogram.
    pub tiles: u32,
}

/// The boundary between two consecutive stages of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Cut {
    /// The index of the stage that begins after the cut.
    pub stage: u32,
    /// The name of the first layer after the cut, never `null`.
    pub layer_from: Option<String>,
    /// Bytes of all variables that cross the cut in either direction, over all tiles. Each
    /// variable counts once, even if the stages that write and read it are not next to the cut.
    pub bytes: u64,
    /// Bytes over all tiles of the always-live variables that layers on both sides of the cut
    /// use, so that each side needs a copy.
    pub duplicated: u64,
    /// The effect of moving one layer across the cut: the last layer before it, or the first
    /// layer after it. A move that leaves a stage empty is left out. Empty if the effects were
    /// not computed.
    pub moves: Vec<Move>,
}

/// How moving one layer across a cut would change the memory of the stages on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Move {
    /// A list with one name: that of the layer that moves across the cut.
    pub layers: LayerNames,
    /// The index of the stage to which the layer in `layers` moves.
    pub to_stage: u32,
    /// Bytes on the fullest tile of the stage before the cut and of the stage after the cut, once
    /// the layer in `layers` has moved across the cut.
    pub fullest_tile_bytes: [u64; 2],
    /// By how many bytes the move changes the fullest tile of the stage before the cut and of the
    /// stage after the cut; below 0 for fewer bytes than without the move.
    pub change: [i64; 2],
}

impl Split {
    /// Returns the stage of the split whose fullest tile needs the most bytes; of several such
    /// stages, the first one. Returns `None` if the split has no stages.
    pub fn fullest(&self) -> Option<&Stage> {
        self.stages
            .iter()
            .rev()
            .max_by_key(|stage| stage.fullest_tile.bytes)
    }

    /// Returns the highest number of bytes that any stage needs on its fullest tile, or 0 if the
    /// split has no stages.
    pub fn peak(&self) -> u64 {
        self.fullest().map_or(0, |stage| stage.fullest_tile.bytes)
    }

    /// Returns the stage with the fewest free bytes on its fullest tile; of several such stages,
    /// the first one. If any stage exceeds its limit, this is the stage that exceeds it most.
    /// Returns `None` if the split has no stages.
    pub fn nearest_to_limit(&self) -> Option<&Stage> {
        self.stages
            .iter()
            .min_by_key(|stage| stage.fullest_tile.free)
    }
}

impl Stage {
    /// Returns the bytes that the stage needs during the weight update. They are computed only if
    /// optimizer state is off the chip or sharded over replicas; otherwise, this is `None`.
    pub fn update(&self) -> Option<&StageUpdate> {
        self.pipeline.as_ref()?.update.as_ref()
    }

    /// Returns the names of the stage's layers, in order, without In and Out.
    pub fn named_layers(&self) -> impl Iterator<Item = &str> {
        let count = self.layers.len() - usize::from(self.has_out);
        self.layers[..count].iter().flatten().map(String::as_str)
    }
}

impl Fullness {
    /// Returns the distribution of the bytes of a stage over tiles. `tiles` has the bytes of each
    /// tile, and `limit` the bytes that a tile may have.
    pub(super) fn of(tiles: impl Iterator<Item = u64>, limit: u64) -> Self {
        let mut bytes: Vec<u64> = tiles.collect();
        bytes.sort_unstable();
        let percentile = |percent: usize| {
            let place = (bytes.len() * percent).div_ceil(100);
            bytes.get(place.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            median: percentile(50),
            percentile_95: percentile(95),
            histogram: histogram(&bytes, limit),
        }
    }
}

/// Number of ranges into which a histogram divides the bytes from 0 to the limit.
const BUCKETS: u64 = 20;

/// Counts the tiles in each range of a histogram: up to 20 ranges of equal width from 0 to `limit`,
/// and one more if any tile is over the limit. `bytes` has the bytes of each tile, ascending.
pub fn histogram(bytes: &[u64], limit: u64) -> Vec<Bucket> {
    let width = limit.div_ceil(BUCKETS).max(1);
    let within = (0..BUCKETS)
        .map(|number| number * width)
        .take_while(|&below| below < limit)
        .map(|below| {
            let from = below + u64::from(below > 0);
            (from, below.saturating_add(width).min(limit))
        });
    let over = bytes.last().filter(|&&bytes| bytes > limit);
    within
        .chain(over.map(|&highest| (limit + 1, highest)))
        .map(|(from, to)| {
            let below = bytes.partition_point(|&bytes| bytes < from);
            let tiles = (bytes.partition_point(|&bytes| bytes <= to) - below) as u32;
            Bucket { from, to, tiles }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_counts_in_the_bucket_that_holds_its_bytes() {
        for limit in [1, 7, 20, 1000, 638_976] {
            let mut bytes = vec![0, 1, limit / 2, limit, limit, limit + 1, limit * 3];
            bytes.sort_unstable();
            let buckets = histogram(&bytes, limit);
            assert!(buckets.len() <= 21, "{limit}");
            assert_eq!(buckets.iter().map(|b| b.tiles).sum::<u32>(), 7);
            for bucket in buckets.iter().filter(|bucket| bucket.tiles > 0) {
                let inside = bytes
                    .iter()
                    .filter(|b| (bucket.from..=bucket.to).contains(b));
                assert_eq!(inside.count(), bucket.tiles as usize, "{limit}: {bucket:?}");
            }
            assert_eq!(buckets.last().unwrap().to, limit * 3);
        }
        assert_eq!(histogram(&[5], 1000).len(), 20);
    }
}
