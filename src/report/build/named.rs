//! Names of variables: at peaks, in the stash of stages, and for the page. Names are only in the
//! profile, so they are fetched before the report is made, with one pass over the variables and one
//! read of the file.

use super::tile_map::MAX_VARIABLES as MAX_OF_TILE;
use super::{Detail, Inputs};
use crate::memory::{PlacedStage, StageMemory};
use crate::message::FileError;
use crate::model::{
    LivePlace, LiveVariables, MemoryPeak, NamedVariable, ProfileLookup, TileLists, TileVariable,
};
use crate::profile::CodeKind;
use crate::report::{CategorySum, LiveSteps, LiveVariable, PeakVariables, TileVariables};
use crate::search::{Outcome, OverLimit};
use rayon::prelude::*;
use std::ops::Range;

/// Upper bound on variables that are listed for the peak of the model or of a stage.
const MAX_VARIABLES: usize = 20;
/// If nothing fits, upper bound on variables that are listed for the tile that exceeds its limit
/// most.
const MAX_LACKING: usize = 3;
/// Upper bound on variables that are listed for the stash of a stage.
const MAX_STASHED: usize = 5;

/// The variables that a report lists by name.
#[derive(Debug, Default)]
pub(in crate::report) struct NamedVariables {
    /// The variables that are live on the fullest tile of the whole model at its peak; `None` if
    /// their names or the peak are unknown.
    pub(super) at_peak: Option<PeakVariables>,
    /// For each stage, the variables that are live on its fullest tile at its peak; `None` for a
    /// stage without steps.
    pub(super) at_peaks_of_stages: Vec<Option<PeakVariables>>,
    /// For each stage, the largest variables that it stashes on its fullest tile.
    pub(super) stashed: Vec<Vec<LiveVariable>>,
    /// The largest variables on the tile that exceeds its limit most, at its peak; empty if a split
    /// fits.
    pub(in crate::report) lacking: Vec<LiveVariable>,
    /// The variables that are live at the steps that a page draws; `None` if no page was requested,
    /// or if the profile has no steps.
    pub(super) live_steps: Option<LiveSteps>,
    /// The largest variables of each of the fullest tiles; `None` if no page was requested, or if
    /// the profile has no totals of tiles.
    pub(super) of_tiles: Option<TileVariables>,
}

/// A tile and a step whose live variables are listed, and the positions of the stage that they
/// belong to. `None` stands for the whole model.
type ListedPlace<'a> = (LivePlace, Option<&'a Range<usize>>);

impl Inputs<'_> {
    /// Finds the variables that the report lists, and looks up their names in the profile. Without
    /// `lookup`, returns only the variables that a saved model contains.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed since it was first read.
    pub(super) fn named(
        &self,
        lookup: Option<&ProfileLookup>,
    ) -> Result<NamedVariables, FileError> {
        match lookup {
            Some(lookup) => self.find_variables(lookup),
            None => Ok(self.saved_variables()),
        }
    }

    /// Returns the listed variables that a saved model contains: those at the peak of the whole
    /// model.
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
                .map(|(variable, name)| self.live_variable(&lookup.with_name(variable, name)))
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

    /// Returns the tiles and steps whose live variables are listed: the peak of the stage that
    /// exceeds its limit most, if no split fits, then the peak of the whole model, then the peak of
    /// each stage.
    fn places(&self) -> Vec<ListedPlace<'_>> {
        let lacking = self.most_over().map(|stage| {
            let (tile, step) = (stage.tile, stage.step.unwrap_or(0));
            (LivePlace { tile, step }, Some(&stage.positions))
        });
        let whole = self.peaks.place_of_whole().map(|place| (place, None));
        let of_stages = self
            .stages_with_steps()
            .map(|(range, stage)| (place_of_peak(stage), Some(range)));
        lacking.into_iter().chain(whole).chain(of_stages).collect()
    }

    /// Returns the stage that exceeds its limit most; `None` if a split fits.
    fn most_over(&self) -> Option<&OverLimit> {
        match &self.search?.outcome {
            Outcome::Refused(refused) => refused.most_over.as_ref(),
            _ => None,
        }
    }

    /// Returns the positions and the memory of each stage of the split; none if the model has no
    /// steps or only the split was requested.
    fn stages_with_steps(&self) -> impl Iterator<Item = (&Range<usize>, &StageMemory)> {
        let found = self
            .search
            .filter(|_| self.peaks.place_of_whole().is_some());
        found
            .into_iter()
            .flat_map(|found| found.shown.stages.iter().zip(&found.shown.memory))
    }

    /// Returns the variables that are live at the tile and step of `place`, in the stage with the
    /// positions `range`: first their number and bytes, then the largest ones, at most
    /// [`MAX_VARIABLES`], whose names are still to be looked up. `lists` has all variables of the
    /// tile.
    fn live(
        &self,
        lookup: &ProfileLookup,
        lists: &TileLists<'_>,
        (place, range): &ListedPlace<'_>,
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

    /// Returns, for each stage, at most 5 variables that it stashes on its fullest tile, the
    /// largest first; none for a stage that keeps no copies. `lists` has the variables of these
    /// tiles.
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

    /// Returns `named` with the `live` variables, which are in the order of
    /// [`places`](Self::places), in its fields for peaks.
    fn with_live(&self, named: NamedVariables, live: Vec<PeakVariables>) -> NamedVariables {
        let mut live = live.into_iter();
        let lacking = self.most_over().and_then(|_| live.next());
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

    /// Converts `found`, the peak of the whole model in a saved model, for the report, with at most
    /// 20 of its variables.
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

/// Returns the fullest tile of a stage, and the step of its peak (0 for a stage without steps).
fn place_of_peak(stage: &StageMemory) -> LivePlace {
    LivePlace {
        tile: stage.max_tile() as u32,
        step: stage.peak_step().unwrap_or(0),
    }
}
