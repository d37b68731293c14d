//! Origin of a profile (version of Poplar, time, machine and options), and a summary of a profile for
//! users who have several.

use super::cells::Cells;
use super::cycles::or_warn;
use super::database::Database;
use super::{FormatVersion, ProfileError, Target};
use crate::message::Warning;
use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Origin of a profile, for reports only. Nothing is computed from it, so a field is `None` or
/// empty when the profile lacks it. Every table read here occurs in a real profile (report format
/// 3.8.0).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    /// Version of Poplar that wrote the profile, such as `3.3.0 (de1f8de2a7)` (`poplar_version`).
    pub poplar: Option<String>,
    /// Time of the compilation as Poplar wrote it, without a time zone: `2024-04-09 08:23:39`
    /// (`date_time`).
    pub time: Option<String>,
    /// Kind of device: `IPU`, `IPU_MODEL` or `CPU` (`target_info.type_`).
    pub device: Option<String>,
    /// Clock of a tile in Hz (`target_info.clock_frequency`). No other figure of a profile differs
    /// between a Mk2 and a Bow.
    pub clock_hertz: Option<u64>,
    /// Compilation options that differ from their defaults, by name (`compilation_parameters`).
    pub compilation_options: Vec<ChosenOption>,
    /// Target options that differ from their defaults, by name (`target_parameters`).
    pub target_options: Vec<ChosenOption>,
}

/// An option that was set to something other than its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenOption {
    /// Name of the option, such as `opt.internalExchangeOptimisationTarget`.
    pub name: String,
    /// Value of the option.
    pub value: String,
}

impl BuildInfo {
    /// Reads the tables that are there; a table that cannot be understood becomes a warning.
    pub(super) fn read(database: &Database) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let poplar = only(database, "poplar_version", &["string"], |row| row.text(0));
        let time = only(database, "date_time", &["string"], |row| row.text(0));
        let machine = &["type_", "clock_frequency"];
        let machine = only(database, "target_info", machine, |row| {
            Ok((row.text(0)?, row.optional(1)?))
        });
        let machine = or_warn(machine, "the kind and clock of the target", &mut warnings);
        let (device, clock) = machine.unzip();
        let mut options = |table, what| or_warn(chosen(database, table), what, &mut warnings);
        let compilation_options = options("compilation_parameters", "options of the compilation");
        let target_options = options("target_parameters", "options of the target");
        let made = Self {
            poplar: or_warn(poplar, "versions of Poplar", &mut warnings),
            time: or_warn(time, "times of the compilation", &mut warnings),
            device,
            clock_hertz: clock.flatten(),
            compilation_options,
            target_options,
        };
        (made, warnings)
    }
}

/// Reads the last row of a table; `None` if the table or a column is missing, or has no row.
fn only<T>(
    database: &Database,
    table: &'static str,
    columns: &'static [&'static str],
    read: impl Fn(Cells<'_>) -> Result<T, ProfileError>,
) -> Result<Option<T>, ProfileError> {
    let mut found = None;
    if database.require(table, columns).is_ok() {
        database.scan(table, columns, |row| {
            found = Some(read(row)?);
            Ok(())
        })?;
    }
    Ok(found)
}

fn chosen(database: &Database, table: &'static str) -> Result<Vec<ChosenOption>, ProfileError> {
    let columns = &["name", "value", "is_default"];
    let mut options = Vec::new();
    if database.require(table, columns).is_err() {
        return Ok(options);
    }
    database.scan(table, columns, |row| {
        if row.unsigned(2)? == 0 {
            let (name, value) = (row.text(0)?, row.text(1)?);
            options.push(ChosenOption { name, value });
        }
        Ok(())
    })?;
    options.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(options)
}

/// Summary of a profile that is made without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// IPUs that the model was compiled for (`target_info.num_ipus`).
    pub ipus: u64,
    /// Replicas that the model was compiled for.
    pub replicas: u64,
    /// Does the profile have lowered variables?
    pub has_variables: bool,
    /// Does the profile have executed steps?
    pub is_executed: bool,
}

impl Outline {
    /// Reads the summary of the profile at `path`.
    ///
    /// # Errors
    /// [`ProfileError`] if the file is no profile, or its target cannot be understood.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let mut database = Database::open(path, &Progress::new())?;
        database.version = FormatVersion::read(&database)?;
        let target = Target::read(&database)?;
        let has_rows = |table| -> Result<bool, ProfileError> {
            Ok(database.has_table(table) && database.has_rows(table)?)
        };
        Ok(Self {
            ipus: target.num_ipus,
            replicas: target.num_replicas,
            has_variables: has_rows("vars_info")?,
            is_executed: has_rows("steps")?,
        })
    }

    /// Can the model be split: was it compiled for one IPU, and does the profile have variables?
    pub fn can_be_split(&self) -> bool {
        self.ipus == 1 && self.has_variables
    }
}
