//! Reads the format version and the target of a profile, which are needed before all other data.
//! Also reads the origin of a profile, and a summary for users who have several profiles.

use super::{
    Cells, Database,
    cells::{Columns, cell, no_row},
    or_warn,
};
use crate::{
    limits,
    message::{GIVE_PROFILE, PROFILE_AGAIN, Result, Warning, unusable},
    progress::Progress,
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path};

/// Version of the report format of a profile (`version_info`).
#[derive(Debug, Clone, Copy, Default)]
pub struct FormatVersion {
    major: u64,
    minor: u64,
    point: u64,
}

/// Major version of the report formats that can be read, the 3 in 3.8.0. Profiles are SQLite files
/// since format 3.
const KNOWN_MAJOR: u64 = 3;

/// Minor version of the only report format that was checked on a real profile, the 8 in 3.8. Poplar
/// 3.3.0 wrote that profile.
const KNOWN_MINOR: u64 = 8;

impl FormatVersion {
    /// Reads the version of the report format from an SQLite database. Refuses a database that is
    /// no profile, and a major version other than 3.
    pub fn read(database: &Database) -> Result<Self> {
        let table = "version_info";
        if !database.has_table(table) {
            return unusable(format!(
                "the file is an SQLite database, but not a profile: it has no table `{table}`; \
                 {GIVE_PROFILE}"
            ));
        }
        let version = only_row(database, table, &["major", "minor", "point"], |row| {
            Ok(Self {
                major: row.unsigned(0)?,
                minor: row.unsigned(1)?,
                point: row.unsigned(2)?,
            })
        })?;
        if version.major == KNOWN_MAJOR {
            return Ok(version);
        }
        // A profile whose report format has another major version is refused, since the same
        // tables may have another meaning there.
        unusable(format!(
            "the profile has report format {version}, and popliner reads only format \
             {KNOWN_MAJOR} (Poplar up to 3.3); record it with such an SDK, or use a popliner that \
             reads its format"
        ))
    }

    /// Returns a warning if this version of the report format was not checked on a real profile.
    pub fn warning(self) -> Option<Warning> {
        ((self.major, self.minor) != (KNOWN_MAJOR, KNOWN_MINOR)).then(|| {
            Warning::new(format!(
                "the profile has report format {self}, and only {KNOWN_MAJOR}.{KNOWN_MINOR} \
                 (Poplar 3.3) was checked against real files; look at the figures and at the \
                 coverage with care, or record the profile with that SDK"
            ))
        })
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.point)
    }
}

/// Calls `read` with the cells in `columns` of the only row of `table`, and returns the result of
/// `read`. A table with no row or with several rows is an error.
fn only_row<T>(
    database: &Database,
    table: &'static str,
    columns: Columns,
    read: impl Fn(Cells<'_>) -> Result<T>,
) -> Result<T> {
    let mut rows = database.rows(table, columns, read)?;
    let row = rows.pop().ok_or_else(|| no_row(table))?;
    if rows.is_empty() {
        return Ok(row);
    }
    unusable(format!(
        "table `{table}` has several rows instead of one; {PROFILE_AGAIN}"
    ))
}

pub const TILES: &str = "memory_by_tile";

/// Returns the number of tiles that `memory_by_tile` lists: the largest tile number plus 1, or 0 if
/// the table has no rows.
pub fn listed_tiles(database: &Database) -> Result<u64> {
    let tiles = database.rows(TILES, &["tile"], |row| row.unsigned(0))?;
    Ok(tiles
        .into_iter()
        .max()
        .map_or(0, |last| last.saturating_add(1)))
}

/// The machine that a model was compiled for (`target_info`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Number of tiles of one IPU: 1216 on Mk1, 1472 on Mk2 and Bow.
    pub tiles_per_ipu: u32,
    /// Number of tiles of all IPUs together.
    pub num_tiles: u32,
    /// Memory of one tile in bytes: 262,144 on Mk1, 638,976 on Mk2 and Bow.
    pub bytes_per_tile: u64,
    /// Number of IPUs that the model was compiled for.
    pub num_ipus: u64,
    /// Number of replicas (copies of the program on different IPUs) that the model was compiled
    /// for.
    pub num_replicas: u64,
    /// Poplar's name of the hardware, such as `ipu2`.
    pub architecture: String,
}

impl Target {
    pub(super) fn read(database: &Database) -> Result<Self> {
        let columns = &[
            "tiles_per_ipu",
            "num_tiles",
            "bytes_per_tile",
            "num_ipus",
            "num_replicas",
            "architecture",
        ];
        only_row(database, "target_info", columns, |row| {
            for column in 0..2 {
                if !(1..=limits::TILES).contains(&row.unsigned(column)?) {
                    return Err(row.problem(column, "no machine has that many tiles"));
                }
            }
            Ok(Self {
                tiles_per_ipu: row.small(0)?,
                num_tiles: row.small(1)?,
                bytes_per_tile: row.unsigned(2)?,
                num_ipus: row.unsigned(3)?,
                num_replicas: row.unsigned(4)?,
                architecture: row.text(5)?,
            })
        })
    }

    /// If the model was compiled for several replicas of one IPU each, reduces the target of
    /// `database` to one replica and returns a warning. Any other target stays as it is. All
    /// replicas run the same program on the same tiles, so results for one replica hold for all.
    ///
    /// # Errors
    /// If the model was compiled for such replicas, but the profile does not list exactly the tiles
    /// of one replica.
    pub(super) fn take_one_replica(database: &mut Database) -> Result<Option<Warning>> {
        let target = &database.target;
        let replicas = target.num_replicas;
        let (of_ipu, all) = (u64::from(target.tiles_per_ipu), u64::from(target.num_tiles));
        let is_one_ipu_each = all == of_ipu || Some(all) == of_ipu.checked_mul(replicas);
        if replicas <= 1 || !is_one_ipu_each {
            return Ok(None);
        }
        let listed = if database.has_table(TILES) {
            listed_tiles(database)?
        } else {
            0
        };
        if listed != of_ipu {
            return unusable(format!(
                "the profile was compiled for {replicas} replicas of one IPU each and lists all \
                 {listed} tiles instead of those of one replica; compile the model without \
                 replication to split it, or judge it as it is with --fit"
            ));
        }
        let target = &mut database.target;
        target.num_tiles = target.tiles_per_ipu;
        (target.num_ipus, target.num_replicas) = (1, 1);
        Ok(Some(Warning::new(format!(
            "the profile was compiled for {replicas} identical replicas of one IPU each, and \
             results are for one of them, with the code that exchanges gradients between them and \
             only its share of sharded variables; compile without replication to compute the model \
             by itself"
        ))))
    }

    /// Returns an error if the target has several IPUs or replicas, which the memory model does not
    /// cover (docs/model.md, "The memory of a stage"), or tiles or IPUs of sizes that no machine
    /// has.
    pub(crate) fn check_single_ipu(&self) -> Result<()> {
        self.check_sizes()?;
        if self.num_tiles == self.tiles_per_ipu && self.num_ipus == 1 && self.num_replicas <= 1 {
            return Ok(());
        }
        unusable(format!(
            "the profile was compiled for {} IPUs ({} tiles, {} on each, replicas: {}), and only \
             one IPU without replication can be split; compile the whole model for one IPU, \
             without pipelining or replication, or judge it as it is with --fit",
            self.num_ipus, self.num_tiles, self.tiles_per_ipu, self.num_replicas
        ))
    }

    /// Returns an error if no machine has tiles of the target's size, or IPUs with its number of
    /// tiles.
    pub(super) fn check_sizes(&self) -> Result<()> {
        let unlike = |column, value: u64, what| {
            let problem = format!("no machine has {what}");
            Err(cell("target_info", column, value, problem))
        };
        if !(1..=limits::BYTES_OF_TILE).contains(&self.bytes_per_tile) {
            return unlike("bytes_per_tile", self.bytes_per_tile, "tiles of that size");
        }
        if self.tiles_per_ipu > limits::TILES_OF_IPU {
            let tiles = self.tiles_per_ipu.into();
            return unlike("tiles_per_ipu", tiles, "IPUs of that many tiles");
        }
        Ok(())
    }
}

/// The origin of a profile: the version of Poplar that compiled the model, the time, and the
/// options. It is only shown in reports, except for the clock frequency, which converts cycles to
/// seconds. A field is `None` or empty if the profile lacks the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    /// Version of Poplar that wrote the profile, such as `3.3.0 (de1f8de2a7)` (`poplar_version`).
    pub poplar: Option<String>,
    /// Time of the compilation as Poplar wrote it, without a time zone: `2024-04-09 08:23:39`
    /// (`date_time`).
    pub time: Option<String>,
    /// Kind of device: `IPU`, `IPU_MODEL` or `CPU` (`target_info.type_`).
    pub device: Option<String>,
    /// Clock frequency of a tile in Hz (`target_info.clock_frequency`). This is the only number in
    /// a profile that differs between a Mk2 and a Bow.
    pub clock_hertz: Option<u64>,
    /// Compilation options that differ from their defaults, sorted by name (table
    /// `compilation_parameters`).
    pub compilation_options: Vec<ChosenOption>,
    /// Target options that differ from their defaults, sorted by name (table `target_parameters`).
    pub target_options: Vec<ChosenOption>,
}

/// An option of Poplar that was set to something other than its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenOption {
    /// Name of the option, such as `opt.internalExchangeOptimisationTarget`.
    pub name: String,
    /// Value of the option, as Poplar wrote it in the profile.
    pub value: String,
}

impl BuildInfo {
    /// Reads the origin of the profile: the version of Poplar, time and options of the compilation.
    /// Tables that the profile lacks are skipped. A table that cannot be understood is skipped too,
    /// and a warning is added to `warnings`.
    pub(super) fn read(database: &Database, warnings: &mut Vec<Warning>) -> Self {
        let machine = database.rows_if_any("target_info", &["type_", "clock_frequency"], |row| {
            Ok((row.text(0)?, row.optional(1)?))
        });
        let (device, clock) = or_warn(machine, "the kind and clock of the target", warnings)
            .pop()
            .unzip();
        let mut options = |table, what| {
            let columns = &["name", "value", "is_default"];
            let rows = database.rows_if_any(table, columns, |row| {
                let (name, value) = (row.text(0)?, row.text(1)?);
                Ok((row.unsigned(2)? == 0).then_some(ChosenOption { name, value }))
            });
            let mut options: Vec<ChosenOption> = or_warn(rows, what, warnings)
                .into_iter()
                .flatten()
                .collect();
            options.sort_by(|a, b| a.name.cmp(&b.name));
            options
        };
        let compilation_options = options("compilation_parameters", "options of the compilation");
        let target_options = options("target_parameters", "options of the target");
        let mut last = |table, what| {
            or_warn(
                database.rows_if_any(table, &["string"], |row| row.text(0)),
                what,
                warnings,
            )
            .pop()
        };
        Self {
            poplar: last("poplar_version", "versions of Poplar"),
            time: last("date_time", "times of the compilation"),
            device,
            clock_hertz: clock.flatten(),
            compilation_options,
            target_options,
        }
    }
}

/// A summary of a profile. Only a few rows of the profile are read for it.
#[derive(Debug)]
pub struct Outline {
    /// The machine that the model was compiled for.
    pub target: Target,
    /// Whether the profile lists lowered variables, the pieces of memory on each tile that hold
    /// tensors and code (table `vars_info`).
    pub has_variables: bool,
    /// Whether the model was executed, so that the profile has executed steps.
    pub is_executed: bool,
}

impl Outline {
    /// Reads the summary of the profile at `path`.
    ///
    /// # Errors
    /// [`FileError`](crate::message::FileError) if the file is no profile, or its target cannot be
    /// understood.
    pub fn read(path: &Path) -> Result<Self> {
        let database = Database::open(path, &Progress::new())?;
        Ok(Self {
            has_variables: database.has_rows("vars_info")?,
            is_executed: database.has_rows("steps")?,
            target: database.target,
        })
    }
}
