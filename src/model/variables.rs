//! Which operations use which lowered variables.

use super::operations::FoundGroup;
use super::variable_uses::{KnownUses, VariableUse};
use super::{CodeKind, ModelError};
use crate::limits;
use crate::parallel::{by_parts, equal_parts, filled};
use crate::profile::{NEVER_LIVE, Profile, ProgramKind, Programs, TileBytes, VariableLists};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Sets of operation groups that use variables, each kept once for each label
/// and companion of the variables that it stands for. Set 0 is empty;
/// any other is a smaller one and one more group, which comes later in the order
/// than all of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSets {
    /// By set: the set without its last group, and that group.
    nodes: Vec<(u32, u32)>,
    /// By set: what the variables are called; see [`UserSets::label`].
    labels: Vec<u32>,
    /// By set: the set that they are paired with, [`NO_USERS`] for none.
    companions: Vec<u32>,
}

/// The user set of variables that no operation uses.
pub const NO_USERS: u32 = 0;

impl Default for UserSets {
    /// The empty set alone.
    fn default() -> Self {
        Self {
            nodes: vec![(NO_USERS, u32::MAX)],
            labels: vec![0],
            companions: vec![NO_USERS],
        }
    }
}

impl UserSets {
    /// Adds a set: `smaller`, which must be there, and `group`, which must come
    /// after all groups of it.
    pub fn push(&mut self, smaller: u32, group: u32) -> u32 {
        self.nodes.push((smaller, group));
        self.labels.push(0);
        self.companions.push(NO_USERS);
        self.nodes.len() as u32 - 1
    }

    /// Adds the same set for variables with a label and a companion.
    pub(super) fn push_alike(&mut self, set: u32, label: u32, companion: u32) -> u32 {
        let (smaller, group) = self.nodes[set as usize];
        let added = self.push(smaller, group);
        self.mark(added, label, companion);
        added
    }

    /// Says that all variables of a set have this label and companion.
    pub(crate) fn mark(&mut self, set: u32, label: u32, companion: u32) {
        self.labels[set as usize] = label;
        self.companions[set as usize] = companion;
    }

    /// What the variables with this set are called, as a position in
    /// [`Model::labels`](super::Model::labels).
    pub fn label(&self, set: u32) -> u32 {
        self.labels[set as usize]
    }

    /// The set of variables that they are paired with: those of the same tile
    /// and as many elements in a compute set over the whole model.
    pub fn companion(&self, set: u32) -> Option<u32> {
        Some(self.companions[set as usize]).filter(|&companion| companion != NO_USERS)
    }

    /// Is the first set the empty one, does each other consist of a smaller one
    /// that stands before it and a later one of `groups`, and has each of them
    /// one of `labels` and a companion that is there?
    pub(crate) fn is_sound(&self, groups: usize, labels: usize) -> bool {
        let sets = self.nodes.len();
        let follows = |(set, &(smaller, group)): (usize, &(u32, u32))| {
            let smaller = smaller as usize;
            let behind =
                smaller == 0 || self.nodes[..set].get(smaller).is_some_and(|n| n.1 < group);
            smaller < set && behind && (group as usize) < groups
        };
        let all_below = |positions: &[u32], end| {
            positions.len() == sets && positions.iter().all(|&position| (position as usize) < end)
        };
        self.nodes.first() == Some(&(NO_USERS, u32::MAX))
            && self.nodes.iter().enumerate().skip(1).all(follows)
            && all_below(&self.labels, labels)
            && all_below(&self.companions, sets)
            && (self.labels[0], self.companions[0]) == (0, NO_USERS)
    }

    /// How many sets there are, the empty one included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Is there no set? Never so: the empty set is always there.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every set but the empty one, in an order in which smaller sets come
    /// first: (set, the set without its last group, that group).
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let nodes = (0u32..).zip(&self.nodes).skip(1);
        nodes.map(|(set, &(smaller, group))| (set, smaller, group))
    }

    /// The groups of a set, the last first.
    pub fn groups(&self, set: u32) -> impl Iterator<Item = u32> + '_ {
        let mut set = set;
        std::iter::from_fn(move || {
            let (smaller, group) = self.nodes[set as usize];
            (set != NO_USERS).then(|| {
                set = smaller;
                group
            })
        })
    }
}

/// Lowered variables of one tile that are alike in all that matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VariableGroup {
    /// Their equivalence class, as a position in the profile's classes.
    pub class: u32,
    /// The operation groups that use them, as a set of [`UserSets`];
    /// [`NO_USERS`] when none does.
    pub set: u32,
    /// Their bytes together.
    pub bytes: u32,
}

/// All allocated variables, tile by tile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableGroups {
    /// By tile, where its groups begin in `groups`; one more at the end.
    starts: Vec<u32>,
    groups: Vec<VariableGroup>,
    #[serde(skip)]
    uses: KnownUses,
}

impl Default for VariableGroups {
    /// On no tile.
    fn default() -> Self {
        Self {
            starts: vec![0],
            groups: Vec::new(),
            uses: KnownUses::default(),
        }
    }
}

impl VariableGroups {
    /// Sorts `groups` (with the tile of each) by tile, class and set, and
    /// joins equal ones. What would pass 4 GiB stays apart.
    pub fn new(tiles: u32, groups: impl Iterator<Item = (u16, VariableGroup)>) -> Self {
        let groups: Vec<_> = groups.collect();
        let group = |position: usize| Some(groups[position].1);
        Self::sorted(tiles, groups.len(), |position| groups[position].0, group)
    }

    /// The same for groups by their positions below `count`, each with a tile; some are
    /// none.
    fn sorted(
        tiles: u32,
        count: usize,
        tile: impl Fn(usize) -> u16 + Sync,
        group: impl Fn(usize) -> Option<VariableGroup> + Sync,
    ) -> Self {
        let is_there = |&position: &usize| group(position).is_some();
        let mut starts = counts(tiles, count, |positions, counts| {
            for position in positions.filter(is_there) {
                counts[usize::from(tile(position))] += 1;
            }
        });
        let mut end = 0;
        for start in &mut starts {
            end += std::mem::replace(start, end);
        }
        let mut sorted = filled(VariableGroup::default(), end as usize);
        let parts = by_tiles(&starts, &mut sorted);
        parts.into_par_iter().for_each(|(tiles, own)| {
            let mut next = starts[tiles.clone()].to_vec();
            let first = next.first().copied().unwrap_or(0);
            for position in 0..count {
                let tile = usize::from(tile(position));
                if tiles.contains(&tile)
                    && let Some(group) = group(position)
                {
                    let place = &mut next[tile - tiles.start];
                    own[(*place - first) as usize] = group;
                    *place += 1;
                }
            }
        });
        join_equal(&mut starts, &mut sorted);
        Self {
            starts,
            groups: sorted,
            uses: KnownUses::default(),
        }
    }

    /// Takes groups that are in order already: by tile the number of its groups,
    /// and the groups of all tiles, on each by class, then by set. `None` when
    /// the numbers do not add up or a tile is not in order.
    pub fn from_sorted(counts: &[u32], groups: Vec<VariableGroup>) -> Option<Self> {
        Self::from_ordered(counts, groups).filter(Self::is_sound)
    }

    /// The same for groups that cannot but be in order, without a look at each.
    pub(crate) fn from_ordered(counts: &[u32], groups: Vec<VariableGroup>) -> Option<Self> {
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut end = 0u32;
        starts.push(end);
        for &count in counts {
            end = end.checked_add(count)?;
            starts.push(end);
        }
        (end as usize == groups.len()).then_some(Self {
            starts,
            groups,
            uses: KnownUses::default(),
        })
    }

    /// Do the groups of all tiles add up, and are they in order on each?
    pub(crate) fn is_sound(&self) -> bool {
        let is_sorted = |tile| {
            let groups = self.on_tile(tile);
            groups.is_sorted_by_key(|group| (group.class, group.set))
        };
        self.starts.first() == Some(&0)
            && self.starts.last().map(|&end| end as usize) == Some(self.groups.len())
            && self.starts.is_sorted()
            && (0..self.tiles()).into_par_iter().all(is_sorted)
    }

    /// Those that some operation uses.
    pub(super) fn used(&self) -> Self {
        let tiles = 0..self.tiles();
        let groups =
            tiles.flat_map(|tile| self.on_tile(tile).iter().map(move |&i| (tile as u16, i)));
        Self::new(
            self.tiles(),
            groups.filter(|(_, group)| group.set != NO_USERS),
        )
    }

    /// The classes and sets of all groups, by class, then by set, with their bytes over
    /// all tiles.
    pub fn uses(&self) -> &[VariableUse] {
        self.uses.of(self)
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many tiles there are.
    pub fn tiles(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The groups of `tile`, by class, then by set.
    pub fn on_tile(&self, tile: u32) -> &[VariableGroup] {
        let tile = tile as usize;
        &self.groups[self.starts[tile] as usize..self.starts[tile + 1] as usize]
    }
}

/// How many groups are on each of `tiles`, and 0; `add` adds those of some of `count`
/// positions.
fn counts(tiles: u32, count: usize, add: impl Fn(Range<usize>, &mut [u32]) + Sync) -> Vec<u32> {
    let none = || vec![0u32; tiles as usize + 1];
    let of_part = |positions| {
        let mut counts = none();
        add(positions, &mut counts);
        counts
    };
    let join = |mut all: Vec<u32>, part: Vec<u32>| {
        all.iter_mut().zip(part).for_each(|(sum, own)| *sum += own);
        all
    };
    let threads = rayon::current_num_threads();
    by_parts(count, threads, of_part, join).unwrap_or_else(none)
}

/// A part of the tiles for each thread, with their groups; `starts` says by tile where
/// these begin.
fn by_tiles<'a>(
    starts: &[u32],
    groups: &'a mut [VariableGroup],
) -> Vec<(Range<usize>, &'a mut [VariableGroup])> {
    let mut rest = groups;
    let parts = equal_parts(starts.len() - 1, rayon::current_num_threads()).into_iter();
    parts
        .map(|own| {
            let count = (starts[own.end] - starts[own.start]) as usize;
            let (groups, after) = std::mem::take(&mut rest).split_at_mut(count);
            rest = after;
            (own, groups)
        })
        .collect()
}

/// Sorts the groups of each tile and joins equal ones in place.
fn join_equal(starts: &mut [u32], groups: &mut Vec<VariableGroup>) {
    let mut rest = &mut groups[..];
    let mut tiles = Vec::with_capacity(starts.len());
    for ends in starts.windows(2) {
        let (tile, behind) = rest.split_at_mut((ends[1] - ends[0]) as usize);
        tiles.push(tile);
        rest = behind;
    }
    // One comparison for class and set.
    let key = |group: &VariableGroup| u64::from(group.class) << 32 | u64::from(group.set);
    tiles
        .into_par_iter()
        .for_each(|tile| tile.sort_unstable_by_key(key));
    let mut kept = 0usize;
    let mut from = 0usize;
    for end in starts.iter_mut().skip(1) {
        let to = *end as usize;
        let first = kept;
        for index in from..to {
            let group = groups[index];
            let last = (kept > first).then(|| groups[kept - 1]);
            let joined = last
                .filter(|last| (last.class, last.set) == (group.class, group.set))
                .and_then(|last| last.bytes.checked_add(group.bytes));
            match joined {
                Some(bytes) => groups[kept - 1].bytes = bytes,
                None => {
                    groups[kept] = group;
                    kept += 1;
                }
            }
        }
        from = to;
        *end = kept as u32;
    }
    groups.truncate(kept);
    groups.shrink_to_fit();
}

/// The lowered variables of a profile, sorted by what they hold.
pub(super) struct LoweredVariables {
    /// Those that hold data, whichever operations use them.
    pub(super) data: VariableGroups,
    /// Those of the categories of [`CodeKind`].
    pub(super) code: VariableGroups,
    /// By kind of code: the bytes of its variables by tile.
    pub(super) recorded_code: [TileBytes; 4],
}

/// Joins the variables that are alike; `set_of` has the user set of each.
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
        VariableGroups::sorted(tiles, variables.len(), tile, group)
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

/// By kind of code: the bytes of its variables, which are at `code`, by tile. `kinds` has
/// the kind of each category.
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

/// By variable its user set, and the user sets.
pub(super) type Users = (Vec<u32>, UserSets);

/// The user set of each variable, by its position.
pub(super) fn sets_of_variables(
    profile: &Profile,
    groups: &[FoundGroup],
) -> Result<Users, ModelError> {
    let count = profile.variables.len();
    let most_sets = limits::SETS.of(count);
    let most_uses = limits::USES.of(count);
    let mut uses = 0;
    let mut sets = UserSets::default();
    let mut set_of = filled(NO_USERS, count);
    let mut grown = Grown(vec![(u32::MAX, NO_USERS)]);
    for (group, found) in (0u32..).zip(groups) {
        if sets.len() > most_sets {
            return Err(ModelError::TooManySets {
                variables: count,
                most: most_sets,
            });
        }
        for members in members(profile, &found.programs) {
            uses += members.len();
            if uses > most_uses {
                return Err(ModelError::TooManyUses {
                    variables: count,
                    most: most_uses,
                });
            }
            for &variable in members {
                let set = &mut set_of[variable as usize];
                *set = grown.with(&mut sets, *set, group);
            }
        }
    }
    Ok((set_of, sets))
}

/// By set: the one that it becomes with a group more, and that group, for the
/// group that was added last.
struct Grown(Vec<(u32, u32)>);

impl Grown {
    /// The set with `group` in it, which no set has a later one than.
    fn with(&mut self, sets: &mut UserSets, set: u32, group: u32) -> u32 {
        if sets.nodes[set as usize].1 == group && set != NO_USERS {
            return set;
        }
        let (noted, larger) = self.0[set as usize];
        if noted == group {
            return larger;
        }
        let larger = sets.push(set, group);
        self.0[set as usize] = (group, larger);
        self.0.push((u32::MAX, NO_USERS));
        larger
    }
}

/// The variables of all these programs, list by list, each once.
pub(super) fn members<'a>(profile: &'a Profile, programs: &[u32]) -> Vec<&'a [u32]> {
    let (of_sets, of_regions) = lists_of(profile, programs);
    let members = |lists: &'a VariableLists, positions: Vec<u32>| {
        positions
            .into_iter()
            .flat_map(|position| lists.members(position))
    };
    members(&profile.compute_set_variables, of_sets)
        .chain(members(&profile.region_variables, of_regions))
        .collect()
}

/// The distinct lists of compute sets and of regions, by position.
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
