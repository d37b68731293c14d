//! From the model and a split to the document.

mod liveness;
mod stages;

use super::{
    CategoryBytes, CoverageFacts, Cut, DocumentFormat, Execution, ExecutionSource, LayerMemory,
    Made, RecordedMemory, Report, SearchFacts, StageCycles, TiedWeightFacts, TileTotals, VERSION,
};
use crate::memory::{self, MemoryModel};
use crate::model::{CycleSource, CyclesByLayer, Layering, Model, Positions, VariableLookup};
use crate::profile::ProfileError;
use crate::report::{Layer, Split, layer_name, layer_names};
use std::ops::Range;

/// What a report is made from.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its layers.
    pub layering: &'a Layering,
    /// The layer order.
    pub positions: &'a Positions,
    /// The weighed model.
    pub memory: &'a MemoryModel<'a>,
    /// Finds variables by name; a saved model has none.
    pub lookup: Option<&'a VariableLookup>,
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// Weights that several layers use.
    pub tied_weights: Vec<TiedWeightFacts>,
    /// The split, when one was asked for.
    pub split: Option<&'a Split>,
    /// What the search said of it.
    pub search: Option<&'a SearchFacts>,
    /// The cycles of each layer, where the profile has them.
    pub cycles: Option<CyclesByLayer>,
    /// How the report is made.
    pub made: Made,
    /// Sentences about the files. Those about layers are added.
    pub warnings: Vec<String>,
}

impl Report {
    /// Makes the report. Curves and peaks are computed here, since nothing
    /// else needs them.
    ///
    /// # Errors
    /// When the profile cannot be read again for the names of variables.
    pub fn new(inputs: Inputs<'_>) -> Result<Self, ProfileError> {
        let stages = inputs.split.map_or(Vec::new(), Split::ranges);
        let mut split = inputs.split.map(|split| inputs.split_facts(split));
        let mut liveness = inputs.liveness();
        inputs.name_variables(&stages, &mut split, &mut liveness)?;
        let mut warnings = inputs.warnings.clone();
        warnings.extend_from_slice(&inputs.layering.warnings);
        Ok(Self {
            format: DocumentFormat::PoplinerReport,
            version: VERSION,
            memory: inputs.recorded(),
            pseudo_layers: inputs.positions.pseudo_layers(),
            layers: inputs.layers(),
            cuts: inputs.cuts(&stages),
            split,
            liveness,
            proof: inputs
                .search
                .filter(|_| inputs.split.is_some())
                .map(|search| search.proof.clone()),
            refusal: inputs.search.and_then(|search| search.refusal.clone()),
            judged: inputs.search.and_then(|search| search.judged.clone()),
            orders: inputs
                .search
                .map_or(Vec::new(), |search| search.orders.clone()),
            tied_weights: inputs.tied_weights.clone(),
            ties: inputs
                .search
                .map_or(Vec::new(), |search| search.ties.clone()),
            sweep: inputs.search.and_then(|search| search.sweep.clone()),
            execution: inputs.execution(&stages),
            warnings,
            made: inputs.made,
        })
    }
}

impl Inputs<'_> {
    fn name(&self, layer: usize) -> Option<String> {
        layer_name(self.positions, layer)
    }

    fn names(&self, layers: &[u32]) -> Vec<Option<String>> {
        let layers = layers.iter().map(|&layer| layer as usize);
        layer_names(self.positions, layers)
    }

    fn recorded(&self) -> RecordedMemory {
        let recorded = &self.model.recorded;
        let tiles = || recorded.tiles.iter();
        let totals: Vec<u64> = tiles().map(|tile| tile.total).collect();
        let fullest = first_highest(&totals);
        let category = |(name, bytes): &(String, crate::profile::TileBytes)| CategoryBytes {
            name: name.clone(),
            all_tiles: bytes.total(),
            fullest_tile: fullest.map(|tile| u64::from(bytes.get(tile))),
        };
        RecordedMemory {
            limit: self.limit,
            tiles: fullest.map(|fullest| TileTotals {
                fullest,
                total: totals,
                // Only when every tile has them.
                with_gaps: tiles().map(|tile| tile.with_gaps).collect(),
                always_live: tiles().map(|tile| tile.always_live).collect(),
                not_always_live: tiles().map(|tile| tile.not_always_live).collect(),
            }),
            categories: recorded.categories.iter().map(category).collect(),
            coverage: self.memory.coverage().map(CoverageFacts::from),
        }
    }

    fn layers(&self) -> Vec<LayerMemory> {
        let layers = self.memory.single_layers().into_iter().enumerate();
        layers
            .map(|(layer, memory)| LayerMemory {
                name: self.name(layer),
                total: memory.sums().total(),
                parts: memory.sums(),
                fullest_tile: memory.max_tile() as u32,
                fullest_tile_bytes: memory.max_tile_bytes(),
            })
            .collect()
    }

    fn cuts(&self, stages: &[Range<usize>]) -> Vec<Cut> {
        let facts = self.search.iter().flat_map(|search| &search.cuts);
        let boundaries = (0u32..).zip(stages.windows(2)).zip(facts);
        boundaries
            .map(|((stage, sides), facts)| Cut {
                after_stage: stage,
                layer_before: self.name(sides[0].end - 1),
                layer_after: self.name(sides[1].start),
                bytes: facts.bytes,
                duplicated: facts.duplicated,
                moves: facts.moves.clone(),
            })
            .collect()
    }

    /// Cycles of layers, and of stages as the sum of their layers'.
    fn execution(&self, stages: &[Range<usize>]) -> Option<Execution> {
        let cycles = self.cycles.as_ref()?;
        let by_layer = &cycles.by_layer;
        let sum = |layers: &[u64]| {
            layers
                .iter()
                .fold(0, |sum: u64, &own| sum.saturating_add(own))
        };
        let layers = by_layer.iter().enumerate();
        let numbered = (0u32..).zip(stages);
        Some(Execution {
            source: match cycles.source {
                CycleSource::Executed { .. } => ExecutionSource::ExecutedSteps,
                CycleSource::Estimated => ExecutionSource::CompileTimeEstimates,
            },
            total: Some(
                sum(by_layer)
                    .saturating_add(cycles.unplaced)
                    .saturating_add(cycles.other),
            ),
            layers: layers
                .map(|(layer, &cycles)| super::LayerCycles {
                    name: self.name(layer),
                    cycles,
                })
                .collect(),
            stages: numbered
                .map(|(stage, range)| StageCycles {
                    stage,
                    cycles: sum(by_layer.get(range.clone()).unwrap_or_default()),
                })
                .collect(),
        })
    }

    /// By what the compiler recorded, else by all variables; the first of
    /// several.
    fn fullest_tile(&self) -> u32 {
        let variables = &self.model.variables;
        let sum = |tile| -> u64 {
            let items = variables.on_tile(tile).iter();
            items.map(|item| u64::from(item.bytes)).sum()
        };
        let recorded = self.model.recorded.tiles.iter().map(|tile| tile.total);
        let bytes: Vec<u64> = match self.model.recorded.tiles.is_empty() {
            true => (0..variables.tiles()).map(sum).collect(),
            false => recorded.collect(),
        };
        first_highest(&bytes).unwrap_or(0)
    }
}

/// The place of the highest; the first of several.
fn first_highest(bytes: &[u64]) -> Option<u32> {
    let highest = bytes.iter().max()?;
    (0u32..)
        .zip(bytes)
        .find(|(_, bytes)| *bytes == highest)
        .map(|(place, _)| place)
}

impl From<memory::Coverage> for CoverageFacts {
    fn from(coverage: memory::Coverage) -> Self {
        Self {
            tile: coverage.tile,
            recorded: coverage.recorded,
            layers: coverage.layers,
            assigned: coverage.assigned,
            by_touch: coverage.by_touch,
            overhead: coverage.overhead,
            rest: i64::try_from(coverage.rest()).unwrap_or(i64::MIN),
        }
    }
}

impl From<&Layer> for LayerMemory {
    fn from(layer: &Layer) -> Self {
        Self {
            name: layer.name.clone(),
            total: layer.mem.total_mem,
            parts: layer.mem.parts,
            fullest_tile: layer.max_tile as u32,
            fullest_tile_bytes: layer.mem.max_tile_mem,
        }
    }
}
