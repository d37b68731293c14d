//! Reads the tables with details of each type of program (`program_type_*`).

use super::cells::Cells;
use super::database::Database;
use super::ids::{Ids, position};
use super::tile_bytes::TileBytes;
use crate::message::Result;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The kind of work that a program does, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// The program runs the compute set at this position in
    /// [`Programs::compute_sets`](super::Programs::compute_sets).
    OnTileExecute(u32),
    /// The program moves data between tiles of one IPU; with the bytes of its exchange code on each
    /// tile.
    DoExchange(TileBytes),
    /// The program calls a function, whose body is the program at this position in
    /// [`Programs::all`](super::Programs::all).
    Call(u32),
    /// The program does anything else; with the name of its type in `program_types`.
    Other(Box<str>),
}

impl ProgramKind {
    /// Returns whether the program is an exchange: it moves data between tiles or IPUs. Then the
    /// first of its [region sets](super::Program::regions) is the source, and the last the
    /// destination.
    pub fn is_exchange(&self) -> bool {
        match self {
            Self::DoExchange(_) => true,
            Self::Other(name) => &**name == "GlobalExchange",
            Self::OnTileExecute(_) | Self::Call(_) => false,
        }
    }

    /// Returns whether the program copies data from or to the host, or begins or ends such a copy.
    pub fn is_stream_copy(&self) -> bool {
        matches!(self, Self::Other(name) if name.starts_with("StreamCopy"))
    }
}

/// The rows of the `program_type_*` tables, by the id with which `programs.variant_index` refers to
/// them.
pub(super) struct Details {
    /// By table of a program type, then by id of a row: the kind of program. It has only the tables
    /// of compute sets, exchanges and calls.
    kinds: FxHashMap<&'static str, FxHashMap<u64, ProgramKind>>,
    /// By table of a program type and id of a row: the ids of the region sets that the program
    /// moves.
    regions: RegionIds,
}

impl Details {
    /// Reads the tables. `tiles` is the number of tiles; `compute_sets` and `programs` map ids to
    /// positions.
    pub fn read(
        database: &Database,
        tiles: u32,
        compute_sets: &Ids,
        programs: &Ids,
    ) -> Result<Self> {
        let executes = database.by_id(ON_TILE_EXECUTE, &["id", "compute_set"], |row| {
            position(compute_sets, &row, 1, "compute_sets").map(ProgramKind::OnTileExecute)
        })?;
        let exchanges = database.by_id(DO_EXCHANGE, &["id", "code_bytes_by_tile_rle"], |row| {
            row.tile_runs(1, tiles).map(ProgramKind::DoExchange)
        })?;
        let kinds = [
            (ON_TILE_EXECUTE, executes),
            (DO_EXCHANGE, exchanges),
            (CALL, read_calls(database, programs)?),
        ];
        Ok(Self {
            kinds: kinds.into_iter().collect(),
            regions: read_region_columns(database)?,
        })
    }

    /// Returns the kind of the program in `row` of `programs`, and the ids of the region sets that
    /// it moves. `kind` is the name of its type, and `variant_index`, from column 2, the id of its
    /// row in the table of that type. An error if the type has a table and that row is missing.
    pub fn kind(
        &self,
        row: &Cells<'_>,
        kind: &str,
        variant_index: Option<u64>,
    ) -> Result<(ProgramKind, Arc<[u64]>)> {
        let table = match kind {
            "OnTileExecute" => ON_TILE_EXECUTE,
            "DoExchange" => DO_EXCHANGE,
            "GlobalExchange" => GLOBAL_EXCHANGE,
            "StreamCopyMid" => STREAM_COPY_MID,
            "CodeCopy" => CODE_COPY,
            "Call" => CALL,
            _ => return Ok((ProgramKind::Other(kind.into()), Arc::default())),
        };
        let missing = || row.problem(2, format!("`{table}` has no such row"));
        let index = variant_index.ok_or_else(missing)?;
        let regions = self.regions.get(&(table, index));
        let found = match self.kinds.get(table) {
            Some(rows) => rows.get(&index).cloned(),
            None => regions.map(|_| ProgramKind::Other(kind.into())),
        };
        Ok((
            found.ok_or_else(missing)?,
            regions.cloned().unwrap_or_default(),
        ))
    }
}

/// Reads the body of each call, by id of the row of `program_type_call`: the row names a function,
/// and `function_programs` the program of the function, a position by `programs`. Empty if there is
/// no such table. (Assumed: the real profile has no such rows.)
fn read_calls(database: &Database, programs: &Ids) -> Result<FxHashMap<u64, ProgramKind>> {
    if !database.has_table(CALL) {
        return Ok(FxHashMap::default());
    }
    let functions = "function_programs";
    let (ids, bodies) = database.indexed(functions, &["id", "program"], |row| {
        position(programs, &row, 1, "programs")
    })?;
    database.by_id(CALL, &["id", "function_id"], |row| {
        Ok(ProgramKind::Call(
            bodies[position(&ids, &row, 1, functions)? as usize],
        ))
    })
}

/// The table of the programs that run a compute set. The tables below belong to the other program
/// types that say more about memory than the name of the type.
const ON_TILE_EXECUTE: &str = "program_type_on_tile_execute";
const DO_EXCHANGE: &str = "program_type_do_exchange";
const GLOBAL_EXCHANGE: &str = "program_type_global_exchange";
const STREAM_COPY_MID: &str = "program_type_stream_copy_mid";
const CODE_COPY: &str = "program_type_code_copy";
const CALL: &str = "program_type_call";

/// The column with the id of a row of an exchange, and the columns with the region sets that it
/// moves.
const MOVED: &[&str] = &["id", "source_regions_id", "destination_regions_id"];
const HOST_EXCHANGE: &[&str] = &["stream_copy_mid_id", "regions_id"];

/// Tables with ids of region sets: name of the table, its columns (the key first), and the table of
/// program types whose rows the key identifies.
const REGION_COLUMNS: [(&str, &[&str], &str); 6] = [
    (DO_EXCHANGE, MOVED, DO_EXCHANGE),
    (GLOBAL_EXCHANGE, MOVED, GLOBAL_EXCHANGE),
    (CODE_COPY, &["id", "destination_regions_id"], CODE_COPY),
    // A stream copy need not have a region, but it has a row here.
    (STREAM_COPY_MID, &["id"], STREAM_COPY_MID),
    ("host_exchange_from_host", HOST_EXCHANGE, STREAM_COPY_MID),
    ("host_exchange_to_host", HOST_EXCHANGE, STREAM_COPY_MID),
];

/// Ids of region sets, by the table of a program type and the id of its row.
type RegionIds = FxHashMap<(&'static str, u64), Arc<[u64]>>;

fn read_region_columns(database: &Database) -> Result<RegionIds> {
    let mut regions: FxHashMap<_, Vec<u64>> = FxHashMap::default();
    for (table, columns, owner) in REGION_COLUMNS {
        // The table of a program type that the model does not use may be missing.
        if !database.has_table(table) {
            continue;
        }
        database.scan(table, columns, |row| {
            let of_program = regions.entry((owner, row.unsigned(0)?)).or_default();
            for column in 1..columns.len() {
                of_program.extend(row.optional(column)?);
            }
            Ok(())
        })?;
    }
    Ok(regions
        .into_iter()
        .map(|(row, ids)| (row, ids.into()))
        .collect())
}
