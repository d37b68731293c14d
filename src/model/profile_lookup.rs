//! Looks up single variables and programs of a profile after the model is built.

use super::operations::{UnnamedOperations, name_of};
use crate::{
    message::FileError,
    profile::{NEVER_LIVE, Program, ProgramKind, Programs, VariableNames, Variables},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Looks up the lowered variables of single tiles, which the model keeps only in groups, and the
/// program of each liveness step.
#[derive(Debug)]
pub struct ProfileLookup {
    pub(super) variables: Variables,
    /// One entry per variable of the profile: its use set (the set of operation groups that use the
    /// variable), as an index into the model's use sets.
    pub(super) set_of: Vec<u32>,
    pub(super) names: VariableNames,
    /// All programs of the profile.
    pub(super) programs: Vec<StepProgram>,
    /// One entry per liveness step: the program that runs at the step, as an index into `programs`.
    pub(super) program_at: Vec<u32>,
}

/// A tile and a liveness step at which some variables are live on the tile.
#[derive(Debug, Clone, Copy)]
pub struct LivePlace {
    /// Index of the tile whose variables are wanted.
    pub tile: u32,
    /// Index of the liveness step at which the wanted variables are live.
    pub step: u32,
}

/// A lowered variable (the part of a tensor on one tile) with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVariable {
    /// Name of the variable, such as `weights#0`.
    pub name: Box<str>,
    /// Name of the variable's category, such as `variable`.
    pub category: Box<str>,
    /// Size of the variable in bytes.
    pub bytes: u32,
    /// The use set of the variable (the set of operation groups that use it), as an index into
    /// [`Model::use_sets`](super::Model).
    pub set: u32,
}

/// A lowered variable (the part of a tensor on one tile), without its name.
#[derive(Debug, Clone, Copy)]
pub struct TileVariable {
    /// Index of the variable in the profile's list of lowered variables.
    pub position: u32,
    /// Equivalence class of the variable, which determines at which steps the variable is live, as
    /// an index into the profile's classes.
    pub class: u32,
    /// The use set of the variable (the set of operation groups that use it), as an index into the
    /// model's use sets.
    pub set: u32,
    /// Size of the variable in bytes.
    pub bytes: u64,
    /// Category of the variable (what it holds), as an index into
    /// [`ProfileLookup::category_names`].
    pub category: u8,
}

/// Map from the index of a lowered variable in the profile ([`TileVariable::position`]) to the
/// variable with its name.
pub type VariablesByPosition = FxHashMap<u32, NamedVariable>;

impl ProfileLookup {
    /// Finds the largest variables of some tiles, without variables that are never live. Each entry
    /// of `wanted` has a tile and the maximum number of variables to find on it. The search is one
    /// pass over all variables of the profile; a large model has 10^7 variables.
    ///
    /// Returns one entry per tile up to the last wanted one: its largest variables, the largest
    /// first, and variables of equal size in the order of the profile. The entry of a tile that is
    /// not wanted is empty.
    pub fn on_tiles(&self, wanted: &[(u32, usize)]) -> Vec<Vec<TileVariable>> {
        let tiles = wanted.iter().map(|&(tile, _)| tile as usize + 1).max();
        // One entry per tile up to the last wanted one: the number of variables to find on it, and
        // the largest variables found so far, as a heap with the smallest of them on top. A
        // variable is given by its bytes and its index.
        let mut by_tile = vec![(0, BinaryHeap::new()); tiles.unwrap_or(0)];
        for &(tile, max_count) in wanted {
            let (known, _) = &mut by_tile[tile as usize];
            *known = max_count.max(*known);
        }
        let (bytes, classes) = (&self.variables.bytes, &self.variables.classes);
        for (position, &tile) in self.variables.tiles.iter().enumerate() {
            let Some((max_count, largest)) = by_tile.get_mut(usize::from(tile)) else {
                continue;
            };
            let found = (Reverse(bytes[position]), position);
            if classes[position] == NEVER_LIVE {
                continue;
            } else if largest.len() < *max_count {
                largest.push(found);
            } else if let Some(mut smallest) = largest.peek_mut()
                && found < *smallest
            {
                *smallest = found;
            }
        }
        let variable = |(Reverse(bytes), index): (Reverse<u32>, usize)| TileVariable {
            position: index as u32,
            class: classes[index],
            set: self.set_of[index],
            bytes: u64::from(bytes),
            category: self.variables.categories[index],
        };
        by_tile
            .into_iter()
            .map(|(_, largest)| {
                largest
                    .into_sorted_vec()
                    .into_iter()
                    .map(variable)
                    .collect()
            })
            .collect()
    }

    /// Returns the name of the category of a variable (what it holds), such as `variable`.
    pub fn category_of(&self, variable: &TileVariable) -> &str {
        &self.variables.category_names[usize::from(variable.category)]
    }

    /// Returns the names of all categories of variables; [`TileVariable::category`] is an index
    /// into this list.
    pub fn category_names(&self) -> &[String] {
        &self.variables.category_names
    }

    /// Reads the names of some variables from the profile. Returns the named variables by their
    /// [`position`](TileVariable::position).
    ///
    /// # Errors
    /// If the profile cannot be read again, or has changed since it was read.
    pub fn names<'a>(
        &self,
        all: impl Iterator<Item = &'a TileVariable>,
    ) -> Result<VariablesByPosition, FileError> {
        let all: Vec<&TileVariable> = all.collect();
        let ids: Vec<_> = all
            .iter()
            .map(|own| self.variables.id(own.position))
            .collect();
        let named = |(own, name): (&TileVariable, String)| {
            let variable = NamedVariable {
                name: name.into(),
                category: self.category_of(own).into(),
                bytes: self.variables.bytes[own.position as usize],
                set: own.set,
            };
            (own.position, variable)
        };
        let names = self.names.fetch(&ids)?;
        Ok(all.into_iter().zip(names).map(named).collect())
    }

    /// Returns the program that runs at the liveness step with index `step`; `None` if there is no
    /// such step.
    pub fn program_at(&self, step: u32) -> Option<&StepProgram> {
        let program = *self.program_at.get(step as usize)?;
        Some(&self.programs[program as usize])
    }
}

/// A program of the profile, with its name and the first operation to which the program belongs.
#[derive(Debug)]
pub struct StepProgram {
    /// Type of the program (table `program_types`), a space, and the name of the compute set that
    /// it runs or, without one, its own name: `OnTileExecute conv/Convolve`, for example. If the
    /// name is empty, this is the type alone.
    pub name: String,
    /// The first operation that the program belongs to, as an index into
    /// [`Model::operations`](super::Model::operations); `None` if the program belongs to no
    /// operation.
    pub operation: Option<u32>,
}

pub fn step_programs(programs: &Programs, found: &UnnamedOperations) -> Vec<StepProgram> {
    let step_program = |program: &Program| {
        let kind = match &program.kind {
            ProgramKind::OnTileExecute(_) => "OnTileExecute",
            ProgramKind::DoExchange(_) => "DoExchange",
            ProgramKind::Call(_) => "Call",
            ProgramKind::Other(kind) => kind,
        };
        let name = match name_of(programs, program) {
            "" => kind.to_string(),
            name => format!("{kind} {name}"),
        };
        StepProgram {
            name,
            operation: None,
        }
    };
    let mut all: Vec<StepProgram> = programs.all.iter().map(step_program).collect();
    for (number, operation) in (0u32..).zip(&found.operations) {
        for &program in &operation.programs {
            all[program as usize].operation.get_or_insert(number);
        }
    }
    all
}
