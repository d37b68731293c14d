//! Single variables and programs by name, after the model is built.

use super::windows::StepPrograms;
use crate::message::FileError;
use crate::parallel;
use crate::profile::{NEVER_LIVE, VariableNames, Variables};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::ops::Range;

/// Finds lowered variables by tile and step, and the program of a step.
#[derive(Debug)]
pub struct ProfileLookup {
    pub(super) variables: Variables,
    /// By variable: its use set in the model.
    pub(super) set_of: Vec<u32>,
    pub(super) names: VariableNames,
    /// The program of each step.
    pub programs: StepPrograms,
}

/// A tile and a step.
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
    /// Number of variables that are live there.
    pub count: u64,
    /// Bytes of all live variables.
    pub bytes: u64,
    /// Bytes by category, the largest first.
    pub categories: Vec<(Box<str>, u64)>,
}

/// A lowered variable with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVariable {
    /// Name of the variable, such as `weights#0`.
    pub name: Box<str>,
    /// The name of its category, such as `variable`.
    pub category: Box<str>,
    /// Size of the variable in bytes.
    pub bytes: u32,
    /// The operation groups that use the variable, as a set of [`Model::use_sets`](super::Model).
    pub set: u32,
}

/// A lowered variable on a tile, without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileVariable {
    /// Position of the variable in the order of the profile.
    position: u32,
    /// Equivalence class of the variable.
    pub class: u32,
    /// Use set of the variable in the model.
    pub set: u32,
    /// Size of the variable in bytes.
    pub bytes: u64,
    /// Category of the variable, as a position in [`ProfileLookup::category_names`].
    pub category: u8,
}

/// The variables of some tiles.
#[derive(Debug)]
pub struct TileLists<'a> {
    lookup: &'a ProfileLookup,
    /// By tile: positions in the order of the profile.
    by_tile: Vec<Vec<u32>>,
}

/// The largest variables of a tile so far, and some more.
#[derive(Clone, Default)]
struct Largest {
    positions: Vec<u32>,
    /// A variable with at most these bytes is not among the largest.
    too_few: Option<u32>,
}

impl ProfileLookup {
    /// The largest variables of tiles, from one parallel pass over all variables: a large model has
    /// 10^7. `wanted` has tiles and the maximum number of variables on each.
    pub fn on_tiles(&self, wanted: &[(u32, usize)]) -> TileLists<'_> {
        let highest = wanted.iter().map(|&(tile, _)| tile as usize + 1).max();
        let mut max_counts = vec![0; highest.unwrap_or(0)];
        for &(tile, max_count) in wanted {
            let of_tile: &mut usize = &mut max_counts[tile as usize];
            *of_tile = max_count.max(*of_tile);
        }
        let join = |mut found: Vec<Vec<u32>>, later: Vec<Vec<u32>>| {
            for (list, mut later) in found.iter_mut().zip(later) {
                list.append(&mut later);
            }
            found
        };
        let count = highest.map_or(0, |_| self.variables.tiles.len());
        let of_part = |part| self.of_part(part, &max_counts);
        let found = parallel::by_parts(count, rayon::current_num_threads(), of_part, join);
        let mut by_tile = found.unwrap_or_default();
        for (list, &max_count) in by_tile.iter_mut().zip(&max_counts) {
            self.keep_largest(list, max_count);
        }
        TileLists {
            lookup: self,
            by_tile,
        }
    }

    /// By tile: positions of some of the variables in a part of all, with the largest `max_counts`
    /// of the tile among them.
    fn of_part(&self, part: Range<usize>, max_counts: &[usize]) -> Vec<Vec<u32>> {
        let mut found = vec![Largest::default(); max_counts.len()];
        let tiles = self.variables.tiles[part.clone()].iter();
        for (position, &tile) in (part.start as u32..).zip(tiles) {
            let tile = usize::from(tile);
            match max_counts.get(tile) {
                None | Some(0) => {}
                Some(&max_count) => self.add(&mut found[tile], position, max_count),
            }
        }
        found.into_iter().map(|largest| largest.positions).collect()
    }

    /// The name of the category of a variable.
    pub fn category_of(&self, variable: &TileVariable) -> &str {
        &self.variables.category_names[usize::from(variable.category)]
    }

    /// The names of all categories, by their positions in [`TileVariable`].
    pub fn category_names(&self) -> &[String] {
        &self.variables.category_names
    }

    /// The names of these variables, in the same order.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed.
    pub fn names<'a>(
        &self,
        all: impl Iterator<Item = &'a TileVariable>,
    ) -> Result<Vec<String>, FileError> {
        let ids = all.map(|variable| self.variables.id(variable.position));
        self.names.fetch(&ids.collect::<Vec<_>>())
    }

    /// A variable with its name.
    pub fn named(&self, variable: &TileVariable, name: String) -> NamedVariable {
        NamedVariable {
            name: name.into(),
            category: self.category_of(variable).into(),
            bytes: self.variables.bytes[variable.position as usize],
            set: variable.set,
        }
    }

    /// Keeps the largest `max_count`, sorted from the largest on.
    fn keep_largest(&self, positions: &mut Vec<u32>, max_count: usize) {
        positions.sort_by_key(|&position| Reverse(self.variables.bytes[position as usize]));
        positions.truncate(max_count);
    }

    /// Adds a variable that is ever live, if it may be among the largest `max_count`.
    fn add(&self, largest: &mut Largest, position: u32, max_count: usize) {
        let bytes = Some(self.variables.bytes[position as usize]);
        let is_never_live = || self.variables.classes[position as usize] == NEVER_LIVE;
        if bytes <= largest.too_few || is_never_live() {
            return;
        }
        largest.positions.push(position);
        if largest.positions.len() / 2 >= max_count {
            self.keep_largest(&mut largest.positions, max_count);
            let last = largest.positions.last();
            largest.too_few = last.map(|&last| self.variables.bytes[last as usize]);
        }
    }
}

impl TileLists<'_> {
    /// The variables of a tile that are ever live, the largest first; equal ones in the order of
    /// the profile.
    pub fn of(&self, tile: u32) -> impl Iterator<Item = TileVariable> {
        let variables = &self.lookup.variables;
        let positions = self.by_tile.get(tile as usize).into_iter().flatten();
        positions.map(move |&position| TileVariable {
            position,
            class: variables.classes[position as usize],
            set: self.lookup.set_of[position as usize],
            bytes: u64::from(variables.bytes[position as usize]),
            category: variables.categories[position as usize],
        })
    }
}

impl LiveVariables {
    /// The sums over `live`.
    pub fn of(live: &[TileVariable], lookup: &ProfileLookup) -> Self {
        let mut sums = vec![0; lookup.category_names().len()];
        for variable in live {
            sums[usize::from(variable.category)] += variable.bytes;
        }
        let categories = lookup.category_names().iter().zip(sums);
        let categories = categories.filter(|&(_, bytes)| bytes > 0);
        let mut categories: Vec<(Box<str>, u64)> = categories
            .map(|(name, bytes)| (name.as_str().into(), bytes))
            .collect();
        categories.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self {
            count: live.len() as u64,
            bytes: live.iter().map(|variable| variable.bytes).sum(),
            categories,
        }
    }
}
