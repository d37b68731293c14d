//! Sorts the lowered variables of a profile into data and code, and finds the tile and step at
//! which the whole model needs the most memory. Also warns about variables that are live at nearly
//! all steps.

use super::{
    Model, NO_USERS, NamedVariable, ProfileLookup, TileVariable, VariableGroup, VariableGroups,
};
use crate::{
    message::{FileError, PROFILE_AGAIN, Warning},
    profile::{CodeKind, MissedSteps, NEVER_LIVE, Profile, TileBytes},
    wording::grouped,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The lowered variables of a profile, sorted into data and code, without variables that are never
/// live.
pub struct LoweredVariables {
    /// The variables that hold data, including those that no operation uses.
    pub data: VariableGroups,
    /// Variables that hold code or vertex state. Their category shows what they hold
    /// ([`CodeKind::categories`]).
    pub code: VariableGroups,
    /// Variables that hold code or vertex state and that an operation uses: programs of the type
    /// `CodeCopy` copy code to them. They are in the field `code` too.
    pub used_code: VariableGroups,
    /// One entry per [`CodeKind`]: the bytes, on each tile, of the variables that hold this kind of
    /// code.
    pub recorded_code: [TileBytes; 4],
}

/// Groups the variables of a profile by tile, equivalence class and use set (the operation groups
/// that use a variable), separately for data and code. `set_of` has the use set of each variable.
///
/// # Errors
/// If variables of one kind of code exceed 4 GiB on a tile.
pub fn collect(profile: &Profile, set_of: &[u32]) -> Result<LoweredVariables, FileError> {
    let variables = &profile.variables;
    let kinds: Vec<Option<CodeKind>> = variables
        .category_names
        .iter()
        .map(|name| CodeKind::of_category(name))
        .collect();
    let kind = |position: usize| kinds[usize::from(variables.categories[position])];
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
        let group = |position| group(position).filter(|_| kind(position).is_none());
        VariableGroups::sorted(tiles, profile.classes.len(), variables.len(), tile, group)
    };
    let code = || {
        let code: Vec<(CodeKind, u16, VariableGroup)> = (0..variables.len())
            .into_par_iter()
            .filter_map(|position| Some((kind(position)?, tile(position), group(position)?)))
            .collect();
        let groups = code.iter().map(|&(_, tile, group)| (tile, group));
        let used = groups.clone().filter(|(_, group)| group.set != NO_USERS);
        (
            VariableGroups::new(tiles, groups),
            VariableGroups::new(tiles, used),
            recorded_code(tiles, &code),
        )
    };
    let (data, (code, used_code, recorded_code)) = rayon::join(data, code);
    Ok(LoweredVariables {
        data,
        code,
        used_code,
        recorded_code: recorded_code?,
    })
}

/// Returns the bytes of each [`CodeKind`] on each tile. Each item of `code` stands for variables
/// that hold code: the kind of code, the tile, and the group of variables with its bytes.
fn recorded_code(
    tiles: u32,
    code: &[(CodeKind, u16, VariableGroup)],
) -> Result<[TileBytes; 4], FileError> {
    let mut recorded = [(); 4].map(|()| vec![0u32; tiles as usize]);
    for &(kind, tile, group) in code {
        let sum = &mut recorded[kind as usize][usize::from(tile)];
        *sum = sum.checked_add(group.bytes).ok_or_else(|| {
            FileError::new(format!(
                "table `vars_info`: the variables of {} add up to more than 4 GiB on tile {tile}; \
                 {PROFILE_AGAIN}",
                kind.categories().join(", ")
            ))
        })?;
    }
    Ok(recorded.map(|bytes| bytes.into_iter().collect()))
}

/// The tile and the liveness step with the most live bytes of data and code, among all tiles of all
/// IPUs and all steps of the profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPeak {
    /// Index of the tile on which the most bytes (data and code) are live at any one step; of
    /// several such tiles, the lowest index.
    pub tile: u32,
    /// Index of the liveness step at which the most bytes are live on the tile with index `tile`;
    /// of several such steps, the first.
    pub step: u32,
    /// Bytes of all variables that are live at the peak: on the tile and at the step with the most
    /// live bytes.
    pub bytes: u64,
    /// All variables that are live at the peak (the tile and the step with the most live bytes),
    /// the largest first.
    pub variables: Vec<NamedVariable>,
}

impl MemoryPeak {
    /// Finds the tile and the liveness step with the most live bytes of data and code, and reads
    /// the names of the variables that are live there. `code` has the variables that hold code or
    /// vertex state.
    ///
    /// # Errors
    /// If the names cannot be read from the profile.
    pub(super) fn find(
        model: &Model,
        code: &VariableGroups,
        lookup: &ProfileLookup,
    ) -> Result<Self, FileError> {
        let (data, classes) = (&model.variables, &model.classes);
        let peaks = (0..data.tiles()).into_par_iter().map(|tile| {
            let on_tile = data.on_tile(tile).chain(code.on_tile(tile));
            let (bytes, step) = classes.peak(on_tile.map(|group| (group.class, group.bytes)));
            (bytes, Reverse(tile), step)
        });
        let (bytes, Reverse(tile), step) = peaks.max().unwrap_or_default();
        let live: Vec<_> = lookup
            .on_tiles(&[(tile, usize::MAX)])
            .swap_remove(tile as usize)
            .into_iter()
            .filter(|variable| classes.is_live(variable.class, step))
            .collect();
        let mut names = lookup.names(live.iter())?;
        let name = |variable: &TileVariable| names.remove(&variable.position);
        Ok(Self {
            tile,
            step,
            bytes,
            variables: live.iter().filter_map(name).collect(),
        })
    }
}

/// Variables that are live at nearly all steps cause a warning only if they have at least
/// 1/`MIN_SHARE` of the bytes of all data variables. A smaller share changes no split visibly.
const MIN_SHARE: u64 = 100;

/// Returns a warning if many variables (at least 1 % of the bytes of all data variables) are live
/// at all steps except idle ones, at which the IPU neither computes nor moves data. Such variables
/// are probably weights, but do not count as always live (docs/model.md, "Variables").
/// `is_training` is true if the program has a backward pass.
pub fn nearly_always_live(
    profile: &Profile,
    data: &VariableGroups,
    is_training: bool,
) -> Option<Warning> {
    let by_class = &profile.missed_steps;
    let (mut bytes, mut all) = (0u64, 0u64);
    for data_use in data.uses() {
        all = all.saturating_add(data_use.bytes);
        if by_class[data_use.class as usize].is_some() {
            bytes = bytes.saturating_add(data_use.bytes);
        }
    }
    if bytes == 0 || bytes.saturating_mul(MIN_SHARE) < all {
        return None;
    }
    let missed = profile
        .variables
        .classes
        .iter()
        .filter_map(|&class| by_class.get(class as usize)?.as_ref());
    Some(sentence(
        bytes,
        missed,
        profile.classes.steps(),
        is_training,
    ))
}

/// Returns the warning about variables that are live at nearly all of the `steps` liveness steps of
/// the model. `bytes` is the sum of the sizes of these variables. `all` has one entry per variable:
/// at how many steps the variable is not live, and the first and the last of these steps.
fn sentence<'a>(
    bytes: u64,
    all: impl Iterator<Item = &'a MissedSteps> + Clone,
    steps: u32,
    is_training: bool,
) -> Warning {
    let (count, bytes) = (all.clone().count(), grouped(bytes));
    let most = |of: fn(&MissedSteps) -> u32| all.clone().map(of).max().unwrap_or_default();
    let (missed, last) = (most(|one| one.count), most(|one| one.last));
    let first = all.clone().map(|one| one.first).min().unwrap_or_default();
    let result = match all
        .filter(|one| one.first == 0 || one.last + 1 == steps)
        .count()
    {
        at_ends @ 1.. if is_training => format!(
            "; {at_ends} of them miss the first or the last step, so a pipeline that trains keeps \
             copies of them like activations, unless a context says that they are weights; try \
             --schedule none, which keeps no copies"
        ),
        _ => ", so they do not count as always live; look for them under 'Not always live' in \
              --memory-totals: they count at all other steps"
            .to_string(),
    };
    Warning::new(format!(
        "{count} variables with {bytes} bytes are probably weights, but live at all {steps} steps \
         except at most {missed}, between step {first} and step {last}, that compute \
         nothing{result}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_names_those_that_a_pipeline_would_copy() {
        let missed = |first, last| MissedSteps {
            count: 2,
            first,
            last,
        };
        let all = [missed(3, 4), missed(8, 9), missed(0, 1)];
        let text = sentence(12_345, all.iter(), 10, true);
        for part in [
            "3 variables with 12,345 bytes",
            "all 10 steps except at most 2, between step 0 and step 9",
            "2 of them miss the first or the last step",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!sentence(12_345, all.iter(), 10, false).contains("pipeline"));
    }
}
