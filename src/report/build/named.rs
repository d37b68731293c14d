//! Names of variables: at peaks, in the stash of stages, and for the page. Names are only in the
//! profile, so they are fetched before the report is made, with one pass over the variables and one
//! read of the file.

use super::tile_map::MAX_VARIABLES as MAX_OF_TILE;
use super::{Detail, Inputs};
use crate::memory::{PlacedStage, StageMemory};
use crate::message::FileError;
use crate::model::{
    CodeKind, LivePlace, LiveVariables, MemoryPeak, NamedVariable, ProfileLookup, TileLists,
    TileVariable,
};
use crate::report::{CategorySum, LiveSteps, LiveVariable, PeakVariables, TileVariables};
use crate::search::{AdviceFor, Answer};
use rayon::prelude::*;
use std::ops::Range;

/// Upper bound on variables named at a peak.
const MAX_VARIABLES: usize = 20;
/// Upper bound on variables named where the most memory is lacking.
const MAX_LACKING: usize = 3;
/// Upper bound on variables named in the stash of a stage.
const MAX_STASHED: usize = 5;

/// Variables with their names, for all parts of a report.
#[derive(Debug, Default)]
pub(in crate::report) struct NamedVariables {
    /// Variables that are live at the peak of the whole model; `None` if the peak is unknown.
    pub(super) at_peak: Option<PeakVariables>,
    /// For each stage, the variables that are live at its peak.
    pub(super) at_peaks_of_stages: Vec<Option<PeakVariables>>,
    /// For each stage, the largest variables that it stashes on its fullest tile.
    pub(super) stashed: Vec<Vec<LiveVariable>>,
    /// If nothing fits, the largest variables where the most memory is lacking.
    pub(in crate::report) lacking: Vec<LiveVariable>,
    /// Variables that are live at chosen steps, for a page; `None` without steps.
    pub(super) live_steps: Option<LiveSteps>,
    /// Largest variables of tiles, for a page; `None` if no tile was recorded.
    pub(super) of_tiles: Option<TileVariables>,
}

/// A tile and step to examine, and the positions of the stage; `None` for the whole model.
type Place<'a> = (LivePlace, Option<&'a Range<usize>>);

impl Inputs<'_> {
    /// Looks up all named variables at once if the profile can be read again.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed since.
    pub(super) fn named(
        &self,
        lookup: Option<&ProfileLookup>,
    ) -> Result<NamedVariables, FileError> {
        match lookup {
            Some(lookup) => self.find_variables(lookup),
            None => Ok(self.saved_variables()),
        }
    }

    /// Returns the named variables that a saved model contains.
    fn saved_variables(&self) -> NamedVariables {
        let found = self.model.memory_peak.as_ref();
        NamedVariables {
            at_peak: found
                .filter(|_| self.is_full())
                .map(|found| self.at_memory_peak(found)),
            ..NamedVariables::default()
        }
    }

    fn find_variables(&self, lookup: &ProfileLookup) -> Result<NamedVariables, FileError> {
        let places = self.places();
        let is_page = self.detail >= Detail::Page;
        let whole = self.peaks.whole(self).filter(|_| is_page);
        let tiles = is_page.then(|| TileVariables::tiles(self.model));
        let tiles = tiles.unwrap_or_default();
        let stages = &self.peaks.tiles_of_stages;
        let at_steps = whole.as_ref().map(|whole| whole.tiles(stages, &tiles));
        let of_places = places.iter().map(|(place, _)| &place.tile);
        let entirely = of_places.chain(at_steps.iter().flatten());
        let wanted = entirely.map(|&tile| (tile, usize::MAX));
        let wanted = wanted.chain(tiles.iter().map(|&tile| (tile, MAX_OF_TILE)));
        let lists = lookup.on_tiles(&wanted.collect::<Vec<_>>());

        let live = places
            .par_iter()
            .map(|place| self.live(lookup, &lists, place));
        let live: Vec<_> = live.collect();
        let stashed = self.stashed_variables(&lists);
        let whole = whole.zip(at_steps);
        let at_steps =
            whole.and_then(|(whole, tiles)| Some((whole.chosen(&lists, &tiles)?, whole)));
        let on_tiles = TileVariables::find(&lists, &tiles);
        let listed = live.iter().flat_map(|(_, listed)| listed);
        let listed = listed.chain(stashed.iter().flatten());
        let listed = listed.chain(at_steps.iter().flat_map(|(chosen, _)| chosen.listed()));
        let names = lookup.names(listed.chain(on_tiles.iter().flatten()))?;

        // Names come in the order in which the variables were listed above.
        let mut names = names.into_iter();
        let mut named = |variables: Vec<TileVariable>| -> Vec<LiveVariable> {
            let named = variables.iter().zip(names.by_ref());
            named
                .map(|(variable, name)| self.live_variable(&lookup.named(variable, name)))
                .collect()
        };
        let live = places.iter().zip(live);
        let live: Vec<PeakVariables> = live
            .map(|(&(place, _), (sums, listed))| peak_variables(place, &sums, named(listed)))
            .collect();
        let stashed = stashed.into_iter().map(named).collect();
        let live_steps =
            at_steps.map(|(chosen, whole)| whole.live_steps(lookup, &chosen, &mut names));
        let has_tiles = !tiles.is_empty();
        let of_tiles = TileVariables::named(lookup, &self.model.classes, tiles, &on_tiles, names);
        let found = NamedVariables {
            stashed,
            live_steps,
            of_tiles: Some(of_tiles).filter(|_| has_tiles),
            ..self.saved_variables()
        };
        Ok(self.with_live(found, live))
    }

    /// Returns the place where the most memory is lacking, the peak of the whole model, and the
    /// peak of each stage.
    fn places(&self) -> Vec<Place<'_>> {
        let advice = self.advice_for();
        let lacking = advice.map(|advice| {
            let place = place_of_peak(&advice.fullest);
            (place, Some(&advice.stage.positions))
        });
        let whole = self.peaks.place_of_whole().map(|place| (place, None));
        let of_stages = self
            .stages_with_steps()
            .map(|(range, stage)| (place_of_peak(stage), Some(range)));
        lacking.into_iter().chain(whole).chain(of_stages).collect()
    }

    /// Returns the advice, if nothing fits.
    fn advice_for(&self) -> Option<&AdviceFor> {
        match &self.search?.answer {
            Answer::Refused(refused) => refused.advice.as_ref(),
            _ => None,
        }
    }

    /// Returns the stages of the split, if there are live curves.
    fn stages_with_steps(&self) -> impl Iterator<Item = (&Range<usize>, &StageMemory)> {
        let found = self
            .search
            .filter(|_| self.peaks.place_of_whole().is_some());
        found
            .into_iter()
            .flat_map(|found| found.shown.stages.iter().zip(&found.shown.memory))
    }

    /// Returns the sums of the variables that are live at a place, and the variables to name.
    fn live(
        &self,
        lookup: &ProfileLookup,
        lists: &TileLists<'_>,
        (place, range): &Place<'_>,
    ) -> (LiveVariables, Vec<TileVariable>) {
        let is_live = |variable: &TileVariable| match range {
            None => self.model.classes.is_live(variable.class, place.step),
            Some(range) => {
                let is_code = CodeKind::of_category(lookup.category_of(variable)).is_some();
                let kind = (variable.class, variable.set);
                self.memory.is_live_in(range, kind, (place.step, is_code))
            }
        };
        let mut live: Vec<_> = lists.of(place.tile).filter(is_live).collect();
        let sums = LiveVariables::of(&live, lookup);
        live.truncate(MAX_VARIABLES);
        (sums, live)
    }

    /// Returns, for each stage, the largest variables that it stashes on its fullest tile.
    fn stashed_variables(&self, lists: &TileLists<'_>) -> Vec<Vec<TileVariable>> {
        let computed: Vec<_> = self.stages_with_steps().collect();
        let placed = PlacedStage::of_split(self.stages());
        let stashed = placed
            .par_iter()
            .zip(computed)
            .map(|(stage, (_, computed))| {
                let has_copies = self
                    .memory
                    .copies(stage)
                    .is_some_and(|(copies, _)| copies > 0);
                let on_tile = lists.of(computed.max_tile() as u32).filter(|_| has_copies);
                let stashed = on_tile
                    .filter(|variable| self.memory.is_stashed(stage, variable.class, variable.set));
                stashed.take(MAX_STASHED).collect()
            });
        stashed.collect()
    }

    /// Adds the variables that are live at the places of [`places`](Self::places), in that order.
    fn with_live(&self, named: NamedVariables, live: Vec<PeakVariables>) -> NamedVariables {
        let mut live = live.into_iter();
        let lacking = self.advice_for().and_then(|_| live.next());
        let lacking = lacking.into_iter().flat_map(|live| live.largest);
        let at_peak = self.peaks.place_of_whole().and_then(|_| live.next());
        let of_stages = live.zip(self.stages_with_steps());
        let of_stages = of_stages.map(|(live, (_, stage))| stage.peak_step().map(|_| live));
        NamedVariables {
            lacking: lacking.take(MAX_LACKING).collect(),
            at_peaks_of_stages: of_stages.collect(),
            at_peak: at_peak.or(named.at_peak),
            ..named
        }
    }

    pub(super) fn live_variable(&self, variable: &NamedVariable) -> LiveVariable {
        let layers = self.memory.layers_of(variable.set).iter();
        LiveVariable {
            name: variable.name.to_string(),
            category: variable.category.to_string(),
            bytes: u64::from(variable.bytes),
            layers: self.names(layers.map(|&layer| layer as usize)),
        }
    }

    /// Returns the variables at the peak that a saved model contains.
    fn at_memory_peak(&self, found: &MemoryPeak) -> PeakVariables {
        let largest = found.variables.iter().take(MAX_VARIABLES);
        PeakVariables {
            tile: found.tile,
            step: found.step,
            count: found.variables.len() as u64,
            bytes: found.bytes,
            categories: Vec::new(),
            largest: largest
                .map(|variable| self.live_variable(variable))
                .collect(),
        }
    }
}

fn peak_variables(
    place: LivePlace,
    live: &LiveVariables,
    largest: Vec<LiveVariable>,
) -> PeakVariables {
    let categories = live.categories.iter().map(|(name, bytes)| CategorySum {
        name: name.to_string(),
        bytes: *bytes,
    });
    PeakVariables {
        tile: place.tile,
        step: place.step,
        count: live.count,
        bytes: live.bytes,
        categories: categories.collect(),
        largest,
    }
}

/// Returns the tile and step of a stage's peak.
fn place_of_peak(stage: &StageMemory) -> LivePlace {
    LivePlace {
        tile: stage.max_tile() as u32,
        step: stage.peak_step().unwrap_or(0),
    }
}
