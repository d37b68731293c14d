//! Errors about a `profile.pop`.

use super::{FormatVersion, Target};
use crate::message::{GIVE_PROFILE, PROFILE_AGAIN, Unreadable};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Supported first number of the format version: profiles are SQLite since format 3.
pub(super) const KNOWN_MAJOR: u64 = 3;

/// Problem of an id that several rows share.
pub(super) const DUPLICATE: &str = "duplicate id";

/// Reason why a profile could not be read. The caller adds the name of the file.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file could not be opened or read.
    #[error(transparent)]
    Io(#[from] Unreadable),
    /// The file has no bytes.
    #[error("the file is empty: the process that wrote it was probably stopped; {PROFILE_AGAIN}")]
    Empty,
    /// The first bytes are not those of an SQLite database. With the kind of file that it looks
    /// like, after a comma; empty if unknown.
    #[error("the file is not an SQLite database{0}; {GIVE_PROFILE}")]
    NotADatabase(&'static str),
    /// The first bytes are those of a CBOR file.
    #[error(
        "the file looks like CBOR, not like a profile; give profile.pop first and debug.cbor second"
    )]
    Cbor,
    /// By its name, the file is a cache that PopVision keeps beside a profile.
    #[error("by its name, this is a cache that PopVision keeps beside a profile; {GIVE_PROFILE}")]
    Cache,
    /// SQLite keeps changes in a file beside the profile that are not in the profile yet.
    #[error(
        "the file is still open in another process, or that process died: changes are waiting in \
         {}; let the process finish, or open a copy of both files once with `sqlite3`", .0.display()
    )]
    Unfinished(PathBuf),
    /// The file is an SQLite database, but lacks a table that every profile has.
    #[error(
        "the file is an SQLite database, but not a profile: it has no table `{0}`; {GIVE_PROFILE}"
    )]
    NotAProfile(&'static str),
    /// A table that the analysis needs is missing from a file of this format version.
    #[error("table `{0}` is missing (report format {1}); {PROFILE_AGAIN}")]
    MissingTable(&'static str, FormatVersion),
    /// A column that the analysis needs is missing.
    #[error(
        "column `{column}` of table `{table}` is missing (report format {version}); {PROFILE_AGAIN}"
    )]
    MissingColumn {
        /// Name of the table.
        table: &'static str,
        /// Name of the column.
        column: &'static str,
        /// Format version that the file states.
        version: FormatVersion,
    },
    /// A table that must have a row has none.
    #[error("table `{0}` has no row; {PROFILE_AGAIN}")]
    NoRow(&'static str),
    /// A table that must have one row has several.
    #[error("table `{0}` has several rows instead of one; {PROFILE_AGAIN}")]
    SeveralRows(&'static str),
    /// The profile was recorded without lowered variables.
    #[error(
        "the profile has no lowered variables, so no memory can be computed; record it again with \
         POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\"}}' or with the engine option \
         autoReport.outputLoweredVars set to true"
    )]
    NoLoweredVariables,
    /// A cell holds an impossible value.
    #[error("table `{table}`, column `{column}`, row {row}: {problem}; {PROFILE_AGAIN}")]
    Cell {
        /// Name of the table.
        table: &'static str,
        /// Name of the column.
        column: &'static str,
        /// Value of the row's first requested column, which is its key.
        row: String,
        /// Description of the defect.
        problem: String,
    },
    /// Tables may mean something else in this format.
    #[error(
        "the profile has report format {0}, and popliner reads only format {KNOWN_MAJOR} (Poplar up \
         to 3.3); record it with such an SDK, or use a popliner that reads its format"
    )]
    OtherFormat(FormatVersion),
    /// The model was compiled for this number of replicas of one IPU each, and `memory_by_tile` lists
    /// this number of tiles instead of those of exactly one.
    #[error(
        "the profile was compiled for {0} replicas of one IPU each and lists all {1} tiles instead of \
         those of one replica; compile the model without replication to split it, or judge it as it \
         is with --fit"
    )]
    Replicas(u64, u64),
    /// The model was compiled for several IPUs, which cannot be split (docs/model.md, "The memory
    /// of a stage").
    #[error(
        "the profile was compiled for {} IPUs ({} tiles, {} on each, replicas: {}), and only one IPU \
         without replication can be split; compile the whole model for one IPU, without pipelining \
         or replication, or judge it as it is with --fit",
        .0.num_ipus, .0.num_tiles, .0.tiles_per_ipu, .0.num_replicas
    )]
    SeveralIpus(Target),
    /// Programs of several compilations share ids.
    #[error(
        "table `programs`, column `compilation_step_id`: there are several compilation steps, \
         whose programs share their ids; record each compilation into its own folder"
    )]
    SeveralCompilations,
    /// `memory_by_tile` lists neither all tiles nor the tiles of one replica.
    #[error(
        "table `memory_by_tile` lists {listed} tiles, but `target_info` has {} (IPUs of {} tiles \
         each, {} replicas); {PROFILE_AGAIN}",
        target.num_tiles, target.tiles_per_ipu, target.num_replicas.max(1)
    )]
    ListedTiles {
        /// Number of tiles in `memory_by_tile`.
        listed: u64,
        /// Row of `target_info`.
        target: Target,
    },
    /// The path is a pipe or a device, which cannot be opened as a database.
    #[error("this is a pipe or a device, and a profile must be a file; {GIVE_PROFILE}")]
    NoFile,
    /// The file has fewer bytes than its header states.
    #[error("the file is cut off: it has {0} bytes and should have {1}; {PROFILE_AGAIN}")]
    CutOff(u64, u64),
    /// Another process wrote to the file while it was read.
    #[error(
        "the file changed while it was read; let the process that writes it finish, and try again"
    )]
    Changed,
    /// An entry with the name of a table is a view or a virtual table.
    #[error(
        "`{0}` is {1} instead of a table, and popliner runs no code from files; {GIVE_PROFILE}"
    )]
    NoTable(&'static str, &'static str),
    /// A column of a table is computed when it is read.
    #[error(
        "column `{0}` of table `{1}` is computed when it is read, and popliner runs no code from \
         files; {GIVE_PROFILE}"
    )]
    Computed(&'static str, &'static str),
    /// The rows of a table hold more bytes than the file.
    #[error(
        "table `{0}` is damaged: its rows hold more bytes than the whole file, so some of them share \
         pages; {PROFILE_AGAIN}"
    )]
    Overlapping(&'static str),
    /// The rowids of a table do not ascend, on which SQLite relies to find rows. With the first
    /// rowid out of order.
    #[error(
        "table `{0}` is damaged: its rows are not in the order of their rowids at {1}; \
         {PROFILE_AGAIN}"
    )]
    Disordered(&'static str, i64),
    /// Reading a table, or another part of the file, takes more operations than an intact file of
    /// this size can need.
    #[error(
        "{0} cannot be read to an end: there are more rows than a file of this size can hold, so \
         some pages lead back to others; {PROFILE_AGAIN}"
    )]
    Endless(&'static str),
    /// SQLite reported an error about a table, or another part of the file.
    #[error("SQLite cannot read {0}: {1}; {PROFILE_AGAIN}")]
    Sqlite(&'static str, rusqlite::Error),
}

impl ProfileError {
    /// Converts errors of SQLite about `place`.
    pub(super) fn sqlite(place: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        move |error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => ProfileError::Endless(place),
            _ => ProfileError::Sqlite(place, error),
        }
    }

    /// Error about one cell.
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
