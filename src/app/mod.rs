//! Runs the command, from its arguments to its exit code.
//!
//! Each option of the command line is a field of a struct in `options`, such as `schedule` in
//! `options/split.rs`. `options/mod.rs` copies the options that affect a split into a [`Request`],
//! from which `src/analysis/request.rs` makes the input of the solver.

mod commands;
mod export;
mod fit;
mod further;
mod input;
mod messages;
mod one_ipu;
mod options;
mod output;
mod profile_path;
mod stdout;

pub use options::{Effect, NoEffect, Options};

use crate::{
    analysis::{Answers, Layers, Request, SearchedLayers},
    atomic,
    message::{UsageError, usage},
    parallel,
    report::{PipelineFacts, Report, diagnosis},
    search::Outcome,
    solve::SolveError,
    witnesses::check,
    wording::{counted, join},
};
use anyhow::Result;
use elsa::FrozenVec;
use messages::Messages;
use options::CommandLine;
use output::Outputs;
use std::{
    ffi::OsString,
    io::{self, BufWriter, IsTerminal, Write},
    mem::ManuallyDrop,
    process::ExitCode,
};
use stdout::ResultWriter;

/// The exit code of the command `popliner`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Exit code 0: the command did its work and, if a verdict was requested, the model fits.
    Done = 0,
    /// Exit code 1: the model does not fit.
    DoesNotFit = 1,
    /// Exit code 2: the options are wrong, or request something impossible.
    Usage = 2,
    /// Exit code 3: a file could not be read, understood or written, or contradicts itself so much
    /// that it is unknown whether the model fits.
    Unreadable = 3,
    /// Exit code 4: popliner has a bug, such as two computations of the same number that disagree.
    Internal = 4,
}

impl Exit {
    /// Returns the exit code for an error. Wrong usage and bugs of this program have their own
    /// types of errors; all other errors are about unreadable files.
    fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref() {
            Some(SolveError::Internal(_)) => Self::Internal,
            _ if error.is::<UsageError>() => Self::Usage,
            _ => Self::Unreadable,
        }
    }
}

/// Runs the command with `arguments` and returns its exit code. The first argument is the name of
/// the command. Results go to standard output, everything else to standard error.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let done = match CommandLine::parse_from(arguments) {
        Ok(line) => execute(line),
        // An error about the options, which is printed on standard error.
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            Ok(Exit::Usage)
        }
        // The text of `--help` or `--version`, which is printed on standard output.
        Err(text) => {
            let printed = text.print().and_then(|()| io::stdout().flush());
            stdout::unless_closed(printed, ())
                .map(|()| Exit::Done)
                .map_err(anyhow::Error::from)
        }
    };
    let exit = done.unwrap_or_else(|error| {
        messages::error(&error);
        Exit::of(&error)
    });
    ExitCode::from(exit as u8)
}

fn execute(line: CommandLine) -> Result<Exit> {
    // The signal handler keeps Ctrl-C from leaving a temporary file behind. If it cannot be
    // installed, the command runs without it.
    let _ = atomic::end_on_signals();
    parallel::on_all_threads(|| {
        let mut out = ResultWriter(BufWriter::new(io::stdout().lock()));
        let exit = match line {
            CommandLine::Run(mut options) => {
                options.results.format = options.results.format.on(io::stdout().is_terminal());
                run(&options, &mut out)?
            }
            CommandLine::Generate(what) => {
                out.write_all(&what.text()?)?;
                Exit::Done
            }
        };
        out.flush()?;
        Ok(exit)
    })
}

/// Runs the command with `options` and returns the exit code. Reads the files that `options` name,
/// writes the requested results to `out`, and writes everything else to standard error.
///
/// # Errors
/// If a file cannot be read, understood or written, or if the options contradict each other or the
/// files. Each error names the file or the option that caused it.
pub fn run(options: &Options, out: &mut impl Write) -> Result<Exit> {
    let messages = Messages::new(options);
    match &options.no_effect {
        Some(found) if found.is_original => messages.warn(&found.message),
        Some(found) => return Err(usage(&*found.message)),
        None => {}
    }
    let mut options = options.clone();
    profile_path::resolve(&mut options, messages)?;
    export::check(&options)?;
    further::check(&mut options)?;
    let mut run = Run {
        request: options.request(),
        options,
        messages,
    };
    let earlier = run
        .options
        .compare
        .as_deref()
        .map(output::read_earlier)
        .transpose()?;
    if run.options.results.fit || run.options.is_bare && one_ipu::is_compiled_pipeline(&run.options)
    {
        return fit::run(&run, earlier, out);
    }
    // The model is never freed: that would take longer than showing the result, and the process
    // ends soon anyway.
    let analysis = ManuallyDrop::new(input::read(&mut run.options, messages)?);
    let further = ManuallyDrop::new(further::read(&run.options, messages)?);
    run.request = run.options.request();
    if run.request.settle(&analysis)? {
        run.messages.summary(
            "--layers-per-ipu could also be the IPU of each layer; it counts as numbers of layers",
        );
    }
    if run.options.is_bare && one_ipu::answers((&analysis, &further), &run)? {
        return Ok(Exit::Done);
    }
    let layers = FrozenVec::new();
    let searched = run.messages.while_showing(|progress| {
        Answers::new((&analysis, &further), &layers, progress).search(&run.request)
    })?;
    run.describe(searched.layers);
    run.outputs(&ManuallyDrop::new(searched), earlier)?
        .print(out)
}

struct Run {
    options: Options,
    request: Request,
    messages: Messages,
}

impl Run {
    /// Prints how many operations, layers, liveness steps and tiles the model has, how its layers
    /// were found, and the warnings about the layers.
    fn describe(&self, layers: &Layers<'_>) {
        if let Some(note) = &layers.note {
            self.messages.summary(format!("layers: {note}"));
        }
        let (model, layering) = (layers.model(), &layers.layering);
        let layered = layering.layers.iter().filter(|&&layer| layer > 0).count();
        self.messages.info(format!(
            "{}, {layered} of them in {}, {}, {}",
            counted(model.operations.len(), "operation"),
            counted(layering.len() - 1, "layer"),
            counted(model.steps(), "step"),
            counted(model.target.num_tiles, "tile")
        ));
        for warning in &layers.warnings {
            self.messages.warn(warning);
        }
    }

    /// Collects all results of the run. Also prints which IPUs run nothing in a split from
    /// `--layers-per-ipu`, the warnings of the search, and how the greedy search ended.
    fn outputs(
        &self,
        searched: &SearchedLayers<'_>,
        earlier: Option<Report>,
    ) -> Result<Outputs<'_>> {
        let (layers, model) = (searched.layers, searched.layers.model());
        let memory = layers.memory()?;
        let tables = output::tables(&self.options, layers, &memory)?;
        let idle: Vec<usize> = self
            .request
            .judged
            .iter()
            .flat_map(|judged| judged.idle_ipus(&layers.placement.positions))
            .collect();
        if !idle.is_empty() {
            self.messages.summary(format_args!(
                "idle IPUs, which run nothing but still count: {}; stages are numbered without \
                 them",
                join(idle, ", ")
            ));
        }
        for warning in searched.warnings() {
            self.messages.warn(warning);
        }
        let report = self.report(searched)?;
        if let Some(Outcome::Greedy(greedy)) = searched.result.as_ref().map(|own| &own.outcome) {
            self.messages.summary(format!(
                "the greedy search {} at {} of the memory of a tile and at least {} in a stage",
                if greedy.fits { "settled" } else { "gave up" },
                greedy.proportion,
                counted(greedy.min_layers, "layer")
            ));
        }
        Ok(Outputs {
            options: &self.options,
            messages: self.messages,
            tables,
            diagnosis: match &model.memory_peak {
                Some(peak) if self.options.tables.diagnose => diagnosis(model, &memory, peak),
                _ => Vec::new(),
            },
            report,
            earlier,
        })
    }

    /// Checks whether missing or contradictory data in the files could change the verdict of
    /// `report` (whether the model fits). If they could and `--allow-incomplete` is not given,
    /// returns an error. Otherwise prints warnings about such data.
    fn check_verdict(&self, report: &Report) -> Result<()> {
        check(
            &report.contradictions,
            report.provenance.files.displayed(),
            self.options.results.allow_incomplete,
        )?;
        self.messages.warn_of_files(&report.doubts());
        Ok(())
    }

    /// Makes the report on `searched`, the result of a search. The report has commands that the
    /// user can copy to get the answers to changed requests, such as another number of IPUs.
    fn report(&self, searched: &SearchedLayers<'_>) -> Result<Report> {
        let of = |searched: &SearchedLayers<'_>| {
            let report = self.messages.while_showing(|progress| {
                let _task = progress.begin("making the report", 0);
                searched.report(&self.request, &|change| {
                    self.options.changed_command(change)
                })
            })?;
            self.check_verdict(&report).map(|()| report)
        };
        let mut report = of(searched)?;
        for (stages, other) in &searched.others {
            report.take_stages(of(other)?, stages);
        }
        if let Some(what_if) = &mut report.what_if {
            let mut arguments = self.options.repeated.clone();
            if searched.layers.are_switched {
                arguments.push("--layer-name-regex=auto".to_owned());
            }
            arguments.extend(
                report
                    .pipeline
                    .iter()
                    .flat_map(PipelineFacts::chosen_options),
            );
            what_if.arguments = arguments;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |error: anyhow::Error| Exit::of(&error.context("some.profile.pop"));
        let of_solver = |error: SolveError| code(error.into());
        assert_eq!(code(usage("--reserve")), Exit::Usage);
        assert_eq!(
            code(std::io::Error::other("no disk").into()),
            Exit::Unreadable
        );
        let internal = SolveError::Internal(String::new());
        assert_eq!(of_solver(internal), Exit::Internal);
        let too_large = SolveError::TooLarge(0..2, u64::MAX);
        assert_eq!(of_solver(too_large), Exit::Unreadable);
        assert_eq!(Exit::Internal as u8, 4);
    }
}
