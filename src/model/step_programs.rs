//! The program of each liveness step.

use super::operations::{NO_OPERATION, UnnamedOperations, name_of};
use crate::profile::{ProgramKind, Programs, Step};

/// The program of each liveness step, with its name.
#[derive(Debug)]
pub struct StepPrograms {
    /// By step: position in `programs`.
    of_step: Vec<u32>,
    programs: Vec<StepProgram>,
}

/// One program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgram {
    /// Kind of the program, such as `OnTileExecute` (`program_types`).
    pub kind: Box<str>,
    /// The name of its compute set, or else of the program; often empty.
    pub name: Box<str>,
    /// The first operation that the program belongs to, as a position in
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

    /// The program of a step; `None` beyond the last.
    pub fn at(&self, step: u32) -> Option<&StepProgram> {
        let program = *self.of_step.get(step as usize)?;
        self.programs.get(program as usize)
    }
}
