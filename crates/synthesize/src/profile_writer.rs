//! Writes `profile.pop`: the order of tables, and those without big numbers.

use std::path::Path;

use crate::encoding::encode_list;
use anyhow::Context as _;
use rusqlite::{Connection, params};

use super::plan::Plan;
use super::schema::insert;
use super::settings::{Framework, Settings};
use super::{cycles, memory_tables, program_tables, schema, variable_tables, vertex_tables};

/// Writes the profile of `plan` in one transaction, row by row.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let mut connection = create(path, plan.settings.page_size)?;
    let transaction = connection.transaction()?;
    schema::create(&transaction)?;
    // A model that outgrows its IPU can be executed by a simulation of one only.
    let kind = match plan.settings.execution {
        true => "IPU_MODEL",
        false => "IPU",
    };
    target(&plan.settings, (1, 1), kind, &transaction)?;
    versions(plan, &transaction)?;
    vertex_tables::write(plan, &transaction)?;
    cycles::write(plan, &transaction)?;
    program_tables::write(plan, &transaction)?;
    let truth = variable_tables::write(plan, &transaction)?;
    memory_tables::write(plan, &truth, &transaction)?;
    let has_estimates = !plan.settings.no_cycle_estimates;
    let has = [true, has_estimates, plan.settings.execution];
    parameters(&plan.settings, has, &transaction)?;
    transaction.commit()?;
    Ok(())
}

/// An empty file for one transaction.
pub fn create(path: &Path, page_size: u32) -> anyhow::Result<Connection> {
    let connection =
        Connection::open(path).with_context(|| format!("cannot create {}", path.display()))?;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {page_size}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA cache_size = -65536;"
    ))?;
    Ok(connection)
}

/// Writes the target: IPUs of a replica, replicas, and the kind (`IPU` or `IPU_MODEL`).
pub fn target(
    settings: &Settings,
    (ipus, replicas): (u32, u32),
    kind: &str,
    connection: &Connection,
) -> rusqlite::Result<()> {
    let tiles = u64::from(settings.tiles);
    let of_replica = tiles * u64::from(ipus);
    let all_tiles = of_replica * u64::from(replicas);
    let bytes = settings.bytes_per_tile;
    let (architecture, clock) = match bytes <= 262_144 {
        true => ("ipu1", 1_600_000_000u64),
        false => ("ipu2", 1_850_000_000),
    };
    let elements = 0..bytes / 16_384;
    let elements: Vec<u64> = elements.map(|element| element * 16_384).collect();
    connection.execute(
        "INSERT INTO target_info VALUES (?1, ?2, ?3, 10, ?10, ?11, ?4, ?12, ?13, ?14, ?15, ?16, ?5, ?9,
         64, ?6, ?7, ?8, 311296, 2, 6, 4, 8, 4, 1, 600, 256, 5, 5, 10, 64, 4, 4, 4, 8, 4, 2, 16,
         8, 16, 0, 16, 64, 262144, 65535, 4)",
        params![
            tiles * bytes,
            bytes,
            clock,
            tiles,
            architecture,
            encode_list(&elements),
            settings.plain_bytes(),
            encode_list(&[0, settings.plain_bytes()]),
            kind,
            ipus * replicas,
            all_tiles,
            all_tiles * bytes,
            replicas,
            ipus,
            of_replica,
            of_replica * bytes,
        ],
    )?;
    let delays = (0..all_tiles).map(|tile| (tile, tile / 2 % 24));
    insert(connection, "relative_sync_delay", delays)
}

fn versions(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let sets = &plan.code.sets;
    let vertices: usize = sets.iter().map(Vec::len).sum();
    let row = (sets.len(), sets.len() * 3, plan.variables, vertices);
    insert(connection, "graph_info", [row])?;
    software(connection)
}

/// Versions of Poplar and of the format.
pub fn software(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "INSERT INTO date_time VALUES ('2023-07-04 12:00:00');
         INSERT INTO poplar_version VALUES ('3.3.0 (synthetic)', 'synthetic', 3, 3, 0);
         INSERT INTO version_info VALUES (3, 8, 0, 0, 'graph_profile');
         INSERT INTO instrumentation_settings VALUES (1, 'Tile', 1, 1);
         INSERT INTO compilation_info VALUES ('synthetic');
         INSERT INTO optimization_info VALUES ('Constant replication count', 0.0);
         INSERT INTO compilation_trace VALUES (1000, 'createCompiledGraphBinary', 0);",
    )
}

/// Options of the compilation, with or without lowered variables, estimates of cycles, and an
/// execution.
pub fn parameters(
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
    insert(connection, "compilation_parameters", rows)?;
    connection.execute_batch(
        "INSERT INTO target_parameters VALUES ('GatewayMode', '1', 0);
         INSERT INTO target_parameters VALUES ('IpuLinkDomainSize', '64', 1);",
    )
}
