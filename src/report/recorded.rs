//! Defines what the report says about recorded memory and cycles, about the recorded contents of
//! each tile, and about the memory of single layers.

use super::{CoverageFacts, Detail, Inputs};
use crate::{
    memory::Parts,
    model::{CycleSource, PassCycles},
    profile::{RecordedCategory, RecordedTile},
    time::narrow,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The memory that the compiler recorded in the profile, and the limit that it is compared
/// with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RecordedMemory {
    /// Bytes that a stage may take on each tile: the target's memory or `--mem-per-tile`, less
    /// the reserve.
    pub limit: u64,
    /// The bytes that the compiler recorded for each tile; `null` if the profile has none.
    pub tiles: Option<TileTotals>,
    /// The recorded bytes of each category of variables, in the order of the profile; empty if
    /// the profile does not have them.
    pub categories: Vec<CategoryBytes>,
    /// How much of the recorded bytes of the fullest tile the memory model explains; `null` if
    /// no bytes were recorded.
    pub coverage: Option<CoverageFacts>,
    /// The recorded bytes of each tile by category and by variable; `null` unless an HTML page
    /// was requested and the profile has the bytes of tiles.
    pub tile_map: Option<TileMap>,
}

/// The bytes that the compiler recorded on each tile (table `memory_by_tile`). Lists have one
/// entry for each tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileTotals {
    /// The index of the tile with the most bytes in use; of equally full tiles, the first one.
    pub fullest: u32,
    /// Bytes in use on each tile, without the gaps between variables. Variables that share an
    /// address are included once.
    pub total: Vec<u64>,
    /// Bytes in use on each tile, with the gaps between variables; `null` if unknown.
    pub with_gaps: Option<Vec<u64>>,
    /// For each tile, the bytes of the variables that are always live, that is, live at every
    /// step of the program.
    pub always_live: Vec<u64>,
    /// For each tile, the most bytes that all variables which are not always live take at any
    /// one step.
    pub not_always_live: Vec<u64>,
}

/// The recorded bytes of one category of lowered variables. Variables that use one address at
/// different steps all count, so the categories of a tile can add up to more than its total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CategoryBytes {
    /// The name of the category of variables, as the profile has it, such as `vertexCode`.
    pub name: String,
    /// Bytes of the category, summed over all tiles of the profile or, if the record is about
    /// one IPU, over the tiles of this IPU.
    pub all_tiles: u64,
    /// Bytes of the category on one tile: of the tiles that `all_tiles` covers, the one with the
    /// most bytes in use by all categories; `null` if the bytes in use on tiles are unknown.
    pub fullest_tile: Option<u64>,
}

/// The recorded bytes of each tile by category and by variable, for an HTML page's drawing of all
/// tiles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileMap {
    /// The categories of variables that have bytes on any tile, most bytes first.
    pub categories: Vec<TileCategory>,
    /// Number of categories that have bytes on some tile but are missing in `categories`. The
    /// smallest categories are left out if the report would otherwise have too many numbers.
    pub left_out: u32,
    /// The largest variables of the fullest tiles; `null` without names of variables, which a
    /// file of `--save-to-file` and the report on a compilation lack.
    pub variables: Option<TileVariables>,
}

/// The recorded bytes of one category on each tile (table `memory_by_category`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileCategory {
    /// The name of the category of variables, as the profile has it, such as `vertexCode`.
    pub name: String,
    /// For each tile, the bytes of all variables of the category.
    pub bytes: Vec<u64>,
    /// For each tile, how many of the category's bytes are at addresses that several variables
    /// share at different steps; empty if no tile has any. `bytes` counts each of these variables.
    /// Without the shared bytes, the categories of a tile add up to at most its bytes in use.
    pub overlapped: Vec<u64>,
}

/// The largest variables on each of the fullest tiles, with their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TileVariables {
    /// Upper bound on the number of variables that are listed for each tile.
    pub most: u32,
    /// The indices of the tiles whose variables are listed, the fullest first: all tiles, or
    /// the 2,000 fullest ones.
    pub tiles: Vec<u32>,
    /// The distinct kinds of the listed variables (name, category, and whether always live).
    /// `largest` refers to a kind by index, since many tiles have variables of one kind.
    pub kinds: Vec<VariableKind>,
    /// For each tile of `tiles`, its largest variables, the largest first; variables of equal
    /// size are in the order of the profile. Each entry is an index into `kinds` and the bytes
    /// of the variable.
    pub largest: Vec<Vec<(u32, u64)>>,
}

/// The name and the category of variables, and whether they are always live. Variables on many
/// tiles have these in common, so the report has them only once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct VariableKind {
    /// The name of the variables, such as `weights#0`.
    pub name: String,
    /// The category of the variables in the profile, such as `variable`.
    pub category: String,
    /// Whether the variables are always live, that is, live at every step of the program.
    pub always_live: bool,
}

/// The memory of one layer as a stage of its own, without the memory that every stage needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LayerMemory {
    /// The name of the layer; `null` for the first position of the layer order, which is In or
    /// None.
    pub name: Option<String>,
    /// Bytes of the layer as a stage of its own, summed over all tiles, each tile at its own
    /// peak.
    pub total: u64,
    /// The bytes of the layer by kind of contents, such as variables or code; their sum is
    /// `total`.
    pub parts: Parts,
    /// The index of the tile with the most bytes of the layer; of equally full tiles, the first
    /// one.
    pub fullest_tile: u32,
    /// Bytes of the layer on its fullest tile.
    pub fullest_tile_bytes: u64,
    /// The path of the layer's module in the model's code, as the framework writes it; `null`
    /// if unknown.
    pub module: Option<String>,
}

/// The cycles of layers and stages in one run of the program and, in a pipeline, for one
/// micro-batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Execution {
    /// Whether the cycles were measured in a run or estimated by the compiler.
    pub source: ExecutionSource,
    /// Cycles of one run of the whole program: the sum of all layers' cycles, `unplaced` and
    /// `other`.
    pub total: u64,
    /// The cycles of each layer, in the order of the report's layers.
    pub layers: Vec<LayerCycles>,
    /// The cycles of each stage of the split, in order; empty without a split.
    pub stages: Vec<StageCycles>,
    /// Cycles, in one run of the program, of compute sets and exchanges that belong to no
    /// layer.
    pub unplaced: u64,
    /// Cycles, in one run of the program, of exchanges between tiles that belong to no layer. They
    /// are a part of `unplaced`; the rest of `unplaced` is cycles of compute sets.
    pub unplaced_exchange: u64,
    /// Measured cycles of stream copies, syncs and control flow, which belong to no layer; 0 if
    /// the cycles are estimates.
    pub other: u64,
}

/// How the profile got its cycles: by measurement or by estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionSource {
    /// The cycles were measured while the program ran, since the profile has an execution.
    ExecutedSteps,
    /// The cycles are the compiler's estimates, since the profile has no execution.
    CompileTimeEstimates,
}

/// The cycles of one layer in one run of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LayerCycles {
    /// The name of the layer; `null` for the position before the layers (In or None).
    pub name: Option<String>,
    /// Cycles of the layer's compute sets and exchanges in one run of the program.
    pub cycles: u64,
    /// The time of the layer's cycles in milliseconds; `null` if the profile lacks the target's
    /// clock.
    pub milliseconds: Option<f64>,
    /// The part of the layer's `cycles` that exchanges between tiles take; compute sets take
    /// the rest.
    pub exchange: u64,
    /// The layer's cycles by pass: forward, backward, recomputed and update.
    pub passes: PassCycles,
}

/// The cycles of one pipeline stage, in one run of the program and for one micro-batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StageCycles {
    /// The index of the stage, from 0.
    pub stage: u32,
    /// Cycles of the stage's layers in one run of the program.
    pub cycles: u64,
    /// Cycles that the stage takes for one micro-batch in the pipeline, with recomputation and
    /// without the weight update; `null` without a pipeline.
    pub micro_batch_cycles: Option<u64>,
    /// The time of `micro_batch_cycles` in milliseconds; `null` without a pipeline, or if the
    /// profile lacks the target's clock.
    pub micro_batch_milliseconds: Option<f64>,
    /// The part of the stage's `cycles` that exchanges between tiles take; compute sets take
    /// the rest.
    pub exchange: u64,
    /// The stage's cycles by pass. The cycles of the weight update are for a whole step, and
    /// those of all other passes for one micro-batch. `null` without a pipeline.
    pub passes: Option<PassCycles>,
}

impl RecordedMemory {
    /// Collects the recorded bytes of each tile and of each category. If `detail` requests an HTML
    /// page, also collects the data of its drawing of all tiles, for which `of_tiles` has the
    /// largest variables of each tile. `limit` is the number of bytes that a stage may take on each
    /// tile.
    pub(super) fn new(
        limit: u64,
        tiles: &[RecordedTile],
        categories: &[RecordedCategory],
        detail: Detail,
        of_tiles: Option<TileVariables>,
    ) -> Self {
        let by_tile = |bytes: fn(&RecordedTile) -> u64| tiles.iter().map(bytes).collect();
        let total: Vec<u64> = by_tile(|tile| tile.total);
        let fullest = first_highest(&total);
        Self {
            limit,
            tiles: fullest.map(|fullest| TileTotals {
                fullest,
                total,
                // `with_gaps` (bytes including the gaps between variables) is left out unless the
                // profile has these bytes for every tile.
                with_gaps: tiles.iter().map(|tile| tile.with_gaps).collect(),
                always_live: by_tile(|tile| tile.always_live),
                not_always_live: by_tile(|tile| tile.not_always_live),
            }),
            categories: categories
                .iter()
                .map(|category| CategoryBytes::new(category, 0..usize::MAX, fullest))
                .collect(),
            coverage: None,
            tile_map: match detail {
                Detail::Page => TileMap::new(tiles, categories, of_tiles),
                _ => None,
            },
        }
    }
}

impl CategoryBytes {
    /// Sums the recorded bytes of `category` over `tiles`, a range of tile indices, and looks up
    /// the bytes on the tile `fullest`, if that index is known.
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
    /// Returns the memory of each position of the layer order (In, the layers, Out) as a stage of
    /// its own. The list is empty if only the split was requested.
    pub(super) fn layers(&self) -> Vec<LayerMemory> {
        if !self.is_full() {
            return Vec::new();
        }
        self.memory
            .single_layers()
            .iter()
            .enumerate()
            .map(|(position, memory)| self.layer(position, memory))
            .collect()
    }

    /// Returns the cycles of each layer and of each stage of the split, or `None` if the profile
    /// has no cycles.
    pub(super) fn execution(&self) -> Option<Execution> {
        let cycles = self.model.layer_cycles(self.placement)?;
        let milliseconds = |count: u64| Some(count as f64 * 1e3 / cycles.clock_hertz? as f64);
        let layers = Vec::from_iter((0..).zip(&cycles.passes_by_layer).map(
            |(position, &passes)| LayerCycles {
                milliseconds: milliseconds(passes.total()),
                name: self.name(position),
                cycles: passes.total(),
                exchange: cycles.exchange_by_layer[position],
                passes,
            },
        ));
        let of_layers = |range: &Range<usize>, number: fn(&LayerCycles) -> u64| {
            sum(layers[range.clone()].iter().map(number))
        };
        let times = self.search.and_then(|search| search.costs.times());
        let stages = self.stages().iter().enumerate().map(|(stage, range)| {
            let passes =
                times.and_then(|times| times.stage(range, self.stages().len() - 1 - stage));
            let of_micro_batch = passes.map(|pass| narrow(pass.of_micro_batch()));
            StageCycles {
                stage: stage as u32,
                cycles: of_layers(range, |layer| layer.cycles),
                micro_batch_cycles: of_micro_batch,
                micro_batch_milliseconds: of_micro_batch.and_then(milliseconds),
                exchange: of_layers(range, |layer| layer.exchange),
                passes: passes.map(|pass| PassCycles {
                    forward: narrow(pass.forward),
                    backward: narrow(pass.backward),
                    recomputed: narrow(pass.recomputed),
                    update: narrow(pass.update),
                }),
            }
        });
        Some(Execution {
            source: match cycles.source {
                CycleSource::Executed { .. } => ExecutionSource::ExecutedSteps,
                CycleSource::Estimated => ExecutionSource::CompileTimeEstimates,
            },
            total: sum(layers
                .iter()
                .map(|layer| layer.cycles)
                .chain([cycles.unplaced, cycles.other])),
            stages: stages.collect(),
            layers,
            unplaced: cycles.unplaced,
            unplaced_exchange: cycles.unplaced_exchange,
            other: cycles.other,
        })
    }
}

/// Returns the sum of `numbers`, or `u64::MAX` if the sum overflows, as with the numbers of a
/// damaged report.
pub fn sum(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

/// Returns the index of the highest entry of `numbers`, and the lowest index if several entries are
/// the highest. Returns `None` if `numbers` is empty.
pub fn first_highest(numbers: &[impl Ord]) -> Option<u32> {
    Some(
        (0..numbers.len())
            .rev()
            .max_by_key(|&place| &numbers[place])? as u32,
    )
}
