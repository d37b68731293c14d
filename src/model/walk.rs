//! Walks the program tree (docs/model.md, "The walk"), finds the Calls of functions that are called
//! from several places in the program, and finds the liveness steps of each operation
//! (docs/model.md, "Operations").

use super::{counts, operations::UnnamedOperation};
use crate::{
    limits,
    message::{FileError, OVER_BOUND, PROFILE_AGAIN, unusable},
    profile::{Program, ProgramKind, Programs, Step},
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::iter::successors;

/// A number that stands for a call path: the Call programs that lead from the root of the program
/// tree to a program, the outermost Call first. 0 ([`EMPTY_PATH`]) stands for no Calls, and n for
/// entry n - 1 of [`CallPaths::nodes`].
pub type Path = usize;

/// The call path (list of Calls) of programs that run outside all Calls.
pub const EMPTY_PATH: Path = 0;

/// All call paths (lists of Calls) of a program tree except [`EMPTY_PATH`]. A path is stored as the
/// path without its innermost Call, and this Call, so that common beginnings are stored once. Path
/// 1 is the first entry of `nodes`.
#[derive(Clone, Default)]
pub struct CallPaths {
    /// One entry per call path (list of Calls): the path without its innermost Call, and this Call
    /// as an index into `Programs::all`. The shorter path always comes before the longer one.
    pub nodes: Vec<(Path, u32)>,
    longer: FxHashMap<(Path, u32), Path>,
}

impl CallPaths {
    fn push(&mut self, path: Path, call: u32) -> Path {
        *self.longer.entry((path, call)).or_insert_with(|| {
            self.nodes.push((path, call));
            self.nodes.len()
        })
    }

    fn innermost_first(&self, path: Path) -> impl Iterator<Item = u32> {
        let innermost = |path: Path| path.checked_sub(1).map(|at| self.nodes[at]);
        successors(innermost(path), move |&(outer, _)| innermost(outer)).map(|(_, call)| call)
    }
}

/// The result of a depth-first walk over the program tree. A program is visited once on each call
/// path, that is, for each sequence of Calls that leads to the program.
#[derive(Default)]
pub struct Walk {
    pub paths: CallPaths,
    /// One entry per visit of a program: the call path (the Calls that lead to the program), and
    /// the program as an index into `Programs::all`.
    pub visits: Vec<(Path, u32)>,
    numbers: FxHashMap<(Path, u32), usize>,
    /// The visits of programs in the order in which they ended, as indices into `visits`. The visit
    /// of a child ends before the visits of its parents.
    ended: Vec<usize>,
}

impl Walk {
    /// Returns the call path (list of Calls) of the programs directly below `program`, whose own
    /// call path is `path`. If `program` is a Call, the result is `path` with this Call (`index`)
    /// as the innermost one. Otherwise, the result is `path`.
    fn path_below(&mut self, path: Path, index: u32, program: &Program) -> Result<Path, FileError> {
        if !matches!(program.kind, ProgramKind::Call(_)) {
            return Ok(path);
        }
        if self.paths.innermost_first(path).count() >= limits::NESTED_CALLS {
            return unusable(format!(
                "table `programs` or `program_type_call`: Calls are nested more than {} deep at \
                 program {}, deeper than in any real model; {OVER_BOUND}",
                limits::NESTED_CALLS,
                program.id
            ));
        }
        Ok(self.paths.push(path, index))
    }

    pub fn visit(&self, path: Path, program: u32) -> Option<usize> {
        self.numbers.get(&(path, program)).copied()
    }

    /// Returns how often each visited program runs if each root of the program tree runs once. For
    /// each run of a Repeat, its body runs as often as the map `repeats` says for the index of the
    /// Repeat, or once if the map does not have it. For each run of any other program, each of
    /// its children runs once. This holds even for branches, although a real run takes only one of
    /// them. Results are limited to [`limits::EXECUTIONS`].
    pub fn executions(&self, programs: &Programs, repeats: &FxHashMap<u32, u64>) -> Vec<u64> {
        let mut counts = vec![0u64; self.visits.len()];
        let add = |counts: &mut [u64], path, all: &[u32], more: u64| {
            for number in all.iter().filter_map(|&program| self.visit(path, program)) {
                let count = &mut counts[number];
                *count = count.saturating_add(more).min(limits::EXECUTIONS);
            }
        };
        add(&mut counts, EMPTY_PATH, &programs.roots, 1);
        for &number in self.ended.iter().rev() {
            let (path, program) = self.visits[number];
            let count = counts[number].saturating_mul(*repeats.get(&program).unwrap_or(&1));
            let longer = self.paths.longer.get(&(path, program)).unwrap_or(&path);
            let below = below(&programs.all[program as usize]);
            add(&mut counts, *longer, below, count);
        }
        counts
    }
}

/// Returns the programs directly below `program` in the program tree: the body of a Call, or the
/// children of any other program.
fn below(program: &Program) -> &[u32] {
    match &program.kind {
        ProgramKind::Call(body) => std::slice::from_ref(body),
        _ => &program.children,
    }
}

/// Walks the program tree depth first, parents before children. A program is visited only once for
/// each sequence of Calls that leads to it, because a second visit would add nothing to any
/// operation.
///
/// # Errors
/// If a program leads back to itself, Calls are nested too deep, or there are too many visits.
pub fn walk(programs: &Programs) -> Result<Walk, FileError> {
    let mut walk = Walk::default();
    let mut on_way = vec![false; programs.all.len()];
    let max = limits::VISITS.of(programs.all.len());
    // One entry per visit that has begun and not ended, outermost first: the index of the visit,
    // the call path (list of Calls) of the programs below the visited one, and the programs below
    // it that are still to be visited. The first entry stands for the whole program tree.
    let mut stack = vec![(None::<usize>, EMPTY_PATH, programs.roots.iter())];
    while let Some((visit, path, left)) = stack.last_mut() {
        let (path, Some(&index)) = (*path, left.next()) else {
            if let &mut Some(visit) = visit {
                on_way[walk.visits[visit].1 as usize] = false;
                walk.ended.push(visit);
            }
            stack.pop();
            continue;
        };
        let program = &programs.all[index as usize];
        if on_way[index as usize] {
            return unusable(format!(
                "table `programs`: program {} leads to itself through its children or calls; \
                 {PROFILE_AGAIN}",
                program.id
            ));
        }
        if walk.visit(path, index).is_none() {
            let number = walk.visits.len();
            if number >= max {
                return unusable(format!(
                    "table `programs` or `program_type_call`: the program tree unfolds to more \
                     than {max} visits of programs, more than any real model has; {OVER_BOUND}"
                ));
            }
            walk.numbers.insert((path, index), number);
            walk.visits.push((path, index));
            let below_path = walk.path_below(path, index, program)?;
            on_way[index as usize] = true;
            stack.push((Some(number), below_path, below(program).iter()));
        }
    }
    Ok(walk)
}

/// Stands for "no call" in the field `Operation::call`: the operation is in no function that is
/// called from several places.
pub const NO_CALL: u32 = u32::MAX;

/// The Calls of functions that are called from several places in the program, that is, on several
/// call paths (lists of nested Calls).
pub struct CallSites {
    /// One entry per call path (list of Calls): the beginning of the path, up to and including its
    /// first Call of a function that is called from several places; `None` if there is no such
    /// Call.
    pub outermost: Vec<Option<Path>>,
    /// One entry per call path (list of Calls): its innermost Call of a function that is called
    /// from several places, as an index into `functions`; [`NO_CALL`] if there is none. A Call does
    /// not count if debug contexts give the operations in it names of their own.
    pub call_of: Vec<u32>,
    /// One entry per Call of a function that is called from several places: the function, as the
    /// index of its body in `Programs::all`.
    pub functions: Vec<u32>,
}

impl CallSites {
    /// Finds the Calls of functions that are called from several places. For the call paths (lists
    /// of nested Calls) in `with_pairs`, debug contexts record which original operations the called
    /// function replaced. Operations on these paths have names of their own, so the innermost Call
    /// of such a path is not listed in `functions`.
    pub fn new(programs: &Programs, paths: &CallPaths, with_pairs: &FxHashSet<Path>) -> Self {
        let function = |call: u32| match programs.all[call as usize].kind {
            ProgramKind::Call(body) => body,
            _ => call,
        };
        let callers = counts(paths.nodes.iter().map(|&(_, call)| function(call)));
        let mut sites = Self {
            outermost: vec![None],
            call_of: vec![NO_CALL],
            functions: Vec::new(),
        };
        for (path, &(outer, call)) in (1..).zip(&paths.nodes) {
            let function = Some(function(call)).filter(|function| callers[function] > 1);
            let outermost = sites.outermost[outer].or(function.map(|_| path));
            sites.outermost.push(outermost);
            let mut call_of = sites.call_of[outer];
            if let Some(function) = function.filter(|_| !with_pairs.contains(&path)) {
                call_of = sites.functions.len() as u32;
                sites.functions.push(function);
            }
            sites.call_of.push(call_of);
        }
        sites
    }
}

/// The liveness steps that run each program, and the Calls that lead to each step.
pub struct StepIndex {
    /// One entry per program: the liveness steps that run the program, ascending.
    of_program: Vec<Vec<u32>>,
    /// One entry per liveness step: the Calls that lead to the step, as a call path in `paths`.
    calls: Vec<Path>,
    /// All call paths (lists of nested Calls): first those that the walk over the program tree
    /// found, then others that occur only at liveness steps. A step refers to the step that called
    /// it, so its Calls are known.
    paths: CallPaths,
    /// Number of call paths (lists of nested Calls), with the empty path, that the walk over the
    /// program tree found. A [`Path`] of this number or above occurs only at liveness steps.
    walked: Path,
}

impl StepIndex {
    pub fn new(programs: &Programs, steps: &[Step], walk: &CallPaths) -> Self {
        const UNKNOWN: Path = Path::MAX;
        let mut index = Self {
            of_program: vec![Vec::new(); programs.all.len()],
            calls: vec![UNKNOWN; steps.len()],
            paths: walk.clone(),
            walked: walk.nodes.len() + 1,
        };
        let parent_of = |step: usize| Some(steps[step].parent? as usize);
        let mut open = Vec::new();
        for start in 0..steps.len() {
            index.of_program[steps[start].program as usize].push(start as u32);
            // The call path of a step is the path of its parent step, extended by the parent's
            // program if that is a Call. So the paths of all ancestors of the step are found first.
            // If damaged data makes a step its own ancestor, the search for ancestors ends there.
            let mut next = Some(start);
            while let Some(step) = next.filter(|&step| index.calls[step] == UNKNOWN) {
                index.calls[step] = EMPTY_PATH;
                open.push(step);
                next = parent_of(step);
            }
            while let Some(step) = open.pop() {
                if let Some(parent) = parent_of(step) {
                    let (path, program) = (index.calls[parent], steps[parent].program);
                    index.calls[step] = match programs.all[program as usize].kind {
                        ProgramKind::Call(_) => index.paths.push(path, program),
                        _ => path,
                    };
                }
            }
        }
        index
    }

    pub fn of(&self, program: u32) -> &[u32] {
        &self.of_program[program as usize]
    }

    /// Returns the call path of a liveness step (the Calls that lead to the step); `None` if the
    /// walk over the program tree did not find this path.
    pub fn walk_path(&self, step: u32) -> Option<Path> {
        Some(self.calls[step as usize]).filter(|&path| path < self.walked)
    }

    /// Returns the first and the last liveness step (both inclusive) that run a program of
    /// `operation`; `None` if no step does. If the profile lists the steps of a function body once
    /// per call, only the steps of the operation's own call count: those whose call path has the
    /// longest end in common with the operation's call path.
    pub fn window(&self, operation: &UnnamedOperation) -> Option<(u32, u32)> {
        let shared = |step: u32| {
            self.paths
                .innermost_first(self.calls[step as usize])
                .zip(self.paths.innermost_first(operation.path))
                .take_while(|(a, b)| a == b)
                .count()
        };
        let (mut longest, mut window) = (0, None);
        for &step in operation
            .programs
            .iter()
            .flat_map(|&program| self.of(program))
        {
            let shared = shared(step);
            if shared > longest {
                (longest, window) = (shared, None);
            }
            if shared == longest {
                let (first, last) = window.unwrap_or((step, step));
                window = Some((step.min(first), step.max(last)));
            }
        }
        window
    }
}
