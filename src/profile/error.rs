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
    /// A table that must have one row has several.
    #[error("table `{table}` has several rows where one belongs; the profile is damaged")]
    SeveralRows {
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
        /// The value of the row's first requested column (its key).
        row: String,
        /// What is wrong.
        problem: String,
    },
    /// The profile is of a kind that the rules do not cover.
    #[error("{0}")]
    Unsupported(String),
    /// Something else than a file, which cannot be opened as a database.
    #[error("this is {found}, and a profile must be a file")]
    NoFile {
        /// What it is, with its article.
        found: &'static str,
    },
    /// The file is shorter than SQLite left it.
    #[error(
        "the file is cut off: it has {found} bytes and should have {expected}; copy it again, or \
         record the profile again"
    )]
    CutOff {
        /// Its size in bytes.
        found: u64,
        /// The size that its header states.
        expected: u64,
    },
    /// Somebody wrote to the file in the meantime.
    #[error(
        "the file changed while it was read; let the process that writes it finish, and try again"
    )]
    Changed,
    /// A view or a virtual table where a table belongs.
    #[error(
        "`{table}` is {found} and not a table: Poplar writes tables only, and what others run \
         when they are read is not run; give the file that Poplar wrote"
    )]
    NoTable {
        /// Its name.
        table: &'static str,
        /// What it is, with its article.
        found: &'static str,
    },
    /// A column that is computed when it is read.
    #[error(
        "column `{column}` of table `{table}` is computed when it is read, which Poplar does not \
         write and which is not run; give the file that Poplar wrote"
    )]
    Computed {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// The rows of a table hold more than the file.
    #[error(
        "table `{table}` is damaged: its rows hold more bytes than the whole file, so some of \
         them share pages; copy the file again, or record the profile again"
    )]
    Overlapping {
        /// The table.
        table: &'static str,
    },
    /// Reading takes longer than a sound file of this size can.
    #[error(
        "{place} cannot be read to an end: there are more rows than a file of this size can \
         hold, so some pages lead back to others; copy the file again, or record the profile again"
    )]
    Endless {
        /// The table or what else was read.
        place: &'static str,
    },
    /// SQLite could not read on.
    #[error("SQLite cannot read {place}{hint}")]
    Sqlite {
        /// The table or what else was read.
        place: &'static str,
        /// The way out; empty or starting with a separator.
        hint: &'static str,
        /// SQLite's own words.
        source: rusqlite::Error,
    },
}

impl ProfileError {
    /// What SQLite said about `place`.
    pub(super) fn sqlite(place: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, OperationInterrupted};
        move |source| match source.sqlite_error_code() {
            Some(OperationInterrupted) => ProfileError::Endless { place },
            Some(DatabaseCorrupt | NotADatabase) => ProfileError::Sqlite {
                place,
                hint: ", the file is damaged: copy it again, or record the profile again",
                source,
            },
            _ => ProfileError::Sqlite {
                place,
                hint: "",
                source,
            },
        }
    }

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
