//! Single variables and programs by name, after the model is built.

use super::{NamedVariable, StepPrograms};
use crate::parallel;
use crate::profile::{NEVER_LIVE, ProfileError, VariableNames, Variables};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// Finds lowered variables by where and when they are live, and what runs then.
#[derive(Debug)]
pub struct ProfileLookup {
    variables: Variables,
    /// By variable: its use set in the model.
    set_of: Vec<u32>,
    names: VariableNames,
    /// The program of each step.
    pub programs: StepPrograms,
}

/// A tile and a step to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePlace {
    /// The tile.
    pub tile: u32,
    /// The index of the step.
    pub step: u32,
}

/// The variables that are live on a tile at a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveVariables {
    /// How many variables are live there.
    pub count: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// These bytes by category, most first.
    pub categories: Vec<(Box<str>, u64)>,
    /// The largest of them, the largest first.
    pub largest: Vec<NamedVariable>,
}

/// A lowered variable on a tile, without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileVariable {
    /// Its place in the order of the profile.
    position: u32,
    /// Its equivalence class.
    pub class: u32,
    /// Its use set in the model.
    pub set: u32,
    /// Its size.
    pub bytes: u64,
    /// Its category, as a position in [`ProfileLookup::category_names`].
    pub category: u8,
}

/// The largest variables of a tile so far, and some more.
#[derive(Clone, Default)]
struct Largest {
    positions: Vec<u32>,
    /// Variables without more bytes are not among them.
    too_few: Option<u32>,
}

impl ProfileLookup {
    pub(super) fn new(
        variables: Variables,
        set_of: Vec<u32>,
        names: VariableNames,
        programs: StepPrograms,
    ) -> Self {
        Self {
            variables,
            set_of,
            names,
            programs,
        }
    }

    /// By tile of `tiles`: its variables that are ever live, the largest first and at most
    /// `max_count`. Equal ones are in the order of the profile.
    pub fn of_tiles(&self, tiles: &[u32], max_count: usize) -> Vec<Vec<TileVariable>> {
        let lists = self.on_tiles(tiles, max_count, |_, _| true);
        let variable = |position: u32| TileVariable {
            position,
            class: self.variables.classes[position as usize],
            set: self.set_of[position as usize],
            bytes: u64::from(self.variables.bytes[position as usize]),
            category: self.variables.categories[position as usize],
        };
        let lists = lists.into_iter();
        lists
            .map(|list| list.into_iter().map(variable).collect())
            .collect()
    }

    /// The name of the category of a variable.
    pub fn category_of(&self, variable: &TileVariable) -> &str {
        self.category(variable.position)
    }

    /// The names of all categories, by their positions in [`TileVariable`].
    pub fn category_names(&self) -> &[String] {
        &self.variables.category_names
    }

    /// The names of these variables, in the same order.
    ///
    /// # Errors
    /// As [`ProfileLookup::live_at`].
    pub fn names<'a>(
        &self,
        all: impl Iterator<Item = &'a TileVariable>,
    ) -> Result<Vec<String>, ProfileError> {
        let ids = all.map(|variable| self.variables.id(variable.position));
        self.names.fetch(&ids.collect::<Vec<_>>())
    }

    /// For each of `places` the variables that are live there by `is_live` (by the number
    /// of the place, the variable's class and use set, and its category), with the names
    /// of at most `max_count` of them. Equal ones are in the order of the profile.
    ///
    /// # Errors
    /// When the profile cannot be read again for the names.
    pub fn live_at(
        &self,
        places: &[LivePlace],
        max_count: usize,
        is_live: impl Fn(usize, (u32, u32), &str) -> bool + Sync,
    ) -> Result<Vec<LiveVariables>, ProfileError> {
        let tiles: Vec<u32> = places.iter().map(|place| place.tile).collect();
        let mut found = Vec::with_capacity(places.len());
        let largest = self.on_tiles(&tiles, usize::MAX, |number, position| {
            let class = self.variables.classes[position as usize];
            let kind = (class, self.set_of[position as usize]);
            is_live(number, kind, self.category(position))
        });
        for live in &largest {
            let bytes = |&position: &u32| u64::from(self.variables.bytes[position as usize]);
            found.push(LiveVariables {
                count: live.len() as u64,
                bytes: live.iter().map(bytes).sum(),
                categories: self.by_category(live),
                largest: Vec::new(),
            });
        }
        for (found, largest) in found.iter_mut().zip(self.name(largest, max_count)?) {
            found.largest = largest;
        }
        Ok(found)
    }

    /// For each of `tiles` the largest variables that `counts` (by the number of
    /// the tile, and the variable's class and use set), at most `max_count`.
    ///
    /// # Errors
    /// As [`ProfileLookup::live_at`].
    pub fn largest(
        &self,
        tiles: &[u32],
        max_count: usize,
        counts: impl Fn(usize, u32, u32) -> bool + Sync,
    ) -> Result<Vec<Vec<NamedVariable>>, ProfileError> {
        let found = self.on_tiles(tiles, max_count, |number, position| {
            let class = self.variables.classes[position as usize];
            counts(number, class, self.set_of[position as usize])
        });
        self.name(found, max_count)
    }

    /// Leaves the largest `max_count`, the largest first.
    fn keep_largest(&self, positions: &mut Vec<u32>, max_count: usize) {
        positions.sort_by_key(|&position| Reverse(self.variables.bytes[position as usize]));
        positions.truncate(max_count);
    }

    /// The first `max_count` of each list by name.
    fn name(
        &self,
        mut lists: Vec<Vec<u32>>,
        max_count: usize,
    ) -> Result<Vec<Vec<NamedVariable>>, ProfileError> {
        lists.iter_mut().for_each(|list| list.truncate(max_count));
        let ids = lists.iter().flatten();
        let ids: Vec<u64> = ids.map(|&position| self.variables.id(position)).collect();
        let mut names = self.names.fetch(&ids)?.into_iter();
        let named = lists.into_iter().map(|list| {
            let named = list.into_iter().zip(&mut names);
            named
                .map(|(position, name)| self.named(position, name))
                .collect()
        });
        Ok(named.collect())
    }

    /// By tile of `tiles`: the positions of the variables there that are ever live and
    /// `counts`, at most `max_count`, the largest first. One pass over all variables, in parts
    /// side by side; a large model has 10^7.
    fn on_tiles(
        &self,
        tiles: &[u32],
        max_count: usize,
        counts: impl Fn(usize, u32) -> bool + Sync,
    ) -> Vec<Vec<u32>> {
        let highest = tiles.iter().max();
        let mut on_tile = vec![Vec::new(); highest.map_or(0, |&tile| tile as usize + 1)];
        for (number, &tile) in tiles.iter().enumerate() {
            on_tile[tile as usize].push(number);
        }
        let of_part = |part: Range<usize>| {
            let mut found = vec![Largest::default(); tiles.len()];
            let variables = self.variables.tiles[part.clone()].iter();
            for (position, &tile) in (part.start as u32..).zip(variables) {
                let Some(here) = on_tile.get(usize::from(tile)) else {
                    continue;
                };
                if self.variables.classes[position as usize] == NEVER_LIVE {
                    continue;
                }
                for &number in here.iter().filter(|&&number| counts(number, position)) {
                    self.add(&mut found[number], position, max_count);
                }
            }
            found.into_iter().map(|largest| largest.positions).collect()
        };
        let join = |mut found: Vec<Vec<u32>>, later: Vec<Vec<u32>>| {
            for (list, mut later) in found.iter_mut().zip(later) {
                list.append(&mut later);
            }
            found
        };
        let parts = rayon::current_num_threads();
        let found = parallel::by_parts(self.variables.tiles.len(), parts, of_part, join);
        let mut found = found.unwrap_or_else(|| vec![Vec::new(); tiles.len()]);
        found
            .iter_mut()
            .for_each(|list| self.keep_largest(list, max_count));
        found
    }

    /// Adds a variable where it may be among the largest `max_count`.
    fn add(&self, largest: &mut Largest, position: u32, max_count: usize) {
        let bytes = Some(self.variables.bytes[position as usize]);
        if bytes <= largest.too_few {
            return;
        }
        largest.positions.push(position);
        if largest.positions.len() / 2 >= max_count {
            self.keep_largest(&mut largest.positions, max_count);
            let last = largest.positions.last();
            largest.too_few = last.map(|&last| self.variables.bytes[last as usize]);
        }
    }

    fn by_category(&self, live: &[u32]) -> Vec<(Box<str>, u64)> {
        let mut sums: FxHashMap<&str, u64> = FxHashMap::default();
        for &position in live {
            let bytes = self.variables.bytes[position as usize];
            *sums.entry(self.category(position)).or_default() += u64::from(bytes);
        }
        let mut sums: Vec<_> = sums.into_iter().filter(|&(_, bytes)| bytes > 0).collect();
        sums.sort_unstable_by_key(|&(name, bytes)| (Reverse(bytes), name));
        sums.into_iter()
            .map(|(name, bytes)| (name.into(), bytes))
            .collect()
    }

    fn category(&self, position: u32) -> &str {
        let category = self.variables.categories[position as usize];
        &self.variables.category_names[usize::from(category)]
    }

    fn named(&self, position: u32, name: String) -> NamedVariable {
        NamedVariable {
            name: name.into(),
            category: self.category(position).into(),
            bytes: self.variables.bytes[position as usize],
            set: self.set_of[position as usize],
        }
    }
}
