//! Does what programs say agree with what they use, and with the variables? (See
//! [`crate::witnesses`].)

use super::{CodeKind, NO_USERS};
use crate::profile::{NEVER_LIVE, Profile, Program, ProgramKind, Programs, TileBytes};
use crate::witnesses::{Contradiction, Pair, TOLERATED, Witness, worst};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

/// Numbers that should agree and do not; `set_of` has the use set of each
/// lowered variable.
pub(super) fn contradictions(profile: &Profile, set_of: &[u32]) -> Vec<Contradiction> {
    let found = [
        roots(profile),
        steps(profile),
        contexts(profile),
        vertices(profile),
        vertex_code(profile),
        vertex_memory(profile),
        exchange_code(profile),
        unused(profile, set_of),
    ];
    let of_kinds = CodeKind::ALL.into_iter().map(|kind| code_of(profile, kind));
    found.into_iter().chain(of_kinds).flatten().collect()
}

/// The types of all vertices that run have code.
fn vertex_code(profile: &Profile) -> Option<Contradiction> {
    let Programs {
        compute_sets,
        vertex_types,
        ..
    } = &profile.programs;
    let mut runs = vec![false; vertex_types.len()];
    for (vertex_type, _) in compute_sets
        .iter()
        .flat_map(|compute_set| &compute_set.vertices)
    {
        runs[*vertex_type as usize] = true;
    }
    let running = vertex_types.iter().zip(runs).filter(|(_, runs)| *runs);
    let have_code = running.map(|(vertex_type, _)| vertex_type.code.total() > 0);
    of_code("memory_by_vertex_type", have_code)
}

/// Compute sets with vertices have memory for these, where the profile says so of any.
fn vertex_memory(profile: &Profile) -> Option<Contradiction> {
    let sets = profile.programs.compute_sets.iter();
    let with_vertices = sets.filter(|compute_set| !compute_set.vertices.is_empty());
    let bytes = with_vertices.map(|compute_set| compute_set.memory.as_ref().map(TileBytes::total));
    let bytes: Vec<Option<u64>> = bytes.collect();
    if bytes.iter().all(Option::is_none) {
        return None;
    }
    let have_memory = bytes.into_iter().map(|bytes| bytes.unwrap_or(0) > 0);
    of_code("memory_by_compute_set", have_memory)
}

/// Exchanges have code.
fn exchange_code(profile: &Profile) -> Option<Contradiction> {
    let programs = profile.programs.all.iter();
    let have_code = programs.filter_map(|program| match &program.kind {
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

/// Code that no program or vertex type has: a tile of a real profile has 178 bytes of
/// run-time codelets, and 8 for each piece of its exchanges. So much is not looked at; but
/// the state of vertices is complete there.
const CODE_OF_NONE: u64 = 1 << 10;

/// Programs and vertices have no more code than was recorded, and most of it; only exchanges
/// may use each other's, and whether a Call lists its function's control code is not known.
/// How much the compiler adds to larger models is not known either: what is missing is said,
/// and every stage gets it.
fn code_of(profile: &Profile, kind: CodeKind) -> Option<Contradiction> {
    let recorded = &profile.recorded;
    let fullest = recorded.fullest()?;
    let silent = match kind {
        CodeKind::VertexState => 0,
        _ => CODE_OF_NONE.max(fullest / TOLERATED),
    };
    let categories = recorded.categories.iter();
    let category =
        categories.filter(|category| CodeKind::of_category(&category.name) == Some(kind));
    let tiles = recorded.tiles.len();
    let recorded = added_up(category.map(|category| &category.bytes), tiles);
    let computed = added_up(listed(profile, kind)?, tiles);
    let pairs = (0u32..).zip(recorded.into_iter().zip(computed));
    let is_shared = matches!(kind, CodeKind::ExchangeCode | CodeKind::ControlCode);
    let pairs = pairs.filter(
        |(_, (recorded, computed))| match recorded.checked_sub(*computed) {
            Some(missing) => missing > silent,
            None => !is_shared,
        },
    );
    let pairs = pairs.map(|(tile, (recorded, computed))| Pair {
        tile,
        recorded,
        computed,
        whole: fullest,
        is_certain: recorded < computed,
    });
    let found = worst(Witness::CodeBytes, "memory_by_category", pairs)?;
    Some(found.in_row(format!("`{}`", kind.categories().join("` + `"))))
}

/// The code of each program, compute set or vertex type; `None` where the profile does not
/// say. A program with children has code of its own too, which is not known apart.
fn listed<'a>(profile: &'a Profile, kind: CodeKind) -> Option<Vec<&'a TileBytes>> {
    let programs = &profile.programs;
    Some(match kind {
        CodeKind::VertexCode => programs
            .vertex_types
            .iter()
            .map(|vertex_type| &vertex_type.code)
            .collect(),
        CodeKind::VertexState => {
            let sets = programs.compute_sets.iter();
            let recorded: Vec<_> = sets
                .filter_map(|compute_set| compute_set.memory.as_ref())
                .collect();
            return Some(recorded).filter(|recorded| !recorded.is_empty());
        }
        CodeKind::ExchangeCode => {
            let code = |program: &'a Program| match &program.kind {
                ProgramKind::DoExchange(code) => Some(code),
                _ => None,
            };
            programs.all.iter().filter_map(code).collect()
        }
        CodeKind::ControlCode => programs
            .all
            .iter()
            .map(|program| &program.control_code)
            .collect(),
    })
}

fn added_up<'a>(parts: impl IntoIterator<Item = &'a TileBytes>, tiles: usize) -> Vec<u64> {
    let mut sums = vec![0; tiles];
    for part in parts {
        part.change(&mut sums, u64::saturating_add);
    }
    sums
}

/// A step below another runs a child of what that runs (so do all of a real profile). Where
/// the body of a function stands below a Call is not known.
fn steps(profile: &Profile) -> Option<Contradiction> {
    let programs = &profile.programs.all;
    let mut children = FxHashSet::default();
    for (program, parent) in (0u32..).zip(programs) {
        children.extend(parent.children.iter().map(|&child| (program, child)));
    }
    let mut numbers = [0; 2];
    for step in &profile.steps {
        let Some(parent) = step.parent else { continue };
        let above = profile.steps[parent as usize].program;
        let is_call = matches!(programs[above as usize].kind, ProgramKind::Call(_));
        numbers[0] += u64::from(is_call || children.contains(&(above, step.program)));
        numbers[1] += 1;
    }
    Contradiction::of_all(Witness::Steps, "depth_first_steps", numbers)
}

/// Steps that no step leads to run the roots of the tree of programs (as the only one of a
/// real profile does), or bodies of functions.
fn roots(profile: &Profile) -> Option<Contradiction> {
    let programs = &profile.programs;
    let mut is_root = vec![false; programs.all.len()];
    let bodies = programs
        .all
        .iter()
        .filter_map(|program| match program.kind {
            ProgramKind::Call(body) => Some(body),
            _ => None,
        });
    for program in bodies.chain(programs.roots.iter().copied()) {
        is_root[program as usize] = true;
    }
    let first = profile.steps.iter().filter(|step| step.parent.is_none());
    let mut numbers = [0; 2];
    for step in first {
        numbers[0] += u64::from(is_root[step.program as usize]);
        numbers[1] += 1;
    }
    Contradiction::of_all(Witness::Roots, "control_programs", numbers)
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
    if profile.target.num_replicas > 1
        || sets.iter().any(|compute_set| compute_set.counted.is_none())
    {
        return None;
    }
    let listed = sets.iter().flat_map(|compute_set| &compute_set.vertices);
    let listed = listed.map(|(_, by_tile)| by_tile.total());
    let counted = sets.iter().filter_map(|compute_set| compute_set.counted);
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
    let fullest = profile.recorded.fullest().unwrap_or(0);
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
