//! Reads the program tree (`programs`, `program_types`, `control_programs`) with its compute sets,
//! the code bytes of programs, and the details of each type of program (`program_type_*`).

use super::{Cells, Database, Ids, TileBytes};
use crate::message::{Result, unusable};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{collections::BTreeMap, sync::Arc};

/// The program tree, with compute sets and vertex types.
#[derive(Debug)]
pub struct Programs {
    pub(super) ids: Ids,
    /// All programs, in the order of the file. The position of a program is its index in this list.
    pub all: Vec<Program>,
    /// The roots of the program tree (`control_programs`, ordered by id), as indices into `all`.
    pub roots: Vec<u32>,
    /// All compute sets, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// All vertex types, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// A Poplar program: it runs a compute set, moves data or synchronizes, or it is a sequence, loop
/// or call of other programs.
#[derive(Debug)]
pub struct Program {
    /// Id of the program (`programs.id`).
    pub id: u64,
    /// Name of the program; mostly empty.
    pub name: Box<str>,
    /// The kind of work that the program does.
    pub kind: ProgramKind,
    /// Id of the program's row in the table of its program type; `None` if its type has no table.
    pub(super) variant_index: Option<u64>,
    /// The children of the program in the program tree, in the order in which they run, as indices
    /// into [`Programs::all`].
    pub children: Box<[u32]>,
    /// Id of the debug context of the program; 0 for none.
    pub debug_id: u64,
    /// Bytes of the program's own control code on each tile, without the control code of its
    /// children. (`programs.control_code_bytes_by_tile` includes the control code of the children.)
    pub control_code: TileBytes,
    /// Ids of the region sets that the program moves. [`Profile::region_variables`] has their
    /// variables. The region sets are the source and the destination of an exchange, the regions of
    /// a host exchange, or the destination of a code copy. A region set without a row in
    /// `exchange_regions` is empty.
    ///
    /// [`Profile::region_variables`]: super::Profile::region_variables
    pub regions: Arc<Vec<u64>>,
}

impl Program {
    /// Returns whether the program itself neither computes nor moves data on the IPU. Such a
    /// program copies from or to the host, synchronizes, or only runs its children, which may
    /// compute or move data.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.kind, ProgramKind::Other(_))
            && (self.kind.is_stream_copy() || self.regions.is_empty())
    }
}

/// A compute set: vertices that all tiles execute in parallel.
#[derive(Debug)]
pub struct ComputeSet {
    /// Id of the compute set (`compute_sets.compute_set`).
    pub id: u64,
    /// Name of the compute set.
    pub name: Box<str>,
    /// Id of the debug context of the compute set itself; 0 if it has none, or if the profile lacks
    /// debug contexts of compute sets.
    pub debug_id: u64,
    /// One entry per vertex type of the compute set: an index into [`Programs::vertex_types`], and
    /// the number of vertices of this type on each tile.
    pub vertices: Vec<(u32, TileBytes)>,
    /// Number of vertices of the compute set on all tiles, according to its row in `compute_sets`
    /// (column `vertex_counts`); `None` if the profile lacks the column.
    pub counted: Option<u64>,
    /// Exact bytes of the vertices of the compute set on each tile: data, edge and copy pointers,
    /// descriptors and padding (`memory_by_compute_set`); `None` if the profile lacks these bytes.
    pub memory: Option<TileBytes>,
}

/// A vertex type. All vertices of one type run the same code.
#[derive(Debug)]
pub struct VertexType {
    /// Name of the vertex type, such as the C++ class of a codelet.
    pub name: Box<str>,
    /// Bytes of the state of one vertex of this type.
    pub state_bytes: u32,
    /// Bytes of the code of the vertex type on each tile.
    pub code: TileBytes,
}

impl Programs {
    /// Returns the compute set that a program runs; `None` if it runs none. `program` is an index
    /// into `all`.
    pub fn compute_set(&self, program: u32) -> Option<&ComputeSet> {
        self.set_of(&self.all[program as usize])
    }

    /// Returns the compute set that `program` runs; `None` if it runs none.
    pub(crate) fn set_of(&self, program: &Program) -> Option<&ComputeSet> {
        match program.kind {
            ProgramKind::OnTileExecute(set) => Some(&self.compute_sets[set as usize]),
            _ => None,
        }
    }

    /// Iterates over the vertex types of a compute set. Each item has the number of vertices of one
    /// type on each tile, and the bytes of state of one such vertex.
    pub(crate) fn states<'a>(
        &'a self,
        set: &'a ComputeSet,
    ) -> impl Iterator<Item = (&'a TileBytes, u64)> {
        set.vertices.iter().map(|(kind, instances)| {
            (
                instances,
                self.vertex_types[*kind as usize].state_bytes.into(),
            )
        })
    }

    pub(super) fn read(database: &Database) -> Result<Self> {
        let (type_ids, vertex_types) = read_vertex_types(database)?;
        let (set_ids, compute_sets) = read_compute_sets(database, &type_ids)?;
        let ids = read_ids(database)?;
        let details = read_details(database, &set_ids, &ids)?;
        let mut all = read_programs(database, &ids, &details)?;
        leave_children_out(&mut all);
        let roots = database.by_id("control_programs", &["id", "program"], |row| {
            row.position(1, &ids, "programs")
        })?;
        Ok(Self {
            ids,
            all,
            roots: BTreeMap::from_iter(roots).into_values().collect(),
            compute_sets,
            vertex_types,
        })
    }
}

/// Returns a map from the id of a program to its index in the table `programs`. A profile of
/// several compilations is refused, since programs of different compilations have the same ids.
fn read_ids(database: &Database) -> Result<Ids> {
    let mut first = None;
    let (ids, _) = database.indexed("programs", &["id", "compilation_step_id"], |row| {
        let step = row.signed(1)?;
        if *first.get_or_insert(step) == step {
            return Ok(());
        }
        unusable(
            "table `programs`, column `compilation_step_id`: there are several compilation steps, \
             whose programs share their ids; record each compilation into its own folder",
        )
    })?;
    Ok(ids)
}

fn read_programs(database: &Database, ids: &Ids, details: &Details) -> Result<Vec<Program>> {
    // Types of programs are identified by name, since their ids differ from profile to profile.
    let (type_ids, types) = database.indexed("program_types", &["id", "name"], |row| {
        let name = row.text(1)?;
        if name.is_empty() {
            return Err(row.problem(1, "a type of programs has no name"));
        }
        Ok(name)
    })?;
    let columns = &[
        "id",
        "variant",
        "variant_index",
        "children",
        "debug_id",
        "control_code_bytes_by_tile",
        "name",
    ];
    database.rows("programs", columns, |row| {
        let kind = &types[row.position(1, &type_ids, "program_types")? as usize];
        let variant_index = row.optional(2)?;
        let (kind, regions) = kind_of(details, &row, kind, variant_index)?;
        let child = |id: u64| {
            ids.position(id)
                .ok_or_else(|| row.problem(3, format!("there is no program with the id {id}")))
        };
        let children: Box<[u32]> = row
            .list(3, usize::MAX)?
            .into_iter()
            .map(child)
            .collect::<Result<_, _>>()?;
        let control_code = row.tile_runs(5)?;
        Ok(Program {
            id: row.unsigned(0)?,
            name: row.text(6)?.into(),
            kind,
            variant_index,
            children,
            debug_id: row.optional(4)?.unwrap_or(0),
            control_code,
            regions,
        })
    })
}

/// Subtracts from the control code of each program the control code of its children, which the
/// profile includes. A program is left without control code if one of its children is also a child
/// of a program before it, or is listed twice. This bounds the time for a damaged file, which could
/// list one large program as a child again and again.
fn leave_children_out(programs: &mut [Program]) {
    let mut is_child = vec![false; programs.len()];
    let mut is_first = |&child: &u32| !std::mem::replace(&mut is_child[child as usize], true);
    let parents: Vec<(usize, TileBytes)> = programs
        .iter()
        .enumerate()
        .filter(|(_, parent)| !parent.children.is_empty())
        .map(|(number, parent)| {
            let code = |&child: &u32| &programs[child as usize].control_code;
            let is_known = parent.children.iter().all(&mut is_first);
            let own = || parent.control_code.beyond(parent.children.iter().map(code));
            (number, is_known.then(own).unwrap_or_default())
        })
        .collect();
    for (number, own) in parents {
        programs[number].control_code = own;
    }
}

fn read_vertex_types(database: &Database) -> Result<(Ids, Vec<VertexType>)> {
    let table = "vertex_types";
    let (ids, mut types) = database.indexed(table, &["id", "name", "size"], |row| {
        Ok(VertexType {
            name: row.text(1)?.into(),
            state_bytes: row.small(2)?,
            code: TileBytes::default(),
        })
    })?;
    let columns = &["vertex_type", "code_bytes"];
    database.by_id("memory_by_vertex_type", columns, |row| {
        let position = row.position(0, &ids, table)?;
        types[position as usize].code = row.tile_list(1)?;
        Ok(())
    })?;
    Ok((ids, types))
}

pub const VERTEX_MEMORY: &str = "memory_by_compute_set";

/// Reads the compute sets with their vertices. Also returns a map from the id of a compute set to
/// its index in the list. `vertex_types` maps the id of a vertex type to its index.
fn read_compute_sets(database: &Database, vertex_types: &Ids) -> Result<(Ids, Vec<ComputeSet>)> {
    let table = "compute_sets";
    let all = &["compute_set", "name", "debug_id", "vertex_counts"];
    let columns = database.columns(table, all, 2)?;
    let (ids, mut sets) = database.indexed(table, columns, |row| {
        let (mut debug_id, mut counted) = (None, None);
        if columns.len() == all.len() {
            debug_id = row.optional(2)?;
            let counts = row.list(3, usize::MAX)?.into_iter();
            counted = Some(counts.fold(0, u64::saturating_add));
        }
        Ok(ComputeSet {
            id: row.unsigned(0)?,
            name: row.text(1)?.into(),
            debug_id: debug_id.unwrap_or(0),
            vertices: Vec::new(),
            counted,
            memory: None,
        })
    })?;
    let mut seen = FxHashSet::default();
    let columns = &["compute_set", "vertex_type", "instances_by_tile"];
    database.rows("vertex_instances", columns, |row| {
        let set = row.position(0, &ids, table)?;
        let vertex_type = row.position(1, vertex_types, "vertex_types")?;
        let instances = row.tile_runs(2)?;
        sets[set as usize].vertices.push((vertex_type, instances));
        row.check_first(seen.insert((set, vertex_type)))
    })?;
    if database.has_table(VERTEX_MEMORY) {
        let columns = &[
            "compute_set",
            "copy_ptr_bytes",
            "descriptor_bytes",
            "edge_ptr_bytes",
            "padding_bytes",
            "vertex_data_bytes",
        ];
        database.by_id(VERTEX_MEMORY, columns, |row| {
            let set = row.position(0, &ids, table)?;
            let parts: Vec<TileBytes> = (1..columns.len())
                .map(|column| row.tile_runs(column))
                .collect::<Result<_, _>>()?;
            sets[set as usize].memory = Some(row.sum(&parts)?);
            Ok(())
        })?;
    }
    Ok((ids, sets))
}

/// The kind of a program: running a compute set, moving data between the tiles of one IPU, calling
/// a function, or anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// The program runs a compute set. The value is an index into
    /// [`Programs::compute_sets`](super::Programs::compute_sets).
    OnTileExecute(u32),
    /// A program that moves data between tiles of one IPU. The value of this variant has the bytes
    /// of the program's exchange code on each tile.
    DoExchange(TileBytes),
    /// The program calls a function. The value is the program that is the body of the function, as
    /// an index into [`Programs::all`](super::Programs::all).
    Call(u32),
    /// The program has any other type, such as a loop, a sync or a host copy. The value is the name
    /// of this type in the table `program_types`.
    Other(Box<str>),
}

impl ProgramKind {
    /// Returns whether the program is an exchange, which moves data between tiles or IPUs. The
    /// first of the [region sets](super::Program::regions) of an exchange is the source, and the
    /// last one is the destination.
    pub fn is_exchange(&self) -> bool {
        match self {
            Self::DoExchange(_) => true,
            Self::Other(name) => &**name == "GlobalExchange",
            _ => false,
        }
    }

    /// Returns whether the program copies data from or to the host, or begins or ends such a copy.
    pub fn is_stream_copy(&self) -> bool {
        matches!(self, Self::Other(name) if name.starts_with("StreamCopy"))
    }
}

/// Maps each program to its kind and the ids of the region sets (regions of variables) that it
/// moves. A program is identified by the table of its type and the id of its row there
/// (`programs.variant_index`). The kind is `None` for a program that neither runs a compute set nor
/// exchanges data between tiles nor calls a function.
type Details = FxHashMap<(&'static str, u64), (Option<ProgramKind>, Arc<Vec<u64>>)>;

/// Reads the `program_type_*` tables, which have details of programs by program type.
/// `compute_sets` and `programs` map the ids of compute sets and programs to their indices.
fn read_details(database: &Database, compute_sets: &Ids, programs: &Ids) -> Result<Details> {
    let executes = database.by_id(ON_TILE_EXECUTE, &["id", "compute_set"], |row| {
        row.position(1, compute_sets, "compute_sets")
            .map(ProgramKind::OnTileExecute)
    })?;
    let exchanges = database.by_id(DO_EXCHANGE, &["id", "code_bytes_by_tile_rle"], |row| {
        row.tile_runs(1).map(ProgramKind::DoExchange)
    })?;
    let calls = read_calls(database, programs)?;
    let mut details = Details::default();
    for (table, kinds) in [
        (ON_TILE_EXECUTE, executes),
        (DO_EXCHANGE, exchanges),
        (CALL, calls),
    ] {
        for (id, kind) in kinds {
            details.insert((table, id), (Some(kind), Arc::default()));
        }
    }
    for (table, columns, owner) in REGION_COLUMNS {
        // A missing table is skipped, since a profile may lack the tables of program types that the
        // model does not use.
        if !database.has_table(table) {
            continue;
        }
        database.rows(table, columns, |row| {
            let (_, regions) = details.entry((owner, row.unsigned(0)?)).or_default();
            for column in 1..columns.len() {
                Arc::make_mut(regions).extend(row.optional(column)?);
            }
            Ok(())
        })?;
    }
    Ok(details)
}

/// Returns the kind of a program, and the ids of its region sets (the byte ranges of variables that
/// it moves). `row` is the program's row in the table `programs`, and `name` its type, such as
/// `Call`. `variant_index` is the id of its row in the table of this type, such as
/// `program_type_call`.
///
/// # Errors
/// If the program's type has a table, and the table lacks the row.
fn kind_of(
    details: &Details,
    row: &Cells<'_>,
    name: &str,
    variant_index: Option<u64>,
) -> Result<(ProgramKind, Arc<Vec<u64>>)> {
    let table = match name {
        "OnTileExecute" => ON_TILE_EXECUTE,
        "DoExchange" => DO_EXCHANGE,
        "GlobalExchange" => GLOBAL_EXCHANGE,
        "StreamCopyMid" => STREAM_COPY_MID,
        "CodeCopy" => CODE_COPY,
        "Call" => CALL,
        _ => return Ok((ProgramKind::Other(name.into()), Arc::default())),
    };
    let (kind, regions) = variant_index
        .and_then(|index| details.get(&(table, index)))
        .ok_or_else(|| row.problem(2, format!("`{table}` has no such row")))?;
    let other = || ProgramKind::Other(name.into());
    Ok((kind.clone().unwrap_or_else(other), regions.clone()))
}

/// Reads the body of each call of a function. Returns a map from the id of a row of the table
/// `program_type_call` to the call. The row names the function, and the table `function_programs`
/// names the program that is the body of the function. `programs` maps the id of a program to its
/// index. The map is empty if the profile lacks the table of calls. (That the tables are used in
/// this way is assumed: the table of calls has no rows in the only real profile.)
fn read_calls(database: &Database, programs: &Ids) -> Result<FxHashMap<u64, ProgramKind>> {
    if !database.has_table(CALL) {
        return Ok(FxHashMap::default());
    }
    let functions = "function_programs";
    let (ids, bodies) = database.indexed(functions, &["id", "program"], |row| {
        row.position(1, programs, "programs")
    })?;
    database.by_id(CALL, &["id", "function_id"], |row| {
        Ok(ProgramKind::Call(
            bodies[row.position(1, &ids, functions)? as usize],
        ))
    })
}

const ON_TILE_EXECUTE: &str = "program_type_on_tile_execute";
const DO_EXCHANGE: &str = "program_type_do_exchange";
const GLOBAL_EXCHANGE: &str = "program_type_global_exchange";
const STREAM_COPY_MID: &str = "program_type_stream_copy_mid";
const CODE_COPY: &str = "program_type_code_copy";
const CALL: &str = "program_type_call";

const MOVED: &[&str] = &["id", "source_regions_id", "destination_regions_id"];
const HOST_EXCHANGE: &[&str] = &["stream_copy_mid_id", "regions_id"];

/// The tables of a profile that say which region sets (regions of variables) a program moves. Each
/// entry has:
/// - the name of the table
/// - its columns: first the id of a program, then the ids of region sets that this program moves
/// - the table `program_type_*` in which the program has this id
const REGION_COLUMNS: [(&str, &[&str], &str); 6] = [
    (DO_EXCHANGE, MOVED, DO_EXCHANGE),
    (GLOBAL_EXCHANGE, MOVED, GLOBAL_EXCHANGE),
    (CODE_COPY, &["id", "destination_regions_id"], CODE_COPY),
    // `program_type_stream_copy_mid` has a row for every stream copy, but no region sets. Without
    // this entry, the row of a stream copy that moves no regions would be reported as missing.
    (STREAM_COPY_MID, &["id"], STREAM_COPY_MID),
    ("host_exchange_from_host", HOST_EXCHANGE, STREAM_COPY_MID),
    ("host_exchange_to_host", HOST_EXCHANGE, STREAM_COPY_MID),
];
