//! Defines a run of the command, and its exit codes.

use super::messages::Messages;
use super::options::Options;
use crate::analysis::Request;
use crate::message::UsageError;
use crate::report::Report;
use crate::search::SearchError;
use crate::solve::SolveError;
use crate::witnesses::check;
use anyhow::Result;
use std::process::ExitCode;

/// The exit code of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The run is done; if a verdict was requested, the model fits.
    Done = 0,
    /// The model does not fit, or misses the time limit of a step; with `--compare`, it no longer
    /// fits.
    DoesNotFit = 1,
    /// The options are wrong, or request something impossible.
    Usage = 2,
    /// A file could not be read, understood or written, or contradicts itself too much for a
    /// verdict.
    Unreadable = 3,
    /// This program has an error: two computations of the same number disagree.
    Internal = 4,
}

impl Exit {
    /// Returns the exit code for an error. The type of the error distinguishes wrong usage and
    /// errors in this program from unreadable files.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref() {
            Some(SearchError::Solve(SolveError::Internal(_))) => Self::Internal,
            _ if error.is::<UsageError>() => Self::Usage,
            _ => Self::Unreadable,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A run of the command: its options, and the request that follows from them.
pub(super) struct Run {
    /// The options of the command line, with the path of the profile in place of its folder.
    pub options: Options,
    /// The layers, the split and the pipeline that the options request.
    pub request: Request,
    /// Writes the messages of the run to standard error.
    pub messages: Messages,
}

impl Run {
    /// Returns an error if missing or contradictory data in the files could change the verdict of
    /// `report`, unless `--allow-incomplete` is given; else prints warnings about such data.
    pub fn check_verdict(&self, report: &Report) -> Result<()> {
        check(
            &report.contradictions,
            &report.displayed_files(),
            self.options.results.allow_incomplete,
        )?;
        for (file, warning) in report.doubts() {
            self.messages.warning(Some(&file), &warning);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::usage;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |error: anyhow::Error| Exit::of(&error.context("some.profile.pop"));
        let of_solver = |error: SolveError| code(SearchError::from(error).into());
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
