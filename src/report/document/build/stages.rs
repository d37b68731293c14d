//! The split and its stages.

use super::Inputs;
use super::liveness::MAX_POINTS;
use crate::memory::{self, StageMemory};
use crate::report::document::split::histogram;
use crate::report::document::{Curve, FullestTile, Fullness, LayerMemory, SplitFacts, StageFacts};
use crate::report::{Split, free_bytes};

/// The curves of all stages together have at most about so many.
const MAX_STAGE_POINTS: usize = 12_000;

impl Inputs<'_> {
    pub(super) fn split_facts(&self, split: &Split) -> SplitFacts {
        let stages = split.stages.iter();
        let places = stages.map(|own| (own.positions.clone(), &own.memory, own.max_tile as u32));
        let curves = self.memory.curves(&places.collect::<Vec<_>>());
        let points = MAX_STAGE_POINTS / (2 * split.stages.len().max(1));
        let points = points.clamp(4, MAX_POINTS);
        let stage = |(number, curves): (usize, Option<memory::LiveCurves>)| {
            let curves = curves.as_ref();
            StageFacts {
                all_tiles_curve: curves.map(|own| Curve::new(&own.all_tiles, points)),
                fullest_tile_curve: curves.map(|own| Curve::new(&own.on_tile, points)),
                ..stage(split, number)
            }
        };
        SplitFacts {
            fits: split.fits(),
            limit: split.limit,
            limits: (!split.limits.is_empty()).then(|| split.limits.clone()),
            max_stages: u32::try_from(split.max_stages).unwrap_or(u32::MAX),
            stages: curves.into_iter().enumerate().map(stage).collect(),
            unplaced: split.unplaced.clone(),
            too_large: split.too_large.iter().map(LayerMemory::from).collect(),
        }
    }
}

/// A stage without its curves and variables.
fn stage(split: &Split, number: usize) -> StageFacts {
    let (stage, limit) = (&split.stages[number], split.limit_of(number));
    let tiles = &stage.memory.tiles;
    StageFacts {
        stage: number as u32,
        layer_from: stage.layer_from.clone(),
        layer_to: stage.layer_to.clone(),
        layers: stage.layers.clone(),
        positions: stage.positions.start as u32..stage.positions.end as u32,
        total: stage.mem.total_mem,
        parts: stage.mem.parts,
        fullest_tile: FullestTile {
            tile: stage.max_tile as u32,
            bytes: stage.mem.max_tile_mem,
            limit,
            free: free_bytes(limit, stage.mem.max_tile_mem),
            parts: tiles.get(stage.max_tile).copied().unwrap_or_default(),
            peak_step: stage.peak_step,
        },
        tiles: Fullness::new(&stage.memory, limit),
        all_tiles_curve: None,
        fullest_tile_curve: None,
        peak_variables: None,
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
