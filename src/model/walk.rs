//! The walk over the program tree (docs/model.md, "The walk"), and calls of functions that have several
//! call sites.

use crate::limits;
use crate::message::{FileError, OVER_BOUND, PROFILE_AGAIN};
use crate::profile::{Program, ProgramKind, Programs};
use rustc_hash::FxHashMap;

/// A list of Call programs from the outermost to the innermost, as an index into [`CallPaths`].
pub(super) type Path = u32;

/// The path of programs that no Call leads to.
pub(super) const EMPTY_PATH: Path = 0;

/// Call paths, each stored once: a path is another path and one more Call.
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

    /// `path` with `call` (a position in `Programs::all`) appended.
    pub(super) fn push(&mut self, path: Path, call: u32) -> Path {
        *self.longer.entry((path, call)).or_insert_with(|| {
            self.nodes.push((path, call));
            self.nodes.len() as Path - 1
        })
    }

    /// `path` with `call` appended; `None` if there is no such path.
    pub(super) fn find(&self, path: Path, call: u32) -> Option<Path> {
        self.longer.get(&(path, call)).copied()
    }

    /// Every path with Calls, after all its prefixes: the path, the path without its innermost
    /// Call, and that Call.
    pub(super) fn all(&self) -> impl Iterator<Item = (Path, Path, u32)> + '_ {
        let paths = (0..).zip(&self.nodes).skip(1);
        paths.map(|(path, &(outer, call))| (path, outer, call))
    }

    /// The Calls of `path`, the innermost first.
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

/// A completed walk: every visit, in order.
pub(super) struct Walk {
    pub(super) paths: CallPaths,
    /// The call path and the program (a position in `Programs::all`) of each visit.
    pub(super) visits: Vec<(Path, u32)>,
    /// The position of each visit in `visits`.
    numbers: FxHashMap<(Path, u32), u32>,
    /// Positions in `visits`, in the order in which the visits ended: children before all their
    /// parents.
    ended: Vec<u32>,
}

impl Walk {
    /// Adds a visit and returns its position; `None` if it was made before.
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

    /// The position of the visit of a program on a call path.
    pub(super) fn visit(&self, path: Path, program: u32) -> Option<u32> {
        self.numbers.get(&(path, program)).copied()
    }

    /// How often each visit's program runs on its call path if every root runs once: the body of a
    /// Repeat as often as `repeats` says (by program; once if it has no entry), every other child
    /// once for each occurrence, even in a branch. Counts stop at [`limits::EXECUTIONS`].
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

/// The children of a program, or the body of a Call, which has no children.
fn below(program: &Program) -> &[u32] {
    match &program.kind {
        ProgramKind::Call(body) => std::slice::from_ref(body),
        _ => &program.children,
    }
}

/// A program on the way from the root to the current one.
struct OpenProgram {
    program: u32,
    path: Path,
    /// Position of the visit in [`Walk::visits`].
    number: u32,
    next_child: usize,
}

/// Calls `visit` with each program and its call path, depth first, parents before children. On one
/// call path a program is visited once: a second visit would add nothing to any operation.
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

/// Checks that Calls are not nested too deep.
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

/// The next program below `frame`, with its call path.
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

/// Marks an operation that is part of no call.
pub const NO_CALL: u32 = u32::MAX;

/// Calls of functions that have several call sites.
pub(super) struct CallSites {
    /// By call path: the outermost path on the way to it that ends with such a call.
    pub(super) outermost: Vec<Option<Path>>,
    /// By call path: the innermost such call that it is part of, where contexts do not say which
    /// operation the call replaced; else [`NO_CALL`].
    pub(super) call_of: Vec<u32>,
    /// By call: its function, a number that all calls of the function share.
    pub(super) functions: Vec<u32>,
}

impl CallSites {
    /// Finds the calls; `has_pairs` says of a call path whether contexts say which operation the
    /// call replaced.
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
