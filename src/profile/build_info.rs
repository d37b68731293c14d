//! How a profile came about: versions, time, machine and options.

use super::ProfileError;
use super::cells::Cells;
use super::cycles::or_warn;
use super::database::Database;
use crate::message::Warning;
use serde::{Deserialize, Serialize};

/// The origin of a profile, as reports give it. Nothing is computed from it, so
/// whatever a profile lacks is `None` or empty. All of these tables were seen
/// in a real profile (report format 3.8.0).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInfo {
    /// The version of Poplar that wrote it, such as `3.3.0 (de1f8de2a7)`
    /// (`poplar_version`).
    pub poplar: Option<String>,
    /// When, as Poplar wrote it: `2024-04-09 08:23:39`, without a time zone
    /// (`date_time`).
    pub time: Option<String>,
    /// `IPU`, `IPU_MODEL` or `CPU` (`target_info.type_`).
    pub device: Option<String>,
    /// Cycles of a tile in a second (`target_info.clock_frequency`), which is
    /// all that tells a Mk2 from a Bow.
    pub clock_hertz: Option<u64>,
    /// The options of the compilation that were not left at their defaults, by
    /// name (`compilation_parameters`).
    pub compilation_options: Vec<ChosenOption>,
    /// Options of the target (`target_parameters`).
    pub target_options: Vec<ChosenOption>,
}

/// An option that was set to something other than its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenOption {
    /// Its name, such as `opt.internalExchangeOptimisationTarget`.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl BuildInfo {
    /// Reads what there is, and says as sentences what cannot be understood.
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

/// Reads the last row of a table, if the table is there with a row.
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
