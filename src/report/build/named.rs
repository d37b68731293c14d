//! Looks up the names of the variables that a report lists: variables that are live at peaks,
//! variables that stages stash, and variables that the HTML page draws. Only the profile has the
//! names, and reading it takes long, so all names are read at once before the report is made.

use super::{
    Detail, Inputs,
    live_steps::{ChosenSteps, listed_tiles},
    tile_map::MAX_VARIABLES as MAX_OF_TILE,
};
use crate::{
    memory::{PlacedStage, StageMemory},
    message::FileError,
    model::{LivePlace, NamedVariable, ProfileLookup, TileVariable, without_numbers},
    profile::CodeKind,
    report::{
        CategorySum, LiveSteps, LiveVariable, PeakVariables, TileVariables, VariableKind,
        VariableSum,
    },
    search::Outcome,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

/// Upper bound on the entries in a report's list of the variables that are live at one memory peak.
/// An entry adds up the variables of one category whose names differ only in numbers.
const MAX_VARIABLES: usize = 20;
/// Upper bound on the variables that a report considers for its list of the largest variables at
/// one memory peak. If more variables are live at the peak, the smallest ones are ignored.
const MAX_SUMMED: usize = 5000;
/// If no split fits, a report lists the largest variables on the tile that exceeds its limit most,
/// at most this number. Variables of one category whose names differ only in numbers count as one.
const MAX_LACKING: usize = 3;
/// Upper bound on the stashed variables that are listed for one stage.
const MAX_STASHED: usize = 5;

/// The variables that a report lists by name, such as the largest ones at a peak.
#[derive(Default)]
pub struct NamedVariables {
    /// The variables that are live on the fullest tile of the whole model, at the step where that
    /// tile has the most live bytes; `None` if the step or the names of the variables are unknown.
    pub at_peak: Option<PeakVariables>,
    /// For each stage, the variables that are live on its fullest tile at the peak (`None` for a
    /// stage without liveness steps), and the largest variables that it stashes on this tile.
    pub of_stages: Vec<(Option<PeakVariables>, Vec<LiveVariable>)>,
    /// The largest variables on the tile that exceeds its limit most, at the peak of that tile;
    /// empty if a split fits. An entry adds up the variables of one category whose names differ
    /// only in numbers.
    pub lacking: Vec<VariableSum>,
    /// The variables that are live at the steps that an HTML page draws; `None` if no page was
    /// requested, or if the profile has no steps.
    pub live_steps: Option<LiveSteps>,
    /// The largest variables of each of the fullest tiles, which the HTML page lists beside its
    /// drawing of all tiles; `None` if no page was requested, or if the profile does not record the
    /// bytes of tiles.
    pub of_tiles: Option<TileVariables>,
}

/// A tile and a step at which a report lists the live variables. The report lists only variables of
/// the given range of the layer order (In, layers, Out), or of the whole model for `None`.
type ListedPlace<'a> = (LivePlace, Option<&'a Range<usize>>);

impl Inputs<'_> {
    /// Returns all variables that the report lists, with their names. `lookup` reads the names from
    /// the profile. Without `lookup`, the result has only the variables at the memory peak of the
    /// whole model, whose names are in a file of `--save-to-file`.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed since it was first read.
    pub(super) fn named(
        &self,
        lookup: Option<&ProfileLookup>,
    ) -> Result<NamedVariables, FileError> {
        let Some(lookup) = lookup else {
            return Ok(NamedVariables {
                at_peak: self.saved_peak(),
                ..NamedVariables::default()
            });
        };
        let is_page = self.detail >= Detail::Page;
        let tiles = if is_page {
            TileVariables::tiles(&self.model.recorded.tiles)
        } else {
            Vec::new()
        };
        let whole = self.peaks.whole.as_ref().filter(|_| is_page);
        let of_stages = self.stages_with_steps().map(|(_, stage)| stage.max_tile());
        let drawn = whole.map_or(Vec::new(), |&(fullest, _)| {
            listed_tiles(fullest, of_stages, &tiles)
        });
        let places = self.places();
        let wanted = (places.iter().map(|(place, _)| &place.tile))
            .chain(&drawn)
            .map(|&tile| (tile, usize::MAX))
            .chain(tiles.iter().map(|&tile| (tile, MAX_OF_TILE)));
        let lists = lookup.on_tiles(&Vec::from_iter(wanted));

        let live: Vec<_> = places
            .par_iter()
            .map(|place| self.live(lookup, &lists, place))
            .collect();
        let stashed = self.stashed_variables(&lists);
        let at_steps = whole.map(|(_, curves)| ChosenSteps::new(self, curves, &lists, drawn));
        let largest = |&tile: &u32| {
            let largest = lists[tile as usize].iter().copied().take(MAX_OF_TILE);
            largest.filter(|variable| variable.bytes > 0).collect()
        };
        let on_tiles: Vec<Vec<TileVariable>> = tiles.iter().map(largest).collect();
        let listed = (live.iter().flat_map(|(_, listed)| listed))
            .chain(stashed.iter().flatten())
            .chain(at_steps.iter().flat_map(ChosenSteps::listed))
            .chain(on_tiles.iter().flatten());
        let names = lookup.names(listed)?;

        let variable = |variable: &TileVariable| self.live_variable(&names[&variable.position]);
        let kind = |variable: &TileVariable| {
            let NamedVariable { name, category, .. } = names[&variable.position].clone();
            let kind = VariableKind {
                name: name.into(),
                category: category.into(),
                always_live: self.model.classes.is_always_live(variable.class),
            };
            (kind, variable.bytes)
        };
        // The live variables of one place (a tile and a step) after the other get their names, in
        // the order of `places`: first the peak of the whole model, then the peaks of stages.
        let mut live = live.into_iter().map(|(live, listed)| PeakVariables {
            largest: self.sums(listed.iter().map(|variable| &names[&variable.position])),
            ..live
        });
        let at_peak = self.peaks.whole.as_ref().and_then(|_| live.next());
        Ok(NamedVariables {
            at_peak,
            of_stages: (self.stages_with_steps().zip(&stashed))
                .map(|((_, stage), stashed)| {
                    let at_peak = live.next().filter(|_| stage.peak_step().is_some());
                    (at_peak, stashed.iter().map(variable).collect())
                })
                .collect(),
            lacking: (live.flat_map(|live| live.largest).take(MAX_LACKING)).collect(),
            live_steps: at_steps.map(|chosen| chosen.live_steps(lookup, &names)),
            of_tiles: (!tiles.is_empty()).then(|| TileVariables::new(tiles, &on_tiles, kind)),
        })
    }

    /// Returns the variables at the memory peak of the whole model, whose names are in a file of
    /// `--save-to-file`. Returns `None` if the file has no such names, or if only the split was
    /// requested.
    fn saved_peak(&self) -> Option<PeakVariables> {
        let found = (self.model.memory_peak.as_ref()).filter(|_| self.is_full())?;
        Some(PeakVariables {
            tile: found.tile,
            step: found.step,
            count: found.variables.len() as u64,
            bytes: found.bytes,
            largest: self.sums(found.variables.iter().take(MAX_SUMMED)),
            ..PeakVariables::default()
        })
    }

    /// Returns the tiles and steps for which the report lists the live variables, in this order:
    /// the peak of the whole model, the peak of each stage and, if no split fits, the peak of the
    /// range of layers that exceeds its limit most.
    fn places(&self) -> Vec<ListedPlace<'_>> {
        let place = |tile, step: Option<u32>| LivePlace {
            tile,
            step: step.unwrap_or(0),
        };
        let of_stages = self
            .stages_with_steps()
            .map(|(range, stage)| (place(stage.max_tile(), stage.peak_step()), Some(range)));
        let lacking = match self.search.map(|search| &search.outcome) {
            Some(Outcome::Refused(refused)) => refused.most_over.as_ref(),
            _ => None,
        };
        (self.peaks.whole.iter())
            .map(|(tile, curves)| (place(*tile, Some(curves.on_tile.peak().1)), None))
            .chain(of_stages)
            .chain(lacking.map(|own| (place(own.tile, own.step), Some(&own.positions))))
            .collect()
    }

    /// Returns the range of layers and the memory of each stage of the split. Returns no stages if
    /// the model has no liveness steps, or if only the split was requested.
    fn stages_with_steps(&self) -> impl Iterator<Item = (&Range<usize>, &StageMemory)> {
        self.search
            .filter(|_| self.peaks.whole.is_some())
            .into_iter()
            .flat_map(|search| search.shown.stages.iter().zip(&search.shown.memory))
    }

    /// Returns the number and bytes of the variables that are live at `place` (a tile and a step),
    /// and the 5,000 largest of these variables, without names. If the layers of a stage are given
    /// (`range`), only the stage's variables are included. `lists` has all variables of the tile.
    fn live(
        &self,
        lookup: &ProfileLookup,
        lists: &[Vec<TileVariable>],
        (place, range): &ListedPlace<'_>,
    ) -> (PeakVariables, Vec<TileVariable>) {
        let is_live = |variable: &TileVariable| match range {
            None => self.model.classes.is_live(variable.class, place.step),
            Some(range) => {
                let is_code = CodeKind::of_category(lookup.category_of(variable)).is_some();
                let user = (variable.class, variable.set);
                self.memory.is_live_in(range, user, (place.step, is_code))
            }
        };
        let all = lists[place.tile as usize].iter().copied();
        let mut live = Vec::from_iter(all.filter(is_live));
        let sums = PeakVariables {
            tile: place.tile,
            step: place.step,
            count: live.len() as u64,
            bytes: live.iter().map(|variable| variable.bytes).sum(),
            categories: categories(&live, lookup.category_names()),
            ..PeakVariables::default()
        };
        live.truncate(MAX_SUMMED);
        (sums, live)
    }

    /// Returns one list per stage: the largest variables that the stage stashes on its fullest
    /// tile, at most 5, the largest first. The list is empty for a stage that stashes nothing.
    /// `lists` has the variables of these tiles.
    fn stashed_variables(&self, lists: &[Vec<TileVariable>]) -> Vec<Vec<TileVariable>> {
        PlacedStage::of_split(self.stages())
            .iter()
            .zip(self.stages_with_steps())
            .map(|(stage, (_, computed))| {
                lists[computed.max_tile() as usize]
                    .iter()
                    .copied()
                    .filter(|variable| self.memory.is_stashed(stage, variable.class, variable.set))
                    .take(MAX_STASHED)
                    .collect()
            })
            .collect()
    }

    /// Adds up the bytes of variables of one category whose names differ only in numbers. Returns
    /// the 20 largest sums, the largest first.
    fn sums<'a>(&self, variables: impl Iterator<Item = &'a NamedVariable>) -> Vec<VariableSum> {
        let mut sums: Vec<(VariableSum, BTreeSet<u32>)> = Vec::new();
        let mut places = FxHashMap::default();
        for own in variables {
            let pattern = without_numbers(&own.name, "#");
            let layers = self.memory.layers_of(own.set).iter().copied();
            let key = (pattern.clone(), &own.category);
            let place = *places.entry(key).or_insert(sums.len());
            let Some((sum, all)) = sums.get_mut(place) else {
                let variable = self.live_variable(own);
                sums.push((VariableSum { variable, count: 1 }, layers.collect()));
                continue;
            };
            sum.count += 1;
            sum.variable.bytes += u64::from(own.bytes);
            sum.variable.name = pattern;
            all.extend(layers);
        }
        sums.sort_by_key(|(sum, _)| Reverse(sum.variable.bytes));
        sums.truncate(MAX_VARIABLES);
        for (sum, layers) in &mut sums {
            sum.variable.layers = self.layers_at(&*layers);
        }
        sums.into_iter().map(|(sum, _)| sum).collect()
    }

    pub(super) fn live_variable(&self, variable: &NamedVariable) -> LiveVariable {
        LiveVariable {
            name: variable.name.to_string(),
            category: variable.category.to_string(),
            bytes: u64::from(variable.bytes),
            layers: self.layers_at(self.memory.layers_of(variable.set)),
        }
    }
}

/// Returns the bytes of `variables` by category, the category with the most bytes first. `names`
/// has the names of all categories.
fn categories(variables: &[TileVariable], names: &[String]) -> Vec<CategorySum> {
    let mut sums = vec![0; names.len()];
    for variable in variables {
        sums[usize::from(variable.category)] += variable.bytes;
    }
    let mut categories: Vec<_> = (names.iter().cloned().zip(sums))
        .filter(|&(_, bytes)| bytes > 0)
        .map(|(name, bytes)| CategorySum { name, bytes })
        .collect();
    categories.sort_unstable_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    categories
}
