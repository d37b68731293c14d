//! The lowered variables of a profile: what they hold, and which programs use them.

use super::{CodeKind, ModelError, VariableGroup, VariableGroups};
use crate::profile::{NEVER_LIVE, Profile, ProgramKind, Programs, TileBytes};
use rayon::prelude::*;

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
pub(super) fn collect(profile: &Profile, set_of: &[u32]) -> Result<LoweredVariables, ModelError> {
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
) -> Result<[TileBytes; 4], ModelError> {
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
            *sum = more.ok_or_else(|| ModelError::RecordedCodeTooLarge {
                categories: kind.categories().join(", "),
                tile: tile.into(),
            })?;
        }
    }
    Ok(recorded.map(|bytes| bytes.into_iter().collect()))
}

/// The lists of variables of all these programs, each list once.
pub(crate) fn members<'a>(profile: &'a Profile, programs: &[u32]) -> Vec<&'a [u32]> {
    members_of(profile, &lists_of(profile, programs))
}

/// The variables of lists at these positions.
pub(super) fn members_of<'a>(
    profile: &'a Profile,
    (of_sets, of_regions): &(Vec<u32>, Vec<u32>),
) -> Vec<&'a [u32]> {
    let mut found = Vec::new();
    for (lists, positions) in [
        (&profile.compute_set_variables, of_sets),
        (&profile.region_variables, of_regions),
    ] {
        for &position in positions {
            found.extend(lists.members(position));
        }
    }
    found
}

/// The distinct lists of compute sets and of regions that programs use, by position.
pub(super) fn lists_of(profile: &Profile, programs: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let Programs {
        all, compute_sets, ..
    } = &profile.programs;
    let (mut of_sets, mut of_regions) = (Vec::new(), Vec::new());
    for program in programs.iter().map(|&program| &all[program as usize]) {
        if let ProgramKind::OnTileExecute(set) = program.kind {
            let id = compute_sets[set as usize].id;
            of_sets.extend(profile.compute_set_variables.position(id));
        }
        let regions = program.regions.iter();
        of_regions.extend(regions.filter_map(|&id| profile.region_variables.position(id)));
    }
    for positions in [&mut of_sets, &mut of_regions] {
        positions.sort_unstable();
        positions.dedup();
    }
    (of_sets, of_regions)
}
