//! Finds the liveness steps of each operation (docs/model.md, "Operations"), and the program that
//! each step runs.

use super::operations::{NO_OPERATION, UnnamedOperation, UnnamedOperations, name_of};
use super::walk::{CallPaths, EMPTY_PATH, Path};
use crate::profile::{ProgramKind, Programs, Step};

/// The liveness steps that run each program, and the Calls that lead to each step.
pub(super) struct StepIndex {
    /// One entry per program: the indices of the steps that run the program, ascending.
    of_program: Vec<Vec<u32>>,
    /// One entry per step: the path of the Calls that lead to the step, as an index into `paths`.
    calls: Vec<Path>,
    /// All call paths: first the paths of the walk over the program tree, then the paths that only
    /// occur for steps.
    paths: CallPaths,
    /// Number of call paths of the walk over the program tree. These are the first entries of
    /// `paths`.
    walked: Path,
}

impl StepIndex {
    /// Builds the index of `steps`. `walk` holds the call paths that the walk over the program tree
    /// found.
    pub(super) fn new(programs: &Programs, steps: &[Step], walk: &CallPaths) -> Self {
        let mut of_program = vec![Vec::new(); programs.all.len()];
        for (index, step) in (0..).zip(steps) {
            of_program[step.program as usize].push(index);
        }
        let mut paths = walk.clone();
        Self {
            of_program,
            calls: calls_above(programs, steps, &mut paths),
            paths,
            walked: walk.len(),
        }
    }

    /// Returns the indices of the steps that run `program` (an index into `Programs::all`),
    /// ascending.
    pub(super) fn of(&self, program: u32) -> &[u32] {
        &self.of_program[program as usize]
    }

    /// Returns the call path of the step with index `step`; `None` if the walk over the program
    /// tree did not take this path.
    pub(super) fn walk_path(&self, step: u32) -> Option<Path> {
        Some(self.calls[step as usize]).filter(|&path| path < self.walked)
    }

    /// Returns the indices of the first and the last step (both inclusive) that run a program of
    /// `operation`; `None` if no step runs one. The profile may list the steps of a function body
    /// once per call. Then only the steps of the operation's own call are included: the steps whose
    /// Calls, compared with the operation's call path from the innermost Call outward, agree the
    /// longest.
    pub(super) fn window(&self, operation: &UnnamedOperation) -> Option<(u32, u32)> {
        let mut longest = 0;
        let mut window = None;
        for &step in operation
            .programs
            .iter()
            .flat_map(|&program| self.of(program))
        {
            let shared = self
                .paths
                .innermost_first(self.calls[step as usize])
                .zip(self.paths.innermost_first(operation.path))
                .take_while(|(a, b)| a == b)
                .count();
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

/// Returns one entry per step: the call path on which the step runs, found by following the parents
/// of the step. New call paths are added to `paths`. If the parents of a step form a circle, the
/// path ends where the circle closes.
fn calls_above(programs: &Programs, steps: &[Step], paths: &mut CallPaths) -> Vec<Path> {
    const UNKNOWN: Path = Path::MAX;
    let mut calls = vec![UNKNOWN; steps.len()];
    let mut open = Vec::new();
    for start in 0..steps.len() {
        let parent_of = |step: usize| Some(steps[step].parent? as usize);
        let mut next = Some(start);
        while let Some(step) = next.filter(|&step| calls[step] == UNKNOWN) {
            calls[step] = EMPTY_PATH;
            open.push(step);
            next = parent_of(step);
        }
        while let Some(step) = open.pop() {
            if let Some(parent) = parent_of(step) {
                let program = steps[parent].program;
                calls[step] = match programs.all[program as usize].kind {
                    ProgramKind::Call(_) => paths.push(calls[parent], program),
                    _ => calls[parent],
                };
            }
        }
    }
    calls
}

/// The program that runs at each liveness step, with its name and operations.
#[derive(Debug)]
pub struct StepPrograms {
    /// One entry per step: the program that the step runs, as an index into `programs`.
    of_step: Vec<u32>,
    programs: Vec<StepProgram>,
}

/// A program of the profile, with its name and the operations that it belongs to.
#[derive(Debug)]
pub struct StepProgram {
    /// Type of the program, such as `OnTileExecute` (table `program_types`).
    pub kind: Box<str>,
    /// The name of the compute set that the program runs or, if it runs none, the name of the
    /// program; often empty.
    pub name: Box<str>,
    /// The first operation that the program belongs to, as an index into
    /// [`Model::operations`](super::Model::operations); `None` if the program belongs to no
    /// operation.
    pub operation: Option<u32>,
    /// Number of operations that the program belongs to; more than 1 if the compiler outlined the
    /// code of the program, so that operations share it.
    pub operations: u32,
}

impl StepPrograms {
    pub(super) fn new(programs: &Programs, steps: &[Step], found: &UnnamedOperations) -> Self {
        let all = programs.all.iter().map(|program| StepProgram {
            kind: match &program.kind {
                ProgramKind::OnTileExecute(_) => "OnTileExecute".into(),
                ProgramKind::DoExchange(_) => "DoExchange".into(),
                ProgramKind::Call(_) => "Call".into(),
                ProgramKind::Other(kind) => kind.clone(),
            },
            name: name_of(programs, program).into(),
            operation: None,
            operations: 0,
        });
        let mut all: Vec<StepProgram> = all.collect();
        for (number, operation) in (0..NO_OPERATION).zip(&found.operations) {
            for &program in &operation.programs {
                let step_program = &mut all[program as usize];
                step_program.operation.get_or_insert(number);
                step_program.operations += 1;
            }
        }
        Self {
            of_step: steps.iter().map(|step| step.program).collect(),
            programs: all,
        }
    }

    /// Returns the program that the step with index `step` runs; `None` if there is no such step.
    pub fn at(&self, step: u32) -> Option<&StepProgram> {
        let program = *self.of_step.get(step as usize)?;
        self.programs.get(program as usize)
    }
}
