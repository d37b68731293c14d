//! The split: stages, how full they are, and the bytes that flow between them.

use super::{Curve, LayerMemory, LayerNames, PeakVariables, StagePipeline, TileParts};
use crate::memory::Parts;
use crate::model::ModuleCalls;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The split and its verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Does every stage fit, is every layer in a stage, and are there enough IPUs?
    pub fits: bool,
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// Upper bound on stages: one for each IPU.
    pub max_stages: u32,
    /// Bytes that a stage may take on each tile, by IPU, if they differ. Then `limit` is the
    /// highest one.
    pub limits: Option<Vec<u64>>,
    /// The fewest IPUs that are enough and that the framework accepts; `null` if they were not
    /// searched, such as for a given split.
    pub fewest_ipus: Option<u32>,
    /// Was the split given, to be compared with the best one?
    pub is_given: bool,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The modules that each position of the layer order calls in the model's code. Out is after
    /// all layers, even if it runs on the first IPU.
    pub modules: Vec<ModuleCalls>,
    /// Layers that the search could not place in a stage.
    pub unplaced: LayerNames,
    /// Layers that are over the limit by themselves.
    pub too_large: Vec<LayerMemory>,
}

/// One pipeline stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// The stage's number, which is the number of its IPU.
    pub stage: u32,
    /// The stage's first layer.
    pub layer_from: Option<String>,
    /// The stage's last layer, except an Out that runs on the first IPU.
    pub layer_to: Option<String>,
    /// All layers of the stage, in order.
    pub layers: LayerNames,
    /// Positions of the layers in the order of the report's layers; the end is exclusive.
    pub positions: Range<u32>,
    /// Does Out run on the stage?
    pub has_out: bool,
    /// Predicted bytes summed over all tiles, each tile at its own peak.
    pub total: u64,
    /// The bytes by kind of contents.
    pub parts: Parts,
    /// The tile that decides whether the stage fits.
    pub fullest_tile: FullestTile,
    /// How full the tiles of the stage are.
    pub tiles: Fullness,
    /// Bytes over the steps of the program, summed over all tiles at each step; `null` if the stage
    /// has no steps.
    pub all_tiles_curve: Option<Curve>,
    /// Bytes over the steps on the fullest tile.
    pub fullest_tile_curve: Option<Curve>,
    /// The stage in the pipeline; `null` without a pipeline.
    pub pipeline: Option<StagePipeline>,
    /// The largest variables on the fullest tile at its peak; `null` if their names are unknown,
    /// such as in a saved model.
    pub peak_variables: Option<PeakVariables>,
}

/// The fullest tile of a stage; the first one of a tie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FullestTile {
    /// Its number.
    pub tile: u32,
    /// Predicted bytes: the sum of all parts.
    pub bytes: u64,
    /// Bytes that the stage may take on the tile.
    pub limit: u64,
    /// The limit less the bytes; below 0 if the stage does not fit.
    pub free: i64,
    /// The predicted bytes by kind of contents.
    pub parts: Parts,
    /// The code in the overhead, which every stage needs; its other parts are 0. `null` by the classic rules.
    pub overhead_code: Option<TileParts>,
    /// The first step at which live variables take the most bytes on this tile; `null` if the stage
    /// has no steps.
    pub peak_step: Option<u32>,
}

/// How full the tiles of a stage are, each tile at its own peak.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fullness {
    /// Bytes that half of the tiles do not exceed.
    pub median: u64,
    /// Bytes that 95 % of the tiles do not exceed.
    pub percentile_95: u64,
    /// Number of tiles by bytes, in buckets of equal width. 20 buckets reach up to the limit; the
    /// last one has all tiles above it.
    pub histogram: Vec<Bucket>,
}

/// Tiles that are about equally full.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// The fewest bytes of a tile in the bucket.
    pub from: u64,
    /// The most bytes of a tile in the bucket, inclusive.
    pub to: u64,
    /// Number of tiles in the bucket.
    pub tiles: u32,
}

/// The boundary between two stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// The stage before it.
    pub after_stage: u32,
    /// The last layer before it.
    pub layer_before: Option<String>,
    /// The first layer after it.
    pub layer_after: Option<String>,
    /// Bytes of the distinct variables that cross the cut in either direction, also to or from
    /// stages further away.
    pub bytes: u64,
    /// Bytes of always-live variables that both sides use: each side needs a copy.
    pub duplicated: u64,
    /// The effect of moving one layer across the cut, for each side that keeps another layer; empty
    /// if it was not computed.
    pub moves: Vec<Move>,
}

/// The effect of moving the layer at a cut across it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Move {
    /// The moved layer; In and Out if both are one position.
    pub layers: LayerNames,
    /// The stage that the layer moves to.
    pub to_stage: u32,
    /// Bytes on the fullest tile of the stage before the cut and of the stage after it, after the
    /// move.
    pub fullest_tile_bytes: [u64; 2],
    /// The differences of `fullest_tile_bytes` from the current split, below 0 for less.
    pub change: [i64; 2],
}

impl Split {
    /// Returns the layers of each stage.
    pub fn layers(&self) -> Vec<LayerNames> {
        let stages = self.stages.iter();
        stages.map(|stage| stage.layers.clone()).collect()
    }

    /// Returns the stage with the fullest tile; the first one of a tie.
    pub fn fullest(&self) -> Option<&Stage> {
        let stages = self.stages.iter().rev();
        stages.max_by_key(|stage| stage.fullest_tile.bytes)
    }

    /// Returns the stage with the fewest free bytes below its limit; the first one of a tie.
    pub fn nearest_to_limit(&self) -> Option<&Stage> {
        self.stages
            .iter()
            .min_by_key(|stage| stage.fullest_tile.free)
    }
}

impl Stage {
    /// Returns the stage's layers without pseudo-layers, in order.
    pub fn named_layers(&self) -> impl Iterator<Item = &str> {
        let count = self.layers.len() - usize::from(self.has_out);
        let layers = self.layers[..count].iter();
        layers.flatten().map(String::as_str)
    }
}

/// Number of buckets up to the limit.
const BUCKETS: u64 = 20;

/// Counts tiles by bytes, which are ascending, in the buckets that [`Fullness::histogram`]
/// describes.
pub(super) fn histogram(bytes: &[u64], limit: u64) -> Vec<Bucket> {
    let width = limit.div_ceil(BUCKETS).max(1);
    let mut buckets: Vec<Bucket> = (0..BUCKETS)
        .take_while(|number| number * width < limit)
        .map(|number| Bucket {
            from: (number * width)
                .saturating_add(u64::from(number > 0))
                .min(limit),
            to: ((number + 1) * width).min(limit),
            tiles: 0,
        })
        .collect();
    let within = bytes.partition_point(|&bytes| bytes <= limit);
    for &bytes in &bytes[..within] {
        let number = bytes.saturating_sub(1) / width;
        if let Some(bucket) = buckets.get_mut(number as usize) {
            bucket.tiles += 1;
        }
    }
    if let Some(&highest) = bytes[within..].last() {
        buckets.push(Bucket {
            from: limit.saturating_add(1),
            to: highest,
            tiles: (bytes.len() - within) as u32,
        });
    }
    buckets
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
