//! The program tree (`programs`, `program_types`, `control_programs`) with its compute sets, and the
//! code bytes of programs.

use super::database::Database;
use super::encoding::decode_list;
use super::error::DUPLICATE;
use super::ids::{Ids, insert_once, position};
use super::program_types::Details;
use super::tile_bytes::TileBytes;
use super::{ProfileError, Target, vertices};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The program tree, with compute sets and vertex types.
#[derive(Debug, Clone)]
pub struct Programs {
    pub(super) ids: Ids,
    /// All programs, in the order of the file.
    pub all: Vec<Program>,
    /// Roots of the tree (`control_programs`, ordered by id), as positions in `all`.
    pub roots: Vec<u32>,
    /// All compute sets, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// All vertex types, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Id of the program (`programs.id`).
    pub id: u64,
    /// Name of the program; mostly empty.
    pub name: Box<str>,
    /// Kind of the program.
    pub kind: ProgramKind,
    /// Id of the program's row in the table of its type.
    pub(super) variant_index: Option<u64>,
    /// Children in order, as positions in [`Programs::all`].
    pub children: Box<[u32]>,
    /// Debug context; 0 for none.
    pub debug_id: u64,
    /// Bytes of control code by tile. Empty for a program with children, whose recorded bytes
    /// include those of the children.
    pub control_code: TileBytes,
    /// Ids of the region sets that the program moves, for
    /// [`Profile::region_variables`](super::Profile::region_variables): source and destination of
    /// an exchange, regions of a host exchange, destination of a code copy. A region set without a
    /// row is empty.
    pub regions: Arc<[u64]>,
}

/// Kind of a program, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Runs the compute set at this position in [`Programs::compute_sets`].
    OnTileExecute(u32),
    /// Moves data between tiles; with the bytes of exchange code by tile.
    DoExchange(TileBytes),
    /// Runs the body of a function, at this position in [`Programs::all`].
    Call(u32),
    /// Any other type, by its name in `program_types`.
    Other(Box<str>),
}

impl ProgramKind {
    /// Does the program move data between tiles or IPUs, from its first region set to its last?
    pub fn is_exchange(&self) -> bool {
        match self {
            ProgramKind::DoExchange(_) => true,
            ProgramKind::Other(name) => &**name == "GlobalExchange",
            ProgramKind::OnTileExecute(_) | ProgramKind::Call(_) => false,
        }
    }

    /// Does the program copy from or to the host, or begin or end such a copy?
    pub fn is_stream_copy(&self) -> bool {
        matches!(self, ProgramKind::Other(name) if name.starts_with("StreamCopy"))
    }
}

/// One compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// Id of the compute set (`compute_sets.compute_set`).
    pub id: u64,
    /// Name of the compute set.
    pub name: Box<str>,
    /// Debug context of the compute set itself; 0 for none, or if the profile lacks it.
    pub debug_id: u64,
    /// Vertices by type (a position in [`Programs::vertex_types`]), with the number of instances by
    /// tile.
    pub vertices: Vec<(u32, TileBytes)>,
    /// Number of instances as the compute set itself states it; `None` if the profile lacks it.
    pub counted: Option<u64>,
    /// Exact bytes of its vertices by tile: data, edge and copy pointers, descriptors and padding
    /// (`memory_by_compute_set`); `None` if the profile lacks them.
    pub memory: Option<TileBytes>,
}

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    /// Name of the vertex type.
    pub name: Box<str>,
    /// State of one instance, in bytes.
    pub state_bytes: u32,
    /// Code of the vertex type, in bytes by tile.
    pub code: TileBytes,
}

impl Programs {
    /// Position in `all` of the program with this id.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// A row of `programs`, with ids in place of the positions in [`Program`].
pub(super) struct ProgramRow {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) variant_index: Option<u64>,
    pub(super) children: Vec<u64>,
    pub(super) debug_id: u64,
    pub(super) control_code: TileBytes,
}

impl Programs {
    /// Reads the tree with its compute sets, vertices and details.
    pub(super) fn read(database: &Database, target: &Target) -> Result<Self, ProfileError> {
        let tiles = target.num_tiles;
        let (vertex_ids, vertex_types) = vertices::read_types(database, tiles)?;
        let (compute_set_ids, mut compute_sets) = vertices::read_compute_sets(database)?;
        vertices::read_instances(
            database,
            tiles,
            &vertex_ids,
            &compute_set_ids,
            &mut compute_sets,
        )?;
        vertices::read_memory(database, tiles, &compute_set_ids, &mut compute_sets)?;
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
            return Err(ProfileError::SeveralCompilations);
        }
        let variant = row.unsigned(1)?;
        let kind = types
            .get(&variant)
            .ok_or_else(|| row.problem(1, format!("`program_types` has no id {variant}")))?;
        let children = decode_list(row.blob(3)?, usize::MAX).map_err(row.bad_blob(3))?;
        let control_code = if children.is_empty() {
            TileBytes::from_rle(row.blob(5)?, tiles).map_err(row.bad_blob(5))?
        } else {
            TileBytes::default()
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

/// Names of the program types by id; the ids differ from file to file.
fn read_types(database: &Database) -> Result<FxHashMap<u64, Box<str>>, ProfileError> {
    let mut types = FxHashMap::default();
    database.scan("program_types", &["id", "name"], |row| {
        let name = row.text(1)?;
        if name.is_empty() {
            return Err(row.problem(1, "a type of programs has no name"));
        }
        insert_once(&mut types, &row, name.into())
    })?;
    Ok(types)
}

fn read_roots(database: &Database, programs: &Ids) -> Result<Vec<u32>, ProfileError> {
    let mut roots = Vec::new();
    database.scan("control_programs", &["id", "program"], |row| {
        let program = position(programs, &row, 1, "programs")?;
        roots.push((row.unsigned(0)?, program));
        Ok(())
    })?;
    roots.sort_unstable();
    if let Some(twice) = roots.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(ProfileError::cell(
            "control_programs",
            "id",
            twice[0].0,
            DUPLICATE,
        ));
    }
    Ok(roots.into_iter().map(|(_, program)| program).collect())
}
