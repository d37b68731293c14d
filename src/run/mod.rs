//! One run of the tool: the only place where all rooms meet.

mod compare;
mod emit;
mod export;
mod input;
mod layers;
mod outputs;
mod results;
mod search;
mod sections;
mod subject;
mod tables;
mod ties;

pub use results::Results;

use crate::cli::Options;
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Placement, Rules};
use crate::report::terminal;
use crate::solve::SolveError;
use anyhow::{Context, Result};
use outputs::Outputs;
use std::io::Write;
use std::process::ExitCode;
use subject::Subject;
use thiserror::Error;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; with `--solve`, the model fits.
    Done = 0,
    /// The model does not fit.
    DoesNotFit = 1,
    /// The command line asks for what cannot be.
    Usage = 2,
    /// A file could not be read or understood.
    Unreadable = 3,
    /// An error in this program: two ways to the same number disagree.
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// The code for an error: those of usage and of this program are told apart
    /// by their types.
    pub fn of(error: &anyhow::Error) -> Self {
        let of_solver = error.downcast_ref::<SolveError>();
        if error.is::<UsageError>() {
            Exit::Usage
        } else if error.is::<InternalError>() || of_solver.is_some_and(SolveError::is_internal) {
            Exit::Internal
        } else {
            Exit::Unreadable
        }
    }
}

/// The options do not go with each other or with the files.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Two parts of this program contradict each other.
#[derive(Debug, Error)]
#[error("internal error: {0}; please report this with the profile")]
pub struct InternalError(&'static str);

/// An error of usage.
fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Does what `options` ask for. Results go to `out`, all else to standard error.
///
/// # Errors
/// With the name of the file or option that is at fault; [`Exit::of`] has the
/// exit code.
pub fn run(options: &Options, out: &mut impl Write) -> Result<Exit> {
    let messages = Messages::new(options.quiet, options.verbose, options.units);
    emit::check(options)?;
    export::check(options)?;
    let earlier = compare::read(options)?;
    let input = input::read(options, messages)?;
    let model = &input.model;
    let layering = Layering::new(&model.operations, &options.layers());
    layers::check(&layering, options)?;
    layers::describe(model, &layering, messages);
    let file = || input::Shown(&options.profile).to_string();
    let placement = match options.memory_model {
        Rules::Classic => Placement::classic(model, &layering),
        Rules::Full => Placement::full(model, &layering, &options.placement()),
    };
    let placement = placement.with_context(file)?;
    ties::check(options, &placement)?;
    let memory = MemoryModel::new(model, &placement).with_context(file)?;
    let subject = Subject {
        options,
        input: &input,
        layering: &layering,
        placement: &placement,
        memory: &memory,
        messages,
    };
    let exit = Outputs::new(&subject)?.print(&subject, earlier.as_ref(), out)?;
    cover(&memory, messages);
    Ok(exit)
}

/// Below so many per cent the operations explain too little.
const ENOUGH: i128 = 95;

/// Says how much of the fullest tile is explained, and by what.
fn cover(memory: &MemoryModel<'_>, messages: Messages) {
    let Some(coverage) = memory.coverage().filter(|coverage| coverage.recorded > 0) else {
        return;
    };
    let line = terminal::coverage(&coverage, messages.look());
    if coverage.rest() * 100 > i128::from(coverage.recorded) * (100 - ENOUGH) {
        messages.warning(format_args!("{line}; --diagnose shows what is missing"));
    } else {
        messages.summary(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Objective;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |error: anyhow::Error| Exit::of(&error.context("some.profile.pop"));
        assert_eq!(code(usage("--reserve")), Exit::Usage);
        assert_eq!(
            code(std::io::Error::other("no disk").into()),
            Exit::Unreadable
        );
        let differ = SolveError::Disagreement {
            objective: Objective::Peak,
            integer_program: Some(2),
            dynamic_program: Some(3),
        };
        assert_eq!(code(differ.into()), Exit::Internal);
        let not_monotone = SolveError::NotMonotone {
            range: 0..2,
            peak: 4,
            inner: 0..1,
            inner_peak: Some(5),
        };
        assert_eq!(code(not_monotone.into()), Exit::Internal);
        let too_large = SolveError::TooLarge {
            range: 0..2,
            peak: u64::MAX,
        };
        assert_eq!(code(too_large.into()), Exit::Unreadable);
        assert_eq!(code(InternalError("a split").into()), Exit::Internal);
        assert_eq!(Exit::Internal as u8, 4);
    }
}
