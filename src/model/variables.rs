//! The lowered variables of a profile: what they hold, and where the whole model takes most memory.

use super::code::CodeKind;
use super::profile_lookup::{NamedVariable, ProfileLookup};
use super::{VariableGroup, VariableGroups};
use crate::message::{FileError, PROFILE_AGAIN};
use crate::profile::{LiveClasses, NEVER_LIVE, Profile, TileBytes};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The lowered variables of a profile, sorted by what they hold.
pub(super) struct LoweredVariables {
    /// Variables that hold data, whichever operations use them.
    pub(super) data: VariableGroups,
    /// Variables of the categories of [`CodeKind`].
    pub(super) code: VariableGroups,
    /// By kind of code: bytes of its variables by tile.
    pub(super) recorded_code: [TileBytes; 4],
}

impl LoweredVariables {
    /// The variables on `tile`, of data and of code.
    pub(super) fn on_tile(&self, tile: u32) -> impl Iterator<Item = VariableGroup> {
        self.data.on_tile(tile).chain(self.code.on_tile(tile))
    }
}

/// Joins equal variables; `set_of` has the use set of each.
pub(super) fn collect(profile: &Profile, set_of: &[u32]) -> Result<LoweredVariables, FileError> {
    let variables = &profile.variables;
    let names = variables.category_names.iter();
    let kinds: Vec<Option<CodeKind>> = names.map(|name| CodeKind::of_category(name)).collect();
    let is_code = |position: usize| kinds[usize::from(variables.categories[position])].is_some();
    let group = |position: usize| {
        let group = VariableGroup {
            class: variables.classes[position],
            set: set_of[position],
            bytes: variables.bytes[position],
        };
        (group.class != NEVER_LIVE && group.bytes > 0).then_some(group)
    };
    let tile = |position: usize| variables.tiles[position];
    let tiles = profile.target.num_tiles;
    let data = || {
        let group = |position| group(position).filter(|_| !is_code(position));
        let classes = profile.classes.len();
        VariableGroups::sorted((tiles, classes), variables.len(), tile, group)
    };
    let code = || {
        let all = (0..variables.len()).into_par_iter();
        let code: Vec<usize> = all.filter(|&position| is_code(position)).collect();
        let groups = code.iter().copied();
        let groups = groups.filter_map(|position| Some((tile(position), group(position)?)));
        (
            VariableGroups::new(tiles, groups),
            recorded_code(profile, &kinds, &code),
        )
    };
    let (data, (code, recorded_code)) = rayon::join(data, code);
    Ok(LoweredVariables {
        data,
        code,
        recorded_code: recorded_code?,
    })
}

/// By kind of code: bytes by tile of the variables at positions `code`. `kinds` has the kind of
/// each category.
fn recorded_code(
    profile: &Profile,
    kinds: &[Option<CodeKind>],
    code: &[usize],
) -> Result<[TileBytes; 4], FileError> {
    let variables = &profile.variables;
    let tiles = profile.target.num_tiles as usize;
    let mut recorded = [(); 4].map(|()| vec![0u32; tiles]);
    for &position in code {
        if let Some(kind) = kinds[usize::from(variables.categories[position])]
            && variables.classes[position] != NEVER_LIVE
        {
            let tile = variables.tiles[position];
            let sum = &mut recorded[kind as usize][usize::from(tile)];
            let more = sum.checked_add(variables.bytes[position]);
            *sum = more.ok_or_else(|| {
                FileError::new(format!(
                    "table `vars_info`: the variables of {} add up to more than 4 GiB on tile \
                     {tile}; {PROFILE_AGAIN}",
                    kind.categories().join(", ")
                ))
            })?;
        }
    }
    Ok(recorded.map(|bytes| bytes.into_iter().collect()))
}

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

impl MemoryPeak {
    /// Finds the tile and the step, and names the variables that are live there.
    pub(super) fn find(
        variables: &LoweredVariables,
        lookup: &ProfileLookup,
        classes: &LiveClasses,
    ) -> Result<Self, FileError> {
        let tiles = (0..variables.data.tiles()).into_par_iter();
        let peaks = tiles.map(|tile| {
            let on_tile = variables.on_tile(tile);
            let (bytes, step) = classes.peak(on_tile.map(|group| (group.class, group.bytes)));
            (bytes, Reverse(tile), step)
        });
        let (bytes, Reverse(tile), step) = peaks.max().unwrap_or_default();
        let lists = lookup.on_tiles(&[(tile, usize::MAX)]);
        let live = lists.of(tile);
        let live = live.filter(|variable| classes.is_live(variable.class, step));
        let live: Vec<_> = live.collect();
        let named = live.iter().zip(lookup.names(live.iter())?);
        let named = named.map(|(variable, name)| lookup.named(variable, name));
        Ok(Self {
            tile,
            step,
            bytes,
            variables: named.collect(),
        })
    }
}
