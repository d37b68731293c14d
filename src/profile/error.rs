//! Errors about a cell of `profile.pop`, or of SQLite.

use crate::message::{FileError, PROFILE_AGAIN};

/// Problem of an id that several rows share.
pub(super) const DUPLICATE: &str = "duplicate id";

/// Error about one cell. Its row is named by the value of the first column that is read.
pub(super) fn cell(
    table: &str,
    column: &str,
    row: impl ToString,
    problem: impl ToString,
) -> FileError {
    let (row, problem) = (row.to_string(), problem.to_string());
    FileError::new(format!(
        "table `{table}`, column `{column}`, row {row}: {problem}; {PROFILE_AGAIN}"
    ))
}

/// Converts errors of SQLite about a table, or another part of the file.
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

/// The rowids of a table do not ascend, on which SQLite relies to find rows. `rowid` is the first
/// out of order.
pub(super) fn disordered(table: &str, rowid: i64) -> FileError {
    FileError::new(format!(
        "table `{table}` is damaged: its rows are not in the order of their rowids at {rowid}; \
         {PROFILE_AGAIN}"
    ))
}

/// The profile was recorded without lowered variables.
pub(super) fn no_variables() -> FileError {
    FileError::new(
        "the profile has no lowered variables, so no memory can be computed; record it again with \
         POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}' or with the engine option \
         autoReport.outputLoweredVars set to true",
    )
}

/// A table that must have a row has none.
pub(super) fn no_row(table: &str) -> FileError {
    FileError::new(format!("table `{table}` has no row; {PROFILE_AGAIN}"))
}
