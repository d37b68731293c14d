//! The walk over the program tree (docs/model.md, "The walk"), and the calls of functions that are
//! called from several places.

use crate::limits;
use crate::message::{FileError, OVER_BOUND, PROFILE_AGAIN};
use crate::profile::{Program, ProgramKind, Programs};
use rustc_hash::FxHashMap;

/// A call path: the Call programs on the way from the root to a program, the outermost first. The
/// number is an index into [`CallPaths::nodes`].
pub(super) type Path = u32;

/// The call path of programs that run outside all Calls.
pub(super) const EMPTY_PATH: Path = 0;

/// All call paths of a program tree. Each is stored once, as a shorter path and one more Call.
#[derive(Debug)]
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

    /// Returns `path` with `call` (an index into `Programs::all`) appended, and adds that path if
    /// it is new.
    pub(super) fn push(&mut self, path: Path, call: u32) -> Path {
        *self.longer.entry((path, call)).or_insert_with(|| {
            self.nodes.push((path, call));
            self.nodes.len() as Path - 1
        })
    }

    /// Returns `path` with `call` (an index into `Programs::all`) appended; `None` if that path was
    /// never added.
    pub(super) fn find(&self, path: Path, call: u32) -> Option<Path> {
        self.longer.get(&(path, call)).copied()
    }

    /// Iterates over all paths but the empty one, each after all its prefixes. Each item is the
    /// path, the path without its innermost Call, and that Call (an index into `Programs::all`).
    pub(super) fn all(&self) -> impl Iterator<Item = (Path, Path, u32)> + '_ {
        let paths = (0..).zip(&self.nodes).skip(1);
        paths.map(|(path, &(outer, call))| (path, outer, call))
    }

    /// Iterates over the Calls of `path`, from the innermost to the outermost, as indices into
    /// `Programs::all`.
    pub(super) fn innermost_first(&self, path: Path) -> impl Iterator<Item = u32> + '_ {
        let mut path = path;
        std::iter::from_fn(move || {
            let (outer, call) = *self.nodes.get(path as usize)?;
            (path != EMPTY_PATH).then(|| {
                path = outer;
                call
            })
        })
    }
}

/// The result of a walk over the program tree: its visits, each of a program on a call path, in
/// depth-first order.
pub(super) struct Walk {
    pub(super) paths: CallPaths,
    /// By visit: the call path, and the program as an index into `Programs::all`.
    pub(super) visits: Vec<(Path, u32)>,
    /// By call path and program: the index of the visit in `visits`.
    numbers: FxHashMap<(Path, u32), u32>,
    /// Indices into `visits` in the order in which the visits ended: each child before all its
    /// parents.
    ended: Vec<u32>,
}

impl Walk {
    /// Adds a visit of `program` on `path` and returns its index in `visits`; `None` if the walk
    /// already has this visit.
    ///
    /// # Errors
    /// If there are `max` visits already.
    fn begin(&mut self, path: Path, program: u32, max: usize) -> Result<Option<u32>, FileError> {
        let number = self.visits.len() as u32;
        if self.numbers.contains_key(&(path, program)) {
            return Ok(None);
        }
        if self.visits.len() >= max {
            return Err(FileError::new(format!(
                "table `programs` or `program_type_call`: the program tree unfolds to more than \
                 {max} visits of programs, more than any real model has; {OVER_BOUND}"
            )));
        }
        self.numbers.insert((path, program), number);
        self.visits.push((path, program));
        Ok(Some(number))
    }

    /// Returns the index in `visits` of the visit of `program` on `path`; `None` if there is none.
    pub(super) fn visit(&self, path: Path, program: u32) -> Option<u32> {
        self.numbers.get(&(path, program)).copied()
    }

    /// Returns, by visit, how often the program runs on its call path if each root runs once. The
    /// body of a Repeat runs as often as `repeats` says for the Repeat (by index of the program),
    /// once without an entry. Any other child runs once for each time that its parent lists it,
    /// even in a branch. Numbers above [`limits::EXECUTIONS`] become this limit.
    pub(super) fn executions(
        &self,
        programs: &Programs,
        repeats: &FxHashMap<u32, u64>,
    ) -> Vec<u64> {
        let mut counts = vec![0u64; self.visits.len()];
        let add = |path, program, more: u64, counts: &mut [u64]| {
            if let Some(number) = self.visit(path, program) {
                let count = &mut counts[number as usize];
                *count = count.saturating_add(more).min(limits::EXECUTIONS);
            }
        };
        for &root in &programs.roots {
            add(EMPTY_PATH, root, 1, &mut counts);
        }
        for &number in self.ended.iter().rev() {
            let (path, program) = self.visits[number as usize];
            let times = repeats.get(&program).copied().unwrap_or(1);
            let count = counts[number as usize].saturating_mul(times);
            let longer = self.paths.find(path, program).unwrap_or(path);
            for &child in below(&programs.all[program as usize]) {
                add(longer, child, count, &mut counts);
            }
        }
        counts
    }
}

/// Returns the programs directly below a program, as indices into `Programs::all`: the body of a
/// Call, or the children of any other program.
fn below(program: &Program) -> &[u32] {
    match &program.kind {
        ProgramKind::Call(body) => std::slice::from_ref(body),
        _ => &program.children,
    }
}

/// A program on the way from the root to the program that the walk visits now.
struct OpenProgram {
    program: u32,
    path: Path,
    /// Index of the visit in [`Walk::visits`].
    number: u32,
    next_child: usize,
}

/// Walks the program tree and calls `visit` with the call path and the index in `Programs::all` of
/// each program, depth first, parents before children. A program is visited once on each call path:
/// a second visit would add nothing to any operation.
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
    for &root in &programs.roots {
        let mut way: Vec<OpenProgram> = Vec::new();
        let mut next = Some((EMPTY_PATH, root));
        loop {
            if let Some((path, program)) = next.take() {
                if on_way[program as usize] {
                    let id = programs.all[program as usize].id;
                    return Err(FileError::new(format!(
                        "table `programs`: program {id} leads to itself through its children or \
                         calls; {PROFILE_AGAIN}"
                    )));
                }
                if let Some(number) = walk.begin(path, program, max)? {
                    check_nesting(programs, &walk.paths, path, program)?;
                    visit(path, program);
                    on_way[program as usize] = true;
                    way.push(OpenProgram {
                        program,
                        path,
                        number,
                        next_child: 0,
                    });
                }
            }
            let Some(frame) = way.last_mut() else { break };
            next = next_child(programs, &mut walk.paths, frame);
            if next.is_none() {
                on_way[frame.program as usize] = false;
                walk.ended.push(frame.number);
                way.pop();
            }
        }
    }
    Ok(walk)
}

/// Checks the nesting of `program`, an index that is visited on call path `path`.
///
/// # Errors
/// If it is a Call that is nested in [`limits::NESTED_CALLS`] other Calls or more.
fn check_nesting(
    programs: &Programs,
    paths: &CallPaths,
    path: Path,
    program: u32,
) -> Result<(), FileError> {
    let program = &programs.all[program as usize];
    let is_call = matches!(program.kind, ProgramKind::Call(_));
    if is_call && paths.innermost_first(path).count() >= limits::NESTED_CALLS {
        Err(FileError::new(format!(
            "table `programs` or `program_type_call`: Calls are nested more than {} deep at \
             program {}, deeper than in any real model; {OVER_BOUND}",
            limits::NESTED_CALLS,
            program.id
        )))
    } else {
        Ok(())
    }
}

/// Returns the next unvisited child of the program in `frame` (an index into `Programs::all`), with
/// the call path on which it is visited, which is added to `paths` if it is new; `None` if no child
/// is left.
fn next_child(
    programs: &Programs,
    paths: &mut CallPaths,
    frame: &mut OpenProgram,
) -> Option<(Path, u32)> {
    let program = &programs.all[frame.program as usize];
    let &next = below(program).get(frame.next_child)?;
    frame.next_child += 1;
    let path = match program.kind {
        ProgramKind::Call(_) => paths.push(frame.path, frame.program),
        _ => frame.path,
    };
    Some((path, next))
}

/// Sentinel in place of an index into [`Model::calls`](super::Model::calls): the operation is part
/// of no call of a function that is called from several places.
pub const NO_CALL: u32 = u32::MAX;

/// The Calls of functions that are called from several places (several call paths) in the program.
pub(super) struct CallSites {
    /// By call path: the shortest of its prefixes (the path included) that ends with a Call of a
    /// function that is called from several places; `None` if no prefix does.
    pub(super) outermost: Vec<Option<Path>>,
    /// By call path: the innermost Call on it of a function that is called from several places, as
    /// an index into `functions`, or [`NO_CALL`]. Calls whose contexts say which operations their
    /// body replaced do not count.
    pub(super) call_of: Vec<u32>,
    /// By Call in `call_of`: the called function, as the index of its body in `Programs::all`.
    pub(super) functions: Vec<u32>,
}

impl CallSites {
    /// Finds the Calls of functions that are called from several places, on all `paths`.
    /// `has_pairs` returns whether debug contexts say, for the innermost Call on a path, which
    /// operations the called body replaced.
    pub(super) fn new(
        programs: &Programs,
        paths: &CallPaths,
        has_pairs: impl Fn(Path) -> bool,
    ) -> Self {
        let function = |call: u32| match programs.all[call as usize].kind {
            ProgramKind::Call(body) => body,
            _ => call,
        };
        let mut callers: FxHashMap<u32, usize> = FxHashMap::default();
        for (_, _, call) in paths.all() {
            *callers.entry(function(call)).or_default() += 1;
        }
        let mut sites = Self {
            outermost: vec![None],
            call_of: vec![NO_CALL],
            functions: Vec::new(),
        };
        for (path, outer, call) in paths.all() {
            let function = Some(function(call)).filter(|function| callers[function] > 1);
            let called = function.map(|_| path);
            let outermost = sites.outermost[outer as usize].or(called);
            sites.outermost.push(outermost);
            let mut call_of = sites.call_of[outer as usize];
            if let Some(function) = function.filter(|_| !has_pairs(path)) {
                call_of = sites.functions.len() as u32;
                sites.functions.push(function);
            }
            sites.call_of.push(call_of);
        }
        sites
    }
}
