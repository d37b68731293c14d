//! From the model and a split to the document.

use super::split::histogram;
use super::{
    Band, CategoryBytes, CategorySum, CoverageFacts, Curve, Cut, DocumentFormat, Execution,
    ExecutionSource, FullestTile, Fullness, LayerMemory, LiveVariable, Liveness, Made, Peak,
    PeakVariables, RecordedMemory, Report, SearchFacts, SplitFacts, StageCycles, StageFacts,
    TileTotals, VERSION,
};
use crate::memory::{self, MemoryModel, StageMemory};
use crate::model::{
    CodeKind, CycleSource, LayerCycles, Layering, LivePlace, LiveVariables, Lookup, Model,
};
use crate::profile::ProfileError;
use crate::report::{Layer, Split, layer_name};
use std::ops::Range;

/// What a report is made from.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its layers.
    pub layering: &'a Layering,
    /// The weighed model.
    pub memory: &'a MemoryModel<'a>,
    /// Finds variables by name; a saved model has none.
    pub lookup: Option<&'a Lookup>,
    /// Bytes that a stage may take on each tile.
    pub limit: u64,
    /// The split, when one was asked for.
    pub split: Option<&'a Split>,
    /// What the search said of it.
    pub search: Option<&'a SearchFacts>,
    /// The cycles of each layer, where the profile has them.
    pub cycles: Option<LayerCycles>,
    /// How the report is made.
    pub made: Made,
    /// Sentences about the files. Those about layers are added.
    pub warnings: Vec<String>,
}

/// A curve of the whole model has at most about so many points.
const MOST_POINTS: usize = 1000;
/// The curves of all stages together have at most about so many.
const MOST_STAGE_POINTS: usize = 12_000;
/// How many of the variables that are live at a peak are named.
const MOST_VARIABLES: usize = 20;

impl Report {
    /// Makes the report. Curves and peaks are computed here, since nothing
    /// else needs them.
    ///
    /// # Errors
    /// When the profile cannot be read again for the names of variables.
    pub fn new(inputs: Inputs<'_>) -> Result<Self, ProfileError> {
        let stages = inputs.stages();
        let mut split = inputs.split.map(|split| inputs.split_facts(split, &stages));
        let mut liveness = inputs.liveness();
        inputs.name_variables(&stages, &mut split, &mut liveness)?;
        let mut warnings = inputs.warnings.clone();
        warnings.extend_from_slice(&inputs.layering.warnings);
        Ok(Self {
            format: DocumentFormat::PoplinerReport,
            version: VERSION,
            memory: inputs.recorded(),
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
        layer_name(&self.layering.names, layer)
    }

    /// The layer positions of each stage: stages are contiguous, from the
    /// first layer on.
    fn stages(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let stages = self.split.iter().flat_map(|split| &split.stages);
        let range = |layers: usize| {
            let start = end;
            end += layers;
            start..end
        };
        stages.map(|stage| stage.layers.len()).map(range).collect()
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
        if stages.len() < 2 {
            return Vec::new();
        }
        let bytes = self.memory.cut_bytes();
        let facts = |stage: u32| {
            let facts = self
                .search
                .and_then(|search| search.cuts.get(stage as usize));
            facts.cloned().unwrap_or_default()
        };
        let boundaries = (0u32..).zip(stages.windows(2));
        boundaries
            .map(|(stage, sides)| (stage, sides, facts(stage)))
            .map(|(stage, sides, facts)| Cut {
                duplicated: facts.duplicated,
                moves: facts.moves,
                after_stage: stage,
                layer_before: self.name(sides[0].end - 1),
                layer_after: self.name(sides[1].start),
                bytes: bytes.get(sides[0].end - 1).copied().unwrap_or(0),
            })
            .collect()
    }

    fn split_facts(&self, split: &Split, stages: &[Range<usize>]) -> SplitFacts {
        let weighed = self.memory.stages(stages);
        let fullest = |memory: &StageMemory| memory.max_tile() as u32;
        let places = stages.iter().cloned().zip(weighed.iter().map(fullest));
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

    fn liveness(&self) -> Option<Liveness> {
        let tile = self.fullest_tile();
        let curves = self.memory.whole_curves(tile)?;
        let bands = self.memory.bands().into_iter();
        Some(Liveness {
            steps: self.model.steps(),
            all_tiles: Curve::new(&curves.all_tiles, MOST_POINTS),
            fullest_tile: tile,
            fullest_tile_curve: Curve::new(&curves.on_tile, MOST_POINTS),
            bands: bands
                .map(|band| Band {
                    layer: self.name(band.layer as usize),
                    from: band.from,
                    to: band.to,
                })
                .collect(),
            peak_variables: None,
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

    /// Looks up what is live at the peaks: that of the whole model and those
    /// of all stages at once.
    fn name_variables(
        &self,
        stages: &[Range<usize>],
        split: &mut Option<SplitFacts>,
        liveness: &mut Option<Liveness>,
    ) -> Result<(), ProfileError> {
        let Some(liveness) = liveness else {
            return Ok(());
        };
        let Some(lookup) = self.lookup else {
            liveness.peak_variables = self.at_bottleneck();
            return Ok(());
        };
        let facts = split.iter_mut().flat_map(|split| &mut split.stages);
        let facts: Vec<(&Range<usize>, &mut StageFacts)> = stages.iter().zip(facts).collect();
        let mut places = vec![LivePlace {
            tile: liveness.fullest_tile,
            step: liveness.fullest_tile_curve.peak.step,
        }];
        places.extend(facts.iter().map(|(_, stage)| LivePlace {
            tile: stage.fullest_tile.tile,
            step: stage.fullest_tile.peak_step.unwrap_or(0),
        }));
        let counts = |place: usize, set: u32, category: &str| match place.checked_sub(1) {
            None => true,
            Some(stage) => {
                let is_code = CodeKind::of_category(category).is_some();
                self.memory.counts_in(&stages[stage], set, is_code)
            }
        };
        let classes = &self.model.classes;
        let found = lookup.live_at(classes, &places, MOST_VARIABLES, counts)?;
        let mut found = found.into_iter().zip(places);
        let mut next = || found.next().map(|(live, place)| self.live(live, place));
        liveness.peak_variables = next();
        for (_, stage) in facts {
            let variables = next();
            stage.peak_variables = variables.filter(|_| stage.fullest_tile.peak_step.is_some());
        }
        Ok(())
    }

    /// What a saved model still knows by name.
    fn at_bottleneck(&self) -> Option<PeakVariables> {
        let bottleneck = self.model.bottleneck.as_ref()?;
        let largest = bottleneck.variables.iter().take(MOST_VARIABLES);
        let live = LiveVariables {
            count: bottleneck.variables.len() as u64,
            bytes: bottleneck.bytes,
            categories: Vec::new(),
            largest: largest.cloned().collect(),
        };
        let place = LivePlace {
            tile: bottleneck.tile,
            step: bottleneck.step,
        };
        Some(self.live(live, place))
    }

    fn live(&self, live: LiveVariables, place: LivePlace) -> PeakVariables {
        let layers = |set| {
            let layers = self.memory.layers_of(set).iter();
            layers.map(|&layer| self.name(layer as usize)).collect()
        };
        let categories = live.categories.into_iter();
        let categories = categories.map(|(name, bytes)| CategorySum {
            name: name.into(),
            bytes,
        });
        let largest = live.largest.into_iter().map(|variable| LiveVariable {
            name: variable.name.into(),
            category: variable.category.into(),
            bytes: u64::from(variable.bytes),
            layers: layers(variable.set),
        });
        PeakVariables {
            tile: place.tile,
            step: place.step,
            count: live.count,
            bytes: live.bytes,
            categories: categories.collect(),
            largest: largest.collect(),
        }
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

impl Curve {
    /// Thins a curve to about `most` points.
    fn new(curve: &memory::Curve, most: usize) -> Self {
        let kept = super::thin::thin(&curve.points, most);
        let points: Vec<_> = kept.into_iter().map(|place| curve.points[place]).collect();
        let (bytes, step) = curve.peak();
        Self {
            first_step: curve.window.0,
            last_step: curve.window.1,
            fixed: curve.fixed,
            always_live: curve.always_live,
            peak: Peak { step, bytes },
            thinned: points.len() < curve.points.len(),
            steps: points.iter().map(|point| point.0).collect(),
            bytes: points.iter().map(|point| point.1).collect(),
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

impl From<memory::Coverage> for CoverageFacts {
    fn from(coverage: memory::Coverage) -> Self {
        Self {
            tile: coverage.tile,
            recorded: coverage.recorded,
            layers: coverage.layers,
            homes: coverage.homes,
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
