//! Writes `profile.pop`: the order of tables, and those without big numbers.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::Connection;

use super::plan::Plan;
use super::schema::insert;
use super::settings::{Framework, Settings};
use super::{cycles, program_tables, schema, variable_tables, vertex_tables};

/// Writes the profile of `plan`, row by row.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let has_estimates = !plan.settings.no_cycle_estimates;
    let has = [true, has_estimates, plan.settings.execution];
    write_with(path, &plan.settings, (1, 1), has, |connection| {
        vertex_tables::write(plan, connection)?;
        cycles::write(plan, connection)?;
        program_tables::write(plan, connection)?;
        variable_tables::write(plan, connection)
    })
}

/// Writes a profile in one transaction: the target (IPUs of a replica, and replicas), the options of
/// the compilation (with lowered variables, with estimates of cycles, with an execution), and the
/// tables that `write_tables` writes.
pub fn write_with<T>(
    path: &Path,
    settings: &Settings,
    ipus: (u32, u32),
    has: [bool; 3],
    write_tables: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> anyhow::Result<T> {
    let mut connection =
        Connection::open(path).with_context(|| format!("cannot create {}", path.display()))?;
    let page_size = settings.page_size;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA cache_size = -65536;"
    ))?;
    let transaction = connection.transaction()?;
    schema::create(&transaction)?;
    target(settings, ipus, has[2], &transaction)?;
    let written = write_tables(&transaction)?;
    parameters(settings, has, &transaction)?;
    transaction.commit()?;
    Ok(written)
}

/// Writes the target, and the rows that are the same in every profile: date and versions.
fn target(
    settings: &Settings,
    (ipus, replicas): (u32, u32),
    is_executed: bool,
    connection: &Connection,
) -> rusqlite::Result<()> {
    let bytes = settings.bytes_per_tile;
    let (architecture, clock) = match bytes <= 262_144 {
        true => ("ipu1", 1_600_000_000u64),
        false => ("ipu2", 1_850_000_000),
    };
    // A model that outgrows its IPU can be executed by a simulation of one only.
    let kind = match is_executed && ipus == 1 {
        true => "IPU_MODEL",
        false => "IPU",
    };
    let tiles = settings.tiles;
    connection.execute(
        "INSERT INTO target_info (num_ipus, num_tiles, tiles_per_ipu, num_replicas,
         ipus_per_replica, bytes_per_tile, architecture, clock_frequency, type_)
         VALUES (?2 * ?3, ?1 * ?2 * ?3, ?1, ?3, ?2, ?4, ?5, ?6, ?7)",
        (tiles, ipus, replicas, bytes, architecture, clock, kind),
    )?;
    connection.execute_batch(include_str!("constants.sql"))
}

/// Options of the compilation, with or without lowered variables, estimates of cycles, and an
/// execution.
fn parameters(
    settings: &Settings,
    [has_variables, has_estimates, has_execution]: [bool; 3],
    connection: &Connection,
) -> rusqlite::Result<()> {
    let text = |is_on: bool| if is_on { "true" } else { "false" };
    let out_of_memory = text(settings.framework != Framework::Poplar);
    let variables = text(has_variables);
    let estimates = text(has_estimates);
    let is_set = (!has_estimates).into();
    let rows = [
        ("autoReport.directory", "./report", 0),
        ("autoReport.outputDebugInfo", "true", 0),
        ("autoReport.outputGraphProfile", "true", 0),
        ("autoReport.outputLoweredVars", variables, 0),
        ("debug.allowOutOfMemory", out_of_memory, 0),
        ("opt.enableInternalExchangeReuse", "true", 1),
        ("profiler.format", "v3", 1),
        ("profiler.includeCycleEstimates", estimates, is_set),
        ("autoReport.outputExecutionProfile", "true", 0),
    ];
    let count = rows.len() - usize::from(!has_execution);
    let rows = rows.into_iter().take(count);
    insert(connection, "compilation_parameters", rows)
}
