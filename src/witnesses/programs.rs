//! Compares the programs of a profile with its other data: their place in the program tree with the
//! liveness steps, their vertices with the numbers of the compute sets, and their code with the
//! recorded code. Also finds programs without debug contexts or regions.

use super::contradiction::{Contradiction, Witness, worst};
use crate::profile::{CATEGORIES, CodeKind, ComputeSet, Profile, Program, ProgramKind, Programs};
use rustc_hash::FxHashSet;

/// Returns the contradictions about programs:
/// - programs with a wrong place in the program tree, without a debug context, or with a wrong
///   number of vertices;
/// - exchanges whose regions are missing;
/// - code with another number of bytes than the profile records.
pub fn check_programs(profile: &Profile) -> Vec<Contradiction> {
    let programs = &profile.programs;
    let mut unreached = vec![false; programs.all.len()];
    let is_reached = reached(programs, programs.roots.clone());
    for program in profile.steps.iter().map(|step| step.program as usize) {
        unreached[program] = !is_reached[program];
    }
    let without_own = |program: &Program| {
        let set = programs.set_of(program);
        program.debug_id == 0 && set.is_some_and(|set| set.debug_id != 0)
    };
    let with_other_vertices = |program: &Program| {
        let listed =
            |set: &ComputeSet| -> u64 { set.vertices.iter().map(|(_, own)| own.total()).sum() };
        // If there are several replicas, the vertices are not compared: the profile lists the
        // vertices of one replica, and it is unknown which replicas the number of vertices counts.
        profile.target.num_replicas == 1
            && programs
                .set_of(program)
                .is_some_and(|set| set.counted.is_some_and(|counted| listed(set) != counted))
    };
    let lacking = |table, what, lack: Vec<bool>| {
        let count = lack.iter().filter(|lacks| **lacks).count();
        let row = format!("{what}: {count} of {}", lack.len());
        (count > 0).then(|| {
            let bytes = bytes_of(profile, &lack);
            Contradiction::lacking(Witness::Programs, table, row, bytes, &profile.recorded)
        })
    };
    let found = [
        lacking(
            "depth_first_steps",
            "programs without a step below one that runs them",
            misplaced(profile),
        ),
        lacking(
            "control_programs",
            "programs of steps that no root leads to",
            unreached,
        ),
        lacking(
            "programs",
            "programs without a context whose compute set has one",
            programs.all.iter().map(without_own).collect(),
        ),
        lacking(
            "vertex_instances",
            "programs with other vertices than their compute set counts",
            programs.all.iter().map(with_other_vertices).collect(),
        ),
    ];
    // If any program refers to the table `exchange_regions`, the table must not be empty, since
    // only this table tells which variables exchanges move.
    let exchanges = programs
        .all
        .iter()
        .filter(|program| !program.regions.is_empty())
        .count();
    let of_regions = (exchanges > 0 && profile.region_variables.is_empty())
        .then(|| Contradiction::without_rows("exchange_regions", exchanges as u64));
    found
        .into_iter()
        .chain(CodeKind::ALL.map(|kind| compare_code(profile, kind)))
        .chain([of_regions])
        .flatten()
        .collect()
}

/// Returns one entry per tile: the bytes of the variables, the code and the vertex state of all
/// programs that lack some data, such as a debug context. `lack` has one entry per program: whether
/// it lacks such data. The result is an upper bound on the bytes that may be attributed to the
/// wrong layer: variables that other programs use too may still be in the right layer.
pub fn bytes_of(profile: &Profile, lack: &[bool]) -> Vec<u64> {
    let programs = &profile.programs;
    let mut bytes = vec![0u64; profile.target.num_tiles as usize];
    let mut lacking: Vec<u32> = (0..lack.len() as u32).collect();
    lacking.retain(|&program| lack[program as usize]);
    let (mut sets, mut types) = (FxHashSet::default(), FxHashSet::default());
    for &program in &lacking {
        let program = &programs.all[program as usize];
        program.control_code.add_to(&mut bytes);
        match &program.kind {
            ProgramKind::DoExchange(code) => code.add_to(&mut bytes),
            ProgramKind::OnTileExecute(set) => _ = sets.insert(*set),
            _ => {}
        }
    }
    for set in sets {
        let set = &programs.compute_sets[set as usize];
        add_state(programs, set, &mut bytes);
        types.extend(set.vertices.iter().map(|(vertex_type, _)| *vertex_type));
    }
    for vertex_type in types {
        programs.vertex_types[vertex_type as usize]
            .code
            .add_to(&mut bytes);
    }
    let mut is_used = vec![false; profile.variables.len()];
    let members = profile
        .variables_of(&lacking)
        .into_iter()
        .flatten()
        .filter(|&&member| !std::mem::replace(&mut is_used[member as usize], true));
    profile.variables.add_to(members, &mut bytes);
    bytes
}

/// Adds the bytes of vertex state of the compute set `set` to `sums`, which has one entry per tile.
/// If the profile does not record them, they are computed: for each vertex type, the state of one
/// vertex times the number of vertices.
fn add_state(programs: &Programs, set: &ComputeSet, sums: &mut [u64]) {
    if let Some(memory) = &set.memory {
        return memory.add_to(sums);
    }
    for (instances, size) in programs.states(set) {
        instances.add_times(size, sums);
    }
}

/// Returns one entry per program: whether the program may have a wrong place in the program tree.
/// If a liveness step has a parent step, its program should be a child of the parent step's
/// program. If it is not, the result is true for this program and all children of the parent step's
/// program. It is false for all programs of a real profile. Children of a Call are not checked,
/// since it is unknown how their steps are nested.
fn misplaced(profile: &Profile) -> Vec<bool> {
    let programs = &profile.programs.all;
    let mut children = FxHashSet::default();
    for (program, parent) in (0u32..).zip(programs) {
        children.extend(parent.children.iter().map(|&child| (program, child)));
    }
    let mut lack = vec![false; programs.len()];
    for step in &profile.steps {
        let Some(parent) = step.parent else { continue };
        let above = profile.steps[parent as usize].program;
        let found = &programs[above as usize];
        if !matches!(found.kind, ProgramKind::Call(_)) && !children.contains(&(above, step.program))
        {
            for &program in found.children.iter().chain([&step.program]) {
                lack[program as usize] = true;
            }
        }
    }
    lack
}

/// Finds the programs in `open`, which are indices into `programs.all`, and all programs that these
/// run, directly or indirectly, as their children or by a Call. Returns one entry per program:
/// whether it was found.
pub fn reached(programs: &Programs, mut open: Vec<u32>) -> Vec<bool> {
    let mut is_reached = vec![false; programs.all.len()];
    while let Some(program) = open.pop() {
        if std::mem::replace(&mut is_reached[program as usize], true) {
            continue;
        }
        let found = &programs.all[program as usize];
        open.extend(found.children.iter().copied());
        if let ProgramKind::Call(body) = found.kind {
            open.push(body);
        }
    }
    is_reached
}

/// Bytes of recorded code on a tile that may belong to no program without a contradiction; if a
/// hundredth of the bytes of the fullest tile is more, that many. In a real profile, a tile has 178
/// bytes of run-time codelets that belong to no program, and 8 bytes for each part of its
/// exchanges.
const CODE_OF_NONE: u64 = 1 << 10;

/// Compares the code of programs and vertex types with the recorded code of `kind` on each tile.
/// Returns a contradiction about the tile with the most bytes that may be attributed to the wrong
/// layer. Returns `None` if all differences are allowed, or if `kind` is vertex state and the
/// profile does not record it.
///
/// - If programs and vertex types have more code than is recorded, this is a contradiction, except
///   for exchange and control code, which programs may share.
/// - Recorded code that belongs to no program is usually harmless, since every stage gets it. It
///   counts as attributed to the wrong layer only if it is vertex state, or if programs and vertex
///   types have less than half of the recorded code.
fn compare_code(profile: &Profile, kind: CodeKind) -> Option<Contradiction> {
    let recorded = &profile.recorded;
    let fullest = recorded.fullest()?;
    let mut of_categories = vec![0u64; recorded.tiles.len()];
    for category in &recorded.categories {
        if CodeKind::of_category(&category.name) == Some(kind) {
            category.bytes.add_to(&mut of_categories);
        }
    }
    let (bytes, is_whole) = listed_code(profile, kind)?;
    let [all, of_programs] = [&of_categories, &bytes].map(|bytes| bytes.iter().sum::<u64>());
    let is_certain = kind == CodeKind::VertexState || of_programs < all / 2;
    let silent = u64::from(is_whole) * CODE_OF_NONE.max(fullest / 100);
    let is_shared = matches!(kind, CodeKind::ExchangeCode | CodeKind::ControlCode);
    let numbers = of_categories.into_iter().zip(bytes).map(|(all, listed)| {
        let missing = all.checked_sub(listed);
        let is_allowed = missing.map_or(is_shared, |missing| missing <= silent);
        [if is_allowed { listed } else { all }, listed]
    });
    let misplaced = |recorded: u64, computed| {
        u64::from(is_certain || recorded < computed) * recorded.abs_diff(computed)
    };
    let worst = worst(Witness::Code, CATEGORIES, fullest, numbers, misplaced)?;
    Some(worst.in_row(format!("`{}`", kind.categories().join("` + `"))))
}

/// Returns for each tile the bytes of `kind` (a kind of code, or vertex state) that the profile
/// lists for programs and vertex types. Returns `None` if `kind` is vertex state and the profile
/// does not list it.
///
/// Also returns whether the recorded code may slightly exceed these bytes ([`CODE_OF_NONE`]), since
/// some code belongs to no program:
/// - control code: always
/// - vertex state: never
/// - vertex or exchange code: only if each vertex type in use, or each exchange, has code in the
///   profile. Otherwise, the difference may be missing code.
fn listed_code(profile: &Profile, kind: CodeKind) -> Option<(Vec<u64>, bool)> {
    let programs = &profile.programs;
    let mut bytes = vec![0u64; profile.recorded.tiles.len()];
    let mut is_whole = true;
    match kind {
        CodeKind::VertexCode => {
            let mut used = programs.compute_sets.iter().flat_map(|set| &set.vertices);
            let types = &programs.vertex_types;
            is_whole = used.all(|(used, _)| types[*used as usize].code.total() > 0);
            types.iter().for_each(|own| own.code.add_to(&mut bytes));
        }
        CodeKind::VertexState => {
            is_whole = false;
            let sets = profile
                .has_vertex_memory
                .then_some(&programs.compute_sets)?;
            sets.iter()
                .for_each(|set| add_state(programs, set, &mut bytes));
        }
        CodeKind::ExchangeCode => {
            for program in &programs.all {
                if let ProgramKind::DoExchange(code) = &program.kind {
                    is_whole &= code.total() > 0;
                    code.add_to(&mut bytes);
                }
            }
        }
        CodeKind::ControlCode => {
            programs
                .all
                .iter()
                .for_each(|own| own.control_code.add_to(&mut bytes));
        }
    }
    Some((bytes, is_whole))
}
