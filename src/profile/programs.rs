//! The program tree and the code that programs run.

use super::database::{Cells, Database};
use super::encoding::decode_list;
use super::ids::Ids;
use super::tile_bytes::TileBytes;
use super::{ProfileError, Target};
use rustc_hash::FxHashMap;

/// The program tree, with compute sets and vertex types.
#[derive(Debug, Clone)]
pub struct Programs {
    ids: Ids,
    /// Every program, in the order of the file.
    pub all: Vec<Program>,
    /// The roots of the tree (`control_programs`, by id), as positions in `all`.
    pub roots: Vec<u32>,
    /// Every compute set, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// Every vertex type, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// `programs.id`.
    pub id: u64,
    /// Its name; mostly empty.
    pub name: Box<str>,
    /// What it does.
    pub kind: ProgramKind,
    /// Its children in order, as positions in [`Programs::all`].
    pub children: Box<[u32]>,
    /// Its debug context; 0 for none.
    pub debug_id: u64,
    /// Bytes of control code by tile. Those of a program with children
    /// include the children's, so they are kept for programs without only.
    pub control_code: TileBytes,
    /// The ids of the region sets that it moves, for
    /// [`Profile::region_variables`](super::Profile::region_variables): source
    /// and destination of exchanges, the regions of a host exchange, the
    /// destination of a code copy. A region set without a row is empty.
    pub regions: Box<[u64]>,
}

/// What a program does, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Runs a compute set; its position in [`Programs::compute_sets`].
    OnTileExecute(u32),
    /// Moves data between tiles, with so much code by tile.
    DoExchange(TileBytes),
    /// Runs the body of a function; its position in [`Programs::all`].
    Call(u32),
    /// Anything else, by its name in `program_types`.
    Other(Box<str>),
}

/// One compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// `compute_sets.compute_set`.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// The vertices it holds: position in [`Programs::vertex_types`], and how
    /// many instances each tile has.
    pub vertices: Vec<(u32, TileBytes)>,
    /// Exact bytes of its vertices by tile: data, edge and copy pointers,
    /// descriptors and padding (`memory_by_compute_set`); `None` when the
    /// profile does not say.
    pub memory: Option<TileBytes>,
}

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    /// Its name.
    pub name: Box<str>,
    /// Bytes of state of one instance.
    pub state_bytes: u32,
    /// Bytes of code by tile.
    pub code: TileBytes,
}

impl Programs {
    /// Reads the tree and everything that hangs on it.
    pub(super) fn read(database: &Database, target: &Target) -> Result<Self, ProfileError> {
        let tiles = target.num_tiles;
        let (vertex_ids, vertex_types) = read_vertex_types(database, tiles)?;
        let (compute_set_ids, mut compute_sets) = read_compute_sets(database)?;
        read_vertices(
            database,
            tiles,
            &vertex_ids,
            &compute_set_ids,
            &mut compute_sets,
        )?;
        read_vertex_memory(database, tiles, &compute_set_ids, &mut compute_sets)?;
        let rows = read_rows(database, tiles)?;
        let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
        let ids = Ids::of("programs", "id", &ids)?;
        let details = Details::read(database, tiles, &compute_set_ids, &ids)?;
        let all = rows
            .into_iter()
            .map(|row| details.program(row, &ids))
            .collect::<Result<_, _>>()?;
        let roots = read_roots(database, &ids)?;
        Ok(Self {
            ids,
            all,
            roots,
            compute_sets,
            vertex_types,
        })
    }

    /// The position in `all` of the program with this id.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// A row of `programs`, with ids where [`Program`] has positions.
struct ProgramRow {
    id: u64,
    name: Box<str>,
    kind: Box<str>,
    variant_index: Option<u64>,
    children: Vec<u64>,
    debug_id: u64,
    control_code: TileBytes,
}

fn read_rows(database: &Database, tiles: u32) -> Result<Vec<ProgramRow>, ProfileError> {
    let types = read_types(database)?;
    let columns = &[
        "id",
        "variant",
        "variant_index",
        "children",
        "debug_id",
        "control_code_bytes_by_tile",
        "compilation_step_id",
        "name",
    ];
    let mut compilation_step = None;
    let mut rows = Vec::new();
    database.scan("programs", columns, |row| {
        let step = row.signed(6)?;
        if *compilation_step.get_or_insert(step) != step {
            return Err(ProfileError::Unsupported(
                "the profile holds several compilation steps, whose programs share their ids; \
                 only profiles of one compilation can be read"
                    .to_string(),
            ));
        }
        let variant = row.unsigned(1)?;
        let kind = types
            .get(&variant)
            .ok_or_else(|| row.problem(1, format!("`program_types` has no id {variant}")))?;
        let children = decode_list(row.blob(3)?, usize::MAX).map_err(row.bad_blob(3))?;
        let control_code = match children.is_empty() {
            true => TileBytes::from_rle(row.blob(5)?, tiles).map_err(row.bad_blob(5))?,
            false => TileBytes::default(),
        };
        rows.push(ProgramRow {
            id: row.unsigned(0)?,
            name: row.text(7)?.into(),
            kind: kind.clone(),
            variant_index: row.optional(2)?,
            children,
            debug_id: row.optional(4)?.unwrap_or(0),
            control_code,
        });
        Ok(())
    })?;
    Ok(rows)
}

/// The name of each program type that the file uses; the numbers differ from
/// file to file.
fn read_types(database: &Database) -> Result<FxHashMap<u64, Box<str>>, ProfileError> {
    let mut types = FxHashMap::default();
    database.scan("program_types", &["id", "name"], |row| {
        types.insert(row.unsigned(0)?, row.text(1)?.into());
        Ok(())
    })?;
    Ok(types)
}

/// What the `program_type_*` tables say, by `programs.variant_index`.
struct Details {
    on_tile_execute: FxHashMap<u64, u32>,
    do_exchange: FxHashMap<u64, TileBytes>,
    calls: FxHashMap<u64, u32>,
    /// Ids of region sets by table, then by row.
    regions: RegionIds,
}

impl Details {
    fn read(
        database: &Database,
        tiles: u32,
        compute_sets: &Ids,
        programs: &Ids,
    ) -> Result<Self, ProfileError> {
        Ok(Self {
            on_tile_execute: read_on_tile_execute(database, compute_sets)?,
            do_exchange: read_do_exchange(database, tiles)?,
            calls: read_calls(database, programs)?,
            regions: read_region_columns(database)?,
        })
    }

    fn program(&self, row: ProgramRow, ids: &Ids) -> Result<Program, ProfileError> {
        let (kind, regions) = self.kind(&row)?;
        let child = |&id: &u64| {
            ids.position(id).ok_or_else(|| {
                let problem = format!("there is no program with the id {id}");
                ProfileError::cell("programs", "children", row.id, problem)
            })
        };
        Ok(Program {
            id: row.id,
            name: row.name,
            kind,
            children: row.children.iter().map(child).collect::<Result<_, _>>()?,
            debug_id: row.debug_id,
            regions: regions.into(),
            control_code: row.control_code,
        })
    }

    /// The kind of a program and the region sets that it moves.
    fn kind(&self, row: &ProgramRow) -> Result<(ProgramKind, Vec<u64>), ProfileError> {
        let table = match &*row.kind {
            "OnTileExecute" => "program_type_on_tile_execute",
            "DoExchange" => "program_type_do_exchange",
            "GlobalExchange" => "program_type_global_exchange",
            "StreamCopyMid" => "program_type_stream_copy_mid",
            "CodeCopy" => "program_type_code_copy",
            "Call" => "program_type_call",
            _ => return Ok((ProgramKind::Other(row.kind.clone()), Vec::new())),
        };
        let missing = || {
            let problem = format!("`{table}` has no such row");
            ProfileError::cell("programs", "variant_index", row.id, problem)
        };
        let index = row.variant_index.ok_or_else(missing)?;
        let regions = self.regions.get(table).and_then(|rows| rows.get(&index));
        let kind = match &*row.kind {
            "OnTileExecute" => self
                .on_tile_execute
                .get(&index)
                .map(|&set| ProgramKind::OnTileExecute(set)),
            "DoExchange" => self
                .do_exchange
                .get(&index)
                .cloned()
                .map(ProgramKind::DoExchange),
            "Call" => self.calls.get(&index).map(|&body| ProgramKind::Call(body)),
            _ => regions.map(|_| ProgramKind::Other(row.kind.clone())),
        };
        let regions = regions.cloned().unwrap_or_default();
        Ok((kind.ok_or_else(missing)?, regions))
    }
}

fn read_on_tile_execute(
    database: &Database,
    compute_sets: &Ids,
) -> Result<FxHashMap<u64, u32>, ProfileError> {
    let mut sets = FxHashMap::default();
    let table = "program_type_on_tile_execute";
    database.scan(table, &["id", "compute_set"], |row| {
        let set = position(compute_sets, &row, 1, "compute_sets")?;
        sets.insert(row.unsigned(0)?, set);
        Ok(())
    })?;
    Ok(sets)
}

fn read_do_exchange(
    database: &Database,
    tiles: u32,
) -> Result<FxHashMap<u64, TileBytes>, ProfileError> {
    let mut code = FxHashMap::default();
    let columns = &["id", "code_bytes_by_tile_rle"];
    database.scan("program_type_do_exchange", columns, |row| {
        let bytes = TileBytes::from_rle(row.blob(1)?, tiles).map_err(row.bad_blob(1))?;
        code.insert(row.unsigned(0)?, bytes);
        Ok(())
    })?;
    Ok(code)
}

/// The body of each call: `program_type_call` names a function, and
/// `function_programs` its program. (No real row was seen yet.)
fn read_calls(database: &Database, programs: &Ids) -> Result<FxHashMap<u64, u32>, ProfileError> {
    let (call, function) = ("program_type_call", "function_programs");
    let mut calls = FxHashMap::default();
    if !database.has_table(call) {
        return Ok(calls);
    }
    let mut bodies = FxHashMap::default();
    database.scan(function, &["id", "program"], |row| {
        let program = position(programs, &row, 1, "programs")?;
        bodies.insert(row.unsigned(0)?, program);
        Ok(())
    })?;
    database.scan(call, &["id", "function_id"], |row| {
        let id = row.unsigned(1)?;
        let unknown = || row.problem(1, format!("`{function}` has no function {id}"));
        calls.insert(row.unsigned(0)?, *bodies.get(&id).ok_or_else(unknown)?);
        Ok(())
    })?;
    Ok(calls)
}

/// Where regions stand: the table, the key and region columns, and the
/// program type's table that the key belongs to.
const REGION_COLUMNS: [(&str, &[&str], &str); 6] = [
    (
        "program_type_do_exchange",
        &["id", "source_regions_id", "destination_regions_id"],
        "program_type_do_exchange",
    ),
    (
        "program_type_global_exchange",
        &["id", "source_regions_id", "destination_regions_id"],
        "program_type_global_exchange",
    ),
    (
        "program_type_code_copy",
        &["id", "destination_regions_id"],
        "program_type_code_copy",
    ),
    // A stream copy need not move a region, but it has a row.
    (
        "program_type_stream_copy_mid",
        &["id"],
        "program_type_stream_copy_mid",
    ),
    (
        "host_exchange_from_host",
        &["stream_copy_mid_id", "regions_id"],
        "program_type_stream_copy_mid",
    ),
    (
        "host_exchange_to_host",
        &["stream_copy_mid_id", "regions_id"],
        "program_type_stream_copy_mid",
    ),
];

/// The ids of region sets, by the program type's table, then by its row.
type RegionIds = FxHashMap<&'static str, FxHashMap<u64, Vec<u64>>>;

fn read_region_columns(database: &Database) -> Result<RegionIds, ProfileError> {
    let mut regions = RegionIds::default();
    for (table, columns, owner) in REGION_COLUMNS {
        // A program type that the model does not use need not have its table.
        if !database.has_table(table) {
            continue;
        }
        let rows = regions.entry(owner).or_default();
        database.scan(table, columns, |row| {
            let of_program = rows.entry(row.unsigned(0)?).or_default();
            for column in 1..columns.len() {
                of_program.extend(row.optional(column)?);
            }
            Ok(())
        })?;
    }
    Ok(regions)
}

fn read_roots(database: &Database, programs: &Ids) -> Result<Vec<u32>, ProfileError> {
    let mut roots = Vec::new();
    database.scan("control_programs", &["id", "program"], |row| {
        let program = position(programs, &row, 1, "programs")?;
        roots.push((row.unsigned(0)?, program));
        Ok(())
    })?;
    roots.sort_unstable();
    Ok(roots.into_iter().map(|(_, program)| program).collect())
}

fn read_vertex_types(
    database: &Database,
    tiles: u32,
) -> Result<(Ids, Vec<VertexType>), ProfileError> {
    let table = "vertex_types";
    let (mut ids, mut types) = (Vec::new(), Vec::new());
    database.scan(table, &["id", "name", "size"], |row| {
        ids.push(row.unsigned(0)?);
        types.push(VertexType {
            name: row.text(1)?.into(),
            state_bytes: row.small(2)?,
            code: TileBytes::default(),
        });
        Ok(())
    })?;
    let ids = Ids::of(table, "id", &ids)?;
    let columns = &["vertex_type", "code_bytes"];
    database.scan("memory_by_vertex_type", columns, |row| {
        let position = position(&ids, &row, 0, table)?;
        let code = TileBytes::from_list(row.blob(1)?, tiles).map_err(row.bad_blob(1))?;
        types[position as usize].code = code;
        Ok(())
    })?;
    Ok((ids, types))
}

fn read_compute_sets(database: &Database) -> Result<(Ids, Vec<ComputeSet>), ProfileError> {
    let table = "compute_sets";
    let mut sets = Vec::new();
    database.scan(table, &["compute_set", "name"], |row| {
        sets.push(ComputeSet {
            id: row.unsigned(0)?,
            name: row.text(1)?.into(),
            vertices: Vec::new(),
            memory: None,
        });
        Ok(())
    })?;
    let ids: Vec<u64> = sets.iter().map(|set| set.id).collect();
    let ids = Ids::of(table, "compute_set", &ids)?;
    Ok((ids, sets))
}

fn read_vertices(
    database: &Database,
    tiles: u32,
    vertex_types: &Ids,
    compute_sets: &Ids,
    sets: &mut [ComputeSet],
) -> Result<(), ProfileError> {
    let columns = &["compute_set", "vertex_type", "instances_by_tile"];
    database.scan("vertex_instances", columns, |row| {
        let set = position(compute_sets, &row, 0, "compute_sets")?;
        let vertex_type = position(vertex_types, &row, 1, "vertex_types")?;
        let instances = TileBytes::from_rle(row.blob(2)?, tiles).map_err(row.bad_blob(2))?;
        sets[set as usize].vertices.push((vertex_type, instances));
        Ok(())
    })
}

fn read_vertex_memory(
    database: &Database,
    tiles: u32,
    compute_sets: &Ids,
    sets: &mut [ComputeSet],
) -> Result<(), ProfileError> {
    let table = "memory_by_compute_set";
    if !database.has_table(table) {
        return Ok(());
    }
    let columns = &[
        "compute_set",
        "copy_ptr_bytes",
        "descriptor_bytes",
        "edge_ptr_bytes",
        "padding_bytes",
        "vertex_data_bytes",
    ];
    database.scan(table, columns, |row| {
        let set = position(compute_sets, &row, 0, "compute_sets")?;
        let mut parts = Vec::with_capacity(columns.len() - 1);
        for column in 1..columns.len() {
            parts
                .push(TileBytes::from_rle(row.blob(column)?, tiles).map_err(row.bad_blob(column))?);
        }
        let sum = TileBytes::sum(parts.iter().map(|part| (part, 1)), tiles);
        let too_much = |tile| row.problem(1, format!("more than 4 GiB on tile {tile}"));
        sets[set as usize].memory = Some(sum.map_err(too_much)?);
        Ok(())
    })
}

/// The position of the row that a cell points to.
fn position(ids: &Ids, row: &Cells<'_>, column: usize, table: &str) -> Result<u32, ProfileError> {
    let id = row.unsigned(column)?;
    let unknown = || row.problem(column, format!("`{table}` has no row with the id {id}"));
    ids.position(id).ok_or_else(unknown)
}
