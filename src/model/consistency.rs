//! Does what programs say agree with what they use, and with the variables? (See
//! [`crate::witnesses`].)

use super::NO_USERS;
use crate::profile::{NEVER_LIVE, Profile, ProgramKind, Programs, TileBytes};
use crate::witnesses::{Contradiction, Pair, Witness, worst};
use rayon::prelude::*;

/// What contradicts itself; `set_of` has the user set of each lowered variable.
pub(super) fn contradictions(profile: &Profile, set_of: &[u32]) -> Vec<Contradiction> {
    let found = [
        contexts(profile),
        vertices(profile),
        vertex_code(profile),
        vertex_memory(profile),
        exchange_code(profile),
        unused(profile, set_of),
    ];
    found.into_iter().flatten().collect()
}

/// The types of all vertices that run have code.
fn vertex_code(profile: &Profile) -> Option<Contradiction> {
    let Programs {
        compute_sets,
        vertex_types,
        ..
    } = &profile.programs;
    let mut runs = vec![false; vertex_types.len()];
    for (vertex_type, _) in compute_sets.iter().flat_map(|own| &own.vertices) {
        runs[*vertex_type as usize] = true;
    }
    let running = vertex_types.iter().zip(runs).filter(|(_, runs)| *runs);
    let have_code = running.map(|(own, _)| own.code.total() > 0);
    of_code("memory_by_vertex_type", have_code)
}

/// Compute sets with vertices have memory for these, where the profile says so of any.
fn vertex_memory(profile: &Profile) -> Option<Contradiction> {
    let sets = profile.programs.compute_sets.iter();
    let with_vertices = sets.filter(|own| !own.vertices.is_empty());
    let bytes = with_vertices.map(|own| own.memory.as_ref().map(TileBytes::total));
    let bytes: Vec<Option<u64>> = bytes.collect();
    if bytes.iter().all(Option::is_none) {
        return None;
    }
    let have_memory = bytes.into_iter().map(|own| own.unwrap_or(0) > 0);
    of_code("memory_by_compute_set", have_memory)
}

/// Exchanges have code.
fn exchange_code(profile: &Profile) -> Option<Contradiction> {
    let programs = profile.programs.all.iter();
    let have_code = programs.filter_map(|own| match &own.kind {
        ProgramKind::DoExchange(code) => Some(code.total() > 0),
        _ => None,
    });
    of_code("program_type_do_exchange", have_code)
}

/// `have_code` says of each whether it has any.
fn of_code(table: &str, have_code: impl Iterator<Item = bool>) -> Option<Contradiction> {
    let mut numbers = [0; 2];
    for has_code in have_code {
        numbers[0] += u64::from(has_code);
        numbers[1] += 1;
    }
    Contradiction::of_all(Witness::Code, table, numbers)
}

/// Programs whose compute set has a debug context have one too.
fn contexts(profile: &Profile) -> Option<Contradiction> {
    let programs = &profile.programs;
    let mut numbers = [0; 2];
    for program in &programs.all {
        let ProgramKind::OnTileExecute(set) = program.kind else {
            continue;
        };
        if programs.compute_sets[set as usize].debug_id > 0 {
            numbers[0] += u64::from(program.debug_id > 0);
            numbers[1] += 1;
        }
    }
    Contradiction::of_all(Witness::Contexts, "programs", numbers)
}

/// The vertices by tile are as many as compute sets count. How they are counted where a
/// file lists one of several replicas is not known.
fn vertices(profile: &Profile) -> Option<Contradiction> {
    let sets = &profile.programs.compute_sets;
    if profile.target.num_replicas > 1 || sets.iter().any(|own| own.counted.is_none()) {
        return None;
    }
    let listed = sets.iter().flat_map(|own| &own.vertices);
    let listed = listed.map(|(_, by_tile)| by_tile.total());
    let counted = sets.iter().filter_map(|own| own.counted);
    let numbers = [
        listed.fold(0, u64::saturating_add),
        counted.fold(0, u64::saturating_add),
    ];
    Contradiction::of_all(Witness::Vertices, "vertex_instances", numbers)
}

/// The category of what a program must use, since it is made for that.
const USER_DATA: &str = "variable";

/// Compute sets and exchanges use every byte of user data (checked on a real profile).
fn unused(profile: &Profile, set_of: &[u32]) -> Option<Contradiction> {
    let variables = &profile.variables;
    let mut bytes = vec![0u64; profile.target.num_tiles as usize];
    for position in unused_variables(profile, set_of)? {
        bytes[usize::from(variables.tiles[position])] += u64::from(variables.bytes[position]);
    }
    let recorded = &profile.recorded.tiles;
    let fullest = recorded.iter().map(|own| own.total).max().unwrap_or(0);
    let pairs = (0u32..).zip(bytes).map(|(tile, recorded)| Pair {
        tile,
        recorded,
        computed: 0,
        whole: fullest,
        is_certain: true,
    });
    worst(Witness::Used, "compute_sets", pairs)
}

/// The variables with user data that are on no list; `None` if all are. What operations
/// use, which are nearly all, need not be looked for.
fn unused_variables(profile: &Profile, set_of: &[u32]) -> Option<Vec<usize>> {
    let variables = &profile.variables;
    let mut names = variables.category_names.iter();
    let category = names.position(|name| name == USER_DATA)?;
    let may_be_unused = |&position: &usize| {
        set_of[position] == NO_USERS
            && usize::from(variables.categories[position]) == category
            && variables.classes[position] != NEVER_LIVE
    };
    let all = (0..set_of.len()).into_par_iter();
    let mut unused: Vec<usize> = all.filter(may_be_unused).collect();
    if unused.is_empty() {
        return None;
    }
    let mut is_used = vec![false; set_of.len()];
    for lists in [&profile.compute_set_variables, &profile.region_variables] {
        for &member in lists.all_members() {
            is_used[member as usize] = true;
        }
    }
    unused.retain(|&position| !is_used[position]);
    Some(unused)
}
