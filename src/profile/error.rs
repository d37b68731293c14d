//! What can be wrong with a `profile.pop`.

use super::FormatVersion;
use std::path::PathBuf;
use thiserror::Error;

/// Why a profile could not be read. The caller adds the file's name.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file could not be opened or read at all.
    #[error("it cannot be read")]
    Io(#[from] std::io::Error),
    /// The file has no bytes.
    #[error("the file is empty; was the process that wrote it stopped?")]
    Empty,
    /// The first bytes are not those of an SQLite database.
    #[error("this is no SQLite database{hint}")]
    NotADatabase {
        /// What it looks like instead; empty or starting with a separator.
        hint: &'static str,
    },
    /// SQLite keeps changes in a file beside the profile that are not in it yet.
    #[error(
        "it is still open in another process, or that process died: changes are waiting in {}; \
         let the process finish, or open a copy of both files once with `sqlite3`", .0.display()
    )]
    Unfinished(PathBuf),
    /// An SQLite database of another kind.
    #[error(
        "this SQLite database is no Poplar profile: it has no table `{table}`; \
         give the `profile.pop` that Poplar wrote"
    )]
    NotAProfile {
        /// The table that every profile has.
        table: &'static str,
    },
    /// A table that the analysis needs is not there.
    #[error("table `{table}` is missing (report format {version})")]
    MissingTable {
        /// The table.
        table: &'static str,
        /// The format version that the file states.
        version: FormatVersion,
    },
    /// A column that the analysis needs is not there.
    #[error("column `{column}` of table `{table}` is missing (report format {version})")]
    MissingColumn {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The format version that the file states.
        version: FormatVersion,
    },
    /// A table that must have a row has none.
    #[error("table `{table}` has no row")]
    NoRow {
        /// The table.
        table: &'static str,
    },
    /// The profile was recorded without lowered variables.
    #[error(
        "the profile holds no lowered variables, so no memory can be computed; record it again with \
         POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\"}}' or with the engine option \
         autoReport.outputLoweredVars set to true"
    )]
    NoLoweredVariables,
    /// A cell holds something that cannot be right.
    #[error("table `{table}`, column `{column}`, row {row}: {problem}")]
    Cell {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The value of the row's first column that was asked for (its key).
        row: String,
        /// What is wrong.
        problem: String,
    },
    /// The profile is of a kind that the rules do not cover.
    #[error("{0}")]
    Unsupported(String),
    /// SQLite could not read on.
    #[error("SQLite cannot read {place}")]
    Sqlite {
        /// The table or what else was read.
        place: &'static str,
        /// SQLite's own words.
        source: rusqlite::Error,
    },
}

impl ProfileError {
    /// A problem with one cell.
    pub(super) fn cell(
        table: &'static str,
        column: &'static str,
        row: impl ToString,
        problem: impl ToString,
    ) -> Self {
        ProfileError::Cell {
            table,
            column,
            row: row.to_string(),
            problem: problem.to_string(),
        }
    }
}
