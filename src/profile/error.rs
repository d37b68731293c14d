//! Defects of a `profile.pop`.

use super::FormatVersion;
use crate::message::{GIVE_PROFILE, PROFILE_AGAIN, Unreadable};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The first number of the formats that are read; 3 since profiles are SQLite.
pub(super) const KNOWN_MAJOR: u64 = 3;

/// The problem of an id that several rows have.
pub(super) const DUPLICATE: &str = "duplicate id";

/// Why a profile could not be read. The caller adds the file's name.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file could not be opened or read at all.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file has no bytes.
    #[error("the file is empty, as one is whose process was stopped; {PROFILE_AGAIN}")]
    Empty,
    /// The first bytes are not those of an SQLite database.
    #[error("the file is no SQLite database{instead}; {GIVE_PROFILE}")]
    NotADatabase {
        /// The kind of file that it looks like; empty or starting with a comma.
        instead: &'static str,
    },
    /// The first bytes are those of CBOR.
    #[error(
        "the file looks like CBOR, not like a profile; give profile.pop first and debug.cbor second"
    )]
    Cbor,
    /// By its name, what PopVision leaves beside a profile.
    #[error("by its name, this is a cache that PopVision keeps beside a profile; {GIVE_PROFILE}")]
    Cache,
    /// SQLite keeps changes in a file beside the profile that are not in it yet.
    #[error(
        "the file is still open in another process, or that process died: changes are waiting in \
         {}; let the process finish, or open a copy of both files once with `sqlite3`", .0.display()
    )]
    Unfinished(PathBuf),
    /// An SQLite database of another kind.
    #[error(
        "the file is an SQLite database, but no profile: it has no table `{table}`; {GIVE_PROFILE}"
    )]
    NotAProfile {
        /// The table that every profile has.
        table: &'static str,
    },
    /// A table that the analysis needs is not there.
    #[error("table `{table}` is missing (report format {version}); {PROFILE_AGAIN}")]
    MissingTable {
        /// The table.
        table: &'static str,
        /// The format version that the file states.
        version: FormatVersion,
    },
    /// A column that the analysis needs is not there.
    #[error(
        "column `{column}` of table `{table}` is missing (report format {version}); {PROFILE_AGAIN}"
    )]
    MissingColumn {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The format version that the file states.
        version: FormatVersion,
    },
    /// A table that must have a row has none.
    #[error("table `{table}` has no row; {PROFILE_AGAIN}")]
    NoRow {
        /// The table.
        table: &'static str,
    },
    /// A table that must have one row has several.
    #[error("table `{table}` has several rows where one belongs; {PROFILE_AGAIN}")]
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
    #[error("table `{table}`, column `{column}`, row {row}: {problem}; {PROFILE_AGAIN}")]
    Cell {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The value of the row's first requested column (its key).
        row: String,
        /// The defect.
        problem: String,
    },
    /// A format whose tables may mean something else.
    #[error(
        "the profile has report format {0}, and popliner knows format {KNOWN_MAJOR} alone, that of \
         Poplar up to 3.3; record it with such an SDK, or use a popliner that knows its format"
    )]
    OtherFormat(FormatVersion),
    /// Several replicas of one IPU each, of which none is listed alone.
    #[error(
        "the profile was compiled for {replicas} replicas of one IPU each and does not list one of \
         them alone, but {listed} tiles; compile the model without replication to split it, or \
         judge it as it is with --fit"
    )]
    Replicas {
        /// How many.
        replicas: u64,
        /// Tiles in `memory_by_tile`.
        listed: u64,
    },
    /// The rules of splitting are for one IPU (docs/model.md, "The memory of a stage").
    #[error(
        "the profile was compiled for {ipus} IPUs ({tiles} tiles, {of_ipu} on each, \
         replicas: {replicas}), and only one IPU without replication can be split; compile the whole \
         model for one IPU, without pipelining or replication, or judge it as it is with --fit"
    )]
    SeveralIpus {
        /// How many.
        ipus: u64,
        /// Tiles of all of them.
        tiles: u32,
        /// Tiles of each.
        of_ipu: u32,
        /// Replicas.
        replicas: u64,
    },
    /// The ids of programs mean several programs.
    #[error(
        "table `programs`, column `compilation_step_id`: there are several compilation steps, \
         whose programs share their ids; record each compilation into a folder of its own"
    )]
    SeveralCompilations,
    /// Tiles are listed of no whole replica.
    #[error(
        "table `memory_by_tile` lists {listed} tiles, but `target_info` has {all} (IPUs of {of_ipu} \
         tiles each, {replicas} replicas); {PROFILE_AGAIN}"
    )]
    ListedTiles {
        /// Rows of `memory_by_tile`.
        listed: u64,
        /// Tiles of all IPUs.
        all: u64,
        /// Tiles of each IPU.
        of_ipu: u64,
        /// Replicas.
        replicas: u64,
    },
    /// Something else than a file, which cannot be opened as a database.
    #[error("this is {found}, and a profile must be a file; {GIVE_PROFILE}")]
    NoFile {
        /// Its kind, with its article.
        found: &'static str,
    },
    /// The file is shorter than SQLite left it.
    #[error(
        "the file is cut off: it has {found} bytes and should have {expected}; {PROFILE_AGAIN}"
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
        "`{table}` is {found} and not a table, and code that runs when it is read is not run; \
         {GIVE_PROFILE}"
    )]
    NoTable {
        /// Its name.
        table: &'static str,
        /// Its kind, with its article.
        found: &'static str,
    },
    /// A column that is computed when it is read.
    #[error(
        "column `{column}` of table `{table}` is computed when it is read, and such code is not \
         run; {GIVE_PROFILE}"
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
         them share pages; {PROFILE_AGAIN}"
    )]
    Overlapping {
        /// The table.
        table: &'static str,
    },
    /// The rowids of a table do not ascend, which SQLite relies on to find rows.
    #[error(
        "table `{table}` is damaged: its rows are not in the order of their rowids at {rowid}; \
         {PROFILE_AGAIN}"
    )]
    Disordered {
        /// The table.
        table: &'static str,
        /// That of the row which does not follow the one before.
        rowid: i64,
    },
    /// Reading takes longer than a sound file of this size can.
    #[error(
        "{place} cannot be read to an end: there are more rows than a file of this size can \
         hold, so some pages lead back to others; {PROFILE_AGAIN}"
    )]
    Endless {
        /// The table or what else was read.
        place: &'static str,
    },
    /// SQLite could not read on.
    #[error("SQLite cannot read {place}: {error}; {PROFILE_AGAIN}")]
    Sqlite {
        /// The table or what else was read.
        place: &'static str,
        /// SQLite's own words.
        error: rusqlite::Error,
    },
}

impl ProfileError {
    /// An error of SQLite about `place`.
    pub(super) fn sqlite(place: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        move |error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => ProfileError::Endless { place },
            _ => ProfileError::Sqlite { place, error },
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

impl From<io::Error> for ProfileError {
    fn from(error: io::Error) -> Self {
        ProfileError::Io(error.into())
    }
}
