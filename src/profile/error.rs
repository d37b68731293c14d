//! Creates the errors about a cell of `profile.pop`, and about a part of the file that SQLite
//! cannot read.

use crate::message::{FileError, PROFILE_AGAIN, Result, Warning};
use std::fmt::Display;

/// The problem of an id that several rows have, in the words of [`cell`].
pub(super) const DUPLICATE: &str = "duplicate id";

/// Returns the error that the cell of `table` in `column` has the problem `problem`, a clause for
/// the message. `row` names its row: the value of the first column that is read from the table.
pub(super) fn cell(
    table: &str,
    column: &str,
    row: impl Display,
    problem: impl Display,
) -> FileError {
    FileError::new(format!(
        "table `{table}`, column `{column}`, row {row}: {problem}; {PROFILE_AGAIN}"
    ))
}

/// Returns a function that turns an error of SQLite into one that names `place`: a table, or
/// another part of the file.
pub(super) fn sqlite(place: &'static str) -> impl Fn(rusqlite::Error) -> FileError {
    move |error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => FileError::new(format!(
            "{place} cannot be read to an end: there are more rows than a file of this size can \
             hold, so some pages lead back to others; {PROFILE_AGAIN}"
        )),
        _ => FileError::new(format!(
            "SQLite cannot read {place}: {error}; {PROFILE_AGAIN}"
        )),
    }
}

/// Returns the error that the rowids of a table do not ascend, on which SQLite relies to find rows.
/// `rowid` is the first one out of order.
pub(super) fn disordered(table: &str, rowid: i64) -> FileError {
    FileError::new(format!(
        "table `{table}` is damaged: its rows are not in the order of their rowids at {rowid}; \
         {PROFILE_AGAIN}"
    ))
}

/// Returns the error that the profile was recorded without lowered variables.
pub(super) fn no_variables() -> FileError {
    FileError::new(
        "the profile has no lowered variables, so no memory can be computed; record it again with \
         POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}' or with the engine option \
         autoReport.outputLoweredVars set to true",
    )
}

/// Returns the error that a table has no row, although it must have one.
pub(super) fn no_row(table: &str) -> FileError {
    FileError::new(format!("table `{table}` has no row; {PROFILE_AGAIN}"))
}

/// Returns the value of `read`. If it is an error, returns the default, and adds to `warnings` that
/// `what`, a plural noun, are left out because of it.
pub(super) fn or_warn<T: Default>(read: Result<T>, what: &str, warnings: &mut Vec<Warning>) -> T {
    read.unwrap_or_else(|error| {
        warnings.push(Warning::new(format!("{what} are left out: {error}")));
        T::default()
    })
}
