//! The walk over the program tree (docs/model.md, "The walk"), and the Calls of functions that are
//! called from several places in the program.

use super::lists::counts;
use crate::limits;
use crate::message::{FileError, OVER_BOUND, PROFILE_AGAIN};
use crate::profile::{Program, ProgramKind, Programs};
use rustc_hash::{FxHashMap, FxHashSet};
use std::iter::successors;

/// A call path, as an index into [`CallPaths::nodes`]. The call path of a program lists the Call
/// programs on the way from the root to the program, the outermost Call first.
pub(super) type Path = u32;

/// The call path of programs that run outside all Calls.
pub(super) const EMPTY_PATH: Path = 0;

/// All call paths of a program tree. Each path is stored once, as a path without its innermost
/// Call, and this Call.
#[derive(Clone)]
pub(super) struct CallPaths {
    nodes: Vec<(Path, u32)>,
    longer: FxHashMap<(Path, u32), Path>,
}

impl CallPaths {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![(EMPTY_PATH, u32::MAX)],
            longer: FxHashMap::default(),
        }
    }

    /// Returns the path that consists of `path` and the Call `call` (an index into
    /// `Programs::all`), and adds it if it is new.
    pub(super) fn push(&mut self, path: Path, call: u32) -> Path {
        *self.longer.entry((path, call)).or_insert_with(|| {
            self.nodes.push((path, call));
            self.nodes.len() as Path - 1
        })
    }

    /// Returns the number of call paths. Each [`Path`] is below this number.
    pub(super) fn len(&self) -> Path {
        self.nodes.len() as Path
    }

    /// Returns the path that consists of `path` and the Call `call` (an index into
    /// `Programs::all`); `None` if this path was never added.
    pub(super) fn find(&self, path: Path, call: u32) -> Option<Path> {
        self.longer.get(&(path, call)).copied()
    }

    /// Iterates over all call paths except the empty path, so that each path comes after its
    /// prefixes. Each item is a path, the path without its innermost Call, and this Call as an
    /// index into `Programs::all`.
    pub(super) fn all(&self) -> impl Iterator<Item = (Path, Path, u32)> + '_ {
        (0..)
            .zip(&self.nodes)
            .skip(1)
            .map(|(path, &(outer, call))| (path, outer, call))
    }

    /// Iterates over the Calls of `path`, from the innermost to the outermost, as indices into
    /// `Programs::all`.
    pub(super) fn innermost_first(&self, path: Path) -> impl Iterator<Item = u32> + '_ {
        successors(Some(path), |&path| Some(self.nodes[path as usize].0))
            .take_while(|&path| path != EMPTY_PATH)
            .map(|path| self.nodes[path as usize].1)
    }
}

/// The result of a walk over the program tree: its visits, in depth-first order. A visit is a
/// program on a call path.
pub(super) struct Walk {
    pub(super) paths: CallPaths,
    /// One entry per visit: the call path, and the visited program as an index into
    /// `Programs::all`.
    pub(super) visits: Vec<(Path, u32)>,
    /// Map from a call path and a program to the index of their visit in `visits`.
    numbers: FxHashMap<(Path, u32), u32>,
    /// Indices into `visits` in the order in which the visits ended. The visit of a child ends
    /// before the visits of its parents.
    ended: Vec<u32>,
}

impl Walk {
    /// Returns the call path of the programs directly below `program`, where `index` is the index
    /// of `program` in `Programs::all`, and `path` is its own call path. Adds the returned path if
    /// it is new.
    ///
    /// # Errors
    /// If the program is a Call that is nested in [`limits::NESTED_CALLS`] other Calls or more.
    fn path_below(&mut self, path: Path, index: u32, program: &Program) -> Result<Path, FileError> {
        if !matches!(program.kind, ProgramKind::Call(_)) {
            return Ok(path);
        }
        if self.paths.innermost_first(path).count() >= limits::NESTED_CALLS {
            return Err(FileError::new(format!(
                "table `programs` or `program_type_call`: Calls are nested more than {} deep at \
                 program {}, deeper than in any real model; {OVER_BOUND}",
                limits::NESTED_CALLS,
                program.id
            )));
        }
        Ok(self.paths.push(path, index))
    }

    /// Returns the index in `visits` of the visit of `program` on the call path `path`; `None` if
    /// there is no such visit.
    pub(super) fn visit(&self, path: Path, program: u32) -> Option<u32> {
        self.numbers.get(&(path, program)).copied()
    }

    /// Returns one entry per visit: how often the program runs on its call path if each root runs
    /// once. The body of a Repeat runs as often as `repeats` gives for the index of the Repeat, or
    /// once if `repeats` has no entry for it. Any other child runs once for each time that its
    /// parent lists it, even if the parent is a branch. Numbers above [`limits::EXECUTIONS`] are
    /// reduced to this limit.
    pub(super) fn executions(
        &self,
        programs: &Programs,
        repeats: &FxHashMap<u32, u64>,
    ) -> Vec<u64> {
        let mut counts = vec![0u64; self.visits.len()];
        let add = |counts: &mut [u64], path, all: &[u32], more: u64| {
            for number in all.iter().filter_map(|&program| self.visit(path, program)) {
                let count = &mut counts[number as usize];
                *count = count.saturating_add(more).min(limits::EXECUTIONS);
            }
        };
        add(&mut counts, EMPTY_PATH, &programs.roots, 1);
        for &number in self.ended.iter().rev() {
            let (path, program) = self.visits[number as usize];
            let times = repeats.get(&program).copied().unwrap_or(1);
            let count = counts[number as usize].saturating_mul(times);
            let longer = self.paths.find(path, program).unwrap_or(path);
            let below = below(&programs.all[program as usize]);
            add(&mut counts, longer, below, count);
        }
        counts
    }
}

/// Returns the programs directly below `program` in the program tree, as indices into
/// `Programs::all`: the body of a Call, or the children of any other program.
fn below(program: &Program) -> &[u32] {
    match &program.kind {
        ProgramKind::Call(body) => std::slice::from_ref(body),
        _ => &program.children,
    }
}

/// A pending action of the walk over the program tree.
enum Next {
    /// Visit the program with this index into `Programs::all` on this call path.
    Begin(Path, u32),
    /// End the visit with this index into [`Walk::visits`], because all programs below its program
    /// were visited.
    End(u32),
}

/// Walks the program tree depth first, parents before children, and calls `visit` with the call
/// path and the index in `Programs::all` of each program. A program is visited only once on each
/// call path, because a second visit would add nothing to any operation.
///
/// # Errors
/// If a program leads back to itself, Calls are nested too deep, or there are too many visits.
pub(super) fn walk(
    programs: &Programs,
    mut visit: impl FnMut(Path, u32),
) -> Result<Walk, FileError> {
    let mut walk = Walk {
        paths: CallPaths::new(),
        visits: Vec::new(),
        numbers: FxHashMap::default(),
        ended: Vec::new(),
    };
    let mut on_way = vec![false; programs.all.len()];
    let max = limits::VISITS.of(programs.all.len());
    let mut stack: Vec<Next> = programs
        .roots
        .iter()
        .rev()
        .map(|&root| Next::Begin(EMPTY_PATH, root))
        .collect();
    while let Some(next) = stack.pop() {
        let (path, index) = match next {
            Next::Begin(path, index) => (path, index),
            Next::End(number) => {
                on_way[walk.visits[number as usize].1 as usize] = false;
                walk.ended.push(number);
                continue;
            }
        };
        let program = &programs.all[index as usize];
        if on_way[index as usize] {
            return Err(FileError::new(format!(
                "table `programs`: program {} leads to itself through its children or calls; \
                 {PROFILE_AGAIN}",
                program.id
            )));
        }
        if walk.visit(path, index).is_none() {
            let number = walk.visits.len();
            if number >= max {
                return Err(FileError::new(format!(
                    "table `programs` or `program_type_call`: the program tree unfolds to more \
                     than {max} visits of programs, more than any real model has; {OVER_BOUND}"
                )));
            }
            walk.numbers.insert((path, index), number as u32);
            walk.visits.push((path, index));
            stack.push(Next::End(number as u32));
            let below_path = walk.path_below(path, index, program)?;
            visit(path, index);
            on_way[index as usize] = true;
            let children = below(program).iter().rev();
            stack.extend(children.map(|&child| Next::Begin(below_path, child)));
        }
    }
    Ok(walk)
}

/// Value instead of an index into [`Model::calls`](super::Model::calls), for an operation that is
/// not part of any call of a function that is called from several places.
pub const NO_CALL: u32 = u32::MAX;

/// The Calls of functions that are called from several places in the program, that is on several
/// call paths.
pub(super) struct CallSites {
    /// One entry per call path: the shortest prefix of the path (possibly the path itself) that
    /// ends with a Call of a function that is called from several places; `None` if there is no
    /// such prefix.
    pub(super) outermost: Vec<Option<Path>>,
    /// One entry per call path: the innermost Call on the path of a function that is called from
    /// several places, as an index into `functions`, or [`NO_CALL`]. A Call is ignored if debug
    /// contexts record which operations its body replaced.
    pub(super) call_of: Vec<u32>,
    /// One entry per Call in `call_of`: the called function, as the index of its body in
    /// `Programs::all`.
    pub(super) functions: Vec<u32>,
}

impl CallSites {
    /// Finds the Calls of functions that are called from several places, on all `paths`.
    /// `with_pairs` has the call paths for whose innermost Call debug contexts record which
    /// operations the called body replaced.
    pub(super) fn new(
        programs: &Programs,
        paths: &CallPaths,
        with_pairs: &FxHashSet<Path>,
    ) -> Self {
        let function = |call: u32| match programs.all[call as usize].kind {
            ProgramKind::Call(body) => body,
            _ => call,
        };
        let callers = counts(paths.all().map(|(_, _, call)| function(call)));
        let mut sites = Self {
            outermost: vec![None],
            call_of: vec![NO_CALL],
            functions: Vec::new(),
        };
        for (path, outer, call) in paths.all() {
            let function = Some(function(call)).filter(|function| callers[function] > 1);
            let outermost = sites.outermost[outer as usize].or(function.map(|_| path));
            sites.outermost.push(outermost);
            let mut call_of = sites.call_of[outer as usize];
            if let Some(function) = function.filter(|_| !with_pairs.contains(&path)) {
                call_of = sites.functions.len() as u32;
                sites.functions.push(function);
            }
            sites.call_of.push(call_of);
        }
        sites
    }
}
