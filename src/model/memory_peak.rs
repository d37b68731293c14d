//! The tile and the step at which the whole model takes most memory.

use super::VariableGroup;
use super::profile_lookup::ProfileLookup;
use super::variables::LoweredVariables;
use crate::profile::{LiveClasses, ProfileError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Where execution takes most memory: no tile holds more at any step, counting the lowered
/// variables of the profile (code included).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPeak {
    /// The tile; the first of several.
    pub tile: u32,
    /// Index of the step; the first of several on this tile.
    pub step: u32,
    /// Bytes that are live on this tile at this step.
    pub bytes: u64,
    /// Every variable that is live there, from the largest on.
    pub variables: Vec<NamedVariable>,
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

impl MemoryPeak {
    /// Finds the tile and the step; `variables` stays empty until [`MemoryPeak::name`].
    pub(super) fn find(variables: &LoweredVariables, classes: &LiveClasses) -> Self {
        let peaks =
            (0..variables.data.tiles())
                .into_par_iter()
                .map_init(Vec::new, |changes, tile| {
                    let (bytes, step) = peak(variables.on_tile(tile), classes, changes);
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

    /// Names the variables that are live there.
    pub(super) fn name(
        &mut self,
        lookup: &ProfileLookup,
        classes: &LiveClasses,
    ) -> Result<(), ProfileError> {
        let lists = lookup.on_tiles(&[(self.tile, usize::MAX)]);
        let live = lists.of(self.tile);
        let live = live.filter(|variable| classes.is_live(variable.class, self.step));
        let live: Vec<_> = live.collect();
        let names = lookup.names(live.iter())?;
        let named = live.iter().zip(names);
        let named = named.map(|(variable, name)| lookup.named(variable, name));
        self.variables = named.collect();
        Ok(())
    }
}

/// The highest sum of live bytes on one tile, and the first step that has it.
pub(super) fn peak(
    items: impl Iterator<Item = VariableGroup>,
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
