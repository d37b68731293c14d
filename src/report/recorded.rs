//! Recorded memory and cycles, the contents of each tile, and the memory of single layers.

use super::build::Inputs;
use super::{Band, CoverageFacts, Detail};
use crate::memory::Parts;
use crate::model::{CycleSource, PassCycles};
use crate::profile::{Recorded, RecordedCategory, RecordedTile};
use crate::time::narrow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The memory that the compiler recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedMemory {
    /// Bytes that a stage may take on each tile: the target's memory or `--mem-per-tile`, less the
    /// reserve.
    pub limit: u64,
    /// Totals by tile; `null` if the profile does not record them.
    pub tiles: Option<TileTotals>,
    /// Bytes by category, in the order of the profile; empty if it has none.
    pub categories: Vec<CategoryBytes>,
    /// How much of the fullest tile the model explains; `null` if nothing was recorded.
    pub coverage: Option<CoverageFacts>,
    /// The bytes on each tile, if a page was requested and bytes of tiles were recorded.
    pub tile_map: Option<TileMap>,
}

/// The bytes that the compiler counted on each tile (`memory_by_tile`). Lists have one entry for
/// each tile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileTotals {
    /// The fullest tile; the first one of a tie.
    pub fullest: u32,
    /// Distinct bytes in use, without gaps.
    pub total: Vec<u64>,
    /// Bytes in use with the gaps between variables; `null` if unknown.
    pub with_gaps: Option<Vec<u64>>,
    /// Bytes of variables that are live on every step.
    pub always_live: Vec<u64>,
    /// The highest bytes of other variables at one step.
    pub not_always_live: Vec<u64>,
}

/// The recorded bytes of one category of lowered variables. Variables that share memory at
/// different steps all count, so the categories of a tile can add up to more than its total.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryBytes {
    /// The category's name in the profile, such as `vertexCode`.
    pub name: String,
    /// Bytes over all tiles.
    pub all_tiles: u64,
    /// Bytes on the fullest tile by recorded totals; `null` if these are unknown.
    pub fullest_tile: Option<u64>,
}

/// The bytes on each tile, by category and by variable, for a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileMap {
    /// The categories that have bytes, most bytes first.
    pub categories: Vec<TileCategory>,
    /// Number of other categories with bytes. The smallest ones are left out if there would be too
    /// many numbers.
    pub left_out: u32,
    /// The largest variables of the fullest tiles; `null` without the profile's names of variables,
    /// which a file of `--save-to-file` lacks.
    pub variables: Option<TileVariables>,
}

/// The recorded bytes of one category (`memory_by_category`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileCategory {
    /// The category's name in the profile, such as `vertexCode`.
    pub name: String,
    /// Bytes of all variables of the category, by tile.
    pub bytes: Vec<u64>,
    /// The part of `bytes` at addresses that several variables share, each at other steps; empty if
    /// no tile has any. The other bytes of all categories are at most the bytes in use on a tile.
    pub overlapped: Vec<u64>,
}

/// The largest variables of tiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileVariables {
    /// Upper bound on variables listed for a tile.
    pub most: u32,
    /// The tiles whose variables are listed, the fullest first: all tiles, or as many as there is
    /// room for.
    pub tiles: Vec<u32>,
    /// The names and categories of the variables. Several tiles can have variables of one name.
    pub kinds: Vec<VariableKind>,
    /// For each tile of `tiles`, its largest variables, the largest first and equal ones in the
    /// order of the profile, each as an index of `kinds` and its bytes.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// The facts that variables on several tiles share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct VariableKind {
    /// The name, such as `weights#0`.
    pub name: String,
    /// The name of the category, such as `variable`.
    pub category: String,
    /// Is the variable live on every step?
    pub always_live: bool,
}

/// The memory of one layer as a stage of its own, without the memory that every stage needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerMemory {
    /// The layer's name; `null` for the first position.
    pub name: Option<String>,
    /// Bytes summed over all tiles, each tile at its own peak.
    pub total: u64,
    /// The bytes by kind of contents.
    pub parts: Parts,
    /// The layer's fullest tile; the first one of a tie.
    pub fullest_tile: u32,
    /// Bytes on the fullest tile.
    pub fullest_tile_bytes: u64,
    /// The path of the layer's module, as the framework writes it; `null` if unknown.
    pub module: Option<String>,
}

/// Cycles of layers and stages, as far as the profile has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Where the cycles come from.
    pub source: ExecutionSource,
    /// Cycles of everything, each run once.
    pub total: u64,
    /// Cycles by layer, in the order of the report's layers.
    pub layers: Vec<LayerCycles>,
    /// Cycles by stage; empty without a split.
    pub stages: Vec<StageCycles>,
    /// Cycles of compute sets and exchanges that are assigned to no layer.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges between tiles take.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow; 0 for estimates. All layers,
    /// `unplaced` and `other` add up to `total`.
    pub other: u64,
}

/// Where cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionSource {
    /// Measured steps of a run.
    ExecutedSteps,
    /// Estimates of the compiler.
    CompileTimeEstimates,
}

/// The cycles of one layer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCycles {
    /// The layer.
    pub name: Option<String>,
    /// Cycles of the layer.
    pub cycles: u64,
    /// The time of the cycles, in milliseconds; `null` if the profile lacks the target's clock.
    pub milliseconds: Option<f64>,
    /// The part of `cycles` that exchanges between tiles take; compute sets take the rest.
    pub exchange: u64,
    /// The layer's cycles by pass.
    pub passes: PassCycles,
}

/// The cycles of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCycles {
    /// The stage.
    pub stage: u32,
    /// Cycles of the stage's layers, each counted once.
    pub cycles: u64,
    /// Cycles of a micro-batch, with recomputation in the pipeline and without the update.
    pub micro_batch_cycles: Option<u64>,
    /// The time of a micro-batch, in milliseconds; `null` if the profile lacks the target's clock.
    pub micro_batch_milliseconds: Option<f64>,
    /// The part of `cycles` that exchanges between tiles take; compute sets take the rest.
    pub exchange: u64,
    /// The stage's cycles by pass; cycles of the update are for a step. `null` without a
    /// pipeline.
    pub passes: Option<PassCycles>,
}

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
        let category = |category| CategoryBytes::new(category, 0..usize::MAX, fullest);
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

impl CategoryBytes {
    /// Sums a category over `tiles`.
    pub(super) fn new(
        category: &RecordedCategory,
        tiles: Range<usize>,
        fullest: Option<u32>,
    ) -> Self {
        Self {
            name: category.name.clone(),
            all_tiles: category.bytes.total_of(tiles),
            fullest_tile: fullest.map(|tile| category.bytes.get(tile).into()),
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

/// Adds numbers. The sum of a damaged report that overflows is `u64::MAX`.
pub(super) fn sum(numbers: &[u64]) -> u64 {
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
