//! The command: one run from the arguments to the exit code.

mod alone;
mod export;
mod find;
mod fit;
mod generate;
mod given;
mod input;
mod layers;
mod messages;
mod next;
mod options;
mod output;
mod request;
mod stdout;
mod tables;

pub use options::{Effect, NoEffect, Options};

use crate::analysis::{Analysis, Layers, displayed, warnings_of_search};
use crate::interrupt;
use crate::memory::MemoryModel;
use crate::message::Warning;
use crate::parallel;
use crate::progress::{Progress, Unit};
use crate::report::{Detail, PipelineFacts, Report, printable};
use crate::search::{SearchError, SearchRequest, SearchResult, search_states};
use crate::solve::{Limits, SolveError};
use crate::witnesses::judge;
use anyhow::{Context, Result};
use messages::Messages;
use options::CommandLine;
use output::Outputs;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use stdout::Results;
use thiserror::Error;

/// The exit codes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; with `--solve`, the model fits.
    Done = 0,
    /// The model does not fit.
    DoesNotFit = 1,
    /// The command line requests something impossible.
    Usage = 2,
    /// A file could not be read or understood.
    Unreadable = 3,
    /// An error in this program: two computations of the same number disagree.
    Internal = 4,
}

impl Exit {
    /// Returns the exit code for an error. The types of errors distinguish wrong usage and errors
    /// in this program from unreadable files.
    fn of(error: &anyhow::Error) -> Self {
        let of_search = error.downcast_ref::<SearchError>();
        if error.is::<UsageError>() {
            Exit::Usage
        } else if of_search.is_some_and(SearchError::is_internal) {
            Exit::Internal
        } else {
            Exit::Unreadable
        }
    }
}

/// Options that contradict each other or the files.
#[derive(Debug, Error)]
#[error("{0}")]
struct UsageError(String);

/// Makes an error of wrong usage. docs/messages.md has its text, which ends with the way out.
fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Makes an error of wrong usage from the error of another module.
fn refused(error: &impl std::error::Error) -> anyhow::Error {
    UsageError(printable(&error.to_string())).into()
}

/// Runs the command with these arguments, which begin with its name. Results go to standard output,
/// everything else to standard error.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match CommandLine::parse_from(arguments) {
        Ok(command) => command,
        Err(error) => return said_of_options(&error),
    };
    // Without it, Ctrl-C still ends the run, but a temporary file could remain.
    let _ = interrupt::install();
    parallel::start_threads();
    let mut out = Results::new(BufWriter::new(io::stdout().lock()));
    let outcome = answer(&command, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    outcome.unwrap_or_else(|error| failed(&error)).into()
}

/// Prints the message of clap: an error about the options, or help, which is a result.
fn said_of_options(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return Exit::Usage.into();
    }
    let exit = stdout::unless_closed(printed).map(|_| Exit::Done);
    exit.unwrap_or_else(|error| failed(&error.into())).into()
}

/// Reports the error that ended the run.
fn failed(error: &anyhow::Error) -> Exit {
    messages::error(error);
    Exit::of(error)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

fn answer(command: &CommandLine, out: &mut impl Write) -> Result<Exit> {
    match command {
        CommandLine::Run(options) => {
            let mut options = (**options).clone();
            options.results.format = options.results.format.on(io::stdout().is_terminal());
            run(&options, out)
        }
        CommandLine::Generate(what) => {
            out.write_all(&generate::text(*what)?)?;
            Ok(Exit::Done)
        }
    }
}

/// Does what `options` request. Results go to `out`, everything else to standard error.
///
/// # Errors
/// Each error names the file or the option that caused it.
pub fn run(options: &Options, out: &mut impl Write) -> Result<Exit> {
    let messages = Messages::new(
        options.messages.quiet,
        options.messages.verbose,
        options.messages.units,
    );
    refuse_no_effect(options, messages)?;
    let options = &find::input(options, messages)?;
    output::check(options)?;
    if options.results.fit || options.is_bare && alone::is_compiled_pipeline(options) {
        return fit::run(options, messages, out);
    }
    let earlier = output::earlier_report(options)?;
    // The process ends soon. Freeing millions of entries would take longer than showing the result.
    let analysis = ManuallyDrop::new(read(options, messages)?);
    let model = &analysis.model;
    let is_answered = options.is_bare && alone::fits_on_one_ipu(model, options, messages)?;
    if is_answered && !options.wants_report() {
        return Ok(Exit::Done);
    }
    let layers = input::find_layers(&analysis, options, messages)?;
    let outputs = answer_with(layers, Cow::Borrowed(options), messages)?;
    Outputs { earlier, ..outputs }.print(out)
}

/// Computes the answer for these layers, or for finer ones if a layer is over the limit by itself.
fn answer_with<'a>(
    layers: Layers<'_>,
    given: Cow<'a, Options>,
    messages: Messages,
) -> Result<Outputs<'a>> {
    let options = &*given;
    let model = layers.model();
    let memory = layers.memory()?;
    let limits = request::limits(options, model.target.bytes_per_tile)?;
    let highest = Limits::new(&limits).highest();
    let (searched, found) = search(options, &layers, memory.clone(), limits, messages)?;
    if let Some(found) = &found
        && let Some(finer) = layers::finer(&layers, found, options, messages)?
    {
        // Printed commands must find the same layers again.
        let switched = layers.layering.modules().is_none();
        let options = if switched {
            Cow::Owned(options.by_modules())
        } else {
            given
        };
        return answer_with(finer, options, messages);
    }
    let tables = tables::tables(options, &layers, &memory)?;
    let diagnosis = tables::diagnosis(options, model, &memory);
    let memory = ManuallyDrop::new(searched);
    for warning in found
        .iter()
        .flat_map(|found| warnings_of_search(&memory, found))
    {
        messages.warning(None, &warning);
    }
    let report = report(options, &layers, &memory, found.as_ref(), highest, messages)?;
    let outputs = Outputs {
        tables,
        found,
        diagnosis,
        ..Outputs::new(given, messages, report)
    };
    Ok(outputs)
}

/// Reads the model, the files beside the profile, and warnings about both.
fn read(options: &Options, messages: Messages) -> Result<Analysis> {
    let mut analysis = input::read(options, messages)?;
    if options.wants_report() {
        let beside = input::Beside::read(options, messages);
        analysis.warnings.extend(beside.warnings);
        (analysis.framework, analysis.app) = beside.files;
    }
    Ok(analysis)
}

/// Computes the memory in the requested pipeline, and runs the search if one is requested.
fn search<'a>(
    options: &Options,
    layers: &Layers<'_>,
    memory: MemoryModel<'a>,
    limits: Vec<u64>,
    messages: Messages,
) -> Result<(MemoryModel<'a>, Option<SearchResult>)> {
    let model = layers.model();
    let request = request::request(options, layers, limits)?;
    if let Some(idle) = given::idle_ipus(options, &layers.placement.positions) {
        messages.summary(idle);
    }
    let pipeline = request::pipeline(options, model)?;
    let memory = memory.in_pipeline(pipeline);
    let memory = memory.with_context(|| displayed(&options.input.profile))?;
    let Some(request) = request else {
        return Ok((memory, None));
    };
    let (memory, found) = find(options, request, layers, &memory, messages)?;
    Ok((memory, Some(found)))
}

/// Makes the report, with the commands that only the command line can write.
fn report(
    options: &Options,
    layers: &Layers<'_>,
    memory: &MemoryModel<'_>,
    found: Option<&SearchResult>,
    highest: u64,
    messages: Messages,
) -> Result<Report> {
    let mut report = messages.while_showing(|progress| {
        let _task = progress.begin("making the report", Unit::Rows, 0);
        let arguments = options.arguments.clone();
        layers.report(memory, found, highest, detail(options), arguments)
    })?;
    check_verdict(options, &report)?;
    if let Some(what_if) = &mut report.what_if {
        what_if.arguments.clone_from(&options.repeated);
        let chosen = report.pipeline.iter();
        what_if
            .arguments
            .extend(chosen.flat_map(PipelineFacts::chosen_options));
        what_if.memories = request::memories(options, layers.model().target.bytes_per_tile);
        let reserve = |&memory: &u64| options.limits.reserve.of(memory);
        what_if.reserves = what_if.memories.iter().map(reserve).collect();
    }
    if let Some(plan) = &mut report.plan {
        next::add_commands(plan, options, &layers.placement.positions);
    }
    Ok(report)
}

/// Refuses a verdict that missing or contradictory data could change, unless that is allowed.
fn check_verdict(options: &Options, report: &Report) -> Result<()> {
    let judged = judge(&report.contradictions, options.results.allow_incomplete);
    judged.with_context(|| displayed(&options.input.profile))?;
    Ok(())
}

/// Refuses an option that affects no requested result. If the original tool would have accepted the
/// command line, only warns.
fn refuse_no_effect(options: &Options, messages: Messages) -> Result<()> {
    match &options.no_effect {
        None => Ok(()),
        Some(NoEffect {
            option,
            on,
            is_original: true,
        }) => {
            let warning = Warning::new(format!(
                "{option} changes none of these results; give it with {on}, or leave it out"
            ));
            messages.warning(None, &warning);
            Ok(())
        }
        Some(no_effect) => Err(refused(no_effect)),
    }
}

/// Runs the search. The returned memory model has the optimizer state where the answer has it.
fn find<'a>(
    options: &Options,
    request: SearchRequest,
    layers: &Layers<'_>,
    memory: &MemoryModel<'a>,
    messages: Messages,
) -> Result<(MemoryModel<'a>, SearchResult)> {
    let work = |progress: &Progress| search_states(memory, &layers.placement, request, progress);
    messages.while_showing(work).map_err(|error| match error {
        // Constraints or ties of weights that contradict each other are wrong usage.
        SearchError::Solve(
            error @ (SolveError::Contradiction(_) | SolveError::NoSuchPosition { .. }),
        ) => refused(&error),
        SearchError::TooManyPlaces(_) => {
            anyhow::Error::from(error).context(displayed(&options.input.profile))
        }
        error => error.into(),
    })
}

/// Returns the detail that the requested results need.
fn detail(options: &Options) -> Detail {
    if options.exports.export_html.is_some() || options.exports.export_json.is_some() {
        Detail::Page
    } else if options.wants_report() {
        Detail::Full
    } else {
        Detail::Split
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Objective;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |error: anyhow::Error| Exit::of(&error.context("some.profile.pop"));
        let of_solver = |error: SolveError| code(SearchError::from(error).into());
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
        assert_eq!(of_solver(differ), Exit::Internal);
        let not_monotone = SolveError::NotMonotone {
            range: 0..2,
            peak: 4,
            inner: 0..1,
            inner_peak: Some(5),
        };
        assert_eq!(of_solver(not_monotone), Exit::Internal);
        let too_large = SolveError::TooLarge {
            range: 0..2,
            peak: u64::MAX,
        };
        assert_eq!(of_solver(too_large), Exit::Unreadable);
        assert_eq!(code(SearchError::FoundLater.into()), Exit::Internal);
        assert_eq!(Exit::Internal as u8, 4);
    }
}
