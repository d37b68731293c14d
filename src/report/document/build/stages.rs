//! The split and its stages.

use super::Inputs;
use super::liveness::MOST_POINTS;
use crate::memory::{self, StageMemory};
use crate::report::Split;
use crate::report::document::split::histogram;
use crate::report::document::{Curve, FullestTile, Fullness, LayerMemory, SplitFacts, StageFacts};
use std::ops::Range;

/// The curves of all stages together have at most about so many.
const MOST_STAGE_POINTS: usize = 12_000;

impl Inputs<'_> {
    pub(super) fn split_facts(&self, split: &Split, stages: &[Range<usize>]) -> SplitFacts {
        let weighed = self.memory.stages(stages);
        let fullest = |memory: &StageMemory| memory.max_tile() as u32;
        let places = stages.iter().cloned().zip(&weighed);
        let places = places.map(|(range, memory)| (range, memory, fullest(memory)));
        let curves = self.memory.curves(&places.collect::<Vec<_>>());
        let points = MOST_STAGE_POINTS / (2 * stages.len().max(1));
        let points = points.clamp(4, MOST_POINTS);
        let stage = |(((number, range), memory), curves)| {
            let curves: Option<memory::Curves> = curves;
            let stage = self.stage(split.limit_of(number as usize), number, range, memory);
            StageFacts {
                all_tiles_curve: curves
                    .as_ref()
                    .map(|own| Curve::new(&own.all_tiles, points)),
                fullest_tile_curve: curves.as_ref().map(|own| Curve::new(&own.on_tile, points)),
                ..stage
            }
        };
        let numbered = (0u32..).zip(stages).zip(&weighed).zip(curves);
        SplitFacts {
            fits: split.fits(),
            limit: split.limit,
            limits: (!split.limits.is_empty()).then(|| split.limits.clone()),
            max_stages: u32::try_from(split.max_stages).unwrap_or(u32::MAX),
            stages: numbered.map(stage).collect(),
            unplaced: split.unplaced.clone(),
            too_large: split.too_large.iter().map(LayerMemory::from).collect(),
        }
    }

    /// A stage without its curves and variables.
    fn stage(
        &self,
        limit: u64,
        stage: u32,
        range: &Range<usize>,
        memory: &StageMemory,
    ) -> StageFacts {
        let tile = memory.max_tile();
        let bytes = memory.max_tile_bytes();
        let free = i128::from(limit) - i128::from(bytes);
        StageFacts {
            stage,
            layer_from: self.name(range.start),
            layer_to: self.name(range.end.saturating_sub(1)),
            layers: range.clone().map(|layer| self.name(layer)).collect(),
            total: memory.sums().total(),
            parts: memory.sums(),
            fullest_tile: FullestTile {
                tile: tile as u32,
                bytes,
                limit,
                free: free as i64,
                parts: memory.tiles.get(tile).copied().unwrap_or_default(),
                peak_step: memory.peak_steps.get(tile).copied().flatten(),
            },
            tiles: Fullness::new(memory, limit),
            all_tiles_curve: None,
            fullest_tile_curve: None,
            peak_variables: None,
        }
    }
}

impl Fullness {
    /// How full the tiles of a stage are against `limit`.
    fn new(memory: &StageMemory, limit: u64) -> Self {
        let mut bytes: Vec<u64> = memory.tiles.iter().map(|parts| parts.total()).collect();
        bytes.sort_unstable();
        // The least that so many per cent of the tiles do not pass.
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
