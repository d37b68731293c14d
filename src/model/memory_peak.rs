//! The tile and the step where the whole model takes most memory.

use super::VariableGroup;
use super::variables::Collected;
use crate::profile::{LiveClasses, NEVER_LIVE, Profile, ProfileError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Where execution takes most memory: no tile holds more at any step, by the lowered
/// variables of the profile (code is among them).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPeak {
    /// The tile; the first of several.
    pub tile: u32,
    /// The index of the step; the first of several on this tile.
    pub step: u32,
    /// Bytes that are live there.
    pub bytes: u64,
    /// Every variable that is live there, the largest first.
    pub variables: Vec<NamedVariable>,
}

/// A lowered variable by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVariable {
    /// Its name, such as `weights#0`.
    pub name: Box<str>,
    /// The name of its category, such as `variable`.
    pub category: Box<str>,
    /// Its size.
    pub bytes: u32,
    /// The operation groups that use it, as a set of
    /// [`Model::user_sets`](super::Model).
    pub set: u32,
}

impl MemoryPeak {
    /// Finds the tile and step, and names what is live there; `set_of` has
    /// the user set of each variable of the profile.
    pub(super) fn new(
        profile: &Profile,
        variables: &Collected,
        set_of: &[u32],
    ) -> Result<Self, ProfileError> {
        let mut found = Self::find(variables, &profile.classes);
        found.name(profile, set_of)?;
        Ok(found)
    }

    /// The tile and step, without names.
    fn find(variables: &Collected, classes: &LiveClasses) -> Self {
        let peaks =
            (0..variables.data.tiles())
                .into_par_iter()
                .map_init(Vec::new, |changes, tile| {
                    let data = variables.data.on_tile(tile).iter();
                    let items = data.chain(variables.code.on_tile(tile));
                    let (bytes, step) = peak(items, classes, changes);
                    (bytes, std::cmp::Reverse(tile), step)
                });
        let (bytes, tile, step) = peaks.max().unwrap_or_default();
        Self {
            tile: tile.0,
            step,
            bytes,
            variables: Vec::new(),
        }
    }

    /// Fetches what is live there from the profile.
    fn name(&mut self, profile: &Profile, set_of: &[u32]) -> Result<(), ProfileError> {
        let variables = &profile.variables;
        let step = self.step;
        let is_live = |&position: &u32| {
            let class = variables.classes[position as usize];
            let here = u32::from(variables.tiles[position as usize]) == self.tile;
            let live = |ranges: &[(u32, u32)]| ranges.iter().any(|r| (r.0..r.1).contains(&step));
            here && class != NEVER_LIVE && live(profile.classes.ranges(class))
        };
        let positions: Vec<u32> = (0..variables.len() as u32).filter(is_live).collect();
        let names = profile.variable_names(&positions)?;
        let named = positions.into_iter().zip(names).map(|(position, name)| {
            let index = position as usize;
            let category = usize::from(variables.categories[index]);
            NamedVariable {
                name: name.into(),
                category: variables.category_names[category].as_str().into(),
                bytes: variables.bytes[index],
                set: set_of[index],
            }
        });
        self.variables = named.collect();
        self.variables.sort_by_key(|v| std::cmp::Reverse(v.bytes));
        Ok(())
    }
}

/// The highest sum of live bytes on one tile, and its first step.
pub(super) fn peak<'a>(
    items: impl Iterator<Item = &'a VariableGroup>,
    classes: &LiveClasses,
    changes: &mut Vec<i64>,
) -> (u64, u32) {
    changes.clear();
    changes.resize(classes.steps() as usize + 1, 0);
    for item in items {
        for &(from, to) in classes.ranges(item.class) {
            changes[from as usize] += i64::from(item.bytes);
            changes[to as usize] -= i64::from(item.bytes);
        }
    }
    let mut live = 0;
    let mut peak = (0, 0);
    for (step, change) in (0u32..).zip(changes.iter()) {
        live += change;
        if live > peak.0 {
            peak = (live, step);
        }
    }
    (peak.0 as u64, peak.1)
}
