//! Finds the liveness steps of an operation (docs/model.md, "Operations"), and the program of each
//! step.

use super::operations::{NO_OPERATION, UnnamedOperation, UnnamedOperations, name_of};
use super::walk::{CallPaths, EMPTY_PATH, Path};
use crate::profile::{ProgramKind, Programs, Step};

/// The liveness steps that run each program, and the Calls that lead to each step.
pub(super) struct StepIndex {
    /// By program: the steps that run the program, ascending.
    of_program: Vec<Vec<u32>>,
    /// By step: the Calls that lead to the step, as one of `paths`.
    calls: Vec<Path>,
    /// The call paths of the walk over the program tree, and then those that only steps have.
    paths: CallPaths,
    /// Number of call paths of the walk over the program tree, the first of `paths`.
    walked: Path,
}

impl StepIndex {
    /// Builds the index of steps; `walk` has the call paths of the walk over the program tree.
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

    /// Returns the steps that run `program` (an index into `Programs::all`), ascending.
    pub(super) fn of(&self, program: u32) -> &[u32] {
        &self.of_program[program as usize]
    }

    /// Returns the call path of `step`, `None` if the walk over the program tree did not take it.
    pub(super) fn walk_path(&self, step: u32) -> Option<Path> {
        Some(self.calls[step as usize]).filter(|&path| path < self.walked)
    }

    /// Returns the first and the last step, both inclusive, of an operation; `None` if no step runs
    /// its programs. If the profile lists the steps of a function body once for each call, only the
    /// steps of the operation's call are included: those whose Calls, from the innermost out, agree
    /// with the operation's call path the longest.
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

/// Returns, by step, the call path on which it runs, found by the step's parents, and adds these
/// paths to `paths`. If the parents of a step form a circle, the path ends where the circle closes.
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
    /// By step: the program that runs, as an index into `programs`.
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
    /// [`Model::operations`](super::Model::operations); `None` if it belongs to none.
    pub operation: Option<u32>,
    /// Number of operations that the program belongs to: several if its code was outlined.
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

    /// Returns the program that runs at `step`; `None` beyond the last step.
    pub fn at(&self, step: u32) -> Option<&StepProgram> {
        let program = *self.of_step.get(step as usize)?;
        self.programs.get(program as usize)
    }
}
