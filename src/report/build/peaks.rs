//! Bytes by step, and the largest variables at the peaks.
//!
//! Names of variables are in the profile alone, so they are fetched before the
//! report is made.

use super::live_steps::Whole;
use super::recorded::first_highest;
use super::{Detail, Inputs};
use crate::memory::{self, LiveCurves, MemoryModel, PlacedStage, StageMemory};
use crate::model::{
    CodeKind, LivePlace, LiveVariables, MemoryPeak, Model, NamedVariable, Positions, ProfileLookup,
};
use crate::profile::ProfileError;
use crate::report::downsample::thin;
use crate::report::{
    CategorySum, Curve, LiveVariable, Liveness, Peak, PeakVariables, StashedVariable,
};
use crate::search::SearchResult;

/// A curve of the whole model has at most about this number of points.
const MAX_POINTS: usize = 1000;
/// The curves of all stages together have at most about this number.
const MAX_STAGE_POINTS: usize = 12_000;
/// How many of the variables that are live at a peak are named.
const MAX_VARIABLES: usize = 20;
/// How many of those are named where the most is lacking.
const MAX_LACKING: usize = 3;
/// How many of the variables that a stage stashes are named.
const MAX_STASHED: usize = 5;

/// The curves of the whole model and of stages, and what is live at their peaks.
#[derive(Debug, Default)]
pub struct Peaks {
    /// The fullest tile of the whole model, and its curves.
    whole: Option<(u32, LiveCurves)>,
    /// By stage; `None` for one without steps.
    stages: Vec<Option<LiveCurves>>,
    /// The fullest tile of each stage.
    tiles_of_stages: Vec<u32>,
    named: NamedAtPeaks,
}

/// The live variables at the peaks, by name.
#[derive(Debug, Default)]
pub struct NamedAtPeaks {
    /// Variables that are live at the peak of the whole model, if that is known.
    live: Option<(LivePlace, LiveVariables)>,
    /// By stage, the same.
    live_in_stages: Vec<Option<(LivePlace, LiveVariables)>>,
    /// By stage: the largest variables that it stashes on its fullest tile.
    stashed: Vec<Vec<NamedVariable>>,
    /// Where nothing fits: what is live where the most is lacking.
    lacking: Option<(LivePlace, LiveVariables)>,
}

/// The sections of a stage.
#[derive(Default)]
pub(super) struct StageSections {
    pub(super) all_tiles_curve: Option<Curve>,
    pub(super) fullest_tile_curve: Option<Curve>,
    pub(super) peak_variables: Option<PeakVariables>,
    pub(super) stashed: Vec<StashedVariable>,
}

impl Peaks {
    /// The curves that a report with this detail has, without names.
    pub fn new(
        model: &Model,
        memory: &MemoryModel<'_>,
        search: Option<&SearchResult>,
        detail: Detail,
    ) -> Self {
        let mut peaks = Self::default();
        if detail >= Detail::Full {
            let tile = fullest_tile(model);
            peaks.whole = memory.whole_curves(tile).map(|curves| (tile, curves));
            let found = model.memory_peak.as_ref();
            peaks.named.live = found.map(at_memory_peak);
        }
        if let Some(found) = search.filter(|_| detail >= Detail::Full) {
            let stages = found.stages.iter().zip(&found.memory);
            let stages = stages
                .map(|(range, computed)| (range.clone(), computed, computed.max_tile() as u32));
            let stages: Vec<_> = stages.collect();
            peaks.tiles_of_stages = stages.iter().map(|&(.., tile)| tile).collect();
            peaks.stages = memory.curves(&stages);
        }
        peaks
    }

    /// Looks up what is live at all peaks at once.
    ///
    /// # Errors
    /// When the profile cannot be read again, or is not what it was.
    pub fn find_names(
        &self,
        lookup: &ProfileLookup,
        model: &Model,
        memory: &MemoryModel<'_>,
        search: Option<&SearchResult>,
    ) -> Result<Option<NamedAtPeaks>, ProfileError> {
        let advice = search.and_then(|found| found.advice.as_ref());
        let lacking = advice.map(|advice| {
            let place = place_of_peak(&advice.fullest);
            (place, Some(&advice.stage.positions))
        });
        let whole = self.whole.as_ref().map(|(tile, curves)| {
            let step = curves.on_tile.peak().1;
            (LivePlace { tile: *tile, step }, None)
        });
        // Of stages only where there are curves too.
        let full = search.filter(|_| whole.is_some());
        let stages = full.map_or(&[][..], |found| &found.stages);
        let computed = full.map_or(&[][..], |found| &found.memory);
        let of_stages = computed.iter().map(place_of_peak);
        let of_stages = of_stages.zip(stages.iter().map(Some));
        let places = lacking.into_iter().chain(whole).chain(of_stages);
        let (places, ranges): (Vec<LivePlace>, Vec<_>) = places.unzip();
        if places.is_empty() {
            return Ok(None);
        }
        let is_live = |place: usize, kind: (u32, u32), category: &str| {
            let step = places[place].step;
            match ranges[place] {
                None => model.classes.is_live(kind.0, step),
                Some(range) => {
                    let is_code = CodeKind::of_category(category).is_some();
                    memory.is_live_in(range, kind, (step, is_code))
                }
            }
        };
        let found = lookup.live_at(&places, MAX_VARIABLES, is_live)?;
        let mut found = places.iter().copied().zip(found);
        let lacking = lacking.and_then(|_| found.next());
        let live = whole.and_then(|_| found.next());
        let of_stages = found.zip(computed);
        let live_in_stages = of_stages.map(|(live, stage)| stage.peak_step().map(|_| live));
        let live_in_stages = live_in_stages.collect();
        let placed = PlacedStage::of_split(stages);
        let is_stashing = |stage| memory.copies(stage).is_some_and(|(copies, _)| copies > 0);
        let stashed = match placed.iter().any(is_stashing) {
            true => {
                let tiles = computed.iter().map(|stage| stage.max_tile() as u32);
                let tiles: Vec<u32> = tiles.collect();
                lookup.largest(&tiles, MAX_STASHED, |stage, class, set| {
                    memory.is_stashed(&placed[stage], class, set)
                })?
            }
            false => Vec::new(),
        };
        Ok(Some(NamedAtPeaks {
            live,
            live_in_stages,
            stashed,
            lacking,
        }))
    }

    /// Takes what was found.
    pub fn take_names(&mut self, found: Option<NamedAtPeaks>) {
        if let Some(found) = found {
            self.named = found;
        }
    }

    /// Where nothing fits: the largest variables where the most is lacking.
    pub(super) fn lacking(&self, inputs: &Inputs<'_>) -> Vec<LiveVariable> {
        let lacking = self.named.lacking.as_ref();
        let found = lacking.map(|(place, live)| inputs.peak_variables(*place, live).largest);
        let mut largest = found.unwrap_or_default();
        largest.truncate(MAX_LACKING);
        largest
    }

    /// The fullest tile of each stage.
    pub(super) fn tiles_of_stages(&self) -> &[u32] {
        &self.tiles_of_stages
    }

    /// The whole model on its fullest tile; `None` without steps.
    pub(super) fn whole<'a>(
        &'a self,
        model: &'a Model,
        memory: &'a MemoryModel<'a>,
        positions: &'a Positions,
    ) -> Option<Whole<'a>> {
        let (tile, curves) = self.whole.as_ref()?;
        Some(Whole {
            model,
            memory,
            positions,
            tile: *tile,
            curves,
            stages: &self.stages,
        })
    }

    pub(super) fn into_sections(
        self,
        inputs: &Inputs<'_>,
    ) -> (Option<Liveness>, Vec<StageSections>) {
        let live = |found: &Option<(LivePlace, LiveVariables)>| {
            let (place, live) = found.as_ref()?;
            Some(inputs.peak_variables(*place, live))
        };
        let whole = self.whole.as_ref().map(|(tile, curves)| Liveness {
            steps: inputs.model.steps(),
            turn: inputs.model.backward_start,
            all_tiles: Curve::new(&curves.all_tiles, MAX_POINTS),
            fullest_tile: *tile,
            fullest_tile_curve: Curve::new(&curves.on_tile, MAX_POINTS),
            bands: inputs.bands(),
            peak_variables: live(&self.named.live),
        });
        let count = inputs.stages().len();
        let points = (MAX_STAGE_POINTS / (2 * count.max(1))).clamp(4, MAX_POINTS);
        let stage = |number: usize| {
            let curves = self.stages.get(number).and_then(Option::as_ref);
            let in_stage = self.named.live_in_stages.get(number);
            StageSections {
                all_tiles_curve: curves.map(|in_stage| Curve::new(&in_stage.all_tiles, points)),
                fullest_tile_curve: curves.map(|in_stage| Curve::new(&in_stage.on_tile, points)),
                peak_variables: in_stage.and_then(live),
                stashed: {
                    let stashed = self.named.stashed.get(number).into_iter().flatten();
                    stashed.map(|variable| inputs.stashed(variable)).collect()
                },
            }
        };
        (whole, (0..count).map(stage).collect())
    }
}

/// Where a stage has its peak.
fn place_of_peak(stage: &StageMemory) -> LivePlace {
    LivePlace {
        tile: stage.max_tile() as u32,
        step: stage.peak_step().unwrap_or(0),
    }
}

/// By what the compiler recorded, else by all variables; the first of several.
fn fullest_tile(model: &Model) -> u32 {
    let variables = &model.variables;
    let sum = |tile| -> u64 {
        let items = variables.on_tile(tile);
        items.map(|item| u64::from(item.bytes)).sum()
    };
    let recorded = model.recorded.tiles.iter().map(|tile| tile.total);
    let bytes: Vec<u64> = if model.recorded.tiles.is_empty() {
        (0..variables.tiles()).map(sum).collect()
    } else {
        recorded.collect()
    };
    first_highest(&bytes).unwrap_or(0)
}

/// The variables that a saved model still knows by name.
fn at_memory_peak(found: &MemoryPeak) -> (LivePlace, LiveVariables) {
    let largest = found.variables.iter().take(MAX_VARIABLES);
    let live = LiveVariables {
        count: found.variables.len() as u64,
        bytes: found.bytes,
        categories: Vec::new(),
        largest: largest.cloned().collect(),
    };
    let place = LivePlace {
        tile: found.tile,
        step: found.step,
    };
    (place, live)
}

impl Inputs<'_> {
    fn stashed(&self, variable: &NamedVariable) -> StashedVariable {
        let layers = self.memory.layers_of(variable.set).iter();
        StashedVariable {
            name: variable.name.to_string(),
            bytes: u64::from(variable.bytes),
            layers: self.names(layers.map(|&layer| layer as usize)),
        }
    }

    fn peak_variables(&self, place: LivePlace, live: &LiveVariables) -> PeakVariables {
        let categories = live.categories.iter().map(|(name, bytes)| CategorySum {
            name: name.to_string(),
            bytes: *bytes,
        });
        let largest = live.largest.iter().map(|variable| LiveVariable {
            name: variable.name.to_string(),
            category: variable.category.to_string(),
            bytes: u64::from(variable.bytes),
            layers: {
                let layers = self.memory.layers_of(variable.set).iter();
                self.names(layers.map(|&layer| layer as usize))
            },
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

impl Curve {
    /// Thins a curve to about `max_points` points.
    pub(in crate::report) fn new(curve: &memory::LiveCurve, max_points: usize) -> Self {
        let kept = thin(&curve.points, max_points);
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
