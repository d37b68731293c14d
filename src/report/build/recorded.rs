//! Recorded memory and cycles, and single layers.

use super::{Detail, Inputs};
use crate::model::{CycleSource, PassCycles};
use crate::profile::{Recorded, RecordedCategory, RecordedTile};
use crate::report::{
    Band, CategoryBytes, CoverageFacts, Execution, ExecutionSource, LayerCycles, LayerMemory,
    RecordedMemory, StageCycles, TileMap, TileTotals, TileVariables,
};
use crate::time::narrow;

impl RecordedMemory {
    /// Collects the recorded memory of all tiles and of each category.
    pub(in crate::report) fn new(
        limit: u64,
        tiles: &[RecordedTile],
        categories: &[RecordedCategory],
        coverage: Option<CoverageFacts>,
    ) -> Self {
        let tiles = || tiles.iter();
        let totals: Vec<u64> = tiles().map(|tile| tile.total).collect();
        let fullest = first_highest(&totals);
        let category = |category: &RecordedCategory| CategoryBytes {
            name: category.name.clone(),
            all_tiles: category.bytes.total(),
            fullest_tile: fullest.map(|tile| u64::from(category.bytes.get(tile))),
        };
        Self {
            limit,
            tiles: fullest.map(|fullest| TileTotals {
                fullest,
                total: totals,
                // `None` unless every tile has a total with gaps.
                with_gaps: tiles().map(|tile| tile.with_gaps).collect(),
                always_live: tiles().map(|tile| tile.always_live).collect(),
                not_always_live: tiles().map(|tile| tile.not_always_live).collect(),
            }),
            categories: categories.iter().map(category).collect(),
            coverage,
            tile_map: None,
        }
    }
}

impl Inputs<'_> {
    pub(super) fn recorded(&self, of_tiles: Option<TileVariables>) -> RecordedMemory {
        let Recorded { tiles, categories } = &self.model.recorded;
        // An estimate for another micro-batch cannot be compared with recorded bytes.
        let is_recorded = self.search.is_none_or(|found| found.estimate.is_none());
        let coverage = self.memory.coverage().filter(|_| is_recorded);
        let tile_map = if self.detail >= Detail::Page {
            TileMap::new(tiles, categories, of_tiles)
        } else {
            None
        };
        RecordedMemory {
            tile_map,
            ..RecordedMemory::new(self.limit, tiles, categories, coverage)
        }
    }

    /// Returns the memory of each position as a stage of its own.
    pub(super) fn layers(&self) -> Vec<LayerMemory> {
        if !self.is_full() {
            return Vec::new();
        }
        let alone = self.memory.single_layers();
        let layers = alone.iter().enumerate();
        layers
            .map(|(position, memory)| self.layer(position, memory))
            .collect()
    }

    pub(super) fn bands(&self) -> Vec<Band> {
        let bands = self.memory.layer_spans().into_iter();
        let bands = bands.map(|band| Band {
            layer: self.name(band.layer as usize),
            from: band.from,
            to: band.to,
        });
        bands.collect()
    }

    /// Returns the cycles of layers, and of stages as sums of their layers' cycles.
    pub(super) fn execution(&self) -> Option<Execution> {
        let cycles = self.model.layer_cycles(self.placement)?;
        let estimate = self.search.and_then(|found| found.estimate);
        let cycles = match estimate {
            Some(estimate) => estimate.scale().cycles(cycles),
            None => cycles,
        };
        let milliseconds = |count: u64| {
            let clock = cycles.clock_hertz.filter(|&clock| clock > 0)?;
            Some(count as f64 * 1e3 / clock as f64)
        };
        let layers = (0..cycles.by_layer.len()).map(|position| LayerCycles {
            milliseconds: milliseconds(cycles.by_layer[position]),
            name: self.name(position),
            cycles: cycles.by_layer[position],
            exchange: cycles.exchange_by_layer[position],
            passes: cycles.passes_by_layer[position],
        });
        let of_range = |all: &[u64], range| sum(all.get(range).unwrap_or_default());
        let times = self.search.and_then(|found| found.costs.times.as_ref());
        let stages = self.stages().iter().enumerate();
        let stages = stages.map(|(stage, range)| {
            let after = self.stages().len() - 1 - stage;
            let passes = times.and_then(|times| times.stage(range, after));
            let of_micro_batch = passes.map(|pass| narrow(pass.of_micro_batch()));
            StageCycles {
                stage: stage as u32,
                cycles: of_range(&cycles.by_layer, range.clone()),
                micro_batch_cycles: of_micro_batch,
                micro_batch_milliseconds: of_micro_batch.and_then(milliseconds),
                exchange: of_range(&cycles.exchange_by_layer, range.clone()),
                passes: passes.map(|pass| PassCycles {
                    forward: narrow(pass.forward),
                    backward: narrow(pass.backward),
                    recomputed: narrow(pass.recomputed),
                    update: narrow(pass.update),
                }),
            }
        });
        let total = [sum(&cycles.by_layer), cycles.unplaced, cycles.other];
        Some(Execution {
            source: match cycles.source {
                CycleSource::Executed { .. } => ExecutionSource::ExecutedSteps,
                CycleSource::Estimated => ExecutionSource::CompileTimeEstimates,
            },
            total: sum(&total),
            layers: layers.collect(),
            stages: stages.collect(),
            unplaced: cycles.unplaced,
            unplaced_exchange: cycles.unplaced_exchange,
            other: cycles.other,
        })
    }
}

/// Adds numbers; a sum that overflows is `u64::MAX`.
fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().copied().fold(0, u64::saturating_add)
}

/// Returns the index of the highest number, the first one of a tie; `None` without numbers.
pub(super) fn first_highest(bytes: &[u64]) -> Option<u32> {
    let highest = bytes.iter().max()?;
    (0u32..)
        .zip(bytes)
        .find(|(_, bytes)| *bytes == highest)
        .map(|(place, _)| place)
}
