//! One run of the tool: the only place where all rooms meet.

mod answers;
mod compare;
mod emit;
mod export;
mod input;
mod layers;
mod results;
mod search;
mod sections;
mod subject;
mod tables;

pub use results::Results;

use crate::cli::{Accounting, Options};
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Placement};
use crate::report::terminal;
use answers::Answers;
use anyhow::{Context, Result};
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
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// The code for an error: those of usage are told apart by their type.
    pub fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<UsageError>() {
            Some(_) => Exit::Usage,
            None => Exit::Unreadable,
        }
    }
}

/// The options do not go with each other or with the files.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

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
    let messages = Messages::new(options.quiet, options.verbose, options.units.into());
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
        Accounting::Classic => Placement::classic(model, &layering),
        Accounting::Full => Placement::full(model, &layering, &options.placement()),
    };
    let placement = placement.with_context(file)?;
    let memory = MemoryModel::new(model, &placement).with_context(file)?;
    let subject = Subject {
        options,
        input: &input,
        layering: &layering,
        placement: &placement,
        memory: &memory,
        messages,
    };
    let exit = Answers::new(&subject)?.print(&subject, earlier.as_ref(), out)?;
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
